"""A search for the pair of people, in the data or not, that most exceeds the distance or a model's guarantee."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from likewise._favourable import Direction, given_or_stored
from likewise._fit_validation import seed_from
from likewise._parallel import single_threaded_blas
from likewise._progress import progress_bar
from likewise._typing import FloatArray
from likewise._validation import BOOL, check_count, check_output_range, counted
from likewise.ask import Ask, is_plain_function
from likewise.auditing.audit import check_tolerance, limit_under
from likewise.auditing.pair_search import Pair, PairEvaluator, strategies_for
from likewise.auditing.search_space import SearchSpace, build_search_space, restriction_of
from likewise.base import ConstrainedEstimator
from likewise.exceptions import InvalidInputError
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.schema import People, labels_of
from likewise.metrics.base import Metric, check_metric
from likewise.pairs.model_outputs import OutputLabels, as_shares, asked_outputs, probability_outputs
from likewise.verification.domain import Domain
from likewise.verification.one_hot import OneHot, told

_ROUND = 20_000_000  # pairs after which the search restarts from other people
_MIN_PAIRS = 1000
_DESCRIPTIONS = {
    "uniform": "drawn uniformly from the ranges of all columns, and what they become with other values in some",
    "stratified": "drawn from equal slices of these ranges in the same way",
    "random": "around people, at distances of every order of magnitude",
    "borders": "on both sides of values at which the model may change",
    "categories": "different in categories, in missing values, and in columns of weight 0",
    "lines": "between two people, zooming in where the outputs change most",
    "slopes": "along the steepest direction, by finite differences",
    "climbing": "from the worst so far, by hill climbing",
}


@dataclass(frozen=True, eq=False)
class Attack:
    """Result of `attack`: the worst pair found, and what was tried.

    Attributes
    ----------
    pair : DataFrame of two rows or None
        The two people, in the columns in which people are given; an array, if these have no names. None if all pairs
        tried have equal outputs.
    favoured : int or None
        Which of the pair has the favourable output, 0 or 1; None if it is not known which is.
    favourable : str
        What is favourable, in words; empty if it is not known.
    difference : float
        Of their outputs: total variation of class probabilities, or absolute difference of numbers (a share of the
        output range, if there is one).
    distance : float
        Between them, under the metric.
    excess : float
        ``difference - distance``.
    bound : float
        What the model's own guarantee allows at this distance, ``guarantee_.bound``; the distance, if the model has no
        guarantee under this metric.
    excess_over_bound : float
        ``difference - bound``, the largest among the pairs tried.
    n_violations : int
        Pairs among those tried that exceed the bound by more than `tolerance`. Many are near one another, or share a
        person.
    largest_share : float
        Largest ``difference / bound``: how close the search came to the bound, if it did not exceed it.
    tried : mapping from str to int
        Pairs that were compared, by strategy. All pairs within groups of 8 to 64 people are compared, so these are not
        independent draws.
    n_pairs : int
        All of them.
    tolerance : float
    metric : Metric
    guarantee : Guarantee or None
        The guarantee that was tested.
    refused : tuple of str
        Kinds of values that the model refuses, which were not tried.
    sets : tuple of OneHot
        Sets of 0/1 columns of which everybody who was tried has exactly one 1, as everybody in `X` has.
    labels : OutputLabels
        What the outputs are: `labels.written` shows a difference or a distance in points of a probability, or in the
        unit of the scores.
    coverage : str
        The result in words. Finding no violation does not prove there is none.
    """

    pair: Any
    favoured: int | None
    favourable: str
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
    sets: tuple[OneHot, ...]
    labels: OutputLabels

    @property
    def excess(self) -> float:
        """``difference - distance``."""
        return self.difference - self.distance

    @property
    def excess_over_bound(self) -> float:
        """``difference - bound``."""
        return self.difference - self.bound

    @property
    def n_pairs(self) -> int:
        """Pairs that were compared."""
        return sum(self.tried.values())

    @property
    def coverage(self) -> str:
        """What was tried, what was found, and what that does not prove."""
        written = self.labels.written
        strategies = "; ".join(f"{count:,} {_DESCRIPTIONS[name]}" for name, count in self.tried.items())
        limit = "outputs may differ by D" if self.guarantee is None else "the model's own guarantee at distance D"
        if self.n_violations:
            found = (
                f"{counted(self.n_violations, 'pair exceeds', 'pairs exceed')} it, the worst by "
                f"{written(self.excess_over_bound, 3)}: outputs differ by {written(self.difference, 3)} "
                f"at D = {written(self.distance, 3)}."
            )
        elif self.pair is None:
            found = "All pairs tried have equal outputs."
        else:
            found = f"No pair was found to exceed it; the closest used {self.largest_share:.2%} of what is allowed."
        words = (
            f"Tried: {self.n_pairs:,} pairs of people, of the table and made up: {strategies}. People come in groups "
            "of up to 64, and within a group everybody is compared with everybody else. "
            f"Limit: {limit}, where D is {self.metric.in_words(written)}. Found: {found} "
        )
        if self.refused:
            words += f"Not tried, since the model refuses them: {', '.join(self.refused)}. "
        if self.sets:
            words += f"Exactly one is 1 for everybody tried, in each of these sets: {told(self.sets)}. "
        if self.guarantee is not None and self.guarantee.delta > 0:
            words += (
                "The guarantee is sampled: it holds for a pair chosen without knowledge of the draws, and a search "
                "chooses pairs by the draws. "
            )
        return words + "Finding no violation does not prove there is none: pairs that were not tried may be worse."


def attack(
    model: Any,
    metric: Metric,
    X: Any = None,
    *,
    only: Any = None,
    domain: Domain | None = None,
    n_pairs: int = 1_000_000,
    output_range: tuple[float, float] | None = None,
    favourable: Any = None,
    tolerance: float | None = None,
    random_state: Any = None,
    verbose: bool = False,
) -> Attack:
    """Search for the pair of people, in `X` or not, whose outputs most exceed what is allowed.

    What is allowed is the model's own guarantee, if it has one under this metric, and otherwise the distance itself.
    `audit` compares all pairs of given people; this searches everywhere else: all over the ranges first, whoever was
    given (`Attack.tried` has the counts of these draws), then around people at all scales, on both
    sides of knots and thresholds, across categories, missing and unseen values, along lines and gradients, and by hill
    climbing from the worst pairs.

    Covers / does not cover
    -----------------------
    The pairs that were tried, and nothing else. A pair that exceeds the bound disproves a guarantee; finding none
    proves nothing.

    Parameters
    ----------
    model : object with predict_proba or predict, or callable
        As for `audit`.
    metric : Metric
    X : array-like of shape (n_samples, n_features), optional
        People to start from; they give the columns, ranges and categories. Optional for likewise's own models that know
        these: a scorecard from its knots, a network from its ranges, a projection from its anchors.
    only : column name or list of them, optional
        Compare people who differ in these columns alone. Of a set of 0/1 columns with exactly one 1, such as sex_f and
        sex_m, any of them stands for all, and so does "sex".
    domain : Domain, optional
        What each column can hold; the search stays inside. With `only` and no domain, it is learned from `X`. Without
        both, the search goes everywhere, as a guarantee does: beyond the range of `X`, to fractions of whole numbers,
        missing and unseen values. `effect` also proves how far the pairs of a domain can be apart at most.
    n_pairs : int, default=1_000_000
        Pairs to compare, about; at least 1,000. The model is evaluated for a third as many people, and for about a
        twentieth if there are many pairs: all pairs within groups are compared, and groups grow with `n_pairs`.
    output_range : tuple of float, optional
        Limits ``(a, b)`` of numbers. Differences are then divided by ``b - a``; None takes the range of the
        model's own guarantee.
    favourable : class label, "high" or "low", optional
        What is better for a person: a class, or an end of the score ("low" for a risk). None is known only if the
        classes are two known words, such as approved and denied; otherwise it
        is not said who of the pair is favoured.
    tolerance : float, optional
        Excess to ignore. None takes 1e-9 of the range of the outputs, for rounding.
    random_state : int, RandomState instance or None, default=None
        The same seed tries the same pairs, however many threads there are.
    verbose : bool, default=False
        Show a progress bar.

    Returns
    -------
    Attack

    Examples
    --------
    A step in a rule is found, although the people given are far from it:

    >>> from likewise import WeightedLp
    >>> found = attack(lambda X: (X[:, 0] > 41.3) * 0.5, WeightedLp({"age": 0.01}), [[20], [60]], n_pairs=10_000,
    ...                random_state=0)
    >>> found.pair["age"].round(4).tolist(), round(found.excess, 3)
    ([41.3, 41.3], 0.5)

    A model with a guarantee:

    >>> from likewise import AdditiveClassifier
    >>> model = AdditiveClassifier(WeightedLp({"age": 0.01})).fit([[20], [30], [40], [50]], [0, 0, 1, 1])
    >>> attack(model, WeightedLp({"age": 0.01}), n_pairs=10_000, random_state=0).n_violations
    0
    """
    metric, n_pairs = check_metric(metric), check_count("n_pairs", n_pairs, min_value=_MIN_PAIRS)
    BOOL.check("verbose", verbose)
    is_plain_function("model", model, ("predict_proba", "predict"))  # raises if it is not a model
    own = getattr(model, "guarantee_", None)
    guarantee = own if isinstance(own, Guarantee) and own.bound_metric.is_of(metric) else None
    own_range = getattr(own, "output_range", None) if output_range is None else output_range
    limits = None if own_range is None else check_output_range(own_range)
    rng = np.random.default_rng(seed_from(random_state))
    with single_threaded_blas():  # last bits must not depend on the number of threads
        space, outputs = _prepare(model, metric, X, limits)
        first = outputs(space.people(space.starts[:1024]))
        classes = getattr(model, "classes_", None)
        names = None if classes is None else np.asarray(classes).tolist()
        direction = Direction.of(given_or_stored(favourable, model), names, first.shape[1])
        probable = limits is None and (hasattr(model, "predict_proba") or first.shape[1] > 1)
        labels = OutputLabels.shown(model, limits, first, probable=probable)
        unit = 1.0 if limits is not None or hasattr(model, "predict_proba") else float(np.ptp(first)) or 1.0
        # A guarantee covers people whom there cannot be, too.
        restriction = restriction_of(space, X, domain, only, possible=guarantee is None)
        evaluator = PairEvaluator(restriction, outputs, limit_under(guarantee), unit, check_tolerance(tolerance, unit))
        with progress_bar("Searching", n_pairs, show=verbose) as advance:
            for start in range(0, n_pairs, _ROUND):
                here = min(_ROUND, n_pairs - start)
                for strategy, share in strategies_for(space).items():
                    strategy(evaluator, rng, int(here * share))
                    advance(int(here * share))
    pair, favoured, worst = None, None, evaluator.worst
    if worst is None:
        worst = Pair(np.empty(0), 0.0, 0.0, float(evaluator.bound(np.zeros(1))[0]))
    else:
        pair = _as_given(space, worst.rows, X)
        one, other = direction.gains(outputs(space.people(worst.rows))).tolist()
        favoured = int(other > one) if direction.sign and one != other else None
    return Attack(
        pair=pair,
        favoured=favoured,
        favourable=direction.text,
        difference=worst.difference,
        distance=worst.distance,
        bound=worst.bound,
        n_violations=evaluator.n_violations,
        largest_share=evaluator.largest_share,
        tried=MappingProxyType(dict(evaluator.tried)),
        tolerance=evaluator.tolerance,
        metric=metric,
        guarantee=guarantee,
        refused=space.refused,
        sets=tuple(restriction.sets),
        labels=labels,
    )


def _prepare(
    model: Any, metric: Metric, X: Any, limits: tuple[float, float] | None
) -> tuple[SearchSpace, Callable[[People], FloatArray]]:
    """The search space, and the function from people to outputs."""
    if isinstance(model, ConstrainedEstimator):
        known = model.scorer_.breakpoints(len(model.encoder_.names))
        bound = metric.bind(model.encoder_)
        rows = None if X is None else bound.read(X).rows
        space = build_search_space(bound, rows, known, with_tables=model.scorer_.reads_tables)

        def outputs(people: People) -> FloatArray:
            mean = model.scorer_.estimate(people).mean
            return probability_outputs(mean) if limits is None else as_shares(mean, limits)
    else:
        if X is None:
            raise InvalidInputError(
                f"X must be given for a model that is not one of likewise; got a {type(model).__name__} alone. Pass "
                "some people: they give the columns, ranges and categories."
            )
        bound, people = metric.read(X)
        ask = Ask.of(model, X, people.encoder)
        ask.refuse_merged()
        ask.check()
        no_breakpoints = [np.empty(0)] * len(people.encoder.names)
        # Of the metrics, only a function of people takes a table.
        with_tables = not bound.has_parts
        space = build_search_space(bound, people.rows, no_breakpoints, with_tables=with_tables, spell=ask.table)

        def outputs(people: People) -> FloatArray:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings about made-up people
                return asked_outputs(ask, limits, people.rows)[0]

    return space.accepted_by(outputs), outputs


def _as_given(space: SearchSpace, rows: FloatArray, X: Any) -> Any:
    """People in the columns in which they were given; an array stays one."""
    table, names = space.table(rows), space.encoder.raw_labels or labels_of(X)
    return table if names is None or isinstance(table, pd.DataFrame) else pd.DataFrame(table, columns=list(names))
