"""What a fitted model promises, compared with the oracle for all pairs of some people."""

from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

import likewise as lw
from catalogue import METRICS, MODELS, ask, persons, strangers
from chance import PER_CHECK
from oracle import PROMISES, sets_of_classes, variation

ROUNDING = 1e-12
SAME = "as it is"
N_ROUNDS = 40


class Evidence:
    """A model's outputs for people it may not have seen, their true distances, and everything it says about them."""

    def __init__(self, fitted, seed=3, n=14):
        self.fitted, self.model, self.cell = fitted, fitted.model, fitted.cell
        self.table = strangers(self.cell.metric, seed, n)
        self.guarantee = self.model.guarantee_
        self.described = fitted.described.matrix(persons(self.table))
        # A threshold's guarantee is about the distance divided by its width: `metric_kept` compares the two.
        self.width = getattr(self.model, "width", 1.0)
        own = self.described if self.width == 1.0 else self.guaranteed()
        self.D = own
        self.outputs = ask(fitted, self.table, SAME)
        self.is_sampled = self.guarantee.level == "sampled"
        self.is_classifier = hasattr(self.model, "predict_proba")

    def guaranteed(self):
        """Distances under the metric that the guarantee is said to be about."""
        return replace(self.fitted.described, metric=self.guarantee.metric).matrix(persons(self.table))

    def bound(self):
        return self.guarantee.bound(self.D)

    def odds_ratio(self):
        return self.guarantee.odds_ratio(self.D)

    def range_at(self, scores):
        return self.guarantee.range_at(scores[:, None], self.D)

    def certificate(self):
        return self.model.certify(self.table)

    def decision_bound(self):
        return self.model.decision_bound(self.D)

    def sure_distance(self):
        return self.model.band(self.table)["sure_distance"].to_numpy()

    def visible_rows(self):
        return self.model.visible_rows(self.table)

    def sets(self):
        """The probability of every set of classes, or the predictions."""
        n = self.outputs.shape[1]
        return [self.outputs[:, chosen].sum(axis=1) for chosen in sets_of_classes(n)] if n > 1 else [self.outputs[:, 0]]


def broken(evidence, asked=SAME):
    """Every promise that does not hold, as sentences with the worst figure; none if all do."""
    checks = (metric_kept, bounds, documented, ranges, odds, certificates, sure_decisions, visible)
    found = [sentence for check in checks for sentence in check(evidence)]
    return found + same_answer(evidence, asked)


def metric_kept(e):
    """The guarantee is about the metric that was given: as far, or divided by the width of a threshold."""
    given, own = e.described / e.width, e.guaranteed()
    looser, stricter = own - given, np.minimum(given, 1.0) - own
    room = 1e-9 * given + ROUNDING
    if (looser > room).any():
        yield f"the guarantee's distances are larger than those given, by {looser.max():.3g}{_pair(e, looser)}"
    if (stricter > room).any() and e.width == 1.0:
        yield f"the guarantee's distances are smaller than those given, by {stricter.max():.3g}{_pair(e, stricter)}"


def bounds(e):
    """No pair above the bound; people at distance 0 get the same outputs to the last bit."""
    excess = variation(e.outputs) - e.bound()
    if excess.max() > ROUNDING:
        yield f"a pair is {excess.max():.3g} above the bound{_pair(e, excess)}"
    together = (e.D == 0) & (variation(e.outputs) > 0)
    if together.any():
        yield f"people at distance 0 differ by {variation(e.outputs)[together].max():.3g}{_pair(e, together)}"


def documented(e):
    """The bound is no looser than the documentation says."""
    low, high = e.guarantee.output_range or (0.0, 1.0)
    share = e.bound() / (high - low)
    if (share > np.minimum(1.0, e.D + e.guarantee.epsilon) + ROUNDING).any() and e.cell.wrapper == "none":
        yield "the bound is above D + epsilon"
    promise = MODELS[e.cell.model].promise
    if promise and e.cell.wrapper == "none":
        curve = np.vectorize(PROMISES[promise])(e.D)
        if (share > curve * (1 + 1e-9) + e.guarantee.epsilon + ROUNDING).any():
            yield f"the bound is above that of {promise}"


def ranges(e):
    """Scores of people at a distance are within `range_at`."""
    for scores in e.sets():
        limits = e.range_at(np.clip(scores, *(e.guarantee.output_range or (0.0, 1.0))))
        outside = np.maximum(limits[..., 0] - scores, scores - limits[..., 1])
        if outside.max() > ROUNDING:
            yield f"a score is {outside.max():.3g} outside range_at{_pair(e, outside)}"


