"""Reading the minimal metric on a population off any model, by linear programming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from likewise.metrics import FloatArray, WeightedLp
from likewise.population import IntArray, Population, groups_of

# As a share of the range of outputs. Below it lie differences of rounding, which no metric should have to explain.
_ROUNDING = 1e-11
# A pair counts as explained at this relative shortfall, a little above what the solver leaves.
_SHORTFALL = 2e-10
_PER_ROUND = 500
_MAX_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class MetricEstimate:
    """A metric that is minimal on a population, and how it was found.

    Attributes
    ----------
    metric : WeightedLp
    active_pairs : DataFrame
        The people who force the weights: pairs whose difference of outputs uses up their distance. ``row_a`` and
        ``row_b`` are positions in X.
    n_pairs : int
        Pairs of distinct people; all of them were scanned in every round.
    n_rounds : int
        Linear programs solved.
    n_constraints : int
        Pairs that entered the linear program.
    """

    metric: WeightedLp
    active_pairs: pd.DataFrame
    n_pairs: int
    n_rounds: int
    n_constraints: int


def estimate_minimal_metric(
    model: Any,
    X: Any,
    p: float = 1,
    *,
    predictions: Any = None,
    upper: Mapping[Any, float] | None = None,
    fixed: Mapping[Any, float] | None = None,
) -> MetricEstimate:
    """Smallest weighted Lp metric under which a model treats the people in `X` alike.

    Solves ``min c.w`` under ``sum_i w_i |x_ai - x_bi|^p >= difference(a, b)^p`` for all pairs (a, b) of people,
    where ``c_i`` is the mean of ``|x_ai - x_bi|^p``: of all metrics that no pair in `X` exceeds and whose weights
    cannot be lowered, the one with the smallest mean ``D^p``. Pairs enter the program as they are found to be violated
    (`docs/theory.md` §8).

    Covers / does not cover
    -----------------------
    No pair of rows of `X` exceeds the metric by more than 1e-9 of the range of the outputs. Other people may: it
    is an estimate for them, and it can only be too small. `minimal_metric` covers everyone, for linear models.

    Parameters
    ----------
    model : object with predict_proba or predict, or callable
        Class probabilities are compared by total variation, labels as probabilities of 0 and 1, and numbers by
        absolute difference. A plain function returns one number per row, or one probability per class.
    X : array-like of shape (n_samples, n_features)
    p : float, default=1
        Any finite number >= 1.
    predictions : array-like of shape (n_samples,) or (n_samples, n_classes), optional
        Probabilities to use in place of the model's answers; `model` may then be None.
    upper : mapping from feature name or position to weight, optional
        Weights may not be larger.
    fixed : mapping from feature name or position to weight, optional
        Weights are these: ``fixed={"race": 0}`` asks what the metric would be if race must not matter.

    Returns
    -------
    MetricEstimate

    Raises
    ------
    ValueError
        If no metric exists, with the pairs that make it so: equal people with different outputs, or pairs that
        the bounded weights alone would have to explain.

    Examples
    --------
    >>> X = [[0, 0], [1, 0], [0, 2], [1, 2]]
    >>> result = estimate_minimal_metric(lambda X: 3 * X[:, 0] - X[:, 1], X)
    >>> result.metric
    WeightedLp([3, 1], p=1)
    """
    from likewise.pairs import worst_partners

    p = _check_finite_p(p)
    people = Population.of(model, X, predictions)
    distinct = groups_of(people.X)
    _check_distinct(people, distinct.first, distinct.of_row)
    rows = people.X[distinct.first]
    columns, outputs = (np.ascontiguousarray(a.T) for a in (rows, people.outputs[distinct.first]))
    # Weights are found for outputs in `unit`s, and multiplied by unit^p at the end.
    low, high = _bounds(upper, fixed, people, p)
    _check_feasible(people, distinct.first, columns, outputs, low, high, p)

    program = _Program(rows, outputs.T, low, high, p)
    n_rounds = 0
    while True:
        scales = program.weights ** (1 / p)
        partner, excess, ratio = worst_partners(columns, outputs, scales, p, _ROUNDING)
        if ratio.min() >= 1 - _SHORTFALL:
            break
        new = program.add(_choose(partner, excess, ratio))
        if new == 0 or n_rounds == _MAX_ROUNDS:
            raise RuntimeError(
                f"The linear program did not converge after {n_rounds} rounds (worst shortfall "
                f"{1 - ratio.min():.2g}). Lower p, or rescale features whose values are extremely large."
            )
        program.solve()
        n_rounds += 1

    metric = WeightedLp(program.weights * people.unit**p, p, feature_names=people.names)
    n = len(rows)
    return MetricEstimate(
        metric=metric,
        active_pairs=_describe(people, distinct.first[program.active()], metric),
        n_pairs=n * (n - 1) // 2,
        n_rounds=n_rounds,
        n_constraints=len(program.pairs),
    )


class _Program:
    """The linear program, kept alive in HiGHS while pairs are added.

    Variables are ``u_i = w_i scale_i^p``, and each pair's row is divided by its right-hand side, so that features in
    any unit and differences of any size are alike to the solver.
    """

    def __init__(self, X: FloatArray, outputs: FloatArray, low: FloatArray, high: FloatArray, p: float) -> None:
        import highspy

        from likewise.pairs import mean_powers

        self.X, self.outputs, self.p, self.low, self.high = X, outputs, p, low, high
        self.varies = np.ptp(X, axis=0) > 0
        self.scale = np.where(self.varies, X.std(axis=0), 1.0)
        cost = mean_powers(np.ascontiguousarray((X / self.scale).T), p)
        # Any positive costs give a minimal metric; beyond this range, met for large p only, the solver loses digits.
        cost = np.clip(cost / cost[self.varies].min(), 1.0, 1e8)
        self.weights = low.copy()
        self.pairs: dict[tuple[int, int], None] = {}  # an ordered set
        lower, upper = low * self.scale**p, high * self.scale**p
        upper[~self.varies] = lower[~self.varies]  # nothing to explain
        self.solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
        self.solver.silent()
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self.solver.setOptionValue(name, 1e-10)
        self.solver.setOptionValue("small_matrix_value", 1e-12)
        for each, least, most in zip(cost, lower, upper, strict=True):
            self.solver.addCol(each, least, most, 0, [], [])

    def add(self, pairs: IntArray) -> int:
        """Add those pairs that are not yet in the program; return how many."""
        new = [pair for pair in map(tuple, pairs.tolist()) if pair not in self.pairs]
        if not new:
            return 0
        self.pairs |= dict.fromkeys(new)
        a, b = np.array(new).T
        needed = np.abs(self.outputs[a] - self.outputs[b]).sum(axis=1) - _ROUNDING
        with np.errstate(over="ignore", under="ignore"):
            # Beyond 1e10 the smallest weight explains the pair; the cap errs towards larger weights.
            values = np.minimum((np.abs(self.X[a] - self.X[b]) / self.scale / needed[:, None]) ** self.p, 1e10)
        n, d = len(new), self.X.shape[1]
        enlarge = 1 / np.minimum(values.max(axis=1), 1.0)  # the solver drops tiny coefficients
        values *= enlarge[:, None]
        self.solver.addRows(
            n,
            enlarge,
            np.full(n, np.inf),
            n * d,
            np.arange(n, dtype=np.int32) * d,
            np.tile(np.arange(d, dtype=np.int32), n),
            values.ravel(),
        )
        return n

    def solve(self) -> None:
        """Re-solve from the last basis."""
        import highspy

        self.solver.run()
        status = self.solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"The linear program could not be solved ({status.name}). Lower p, or rescale X.")
        u = np.array(self.solver.getSolution().col_value)
        self.weights = np.clip(np.maximum(u, 0.0) / self.scale**self.p, self.low, self.high)

    def active(self) -> IntArray:
        """Pairs whose constraints define the solution (the non-basic rows of the simplex); shape (n, 2)."""
        import highspy

        tight = [status == highspy.HighsBasisStatus.kLower for status in self.solver.getBasis().row_status]
        pairs: IntArray = np.array(list(self.pairs), dtype=np.int64).reshape(-1, 2)
        return pairs[np.flatnonzero(tight)]


def _choose(partner: IntArray, excess: FloatArray, ratio: FloatArray) -> IntArray:
    """The worst pairs by excess and by ratio, at most one of each per person; shape (n, 2)."""
    by_excess = np.argsort(-excess, kind="stable")[:_PER_ROUND]
    by_ratio = np.argsort(ratio, kind="stable")[:_PER_ROUND]
    pairs = np.concatenate(
        [np.stack([by_excess, partner[0, by_excess]], axis=1), np.stack([by_ratio, partner[1, by_ratio]], axis=1)]
    )
    return np.unique(pairs[pairs[:, 1] >= 0], axis=0)


def _describe(people: Population, pairs: IntArray, metric: WeightedLp) -> pd.DataFrame:
    a, b = pairs.T
    difference = people.unit * np.abs(people.outputs[a] - people.outputs[b]).sum(axis=1)
    forced = [
        ", ".join(people.name(int(i)) for i in np.flatnonzero((people.X[j] != people.X[k]) & (metric.weights > 0)))
        for j, k in pairs
    ]
    frame = pd.DataFrame(
        {
            "row_a": a,
            "row_b": b,
            "difference": difference,
            "distance": metric(people.X[a], people.X[b]) if len(pairs) else np.empty(0),
            "forces": pd.Series(forced, dtype=object),
        }
    )
    return frame.sort_values(["difference", "row_a", "row_b"], ascending=[False, True, True], ignore_index=True)


def _check_finite_p(p: Any) -> float:
    if isinstance(p, bool) or not isinstance(p, Real) or not float(p) >= 1:
        raise ValueError(f"p must be a finite number >= 1; got {p!r}.")
    if np.isinf(float(p)):
        raise ValueError(
            "p must be finite; got inf. There D is a maximum over features: that some feature explains each pair is "
            "not a linear constraint on the weights, and there is no single smallest metric. Use a finite p."
        )
    return float(p)


def _check_distinct(people: Population, first: IntArray, of_row: IntArray) -> None:
    if len(first) < 2:
        raise ValueError(f"X must hold at least two distinct rows; all {len(people.X)} rows are equal.")
    gap = np.abs(people.outputs - people.outputs[first[of_row]]).sum(axis=1)
    worst = int(gap.argmax())
    if gap[worst] > 1e-9:  # rows of one batch may be rounded differently
        raise ValueError(
            f"Equal people must have equal outputs, or no metric exists; rows {first[of_row[worst]]} and {worst} of X "
            f"are equal and their outputs differ by {people.unit * gap[worst]:.3g}. Use a deterministic model, or add "
            "the feature that tells these people apart."
        )


def _bounds(upper: Any, fixed: Any, people: Population, p: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limits of the weights, for outputs in units."""
    d = people.X.shape[1]
    low, high = np.zeros(d), np.full(d, np.inf)
    for parameter, given in (("upper", upper), ("fixed", fixed)):
        for key, weight in dict(given or {}).items():
            i = _position(parameter, key, people)
            if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= float(weight) < np.inf:
                raise ValueError(f"{parameter} must hold non-negative finite weights; got {weight!r} for {key!r}.")
            if parameter == "fixed" and np.isfinite(high[i]):
                raise ValueError(f"fixed and upper must not both name a feature; got {key!r} in both.")
            high[i] = float(weight) / people.unit**p
            if parameter == "fixed":
                low[i] = high[i]
    return low, high


