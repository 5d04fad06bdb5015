"""Soft thresholds: a cut-off that everybody in a round shares, drawn from a band.

Let h(x) be the probability of the favourable class and C uniform on ``[t - W/2, t + W/2]``, one draw per round. A
person is accepted if ``h(x) > C``. Outside the band the decision is certain; inside it, two people are decided
differently with probability ``|h(x) - h(x')| / W``. So decisions are within ``bound(D) / W``, where ``bound`` is that
of the scores (docs/theory.md §16). W = 1 with t = 1/2 is a lottery by the score itself; W = 0 is a plain threshold,
which guarantees nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.frozen import FrozenEstimator

from likewise._favourable import column_of, given_or_stored, is_label, the_favourable
from likewise._fit_validation import TrainingData
from likewise._guarantee_warnings import suppress_guarantee_warnings
from likewise._inner_estimator import (
    WrappedScorer,
    WrapsClassifier,
    fit_weighted,
    inner_classifier,
    inner_for,
)
from likewise._shared_draw import SharedDraw
from likewise._typing import FloatArray
from likewise._validation import NONE, Rule, check_numbers, positive, short_repr
from likewise.additive.scorecard_mixin import ScorecardMixin
from likewise.base import ConstrainedClassifier
from likewise.exceptions import InvalidInputError
from likewise.kernel import rules
from likewise.kernel.bounds import CAP, ROUNDING, Bound, round_down
from likewise.kernel.certificate import Estimate
from likewise.kernel.guarantee import Guarantee
from likewise.kernel.metric import BoundMetric
from likewise.kernel.schema import People


def chance_above(score: FloatArray, threshold: float | FloatArray, width: float) -> FloatArray:
    """Probability that a score exceeds a cut-off drawn from the band; 0 or 1 for a width of 0."""
    if width == 0:
        return np.asarray(score > threshold, dtype=np.float64)
    return np.asarray(np.clip((score - threshold) / width + 0.5, 0.0, 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class ThresholdScorer(WrappedScorer):
    """Chances of each decision, over the draw of a round.

    Attributes
    ----------
    column : int
        Of the favourable class among the inner model's outputs.
    thresholds : ndarray of shape (n_thresholds,)
    width : float
    has_grades : bool
        Whether outputs are grades, lowest first, instead of the two classes.
    """

    column: int
    thresholds: FloatArray
    width: float
    has_grades: bool = False

    def prove(self) -> Guarantee:
        """Everybody shares one cut-off, from a band of this width."""
        return rules.band(self.scorer.guarantee, self.thresholds, self.width)

    def estimate(self, people: People, *, verbose: bool = False) -> Estimate:
        """Chances with intervals."""
        inner = self.scorer.estimate(self.encoder.recode(people), verbose=verbose)
        reached = self._reached(inner.mean)
        mean = self._in_order(reached[:, :-1] - reached[:, 1:])
        if inner.lower is inner.mean:  # nothing is sampled
            return Estimate(mean, mean, mean, inner.n_draws)
        low, high = self._reached(inner.lower), self._reached(inner.upper)
        lower = self._in_order(np.clip(low[:, :-1] - high[:, 1:], 0.0, 1.0))
        upper = self._in_order(np.clip(high[:, :-1] - low[:, 1:], 0.0, 1.0))
        return Estimate(mean, lower, upper, inner.n_draws)

    def reaching(self, probabilities: FloatArray) -> FloatArray:
        """Probability of reaching each threshold, shape (n_samples, n_thresholds), by the inner model's outputs."""
        return chance_above(probabilities[:, [self.column]], self.thresholds, self.width)

    def inner_estimate(self, people: People) -> Estimate:
        """Outputs of the inner model."""
        return self.scorer.estimate(self.encoder.recode(people))

    def distance_to_tie(self, people: People) -> FloatArray:
        """Distance within which the more likely decision stays the same under h, the limit of infinitely many draws."""
        inner = self.inner_estimate(people)
        return self._distance_at(inner.lower, inner.upper, 0.0)

    def distance_to_band(self, people: People) -> FloatArray:
        """Distance, rounded down, within which no score that is sampled comes into the band.

        Others are decided by their own sampled scores, so the interval around h(x) is of no use here: sampled scores of
        a pair differ by at most ``bound(D) + slack``, except with probability delta.
        """
        mean = self.inner_estimate(people).mean
        return self._distance_at(mean, mean, self.width / 2 + self.scorer.guarantee.slack)

    def _distance_at(self, lower: FloatArray, upper: FloatArray, room: float) -> FloatArray:
        """Distance, rounded down, at which a score may come within `room` of a threshold."""
        below = self.thresholds - upper[:, [self.column]]
        above = lower[:, [self.column]] - self.thresholds
        lead = np.clip(np.maximum(below, above).min(axis=1) - room - ROUNDING, 0.0, 1.0)
        found = round_down(self.scorer.guarantee.curve._inverse_curve(round_down(lead))) / self.width
        return np.minimum(found, CAP) if self.guarantee.curve.capped else found  # type: ignore[attr-defined]

    def _reached(self, probabilities: FloatArray) -> FloatArray:
        """`reaching`, between the lowest grade, which everybody reaches, and one above the highest."""
        n = len(probabilities)
        return np.hstack([np.ones((n, 1)), self.reaching(probabilities), np.zeros((n, 1))])

    def _in_order(self, chances: FloatArray) -> FloatArray:
        """In the order of the classes: a favourable first class has the first column."""
        return chances[:, ::-1] if self.column == 0 and not self.has_grades else chances


