"""What the wrappers share: an inner estimator, and how weights reach it."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy.typing as npt
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from likewise._typing import FloatArray
from likewise.enforce.base import Enforced
from likewise.errors import InvalidTypeError


class Wrapping(MetaEstimatorMixin, Enforced):
    """An estimator around another one, to which `fit` hands on `sample_weight`.

    With metadata routing (``sklearn.set_config(enable_metadata_routing=True)``) the inner estimator is given weights if
    it asks for them (``set_fit_request(sample_weight=True)``), and must say so either way. Without, it is given them
    whenever there are any.
    """

    estimator: Any

    def get_metadata_routing(self) -> Any:
        """Where metadata go: what this estimator asks for itself, and what the inner one does in `fit`."""
        router = MetadataRouter(owner=self).add_self_request(self)
        if hasattr(self.estimator, "get_metadata_routing"):
            router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        return router

    def _inner_weights(self, weights: FloatArray | None) -> FloatArray | None:
        """The weights, unless the inner estimator does not ask for them."""
        if weights is None or not get_config()["enable_metadata_routing"]:
            return weights
        routed = process_routing(self, "fit", sample_weight=weights)
        asked: FloatArray | None = routed["estimator"].fit.get("sample_weight") if "estimator" in routed else weights
        return asked


def fit_weighted(estimator: Any, table: Any, y: npt.NDArray[Any], weights: FloatArray | None) -> Any:
    """Fit a clone, with weights if there are any; a model that cannot weigh people is refused."""
    model = clone(estimator)
    if weights is None:
        return model.fit(table, y)
    if get_config()["enable_metadata_routing"]:  # who asks for weights is given them; a pipeline hands them on itself
        return model.fit(table, y, sample_weight=weights)
    last = model.steps[-1] if isinstance(model, Pipeline) else ("", model)
    check_takes_weights(last[1])
    name = f"{last[0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight"
    return model.fit(table, y, **{name: weights})


def check_takes_weights(estimator: Any, method: str = "fit") -> None:
    """Raise if an inner estimator cannot weigh people."""
    if "sample_weight" not in signature(getattr(estimator, method)).parameters:
        raise InvalidTypeError(
            f"sample_weight needs an estimator whose {method} takes it; {type(estimator).__name__} does not. Leave it "
            "out."
        )