def _position(parameter: str, key: Any, people: Population) -> int:
    d = people.X.shape[1]
    if people.names is not None and str(key) in people.names:
        return people.names.index(str(key))
    if isinstance(key, Integral) and 0 <= int(key) < d:
        return int(key)
    known = f"positions 0 to {d - 1}" if people.names is None else list(people.names)
    raise ValueError(f"{parameter} must name features of X, {known}; got {key!r}.")


def _check_feasible(
    people: Population,
    first: IntArray,
    columns: FloatArray,
    outputs: FloatArray,
    low: FloatArray,
    high: FloatArray,
    p: float,
) -> None:
    """Raise if some pair exceeds even the largest weights allowed.

    Every weight only helps, so the program is feasible if and only if the upper limits themselves are: with free
    weights as good as infinite, the pairs left are those that differ in bounded features alone.
    """
    from likewise.pairs import worst_partners

    if not np.isfinite(high).any():
        return
    scales = np.where(np.isinf(high), 1e100, high ** (1 / p))
    partner, excess, ratio = worst_partners(columns, outputs, scales, p, _ROUNDING)
    if ratio.min() >= 1 - _SHORTFALL:
        return
    worst = [i for i in np.argsort(-excess, kind="stable")[:3] if partner[0, i] >= 0]
    order = np.arange(len(high))
    lines = []
    for i in worst:
        a, b = (int(first[k]) for k in (i, partner[0, i]))
        gap = people.unit * float(np.abs(people.outputs[a] - people.outputs[b]).sum())
        lines.append(f"rows {a} and {b} (outputs differ by {gap:.4g}; {people.differing(a, b, order)})")
    n_people = int((partner[0] >= 0).sum())
    raise ValueError(
        "fixed and upper leave no metric: some pairs differ only in bounded features, and these weights do not explain "
        f"the difference of outputs. Worst of those found (for {n_people} people): {'; '.join(lines)}. Raise these "
        "weights, or audit the model against the metric you have in mind."
    )
