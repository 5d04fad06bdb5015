"""A search for the pair of people, seen or not, whose outputs exceed what is allowed by most."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from likewise._fit_validation import seed_from
from likewise._parallel import single_threaded_blas
from likewise._progress import progress_bar
from likewise._typing import FloatArray
from likewise._validation import TRUTH, check_count, check_output_range
from likewise.auditing.audit import check_tolerance
from likewise.auditing.domain import SearchSpace, survey
from likewise.auditing.pair_search import PairEvaluator, strategies_for
from likewise.base import ConstrainedEstimator
from likewise.exceptions import InvalidInputError
from likewise.guarantees.guarantee import Guarantee
from likewise.inspection.prediction import is_plain_function
from likewise.metrics.base import Metric, check_metric
from likewise.metrics.encoders import People, labels_of
from likewise.pairs.model_outputs import asked, probability_outputs, rows_for

_ROUND = 20_000_000  # pairs after which the search starts over, with other people
_LEAST = 1000
_WORDS = {
    "random": "around people, at distances of every order of magnitude",
    "borders": "on both sides of values at which the model may turn",
    "categories": "different in categories, in what is missing, and in columns that must not matter",
    "lines": "between two people, cut again and again to where the outputs move most",
    "slopes": "along the steepest way, by finite differences",
    "climbing": "from the worst so far, by moves that made them worse",
}


@dataclass(frozen=True, eq=False)
class Attack:
    """The worst pair that was found, and what was tried.

    Attributes
    ----------
    pair : DataFrame of two rows
        The two people, in the columns in which people are given; an array, if these have no names.
    difference : float
        Of their outputs: total variation of class probabilities, or absolute difference of numbers (a share of the
        output range, if there is one).
    distance : float
        Between them, under the metric.
    excess : float
        ``difference - distance``.
    bound : float
        What the model's own promise allows at this distance, ``guarantee_.bound``; the distance, if the model makes no
        promise under this metric.
    excess_over_bound : float
        ``difference - bound``; this is what the pair is worst by.
    n_violations : int
        Pairs among those tried that exceed the bound by more than `tolerance`. Many are near one another, or share a
        person.
    largest_share : float
        Largest ``difference / bound``: how close the search came to the bound, if it did not exceed it.
    tried : mapping from str to int
        Pairs that were compared, by the way they were found. All pairs within groups of 8 to 64 people are, so these
        are no independent draws.
    n_pairs : int
        All of them.
    tolerance : float
    metric : Metric
    guarantee : Guarantee or None
        The promise that was tested.
    refused : tuple of str
        What could not be tried, since the model would not answer.
    coverage : str
        The same in words. That nothing was found is no proof.
    """

    pair: Any
    difference: float
    distance: float
    bound: float
    n_violations: int
    largest_share: float
    tried: Mapping[str, int]
    tolerance: float
    metric: Metric
    guarantee: Guarantee | None
    refused: tuple[str, ...]

    @property
    def excess(self) -> float:
        """What the difference exceeds the distance by."""
        return self.difference - self.distance

    @property
    def excess_over_bound(self) -> float:
        """What the difference exceeds the bound by."""
        return self.difference - self.bound

    @property
    def n_pairs(self) -> int:
        """Pairs that were compared."""
        return sum(self.tried.values())

    @property
    def coverage(self) -> str:
        """What was tried, what was found, and what that does not say."""
        ways = "; ".join(f"{count:,} {_WORDS[name]}" for name, count in self.tried.items())
        limit = f"outputs may differ by D, where D is {self.metric.definition}"
        if self.guarantee is not None:
            limit = f"the model's own promise at distance D (guarantee_.bound), where D is {self.metric.definition}"
        if self.n_violations:
            found = (
                f"{self.n_violations:,} of these pairs exceed it, the worst by {self.excess_over_bound:.3g}: outputs "
                f"differ by {self.difference:.3g} at D = {self.distance:.3g}."
            )
        else:
            found = f"No pair was found to exceed it; the closest used {self.largest_share:.2%} of what is allowed."
        words = (
            f"Tried: {self.n_pairs:,} pairs of people, in X or not, all those within groups of up to 64: {ways}. "
            f"Limit: {limit}. Found: {found} "
        )
        if self.refused:
            words += f"Not tried, since the model refuses them: {', '.join(self.refused)}. "
        if self.guarantee is not None and self.guarantee.delta > 0:
            words += (
                "The promise is sampled: it holds per pair chosen without knowledge of the draws, and a search chooses "
                "pairs by what the draws say. "
            )
        return words + "Finding nothing is no proof: pairs that were not tried may be worse."


def attack(
    model: Any,
    metric: Metric,
    X: Any = None,
    *,
    n_pairs: int = 1_000_000,
    output_range: tuple[float, float] | None = None,
    tolerance: float | None = None,
    random_state: Any = None,
    verbose: bool = False,
) -> Attack:
    """Search for the pair of people, in `X` or not, whose outputs exceed what is allowed by most.

    What is allowed is the model's own promise, if it makes one under this metric, and otherwise the distance itself.
    `audit` compares all pairs of given people; this looks everywhere else: around people at all scales, on both sides
    of knots, borders and thresholds, across categories, missing and unseen values, along lines and slopes, and from the
    worst pairs on, by local improvement.

    Covers / does not cover
    -----------------------
    The pairs that were tried, and nothing else. A pair that exceeds the bound disproves a promise; finding none proves
    nothing.

    Parameters
    ----------
    model : object with predict_proba or predict, or callable
        As for `audit`.
    metric : Metric
    X : array-like of shape (n_samples, n_features), optional
        People to start from; they say what columns, ranges and categories there are. A model that was fitted here may
        know these itself: a scorecard from its knots, a network from its ranges, a projection from its anchors.
    n_pairs : int, default=1_000_000
        Pairs to compare, about; at least 1,000. The model is asked about a third as many people as there are pairs, and
        about a twentieth if there are many pairs: people come in groups, of whom all pairs are compared, and groups
        grow with `n`.
    output_range : tuple of float, optional
        Limits ``(a, b)`` of numbers. Differences are then divided by ``b - a``; the range of the model's own promise is
        used if none is given.
    tolerance : float, optional
        Excess that does not count as a violation. None takes 1e-9 of the range of the outputs, for rounding.
    random_state : int, RandomState instance or None, default=None
        The same seed tries the same pairs, however many threads there are.
    verbose : bool, default=False
        Show a progress bar.

    Returns
    -------
    Attack

    Examples
    --------
    A rule with a step is found out, although the people given are far from it:

    >>> from likewise import WeightedLp
    >>> found = attack(lambda X: (X[:, 0] > 41.3) * 0.5, WeightedLp({"age": 0.01}), [[20], [60]], n_pairs=10_000,
    ...                random_state=0)
    >>> found.pair["age"].round(4).tolist(), round(found.excess, 3)
    ([41.3, 41.3], 0.5)

    A model that keeps its promise:

    >>> from likewise import AdditiveClassifier
    >>> model = AdditiveClassifier(WeightedLp({"age": 0.01})).fit([[20], [30], [40], [50]], [0, 0, 1, 1])
    >>> attack(model, WeightedLp({"age": 0.01}), n_pairs=10_000, random_state=0).n_violations
    0
    """
    metric, n_pairs = check_metric(metric), check_count("n_pairs", n_pairs, least=_LEAST)
    TRUTH.check("verbose", verbose)
    is_plain_function("model", model, ("predict_proba", "predict"))  # raises, if it is no model at all
    promised = getattr(model, "guarantee_", None)
    guarantee = promised if isinstance(promised, Guarantee) and promised.metric == metric else None
    own_range = getattr(promised, "output_range", None) if output_range is None else output_range
    limits = None if own_range is None else check_output_range(own_range)
    rng = np.random.default_rng(seed_from(random_state))
    with single_threaded_blas():  # last bits must not depend on the number of threads
        terrain, outputs = _scene(model, metric, X, limits)
        first = outputs(terrain.people(terrain.starts[:1024]))
        unit = 1.0 if limits is not None or hasattr(model, "predict_proba") else float(np.ptp(first)) or 1.0
        judge = PairEvaluator(terrain, outputs, metric, _limit(guarantee), unit, check_tolerance(tolerance, unit))
        with progress_bar("Searching", n_pairs, show=verbose) as advance:
            for start in range(0, n_pairs, _ROUND):
                here = min(_ROUND, n_pairs - start)
                for tactic, share in strategies_for(terrain).items():
                    tactic(judge, rng, int(here * share))
                    advance(int(here * share))
    worst = judge.worst
    assert worst is not None  # pairs were compared
    return Attack(
        pair=_as_given(terrain, worst.rows, X),
        difference=worst.difference,
        distance=worst.distance,
        bound=worst.bound,
        n_violations=judge.n_violations,
        largest_share=judge.largest_share,
        tried=MappingProxyType(dict(judge.tried)),
        tolerance=judge.tolerance,
        metric=metric,
        guarantee=guarantee,
        refused=terrain.refused,
    )


def _scene(
    model: Any, metric: Metric, X: Any, limits: tuple[float, float] | None
) -> tuple[SearchSpace, Callable[[People], FloatArray]]:
    """Where to search, and the outputs to compare."""
    if isinstance(model, ConstrainedEstimator):
        known = model.scorer_.landmarks(len(model.encoder_.names))
        rows = None if X is None else metric.people(X, model.encoder_).rows
        terrain = survey(metric, model.encoder_, rows, known, with_tables=model.scorer_.reads_tables)

        def outputs(people: People) -> FloatArray:
            mean = model.scorer_.estimate(people).mean
            return probability_outputs(mean) if limits is None else _shares(mean, limits)
    else:
        if X is None:
            raise InvalidInputError(
                f"X must be given for a model that was not fitted here; got a {type(model).__name__} alone. Pass some "
                "people: they say what columns, ranges and categories there are."
            )
        people = metric.people(X)
        terrain = survey(metric, people.encoder, people.rows, [np.empty(0)] * len(people.encoder.names))

        def outputs(people: People) -> FloatArray:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what a model thinks of people who do not exist
                return asked(model, rows_for(model, people), limits, getattr(model, "classes_", None))[0]

        outputs(terrain.people(people.rows[:1]))  # raises, if the model does not answer at all
    return terrain.accepted_by(outputs), outputs


def _as_given(terrain: SearchSpace, rows: FloatArray, X: Any) -> Any:
    """People in the columns in which they were given; an array stays one."""
    table, names = terrain.table(rows), terrain.encoder.labels or labels_of(X)
    return table if names is None or isinstance(table, pd.DataFrame) else pd.DataFrame(table, columns=list(names))


def _limit(guarantee: Guarantee | None) -> Callable[[FloatArray], FloatArray]:
    """What is allowed at a distance, in the units of the outputs."""
    if guarantee is None:
        return lambda distance: distance
    low, high = guarantee.output_range or (0.0, 1.0)
    return lambda distance: guarantee.bound(distance) / (high - low)


def _shares(answers: FloatArray, limits: tuple[float, float]) -> FloatArray:
    low, high = limits
    return (answers - low) / (high - low)