def _are_labels(given: Any) -> bool:
    labels = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(labels, list | tuple):
        return False
    return len({str(label) for label in labels if isinstance(label, str | Real | np.generic)}) == len(labels)


class ThresholdDecision(WrapsClassifier):
    """Decisions by a threshold, with a guarantee: the cut-off is drawn from a band, once per round.

    Everybody in a round is compared with one cut-off, drawn from ``[threshold - width / 2, threshold + width / 2]``.
    Outside the band decisions are certain. Two people at distance D are decided differently with probability at most
    ``estimator_.guarantee_.bound(D) / width``. With a metric enforced at ``width * D``, decisions are within D.

    Parameters
    ----------
    estimator : classifier of likewise
        For two classes. `fit` fits a clone, unless it comes in `sklearn.frozen.FrozenEstimator`. `from_model` takes a
        fitted one and needs no data.
    threshold : float or increasing sequence of floats, default=0.5
        Probability of the favourable class in the middle of the band. Several thresholds give grades, with a band at
        each; bands must not overlap.
    width : float, default=0.1
        Of each band. 1 with a threshold of 0.5 is a lottery by the score itself.
    favourable : class label, default=None
        The class whose probability is compared; None takes the one that is stored with the inner model or known by its
        word, such as approved, or else the positive class of scikit-learn, the last one; `notice` then refuses.
    grades : sequence, default=None
        Labels of the grades, lowest first: one more than there are thresholds. None takes the two classes.

    Attributes
    ----------
    guarantee_ : Guarantee
        Under the metric divided by `width`, in which two categories, or a number and a blank, are at most 1 apart.
    estimator_ : the fitted inner model
    classes_ : ndarray of shape (n_classes,)
        The classes, or the grades.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Notes
    -----
    Covered: `decide` with a round and a key, and `predict_proba`, the chance of each decision over the draw of a round.
    Not covered: `predict`, the more likely decision, which is a plain threshold again.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from likewise import AdditiveClassifier
    >>> X, y = make_classification(random_state=0)
    >>> card = AdditiveClassifier(penalty=0.01).fit(X, y)
    >>> decision = ThresholdDecision.from_model(card, threshold=0.6, width=0.2)
    >>> decision.decide(X, round="2026-11-17", key=b"a secret of 21 bytes.").shape
    (100,)
    >>> decision.guarantee_.level
    'exact'
    """

    rules: ClassVar[dict[str, Rule]] = {
        "width": positive(below=1.0) | Rule("1", lambda width: is_label(width, 1.0)),
        "grades": NONE | Rule("a list of labels that differ, lowest first", _are_labels),
    }

    scorer_: ThresholdScorer

    def __init__(
        self,
        estimator: Any,
        *,
        threshold: Any = 0.5,
        width: float = 0.1,
        favourable: Any = None,
        grades: Sequence[Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.width = width
        self.favourable = favourable
        self.grades = grades

    @classmethod
    def from_model(cls, model: Any, **options: Any) -> Self:
        """Decisions of a fitted model; `options` are the parameters beside `estimator`."""
        decision = cls(FrozenEstimator(inner_classifier(model)), **options)
        for name, rule in cls.rules.items():
            rule.check(name, getattr(decision, name))
        decision.scorer_ = decision._scorer(inner_classifier(model))
        decision.encoder_ = model.encoder_
        _ = decision.guarantee_  # raises if none follows
        for name in ("n_features_in_", "feature_names_in_", "ranges_"):
            if hasattr(model, name):
                setattr(decision, name, getattr(model, name))
        return decision

    @staticmethod
    def width_for(different: float, distance: float, bound: Guarantee | Bound | None = None) -> float:
        """The smallest width with which people at `distance` are decided differently with probability `different`.

        Parameters
        ----------
        different : float
            Largest probability, in (0, 1].
        distance : float
            Between two people, under the metric of the inner model.
        bound : Guarantee or Bound, optional
            Of the inner model, ``guarantee_``; by default the distance itself.

        Examples
        --------
        >>> round(ThresholdDecision.width_for(0.1, 0.01), 6)
        0.1
        """
        (positive(below=1.0) | Rule("1", lambda share: is_label(share, 1.0))).check("different", different)
        positive().check("distance", distance)
        (NONE | Rule("a Guarantee or Bound", lambda it: isinstance(it, Guarantee | Bound))).check("bound", bound)
        width = float(np.nextafter((bound or Bound()).bound(distance) / different, 2.0))
        if width > 1:
            raise InvalidInputError(
                f"different must be at least {width * different:.4g} for people at a distance of {distance:g}, even "
                f"with a width of 1; got {different:g}. Enforce a stricter metric."
            )
        return width

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def learn(self, data: TrainingData, metric: BoundMetric) -> ThresholdScorer:
        """Fit the inner model, unless it is frozen, and put the threshold behind it."""
        inner = inner_classifier(self.estimator)
        _check_two(self.classes_)
        if not isinstance(self.estimator, FrozenEstimator):
            with suppress_guarantee_warnings():
                unfitted, table = inner_for(self.estimator, metric.description), data.people.named_table()
                inner = fit_weighted(unfitted, table, data.y, self._inner_data(data).weights)
        return self._scorer(inner)

    def _scorer(self, inner: ConstrainedClassifier) -> ThresholdScorer:
        thresholds, column = self._thresholds(), self._column(inner.classes_)
        self.estimator_ = inner
        self.classes_ = inner.classes_ if self.grades is None else np.array(list(self.grades))
        has_grades = self.grades is not None
        return ThresholdScorer(inner.scorer_, inner.encoder_, column, thresholds, float(self.width), has_grades)

    def _thresholds(self) -> FloatArray:
        try:
            thresholds = np.atleast_1d(check_numbers("threshold", self.threshold))
        except InvalidInputError:
            thresholds = np.array([np.nan])
        if thresholds.ndim != 1 or not ((thresholds > 0) & (thresholds < 1)).all() or not len(thresholds):
            raise InvalidInputError(
                f"threshold must be between 0 and 1, or several such numbers; got {short_repr(self.threshold)}."
            )
        if (np.diff(thresholds) < self.width).any():
            raise InvalidInputError(
                f"threshold must be increasing, with at least width ({self.width:g}) between neighbours, so that bands "
                f"do not overlap; got {short_repr(self.threshold)}. Use a smaller width."
            )
        if (2 if self.grades is None else len(self.grades)) != len(thresholds) + 1:
            raise InvalidInputError(
                f"grades must name {len(thresholds) + 1} grades for {len(thresholds)} thresholds, lowest first; got "
                f"{short_repr(self.grades)}."
            )
        return thresholds

    def _column(self, classes: npt.NDArray[Any]) -> int:
        _check_two(classes)
        return column_of(given_or_stored(self.favourable, self.estimator), classes)

    def decision_bound(self, distance: npt.ArrayLike) -> FloatArray:
        """Largest probability that two people at `distance` are decided differently, under the metric of `guarantee_`.

        The same for grades: neighbouring grades share the draw. Around a sampled model it holds for each pair except
        with probability ``guarantee_.delta`` over the draws made in `fit`.
        """
        return self.guarantee_.bound(distance)

    def _decide_together(self, X: Any, draw: SharedDraw) -> npt.NDArray[Any]:
        inner = self.scorer_.inner_estimate(self._people(X)).mean
        grade = draw.grade(self.scorer_.reaching(inner))
        return np.asarray(self.ranked_classes_[grade])

    @property
    def ranked_classes_(self) -> npt.NDArray[Any]:
        """The classes or grades, the least favourable first."""
        _ = self.guarantee_  # raises if not fitted
        return self.classes_[::-1] if self.grades is None and self.scorer_.column == 0 else self.classes_

    def notice(self, X: Any, *, policy: Any = None, n: int = 4) -> list[Any]:
        """Notices to people (`AdditiveClassifier.notice`): the change asked for crosses the band, without a draw.

        For one threshold on a scorecard.

        Parameters
        ----------
        X, policy, n
            As for `AdditiveClassifier.notice`.
        """
        _ = self.guarantee_  # raises if not fitted
        inner, thresholds = self.estimator_, self.scorer_.thresholds
        if not isinstance(inner, ScorecardMixin) or len(thresholds) > 1:
            raise InvalidInputError("notice needs a ThresholdDecision with one threshold, on a scorecard.")
        label = the_favourable(given_or_stored(self.favourable, self.estimator), inner.classes_)
        band = {"threshold": float(thresholds[0]), "width": self.scorer_.width}
        return list(inner.notice(X, **band, favourable=label, policy=policy, n=n))

    def band(self, X: Any) -> pd.DataFrame:
        """Where people stand relative to the band.

        Returns
        -------
        DataFrame with one row per person
            ``score`` (probability of the favourable class), ``in_band`` (whether the draw matters), and
            ``sure_distance``: everyone closer than this, under the metric of `guarantee_`, gets the same decision in
            every round; around a sampled model, each of them except with probability ``guarantee_.delta`` over the
            draws made in `fit`. 0 within the band, and as near to it as the sampling error.
        """
        people = self._people(X)
        reached = self.scorer_.reaching(self.scorer_.inner_estimate(people).mean)
        return pd.DataFrame(
            {
                "score": self.scorer_.inner_estimate(people).mean[:, self.scorer_.column],
                "in_band": ((reached > 0) & (reached < 1)).any(axis=1),
                "sure_distance": self.scorer_.distance_to_band(people),
            }
        )


def _check_two(classes: npt.NDArray[Any]) -> None:
    if len(classes) != 2:
        raise InvalidInputError(  # scikit-learn's checks expect the first two sentences
            "Only binary classification is supported. The type of the target is multiclass. (estimator must be for two "
            f"classes; got {len(classes)}. For grades, give several thresholds on the probability of one outcome.)"
        )
