"""The rules: the only place where a guarantee is made, one function for each theorem of `docs/theory.md`.

A rule takes evidence: the numbers of a model, with the metric that they were made for. It checks them, whoever made
them: the fit of a moment ago, a file, or somebody's own code. What does not support the theorem raises
`UnprovableError`, which says what exceeds what. What remains is the theorem's premise, and the rule returns the sealed
`Guarantee`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from likewise._typing import FloatArray
from likewise.exceptions import UnprovableError
from likewise.kernel.bounds import BandBound, Bound, GaussianBound, LaplaceBound, LoosenedBound, Tanh
from likewise.kernel.concentration import FixedDraws, Schedule
from likewise.kernel.evidence import NULLABLE, Anchors, Layers, Noise, Perturbed, Shape, SumOfShapes
from likewise.kernel.guarantee import SEAL, Guarantee, round_upwards
from likewise.kernel.links import LINKS
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import Encoder

Range = tuple[float, float] | None

_ROUNDING = 2.0**-40  # above the rounding errors of sums of some thousand numbers
_MAP_ROUNDING = 1e-13  # of a calibrator's values and gaps (§14), and of the scales of a linear map


def _need(holds: object, what: str) -> None:
    """Refuse evidence that does not support its theorem; NaN compares as false, so it is refused everywhere."""
    if not holds:
        raise UnprovableError(f"No guarantee follows: {what}")


def _check_range(output_range: Range) -> None:
    if output_range is not None:
        low, high = output_range
        _need(np.isfinite([low, high]).all() and low < high, f"the output range {low:g} to {high:g} is not one.")


# -- constant ----------------------------------------------------------------------------------------------------------


def constant(metric: BoundMetric, output: FloatArray, output_range: Range = None) -> Guarantee:
    """``h(x) = h(x')`` for everybody, so ``TV = 0 <= D`` under every metric (§1)."""
    _check_range(output_range)
    low, high = output_range or (0.0, 1.0)
    _need(((output >= low) & (output <= high)).all(), f"the output {output} is not between {low:g} and {high:g}.")
    total = float(output.sum())
    _need(output_range or abs(total - 1) <= _ROUNDING, f"the chances add up to {total:g} instead of 1.")
    basis = "It holds by construction: the output is constant."
    return Guarantee(metric, Bound(), "exact", basis, output_range=output_range, seal=SEAL)


# -- sums of shapes: cards, and whole points ---------------------------------------------------------------------------


def shapes(
    sums: SumOfShapes, link: str, output_range: Range = None, points_to_double: float | None = None
) -> Guarantee:
    """``|a(x) - a(x')| <= unit * D(x, x')``, and the link's curve does the rest (§11; for whole points §17).

    No column moves the score by more than ``unit`` times its own term of D, so a sum of them moves by at most ``unit``
    times the sum of these terms, which is D for p = 1.
    """
    _check_range(output_range)
    _need(link in LINKS, f"there is no link {link!r}.")
    metric, n_functions, known = sums.metric, len(sums.intercepts), LINKS[link]
    _need(metric.p == 1, f"shapes of single columns need p = 1; the metric has p = {metric.p:g}.")
    _need((link == "softmax") == (n_functions > 1), f"{n_functions} scores do not fit the link {link!r}.")
    _need(output_range is None or link == "clip", f"a regression needs the link 'clip', not {link!r}.")
    low, high = output_range or (0.0, 1.0)
    unit = known.unit * (high - low)
    if points_to_double is not None:  # odds double every so many points: 4 of log-odds are 4 / ln 2 doublings
        _need(link == "logistic" and points_to_double > 0, "points must double odds: link 'logistic', a positive rate.")
        unit = 4 * points_to_double / float(np.log(2))
    columns = [shape.column for shape in sums.shapes]
    _need(len({*columns}) == len(columns), "a column is on the card twice, so that its slopes add up.")
    for shape in sums.shapes:
        _check_shape(shape, metric, n_functions)
    _need(np.isfinite(sums.intercepts).all(), "an intercept is not finite.")
    # Between knots, points are rounded to the grid: steps below 2^-36 of the largest number are rounding errors.
    coarse = 2.0**-sums.bits > 2.0**-36 * max(unit, float(np.abs(sums.intercepts).max()))
    _need(not coarse, f"a grid of 2^-{sums.bits} is too coarse; between knots, scores would jump.")
    used = float(sums.used(unit).max(initial=0.0))
    _need(used <= 1, f"the shapes use {used:.6g} of what the metric allows.")
    share = "all" if used > 0.999 else f"{np.ceil(1000 * used) / 10:g}%"
    basis = (
        f"It holds by construction, for all people, seen or not: the {known.score} is a sum of one function per "
        f"column, and these use {share} of the slope the metric allows (and of the range it allows between "
        f"categories), read off the stored numbers and rounded upwards; {known.why}."
    )
    return Guarantee(metric, known.curve, "exact", basis, output_range=output_range, seal=SEAL)


def _check_shape(shape: Shape, metric: BoundMetric, n_functions: int) -> None:
    """The form of a shape: a value for each knot or code, finite, and one for each state that the metric knows."""
    i, n_columns = shape.column, len(metric.is_number)
    _need(0 <= i < n_columns, f"the card reads column {i} of {n_columns}.")
    name = metric.schema.names[i]
    parts = [part for part in (shape.values, shape.other, shape.special) if part is not None]
    _need(
        all(np.isfinite(part).all() and len(part) == n_functions for part in parts),
        f"{name!r} has a value that is not finite.",
    )
    n_special = 0 if shape.special is None else shape.special.shape[1]
    _need(n_special == len(metric.codes(i)), f"{name!r} has {n_special} special codes, not those of the metric.")
    _need((shape.knots is not None) == metric.is_number[i], f"{name!r} is not the kind of column it is in the metric.")
    if shape.knots is None:
        codes = shape.values.shape[1] + 1
        _need(shape.other is not None, f"{name!r} has no value for categories that were not seen.")
        _need(len(metric.tables.get(i, range(codes))) == codes, f"{name!r} has other categories than in the metric.")
    else:
        rising = np.isfinite(shape.knots).all() and (np.diff(shape.knots) > 0).all()
        _need(rising and shape.values.shape[1] == len(shape.knots) > 0, f"the knots of {name!r} do not increase.")
        _need((shape.other is None) == np.isnan(metric.missing[i]), f"{name!r}: may it be blank, or not?")


# -- layers ------------------------------------------------------------------------------------------------------------


def layers(network: Layers, link: str, output_range: Range = None) -> Guarantee:
    """``|z(x) - z(x')| <= slope * D(x, x')`` with a slope of at most 1, and the link's curve does the rest (§12)."""
    _check_range(output_range)
    _need(link in LINKS, f"there is no link {link!r}.")
    inputs, columns = network.inputs, network.inputs.columns
    metric = inputs.metric
    metric.refuse_tables("a network")
    _need(len({*columns.tolist()}) == len(columns), "the network reads a column twice.")
    _need(metric.matters[columns].all(), "the network reads a column of weight 0.")
    sizes = np.where(inputs.kinds == NULLABLE, 2, 1)
    fits = (np.diff(inputs.starts) >= sizes).all() and (np.diff(inputs.starts) == sizes)[inputs.is_number].all()
    _need(fits and inputs.starts[-1] == len(network.first), "the first layer does not fit the columns.")
    parts = [network.first, *network.weights, *network.biases, inputs.low, inputs.high, inputs.centre]
    _need(all(np.isfinite(part).all() for part in parts), "a number of the network is not finite.")
    slope = network.slope()
    _need(slope <= 1, f"the score moves by up to {slope:.6g} times the distance, which is more than 1.")
    basis = (
        "It holds by construction, for all people, seen or not: the weights of the network let its score move by "
        f"at most {slope:.4g} times the distance (at most 1; read off the finished weights and rounded "
        f"upwards, however they were found); {LINKS[link].why}."
    )
    return Guarantee(metric, LINKS[link].curve, "exact", basis, output_range=output_range, seal=SEAL)


# -- envelopes ---------------------------------------------------------------------------------------------------------


def envelope(
    anchors: Anchors,
    values: FloatArray,
    shares: tuple[float, float, float],
    base: Guarantee | float | None,
    output_range: Range = None,
) -> Guarantee:
    """``L(x) = max_j (v_j - D(x, a_j))`` and ``U(x) = min_j (v_j + D(x, a_j))`` move by at most D (§13).

    So do ``median(base, L, U)`` for a base that does, and averages of these with fixed `shares` (base, L, U): minima,
    maxima and averages of functions that move by at most D do. It holds for all values of the anchors; between two of
    them it takes the triangle inequality.
    """
    _check_range(output_range)
    metric = anchors.metric
    _need(len(values) and ((values >= 0) & (values <= 1)).all(), "a value of an anchor is not between 0 and 1.")
    total = sum(shares)
    _need(
        min(shares) >= 0 and abs(total - 1) <= _ROUNDING,
        f"the shares of base and envelopes add up to {total:g}, or one is negative.",
    )
    for i, table in metric.tables.items():
        _check_triangle(table, metric.schema.names[i])
    if isinstance(base, Guarantee):
        _need(metric.is_of(base.metric), f"the base is about another metric, {base.metric!r}.")
        _need(
            base.epsilon == base.delta == 0 and base.output_range == output_range,
            "the base may exceed the distance, or has another range.",
        )
    elif shares[0] > 0:
        _need(base is None or 0 <= base <= 1, f"the base {base} is not between 0 and 1.")
    basis = f"It holds by construction: scores lie between the envelopes of {len(values):,} anchors."
    basis = f"{basis} {metric.description.assumption}".rstrip()
    return Guarantee(metric, Bound(), "exact", basis, output_range=output_range, seal=SEAL)


def _check_triangle(table: FloatArray, name: Any) -> None:
    for k in range(len(table)):
        detour = table[:, k, None] + table[k]
        worst = float((table - detour).max())
        _need(worst <= 1e-12, f"the distances of {name!r} violate the triangle inequality by {worst:.3g}.")


# -- noise -------------------------------------------------------------------------------------------------------------


# Per kind: the bound on the total variation between two translates at distance D, and the exponent q of the norm for
# which it holds (None: the metric's own), §4. Since ||z||_q <= d^max(0, 1/q - 1/p) ||z||_p for d columns, noise that is
# wider by this factor has the same bound under a metric with exponent p.
NOISES: dict[str, tuple[Bound, float | None]] = {
    "Gaussian": (GaussianBound(), 2.0),
    "Laplace": (LaplaceBound(), None),
    "Uniform": (Bound(), 1.0),
    "Splitting": (Bound(), 1.0),  # plus n / K, for the n numbers without a grid (§6)
}


def theorem_of(noise: Noise) -> tuple[Bound, float | None]:
    """The bound of a kind of noise, and the exponent of the norm for which it holds."""
    kind = type(noise).__name__
    _need(kind in NOISES, f"there is no theorem for noise of the kind {kind!r}.")
    return NOISES[kind]


def exact_noise(perturbed: Perturbed, output_range: Range = None) -> Guarantee:
    """``h(x) = E f(x + t)`` from a formula: ``TV(h(x), h(x')) <= TV(x + t, x' + t)``, by data processing (§3, §7)."""
    basis = "This holds for all pairs, with certainty: outputs come from a formula."
    curve = _curve_of(perturbed, output_range)
    return Guarantee(perturbed.metric, curve, "exact", basis, output_range=output_range, seal=SEAL)


def splitting(perturbed: Perturbed, output_range: Range = None, premise: str = "") -> Guarantee:
    """The average over all K shifts of a grid is h itself: nothing is sampled (§6)."""
    curve, K = _curve_of(perturbed, output_range), perturbed.n_fixed or 0
    _need(K >= 1, "an average over fixed draws needs their number.")
    basis = (
        f"This holds for all pairs, with certainty: outputs are averages over {K:,} fixed shifts of a grid, not "
        "over random draws."
    )
    if curve.excess:
        basis += (
            f" The {round_upwards(curve.excess, 3)} is n/{K:,} for the n = {round(curve.excess * K)} features whose "
            "values are not on a grid; it is less for two people who differ in fewer of these."
        )
    basis = f"{basis} {premise}".rstrip()
    return Guarantee(perturbed.metric, curve, "deterministic", basis, n_draws=K, output_range=output_range, seal=SEAL)


def sampled_noise(
    perturbed: Perturbed, draws: FixedDraws | Schedule, output_range: Range = None, premise: str = ""
) -> Guarantee:
    """``TV(h_n(x), h_n(x')) <= B(D) + epsilon`` for averages over n draws, except with probability delta (§5)."""
    curve, delta, n_draws = _curve_of(perturbed, output_range), draws.delta, draws.n_draws
    _need(perturbed.n_fixed is None, "draws of a splitting are not random.")
    _need(
        0 < delta < 1 and draws.epsilon > 0 and n_draws >= 1,
        f"{n_draws} draws cannot have an error of {draws.epsilon} except with probability {delta}.",
    )
    basis = (
        f"This holds for each pair, except with probability at most {round_upwards(delta)} over the {n_draws:,} "
        f"random draws made in fit, for pairs chosen without knowledge of the draws. {premise}"
    ).rstrip()
    return Guarantee(perturbed.metric, curve, "sampled", basis, draws.epsilon, delta, n_draws, output_range, seal=SEAL)


def _curve_of(perturbed: Perturbed, output_range: Range) -> Bound:
    """``TV <= B(D_numbers) + sum of what blanks and categories cost`` (§9).

    A category of weight w is kept with probability w and otherwise drawn independently of the person, so two different
    values give a total variation of at most w, and total variations add up. How D is divided between numbers and the
    rest is not known from D: the rest may be all of it, and B(D) is below D. Where there is no rest, B is the bound.
    """
    _check_range(output_range)
    metric, visible, kept, numbers = perturbed.metric, perturbed.visible, perturbed.kept, perturbed.numbers
    metric.refuse_tables("smoothing")
    costs = np.where(metric.is_number, np.nan_to_num(metric.missing, nan=1.0), metric.scales)
    costs = np.where(metric.matters, costs, 0.0)
    for i in np.flatnonzero(~(kept <= costs)).tolist():
        _need(
            False,
            f"{metric.schema.names[i]!r} is kept with probability {kept[i]:.6g}, and a mismatch costs {costs[i]:.6g}.",
        )
    _need(
        not (visible & ~(metric.is_number & metric.matters)).any(),
        "noise is added to a column that is no number of positive weight.",
    )
    _need(not (metric.is_number & ~visible & (kept > 0)).any(), "a number is kept without noise.")
    blanks = (visible & (np.nan_to_num(metric.missing) > 0)).any()
    rest = bool(blanks or (metric.matters & ~metric.is_number).any())
    if numbers is None:
        _need(not visible.any(), "numbers have no noise.")
        return LoosenedBound(0.0)
    _need(numbers.n_fixed == perturbed.n_fixed, "the numbers have another number of fixed draws than the rest.")
    curve, q = theorem_of(numbers.noise)
    widths, scales = numbers.noise.widths[numbers.noise.visible], metric.scales[visible]
    _need(len(widths) == len(scales), f"noise on {len(widths)} columns does not fit {len(scales)} numbers.")
    needed = len(scales) ** max(0.0, 1 / (q or metric.p) - 1 / metric.p) / scales
    for i in np.flatnonzero(~(widths >= needed * (1 - _ROUNDING))).tolist():
        name = metric.schema.names[np.flatnonzero(visible)[i]]
        _need(False, f"the noise on {name!r} has the width {widths[i]:.6g}, and the metric needs {needed[i]:.6g}.")
    excess = 0.0
    if numbers.n_fixed is not None and numbers.steps is not None:
        _need(
            type(numbers.noise).__name__ == "Splitting" and len(numbers.steps) == len(scales),
            "fixed draws need a splitting.",
        )
        excess = float((numbers.steps == 0).sum()) / numbers.n_fixed
    return curve if not (rest or excess) else LoosenedBound(excess)


# -- what comes after a model ------------------------------------------------------------------------------------------


def calibrated(inner: Guarantee, kind: str, numbers: tuple[FloatArray, FloatArray]) -> Guarantee:
    """``c(h(x))`` for a map c of slope at most 1 in the score z of h: ``|z(x) - z(x')| <= D + epsilon`` (§14).

    "isotonic" (knots, values): rises by at most the gap of its knots, so ``|c - c'| <= D + epsilon`` (Prop. 14.1).
    "sigmoid" (slope, shifts): ``softmax(slope * u + shifts)`` of log-odds u that move by at most 4 D has ``TV <=
    tanh(D)`` for a slope of at most 1 (Prop. 14.3).
    """
    first, second = numbers
    _need(inner.output_range is None, "a calibrator maps chances, not predictions.")
    if kind == "isotonic":
        rises, gaps = np.diff(second), np.diff(first)
        _need(len(first) == len(second) and np.isfinite(first).all() and (gaps > 0).all(), "the knots do not increase.")
        _need(((second >= 0) & (second <= 1)).all() and (rises >= 0).all(), "the values fall, or leave [0, 1].")
        steeper = rises - gaps
        _need(
            (steeper <= _MAP_ROUNDING).all(),
            f"the calibrator rises by {steeper.max(initial=0):.3g} more than its knots.",
        )
        curve = Bound()
    else:
        _need(
            kind == "sigmoid" and inner.curve.has_log_odds and not inner.slack,
            "only log-odds within the metric can be stretched.",
        )
        _need(
            np.isfinite(second).all() and ((first >= 0) & (first <= 1)).all(),
            f"the slope {first} is not between 0 and 1.",
        )
        curve = Tanh()
    # Sampled chances are calibrated, so their error applies to `decide` too and belongs to the curve.
    curve = LoosenedBound(inner.epsilon) if inner.epsilon else curve
    basis = f"The calibrator has a slope of at most 1 in the score of the inner model. {inner.basis}"
    return Guarantee(inner.bound_metric, curve, inner.level, basis, delta=inner.delta, n_draws=inner.n_draws, seal=SEAL)


def band(inner: Guarantee, thresholds: FloatArray, width: float) -> Guarantee:
    """``|P(yes) - P'(yes)| <= (bound(D) + epsilon) / W``: one cut-off for all, from a band (§16).

    Several bands must not overlap: then each of them rises on its own part of the scores.
    """
    _need(inner.output_range is None, "a threshold needs chances, not predictions.")
    _need(0 < width <= 1, f"the width of the band is {width}; it must be above 0 and at most 1.")
    _need(len(thresholds) and ((thresholds > 0) & (thresholds < 1)).all(), "a threshold is not between 0 and 1.")
    _need((np.diff(thresholds) >= width).all(), f"bands of width {width:g} around {thresholds} overlap.")
    where = ", ".join(f"{t:g}" for t in thresholds)
    basis = (
        f"Everybody in a round shares one cut-off, drawn from a band of width {float(width):g} around "
        f"{where}; D is the distance of the scores divided by that width. {inner.basis}"
    )
    own, factor = inner.bound_metric, 1 / width
    return Guarantee(
        own.description.scaled(factor).bind(own.schema),
        BandBound(inner.curve, width, inner.slack, own.caps_at(factor)),
        inner.level,
        basis,
        delta=inner.delta,
        n_draws=inner.n_draws,
        seal=SEAL,
    )


def reread(guarantee: Guarantee, schema: Encoder) -> Guarantee:
    """The same, about people read with their columns in another order: D is a sum over columns, by name (§2, §9)."""
    own, other = guarantee.bound_metric, guarantee.bound_metric.rebound(schema)
    at = [own.schema.names.index(name) for name in schema.names]
    # Directions of a linear map are multiplied out anew, and rounded.
    same = np.allclose(own.scales[at], other.scales, rtol=_MAP_ROUNDING, atol=0)
    same &= np.array_equal(own.missing[at], other.missing, equal_nan=True)
    same &= [own.special.get(i) for i in at] == [other.special.get(i) for i in range(len(at))]
    _need(same and own.p == other.p, "the columns cost something else in another order.")
    return replace(guarantee, bound_metric=other, seal=SEAL)
