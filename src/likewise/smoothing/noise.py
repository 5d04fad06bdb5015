"""Noises calibrated to a metric: each is a sampler with a bound on the total variation between its translates.

By the data-processing inequality, the average of any model over ``x + t`` satisfies ``TV(h(x), h(x')) <= TV(x + t,
x' + t)`` (`docs/theory.md` §3). Each noise therefore has a `curve` with ``TV(x + t, x' + t) <= curve.bound(D(x, x'))``.
It is sampled for a standard norm and divided by the metric's scales.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import ndtr

from likewise._typing import BoolArray, FloatArray
from likewise._validation import NON_NEGATIVE, short_repr
from likewise.exceptions import InvalidInputError, InvalidTypeError
from likewise.kernel import rules
from likewise.kernel.bounds import Bound, LoosenedBound
from likewise.kernel.distance import lp_norm
from likewise.kernel.metric import BoundMetric
from likewise.metrics.weighted_lp import WeightedLp

_SMALLEST_SCALE = 1e-290  # below it, noise of width 1/scale overflows


@dataclass(frozen=True, repr=False)
class Noise(ABC):
    """A distribution of perturbations, with a bound on the total variation between its translates.

    A noise is made for its own ("native") norm ``q``. Under a metric with exponent ``p``, since
    ``||z||_q <= d^max(0, 1/q - 1/p) ||z||_p``, widening it by ``d^max(0, 1/q - 1/p)`` keeps its bound valid;
    ``d`` counts the features with a positive weight.

    Attributes
    ----------
    metric : WeightedLp, or BoundMetric in a fitted model
        ``TV(x + t, x' + t) <= curve.bound(metric(x, x'))`` for all x and x'.
    """

    metric: WeightedLp | BoundMetric

    def __post_init__(self) -> None:
        if not isinstance(self.metric, WeightedLp | BoundMetric):
            raise InvalidTypeError(f"metric must be a WeightedLp; got {type(self.metric).__name__}.")
        positive = self.metric.scales[self.metric.scales > 0]
        if positive.size == 0:
            raise InvalidInputError(
                "weights are all 0: only a constant model satisfies this metric, and no noise is wide enough. Give at "
                "least one feature a positive weight."
            )
        if positive.min() < _SMALLEST_SCALE:
            raise InvalidInputError(
                f"weights must be 0 or large enough for noise of finite width (scale >= {_SMALLEST_SCALE:g}); "
                f"got a scale of {positive.min():g}. Use 0 for a feature that must not matter."
            )

    @classmethod
    def for_metric(cls, metric: WeightedLp | BoundMetric) -> Self:
        """Return the noise of this kind calibrated to `metric`."""
        return cls(metric)

    def bound_to(self, metric: WeightedLp | BoundMetric) -> Self:
        """Return the same kind of noise for a metric as a model has learned it: with other names, order or weights."""
        return replace(self, metric=metric)

    @property
    def curve(self) -> Bound:
        """Bound on the total variation between two translates, as a function of their distance."""
        return rules.theorem_of(self)[0]

    @property
    def native_p(self) -> float:
        """Exponent of the norm that this noise is made for."""
        return rules.theorem_of(self)[1] or self.metric.p

    @property
    def described(self) -> Any:
        """The metric as people wrote it."""
        return self.metric.description if isinstance(self.metric, BoundMetric) else self.metric

    @property
    def names(self) -> tuple[Any, ...] | None:
        """Names of the columns, if the metric has them."""
        return self.metric.schema.labels if isinstance(self.metric, BoundMetric) else self.metric.feature_names

    @property
    def visible(self) -> BoolArray:
        """Which features have a positive weight, so that the model sees them (perturbed)."""
        return np.asarray(self.metric.scales > 0)

    @property
    def widths(self) -> FloatArray:
        """Factor on the standard noise per feature; 0 where the weight is 0."""
        scales, visible = self.metric.scales, self.visible
        conversion = float(visible.sum()) ** max(0.0, 1 / self.native_p - 1 / self.metric.p)
        return np.asarray(np.divide(conversion, scales, out=np.zeros_like(scales), where=visible))

    @property
    def cumulative(self) -> Callable[[FloatArray], FloatArray] | None:
        """Distribution function of the standard noise per coordinate; None if coordinates are not independent."""
        return None

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` perturbations.

        Returns
        -------
        ndarray of shape (n, n_features)
            To be added to a row. 0 for features of weight 0: no finite noise hides those, so the estimators replace
            their values instead (`likewise.smoothing.sampling`).
        """
        out = np.zeros((n, len(self.metric.scales)))
        out[:, self.visible] = self._standard(n, int(self.visible.sum()), rng)
        out *= self.widths
        return out

    def __repr__(self) -> str:
        return f"{type(self).__name__}.for_metric({self.described!r})"

    @abstractmethod
    def _standard(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        """Sample the noise for the native norm with unit scales."""


class Gaussian(Noise):
    """Gaussian noise, ``N(0, I / (2 pi))`` for the standard L2 norm (Theorem 5 of the paper).

    ``curve.bound(D) = erf(sqrt(pi) D / 2)``, the exact total variation between its translates. The paper proves it
    for two classes; it holds for any number.

    Examples
    --------
    >>> noise = Gaussian.for_metric(WeightedLp([4.0, 1.0], p=2))
    >>> noise.sample(100_000, np.random.default_rng(0)).std(axis=0).round(2)  # 0.399 / sqrt(weights)
    array([0.2, 0.4])
    >>> noise.curve.bound([0, 0.1, 1]).round(3)
    array([0.  , 0.1 , 0.79])
    """

    SIGMA: ClassVar[float] = 1 / np.sqrt(2 * np.pi)

    def _standard(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        return rng.standard_normal((n, d)) * self.SIGMA

    @property
    def cumulative(self) -> Callable[[FloatArray], FloatArray]:
        """``Phi(z / sigma)``."""
        return lambda z: np.asarray(ndtr(z / self.SIGMA))


class Laplace(Noise):
    """Noise of density proportional to ``exp(-2 ||t||_p)``, for the metric's own p (Theorem 3 of the paper).

    ``curve.bound(D) = 1 - exp(-D)``, for every p; the exact total variation between translates along an axis for
    ``p = 1``.

    Examples
    --------
    >>> noise = Laplace.for_metric(WeightedLp([1.0, 1.0], p=3))
    >>> noise.curve.bound([0.1, 1]).round(3)
    array([0.095, 0.632])
    """

    def _standard(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        # The radius ||t||_p is Gamma(d) with scale 1/2; the direction follows the cone measure:
        # independent z_i = +-Gamma(1/p)^(1/p), divided by ||z||_p. Since Gamma(a) = Gamma(a + 1) * U^(1/a)
        # in law, Gamma(1/p)^(1/p) = Gamma(1 + 1/p)^(1/p) * U: no underflow for large p, and p = inf included.
        p = self.metric.p
        z = rng.uniform(-1.0, 1.0, (n, d))
        if np.isfinite(p):
            z *= rng.standard_gamma(1 + 1 / p, (n, d)) ** (1 / p)
        radius = rng.standard_gamma(d, n) / 2
        norm = lp_norm(z, p)
        return z * (radius / np.where(norm > 0, norm, 1.0))[:, None]

    @property
    def cumulative(self) -> Callable[[FloatArray], FloatArray] | None:
        """``exp(-2 |z|) / 2`` below 0, for p = 1 or a single feature."""
        if self.metric.p != 1 and self.visible.sum() != 1:
            return None
        return lambda z: np.where(z < 0, 0.5 * np.exp(-2 * np.abs(z)), 1 - 0.5 * np.exp(-2 * np.abs(z)))


class Uniform(Noise):
    """Uniform noise on a box, ``U[-1/2, 1/2]^d`` for the standard L1 norm.

    ``curve.bound(D) = min(1, D)``. Its standard deviation, 0.289 per unit of scale, is the smallest of the noises
    here for ``p = 1``, so it changes the model the least.

    Examples
    --------
    >>> noise = Uniform.for_metric(WeightedLp([0.5], p=1))
    >>> bool(abs(noise.sample(100, np.random.default_rng(0))).max() <= 1)
    True
    """

    def _standard(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        return rng.random((n, d)) - 0.5

    @property
    def cumulative(self) -> Callable[[FloatArray], FloatArray]:
        """``z + 1/2``, between 0 and 1."""
        return lambda z: np.clip(z + 0.5, 0.0, 1.0)


@dataclass(frozen=True, repr=False)
class Splitting(Noise):
    """Deterministic noise: a row becomes the centre of the grid cell it falls into, for K shifts of the grid.

    Cells have width ``1 / s_i`` for the standard L1 norm. A cell border falls between ``x_i`` and ``x'_i`` in at most
    ``s_i |x_i - x'_i| K + 1`` of the K shifts, so ``TV <= D + n_diff / K``, where ``n_diff`` counts the features in
    which the two rows differ: for all pairs and every model, with certainty (`docs/theory.md` §6). A feature whose
    values lie on a grid (whole numbers, for example) adds nothing to ``n_diff``, as its cells hold whole steps.
    ``curve.bound(D) = min(1, D + excess)``.

    Attributes
    ----------
    metric : WeightedLp
    steps : "auto", None, or tuple of float
        Steps of the features' grids. "auto" finds them in the training data: whole numbers, and values that repeat at
        multiples of a step; a value between two grid points is rounded to either, in proportion. With declared steps
        (0: no grid), values off the grid raise an error. None uses no grid.
    excess : float
        ``n / K``, where n counts the features without a grid; set in `fit`.

    Examples
    --------
    >>> noise = Splitting.for_metric(WeightedLp({"age": 0.1, "score": 0.5}), steps={"age": 1})
    >>> noise.steps
    (1.0, 0.0)
    >>> noise.curve.bound([0.1, 2])
    array([0.1, 1. ])
    """

    steps: Any = "auto"
    excess: float = 0.0

    @property
    def curve(self) -> Bound:
        """``min(1, D + excess)``."""
        return LoosenedBound(self.excess)

    def __post_init__(self) -> None:
        super().__post_init__()
        NON_NEGATIVE.check("excess", self.excess)
        if self.steps is not None and not (isinstance(self.steps, str) and self.steps == "auto"):
            object.__setattr__(self, "steps", _check_steps(self.steps, self.names, len(self.metric.scales)))

    @classmethod
    def for_metric(cls, metric: WeightedLp | BoundMetric, *, steps: Any = "auto") -> Self:
        """Return the splitting calibrated to `metric`; `steps` may be a mapping from feature name to step."""
        return cls(metric, steps)

    def bound_to(self, metric: WeightedLp | BoundMetric) -> Self:
        """As for every noise; declared steps follow the names of their features, where both metrics have names."""
        steps, own, other = self.steps, self.names, type(self)(metric, None).names
        if isinstance(steps, tuple) and own is not None and other is not None:
            steps = {name: step for name, step in zip(own, steps, strict=True) if name in other or step}
        return replace(self, metric=metric, steps=steps)

    def _standard(self, n: int, d: int, rng: np.random.Generator) -> FloatArray:
        # The centre of the cell minus the row is uniform, for each single row.
        return rng.random((n, d)) - 0.5


NOISES: dict[str, type[Noise]] = {kind.__name__.lower(): kind for kind in (Gaussian, Laplace, Uniform, Splitting)}


def _check_steps(steps: Any, names: tuple[Any, ...] | None, n: int) -> tuple[float, ...]:
    if isinstance(steps, Mapping):
        names = names or ()
        unknown = [name for name in steps if name not in names]
        if unknown:
            raise InvalidInputError(f"steps must name features of the metric, {list(names)}; got {unknown[0]!r}.")
        steps = [steps.get(name, 0.0) for name in names]
    try:
        values = tuple(float(step) for step in steps)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"steps must be 'auto', None, or one number per feature; got {short_repr(steps)}."
        ) from None
    if len(values) != n or not all(0 <= step < np.inf for step in values):
        raise InvalidInputError(
            f"steps must be one non-negative number for each of the {n} features; got "
            f"{short_repr(steps)}. Use 0 for a feature without a grid."
        )
    return values
