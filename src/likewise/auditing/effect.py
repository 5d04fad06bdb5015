"""How much columns can matter: for the people of a table, for the worst pair of a domain, and at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from likewise._favourable import Direction, given_or_stored
from likewise._fit_validation import seed_from
from likewise._html import grid, panel, words
from likewise._parallel import single_threaded_blas
from likewise._progress import progress_bar
from likewise._typing import FloatArray
from likewise._validation import BOOL, check_count, check_output_range, check_positive, counted, short_repr
from likewise.ask import is_plain_function
from likewise.auditing.audit import check_tolerance
from likewise.auditing.coordinate_ascent import PairSearch
from likewise.auditing.excess import Excess, Proved, proof_pairs, smallest_excess
from likewise.auditing.exchange import Exchange, shown_pair
from likewise.exceptions import InvalidInputError, InvalidTypeError, UnprovableError
from likewise.kernel.proof import Proof, against
from likewise.metrics.base import Metric, check_metric
from likewise.pairs.model_outputs import OutputLabels
from likewise.verification.base import InputSpace
from likewise.verification.domain import Domain
from likewise.verification.one_hot import OneHot, told
from likewise.verification.search import Limits
from likewise.verification.upper_bound import upper_bound

_STARTS = 12  # people from whom a search starts
_SHOWN_AFTER = 0.2  # seconds


@dataclass(frozen=True, eq=False, repr=False)
class Effect(Proved):
    """How much columns can matter.

    Differences are total variations of class probabilities, or absolute differences of numbers (as shares of the output
    range, if there is one).

    Attributes
    ----------
    columns : list
        The columns that are exchanged.
    sets : tuple of OneHot
        Sets of 0/1 columns of which everybody has exactly one 1. They are exchanged, and searched, as one column.
    on_people : DataFrame
        One row per person of X: ``score``, the ``lowest`` and the ``highest`` score with other values in the columns,
        what these values are (``lowest if``, ``highest if``), and ``effect``, the largest difference.
    mean : float
        Mean of ``effect``.
    mean_interval : tuple of float or None
        Its 95% confidence interval for the population that X was drawn from, valid for every number of people. None for
        numbers without an output range, and if not all values were tried.
    tried : str
        Which values of the columns everybody was given.
    all_tried : bool
        Whether these are all values of the domain, or all that people have. If not, effects may be larger.
    directions : DataFrame
        For every two values: which is ``favoured`` ``over`` which (``higher`` and ``lower``, if it is not known which
        is favourable) on average, by how much (``mean``), for what
        ``share`` of people, both with 95% confidence intervals, and by how much at most.
    favourable : str
        What is favourable, in words; empty if it is not known.
    groups : DataFrame
        Mean and largest effect for people by their own value.
    found : float
        The largest difference that was found between two people of the domain who differ in the columns alone.
    pair : DataFrame of two rows or None
        These two people, with their scores. None if no two people with different outputs were found.
    proof : Proof
        The upper bound, how it was proven, and how the search for it went.
    tolerance : float
    rounding : float
        Differences up to this, 1e-9 of the range of the outputs, do not count.
    searched : str
        What was searched for the worst pair, with counts; empty if the proof has it.
    domain : Domain
    excess : Excess or None
        With a metric, the smallest e with ``TV <= D + e`` for all people of the domain.
    labels : OutputLabels
        What the outputs are: `labels.written` shows a difference in points of a probability, or in the unit of the
        scores.
    seconds : float
        Processor time.
    limit : str
        Where the search for a proof was to stop: "60 s of processor time".
    """

    columns: list[Any]
    sets: tuple[OneHot, ...]
    on_people: pd.DataFrame
    mean: float
    mean_interval: tuple[float, float] | None
    tried: str
    all_tried: bool
    directions: pd.DataFrame
    favourable: str
    groups: pd.DataFrame
    found: float
    pair: pd.DataFrame | None
    proof: Proof
    tolerance: float
    rounding: float
    searched: str
    domain: Domain
    excess: Excess | None
    labels: OutputLabels
    seconds: float
    limit: str

    def __post_init__(self) -> None:
        if against(self.proof, self.found) is not self.proof:
            raise UnprovableError(f"Two people are {self.found:g} apart, which is more than what is proven.")

    @property
    def meets(self) -> bool:
        """Whether found and proven are within the tolerance of each other: the worst case is then known."""
        return self.proven is not None and self.proven - self.found <= self.tolerance

    @property
    def headline(self) -> str:
        """What was found and proven, in a line."""
        names, told = " and ".join(map(str, self.columns)), self.labels.written
        up_to = f"up to {told(float(self.on_people['effect'].max()))}{'' if self.all_tried else ' or more'}"
        text = f"exchanging {names} alone changes outputs by {up_to} for these {len(self.on_people):,} people"
        most = "" if self.proven is None else self.labels.at_most(self.proven)
        if self.pair is not None:
            text += f", by {told(self.found)} for the worst pair found, "
            if self.proven is None:
                return text + "and no upper bound is proven"
            limit = "" if self.proven - self.found <= self.rounding else f" than {most}"
            return text + f"and by no more{limit} for anybody in the domain"
        text += f"; no two people of the domain who differ in {names} alone"
        if self.proves_none:
            return f"{text} get different outputs (proven)"
        limit = f"they differ by no more than {most}"
        if self.proven is None:
            limit = "no upper bound is proven, and finding none does not prove that there is none"
        return f"{text} were found to get different outputs; {limit}"

    @property
    def proves_none(self) -> bool:
        """Whether it is proven that the columns do not matter at all, but for rounding."""
        return self.proven is not None and self.proven <= self.rounding

    @property
    def standing(self) -> str:
        """How far the proof came: closed, not closed within the limit, bounded from above only, or not possible."""
        if self.proven is None:
            return f"No proof: this model cannot be bounded, as {self.how}"
        if self.meets:
            return f"Proof: {self.how}"
        if self.proof.stopped:
            return (
                f"Not closed within {self.limit}: the worst case is between what is found and what is proven "
                f"({self.how}), and a higher limit may bring them together"
            )
        return (
            f"Proof: {self.how}. Such a bound need not be attained: the worst case is between what is found and what "
            "is proven, and more time does not change that"
        )

    @property
    def coverage(self) -> str:
        """What was compared, what is proven and how, and what is not covered."""
        searched = f"Searched: {self.searched}. " if self.searched else ""
        text = (
            f"{self.headline[0].upper()}{self.headline[1:]}. Everybody was given {self.tried}. {self.standing}. "
            f"{searched}The domain is what was learned from these people or given: nothing is said of people "
            "outside it. Two people who differ in the column alone are compared: other columns may stand in for it."
        )
        if self.sets:
            text += f" Everybody has exactly one 1 in each of these sets of columns: {told(self.sets)}."
        return text

    def __repr__(self) -> str:
        return f"<Effect: {self.headline}>"

    def _repr_html_(self) -> str:
        text, table = self.headline[0].upper() + self.headline[1:], ""
        if self.pair is not None:
            rows = [[str(name), *map(str, self.pair[name].tolist())] for name in self.pair]
            table = grid(["column", "one", "the other"], rows, left=3)
        return panel(text, table, words(self.coverage, quiet=True))


def effect(
    model: Any,
    X: Any,
    column: Any,
    metric: Metric | None = None,
    *,
    domain: Domain | None = None,
    output_range: tuple[float, float] | None = None,
    favourable: Any = None,
    max_seconds: float | None = 60.0,
    max_boxes: int | None = None,
    tolerance: float = 1e-4,
    n_queries: int = 100_000,
    random_state: Any = 0,
    verbose: bool = False,
) -> Effect:
    """How much a column can matter: for given people, for the worst pair there can be, and at most.

    Three answers to one question, from evidence to proof: what exchanging the column does to the people of `X`; the
    worst pair of the domain, two people who differ in the column alone; and an upper bound for all such pairs.

    Covers / does not cover
    -----------------------
    The bound holds for all people of the domain, seen or not, and for the model as it computes, rounding included. It
    is in closed form for linear and additive models (this package's scorecards, EBM without interactions); by a search
    over boxes of people for linear models behind products of columns (`PolynomialFeatures`), and for trees, forests and
    boosting of scikit-learn, XGBoost, LightGBM and CatBoost; by bounds of the difference of two copies for ReLU
    networks. It is an upper bound, and a closed form may stay above the worst pair there is
    (`docs/theory.md` §15). Other models have no bound, only the worst pair found. People outside the domain, and
    columns that stand in for this one, are not covered.

    Parameters
    ----------
    model : object with predict_proba or predict, or callable
    X : DataFrame or array-like of shape (n_samples, n_features)
        People with the columns that the model takes.
    column : column name, or list of them
        Two people may differ in these alone. The columns of an array are called ``"feature 0"`` and so on. Of a set of
        0/1 columns with exactly one 1, such as sex_f and sex_m, any of them stands for all, and so does "sex".
    metric : Metric, optional
        Also find the smallest e with ``TV <= D + e`` for all people of the domain, see ``Effect.excess``.
    domain : Domain, optional
        What each column can hold; learned from `X` if it is not given.
    output_range : tuple of float, optional
        Limits ``(a, b)`` of predicted numbers. Differences are then shares of ``b - a``.
    favourable : class label, "high" or "low", optional
        What is better for a person: a class, or an end of the score ("low" for a risk). None is known only if the
        classes are two known words, such as approved and denied; otherwise it
        is said which value gets the higher score.
    max_seconds : float or None, default=60
        Processor time for the proof, where it takes a search. None for no limit.
    max_boxes : int, optional
        Boxes to bound at most. With a limit on boxes and none on time the result is the same on every machine.
    tolerance : float, default=1e-4
        The search ends when found and proven are this close: 0.01 percentage points.
    n_queries : int, default=100_000
        Pairs that a search for the worst one may ask the model about, where nothing better is known.
    random_state : int, RandomState instance or None, default=0
    verbose : bool, default=False
        Show a progress bar of the time that may pass, with what is found and proven so far.

    Returns
    -------
    Effect

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> people = pd.DataFrame({"age": [20, 30, 40, 50], "sex": [0, 1, 0, 1]})
    >>> model = DecisionTreeClassifier().fit(people, [0, 0, 0, 1])
    >>> found = effect(model, people, "sex")
    >>> found.on_people["effect"].tolist(), found.found, found.proven <= 1 + 1e-9, found.meets
    ([0.0, 0.0, 0.0, 0.0], 0.0, True, True)
    """
    begun = time.process_time()
    if metric is not None and check_metric(metric).encoder(X).mixes_features:
        raise InvalidInputError(
            f"metric must weigh single columns for effect; {metric!r} weighs directions. Leave it out, or search under "
            "it with attack."
        )
    is_plain_function("model", model, ("predict_proba", "predict"))  # raises if it is not a model
    if domain is not None and not isinstance(domain, Domain):
        raise InvalidTypeError(f"domain must be a Domain, such as Domain.learn(X); got {short_repr(domain)}.")
    tolerance = check_positive("tolerance", tolerance, below=1)
    max_seconds = None if max_seconds is None else check_positive("max_seconds", max_seconds)
    output_range = None if output_range is None else check_output_range(output_range)
    n_queries = check_count("n_queries", n_queries)
    rng = np.random.default_rng(seed_from(random_state))
    max_boxes = None if max_boxes is None else check_count("max_boxes", max_boxes)
    BOOL.check("verbose", verbose)
    limit, n_proofs = _limit(max_seconds, max_boxes), 1 + (metric is not None)
    total = None if max_seconds is None else n_proofs * max_seconds
    with single_threaded_blas(), progress_bar(f"Bounding, {limit} at most", total, show=verbose) as advance:
        space = InputSpace.of(model, X, metric, domain, output_range)
        columns = space.positions("column", column if isinstance(column, (list, tuple)) else [column])
        if not columns:
            raise InvalidInputError("column must name at least one column of X; got none.")
        exchange = Exchange.of(space, columns)
        classes = space.labels(probable=exchange.probable).classes
        direction = Direction.of(given_or_stored(favourable, model), classes, exchange.outputs.shape[2])
        unit = 1.0 if exchange.limited else float(np.ptp(exchange.outputs)) or 1.0
        tell = _told(advance, exchange.labels, limit)
        limits, rounding = Limits(max_seconds, max_boxes, tolerance * unit, tell), check_tolerance(None, unit)
        starts = exchange.worst_pairs(_STARTS)
        proof = upper_bound(space, columns, limits, starts)
        found, first, second, searched = _worst(space, columns, proof, starts, n_queries, rng, limits)
        proof = against(proof, found)
        excess = None if metric is None else smallest_excess(space, metric, limits, n_queries, rng)
    sizes = exchange.effects
    return Effect(
        columns=space.members(columns),
        sets=space.sets,
        on_people=exchange.table(),
        mean=float(sizes.mean()),
        mean_interval=exchange.mean_interval(),
        tried=exchange.given.statement,
        all_tried=exchange.given.all_tried,
        directions=exchange.directions(direction),
        favourable=direction.text,
        groups=exchange.groups(),
        found=found,
        pair=shown_pair(space, first, second) if found > rounding else None,
        proof=proof,
        tolerance=limits.tolerance,
        rounding=rounding,
        searched=searched,
        domain=space.domain,
        excess=excess,
        labels=exchange.labels,
        seconds=time.process_time() - begun,
        limit=limit,
    )


def _limit(max_seconds: float | None, max_boxes: int | None) -> str:
    """The limits in words."""
    seconds = "" if max_seconds is None else f"{max_seconds:g} s of processor time"
    boxes = "" if max_boxes is None else counted(max_boxes, "box", "boxes")
    return " or ".join(filter(None, [seconds, boxes])) or "any time"


def _told(advance: Callable[..., None], labels: OutputLabels, limit: str) -> Callable[[float, float], None]:
    """A function that shows the values found and proven so far, a few times per second."""
    shown = time.process_time()

    def tell(found: float, proven: float) -> None:
        nonlocal shown
        now = time.process_time()
        if now - shown >= _SHOWN_AFTER:
            so_far = f"Found {labels.written(max(found, 0.0))}, proven {labels.at_most(proven)}"
            advance(now - shown, f"{so_far}; {limit} at most")
            shown = now

    return tell


def _worst(
    space: InputSpace,
    columns: Sequence[int],
    proof: Proof,
    starts: tuple[FloatArray, FloatArray],
    n_queries: int,
    rng: np.random.Generator,
    limits: Limits,
) -> tuple[float, FloatArray, FloatArray, str]:
    """The worst pair, and what was searched for it: nothing, if the proof has one that reaches the bound."""
    a, b = (np.concatenate(side) for side in zip(starts, proof_pairs(space, proof), strict=True))
    values = space.differences(a, b) if len(a) else np.array([-np.inf])
    i = int(values.argmax())
    if len(a) and proof.proven is not None and proof.proven - values[i] <= limits.tolerance:
        return float(values[i]), a[i], b[i], ""
    found = PairSearch(space, columns, space.differences, n_queries, rng).worst_pair((a, b), _STARTS)
    if not len(found[1]):
        raise InvalidInputError("domain must not be empty; no row within it was found. Check its ranges and rules.")
    return found