def odds(e):
    """Odds of every set of outcomes are within the odds ratio."""
    if not e.is_classifier:
        return
    for scores in e.sets():
        with np.errstate(divide="ignore", invalid="ignore"):
            log_odds = np.log(scores) - np.log1p(-scores)
            limit = np.log(e.odds_ratio())
            excess = np.nan_to_num(np.abs(log_odds[:, None] - log_odds), nan=0.0) - limit
        # Near 0 and 1 the last digit of a probability is many digits of its odds.
        certain = (np.minimum(scores, 1 - scores) > 1e-6)[:, None]
        excess = np.where(certain & certain.T & np.isfinite(limit), excess, -np.inf)
        if excess.max() > 1e-6:
            yield f"log-odds are {excess.max():.3g} above the limit{_pair(e, excess)}"


def certificates(e):
    """Everyone nearer than a certified distance has the same most likely class; ranges hold."""
    certificate, slack = e.certificate(), e.guarantee.slack
    if certificate.distance is not None:
        top = e.outputs.argmax(axis=1)
        # Where draws decide, people near a tie may fall on either side of it.
        settled = np.sort(e.outputs, axis=1)[:, -1] - np.sort(e.outputs, axis=1)[:, -2] > 2 * slack
        other = (certificate.distance[:, None] > e.D) & (top[:, None] != top) & settled
        if other.any():
            yield f"another class within the certified distance{_pair(e, other)}"
    width = np.ptp(e.guarantee.output_range or (0.0, 1.0))
    for distance in (0.02, 0.1, 0.4):
        low, high = certificate.range_at(distance)
        outside = np.maximum(low[:, None] - e.outputs, e.outputs - high[:, None]).max(axis=-1) - 2 * slack * width
        outside = np.where(distance >= e.D, outside, -np.inf)
        if outside.max() > ROUNDING:
            yield f"an output is {outside.max():.3g} outside the certified range{_pair(e, outside)}"


def sure_decisions(e):
    """Everyone nearer than `sure_distance` gets the same decision in every round."""
    if not hasattr(e.model, "band"):
        return
    differ = (e.sure_distance()[:, None] > e.D) & (variation(e.outputs) > 0)
    if differ.any():
        yield f"another decision within the sure distance{_pair(e, differ)}"


def visible(e):
    """People with equal visible rows have equal outputs."""
    rows = e.visible_rows()
    equal = np.array([[a.tobytes() == b.tobytes() for b in rows] for a in rows])
    differ = equal & (variation(e.outputs) > 0)
    if differ.any():
        yield f"equal visible rows, outputs {variation(e.outputs)[differ].max():.3g} apart{_pair(e, differ)}"


def decisions(e):
    """People of one round are decided differently no more often than promised."""
    key = b"a key for tests, not a secret"
    model = copy(e.model)
    if not hasattr(model, "band"):
        model.predict_proba = lambda X: e.outputs  # once is enough
    drawn = np.array([model.decide(e.table, round=str(k), key=key) for k in range(N_ROUNDS)])
    count = (drawn[:, :, None] != drawn[:, None, :]).sum(axis=0)
    unlikely = stats.binom.sf(count - 1, N_ROUNDS, np.minimum(1.0, e.decision_bound())) < PER_CHECK / count.size
    if unlikely.any():
        yield f"decided differently too often{_pair(e, unlikely)}"


def audited(e):
    """An audit against the guarantee finds no pair; None where the metric is bound otherwise than by this table."""
    found = lw.audit(e.model, e.table, e.guarantee.metric, against="guarantee", tolerance=ROUNDING)
    if found.n_violations:
        yield f"the audit finds {found.headline}"


def same_answer(e, asked):
    """People get the same outputs in whatever form their table comes, to the last bit."""
    other = ask(e.fitted, e.table, asked)
    if np.array_equal(other, e.outputs):
        return []
    apart = np.abs(other - e.outputs).max(axis=1)
    row = e.table.iloc[int(np.argmax(apart))].to_dict()
    return [f"asked as {asked!r}, outputs differ by {apart.max():.3g}: {row}"]


def _pair(e, size):
    """The worst pair, in words."""
    i, j = np.unravel_index(int(np.argmax(size)), e.D.shape)
    a, b = e.table.iloc[i], e.table.iloc[j]
    differs = [name for name in e.table.columns if not (a[name] == b[name] or (pd.isna(a[name]) and pd.isna(b[name])))]
    values = ", ".join(f"{name}: {a[name]!r} and {b[name]!r}" for name in differs)
    return f" at D = {e.D[i, j]:.4g} ({values}; outputs {e.outputs[i]} and {e.outputs[j]})"


__all__ = ["METRICS", "Evidence", "broken", "decisions"]
