"""Confidence intervals and sample sizes for sampled outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from likewise._typing import FloatArray
from likewise._validation import BOOL, check_count, check_positive, one_of


def hoeffding(mean: FloatArray, n_draws: int, delta: float) -> tuple[FloatArray, FloatArray]:
    """Confidence interval for the mean of draws in [0, 1]: mean +- sqrt(log(2 / delta) / (2 n))."""
    margin = np.sqrt(np.log(2 / delta) / (2 * n_draws))
    return np.clip(mean - margin, 0, 1), np.clip(mean + margin, 0, 1)


def clopper_pearson(share: FloatArray, n_draws: int, delta: float) -> tuple[FloatArray, FloatArray]:
    """Exact confidence interval for a probability, from the share of ones among `n_draws` draws."""
    counts, where = np.unique(np.rint(share * n_draws), return_inverse=True)
    with np.errstate(invalid="ignore"):
        lower = np.where(counts > 0, beta.ppf(delta / 2, counts, n_draws - counts + 1), 0.0)
        upper = np.where(counts < n_draws, beta.ppf(1 - delta / 2, counts + 1, n_draws - counts), 1.0)
    return lower[where].reshape(share.shape), upper[where].reshape(share.shape)


def empirical_bernstein(
    mean: FloatArray, mean_of_squares: FloatArray, n_draws: int, delta: float
) -> tuple[FloatArray, FloatArray]:
    """Confidence interval for the mean of draws in [0, 1], short if their variance is small.

    ``mean +- (sqrt(2 V L / n) + 7 L / (3 (n - 1)))``, ``L = log(4 / delta)``, with the sample variance V
    (Maurer & Pontil 2009, Theorem 4, on both sides). Needs ``n >= 2``.
    """
    variance = np.maximum(mean_of_squares - mean**2, 0.0) * (n_draws / (n_draws - 1))
    # The difference of two means of n numbers <= 1 has an error below n units in the last place.
    variance = variance + 4 * n_draws * np.finfo(np.float64).eps
    log = np.log(4 / delta)
    margin = np.sqrt(2 * variance * log / n_draws) + 7 * log / (3 * (n_draws - 1))
    return np.clip(mean - margin, 0, 1), np.clip(mean + margin, 0, 1)


def subset_margin(n_draws: int | npt.NDArray[np.int64], delta: float, n_classes: int) -> FloatArray:
    """Bound on the total variation between sampled and true probabilities, which fails with probability `delta`.

    ``sqrt(log((2^m - 2) / delta) / (2 n))``: Hoeffding's inequality for each non-trivial set of the m classes.
    """
    log_sets = n_classes * np.log(2) + np.log1p(-(2.0 ** (1 - n_classes)))
    return np.asarray(np.sqrt((log_sets - np.log(delta)) / (2 * np.asarray(n_draws, dtype=np.float64))))


def draws_needed(
    epsilon: float,
    delta: float,
    n_classes: int = 2,
    shared: bool = True,
    *,
    n_people: int = 2,
    method: Literal["sharpest", "paper"] = "sharpest",
) -> int:
    """Number of draws for which the guarantee holds up to `epsilon`, except with probability `delta`.

    The smallest n with ``failure_probability(n, epsilon, ...) <= delta``.

    Parameters
    ----------
    epsilon : float
        Excess over the noise's bound, in total variation, that is tolerated.
    delta : float
        Probability, over the draws, that some pair has a larger excess.
    n_classes : int, default=2
        Use 2 for regression.
    shared : bool, default=True
        Whether one set of draws serves all people (as in the estimators) or each has their own.
    n_people : int, default=2
        Number of people among whom all pairs hold at once; 2 is one pair.
    method : {"sharpest", "paper"}, default="sharpest"
        "paper": the union bound over classes of Theorem 8 of the paper, which is never smaller.

    Examples
    --------
    >>> draws_needed(0.01, 1.8e-4, shared=False, method="paper")
    100089
    >>> draws_needed(0.01, 1.8e-4, shared=False)
    93158
    >>> draws_needed(0.01, 1.8e-4)
    186315
    """
    check_positive("epsilon", epsilon, hint="No finite number of draws gives 0.")
    delta = check_positive("delta", delta, below=1)
    needed = min(
        (log_factor - np.log(delta)) / (rate * epsilon**2)
        for log_factor, rate in _bounds(n_classes, shared, n_people, method)
    )
    return max(1, int(np.ceil(needed * (1 + 1e-12))))


def failure_probability(
    n_draws: int,
    epsilon: float,
    n_classes: int = 2,
    shared: bool = True,
    *,
    n_people: int = 2,
    method: Literal["sharpest", "paper"] = "sharpest",
) -> float:
    """Upper bound on the probability that `n_draws` leave some pair more than `epsilon` above the guarantee.

    Parameters are those of `draws_needed`.

    Examples
    --------
    >>> f"{failure_probability(100_000, 0.01, shared=False, method='paper'):.2g}"  # the paper's number
    '0.00018'
    """
    n_draws = check_count("n_draws", n_draws)
    check_positive("epsilon", epsilon)
    return min(
        1.0,
        *(
            float(np.exp(min(0.0, log_factor - n_draws * rate * epsilon**2)))
            for log_factor, rate in _bounds(n_classes, shared, n_people, method)
        ),
    )


def error_margin(n_draws: int, delta: float, n_classes: int = 2, shared: bool = True, *, n_people: int = 2) -> float:
    """Smallest epsilon that `n_draws` support at `delta`; at most 1. The inverse of `draws_needed`.

    Examples
    --------
    >>> round(error_margin(186_315, 1.8e-4), 4)
    0.01
    """
    n_draws = check_count("n_draws", n_draws)
    delta = check_positive("delta", delta, below=1)
    return min(
        1.0,
        *(
            float(np.sqrt((log_factor - np.log(delta)) / (rate * n_draws)))
            for log_factor, rate in _bounds(n_classes, shared, n_people, "sharpest")
        ),
    )


def _bounds(n_classes: Any, shared: bool, n_people: Any, method: str) -> list[tuple[float, float]]:
    """Pairs (log_factor, rate): the failure probability is at most exp(log_factor - n rate epsilon^2); theory §5."""
    m = check_count("n_classes", n_classes, min_value=2)
    n = check_count("n_people", n_people, min_value=2)
    one_of("sharpest", "paper").check("method", method)
    BOOL.check("shared", shared)
    # One pair, by Hoeffding's inequality: with own draws an event is a sum of 2n independent terms of range
    # 1/n (rate 1); with shared draws, of n differences of range 2/n (rate 1/2).
    rate = 0.5 if shared else 1.0
    log_pairs = float(np.log(n) + np.log(n - 1) - np.log(2))
    if method == "paper":  # Theorem 8
        return [(float(np.log(2 * m)) + log_pairs, rate * 4 / m**2)]
    # Total variation is a maximum over the 2^m - 2 non-trivial sets of classes, one Hoeffding bound each.
    log_sets = float(m * np.log(2) + np.log1p(-(2.0 ** (1 - m))))
    per_set = (log_sets + log_pairs, rate)
    # Or each person's own error is at most epsilon / 2, and the triangle inequality does the rest.
    per_person = (log_sets + float(np.log(n)), 0.5)
    return [per_set, per_person]


@dataclass(frozen=True)
class FixedDraws:
    """The same number of random draws for everybody.

    Attributes
    ----------
    n_draws : int
    delta : float
        Probability, per pair, of an error above `epsilon`.
    n_outputs : int
        Classes, or 1 for regression.
    """

    n_draws: int
    delta: float
    n_outputs: int

    @property
    def epsilon(self) -> float:
        """The error that so many draws support; an output in [0, 1] deviates like the chance of one class of two."""
        return error_margin(self.n_draws, self.delta, max(2, self.n_outputs))


_N_LOOKS = 16
_ROUND_TO = 256  # looks are at multiples of it, which suits the tiles of `likewise.smoothing.mlp_forward`


@dataclass(frozen=True)
class Schedule:
    """A group-sequential stopping rule: interim looks after ``looks[0] < looks[1] < ...`` draws.

    At each look an interval fails with probability at most its share of ``delta / 2``, so all intervals of all looks
    hold at once with probability ``1 - delta / 2``, whatever makes a person stop (`docs/theory.md` §5). The last look
    spends half; there Hoeffding's inequality alone gives an error of ``epsilon / 2``, so everyone stops.

    Attributes
    ----------
    epsilon, delta : float
        Guarantee per pair. Per person the error in total variation is ``epsilon / 2``, except with ``delta / 2``.
    n_outputs : int
        Classes, or 1 for regression.
    hard : bool
        Whether votes are 0 or 1 (Clopper-Pearson intervals) or in between (empirical Bernstein).
    """

    epsilon: float
    delta: float
    n_outputs: int
    hard: bool

    @property
    def n_draws(self) -> int:
        """The most that anyone needs."""
        return self.looks[-1]

    @property
    def looks(self) -> list[int]:
        """Numbers of draws at the looks; the last is the most that anyone needs."""
        log_sets = float(np.log(2.0**self.n_outputs - 2)) if self.n_outputs > 1 else float(np.log(2))
        last = (log_sets - np.log(self.delta / 4)) / (2 * (self.epsilon / 2) ** 2)
        # The first look at which unanimous votes suffice.
        share = self._early_share / max(1, self.n_outputs if self.n_outputs > 2 else 1)
        first = (np.log(2 / share) if self.hard else 7 / 3 * np.log(4 / share) + 1) / (self.epsilon / 2)
        steps = np.geomspace(min(first, last), last, _N_LOOKS)
        return sorted({int(np.ceil(n / _ROUND_TO * (1 + 1e-12))) * _ROUND_TO for n in steps})

    @property
    def _early_share(self) -> float:
        return self.delta / 4 / (_N_LOOKS - 1)

    def interval(self, mean: FloatArray, squares: FloatArray, n: int, *, last: bool) -> tuple[FloatArray, FloatArray]:
        """Interval per person and output after `n` draws, from the means of votes and of squared votes."""
        if last:
            margin = subset_margin(n, self.delta / 4, max(2, self.n_outputs))
            return np.clip(mean - margin, 0, 1), np.clip(mean + margin, 0, 1)
        # Two classes have one free probability; otherwise a union bound over the classes.
        share = self._early_share / (self.n_outputs if self.n_outputs > 2 else 1)
        if self.hard:
            return clopper_pearson(mean, n, share)
        return empirical_bernstein(mean, squares, n, share)

    def suffices(self, mean: FloatArray, lower: FloatArray, upper: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether the total variation between the sampled and the true probabilities is at most epsilon / 2."""
        error = np.maximum(upper - mean, mean - lower)
        variation = error[:, 0] if self.n_outputs == 1 else error.sum(axis=1) / 2
        return np.asarray(variation <= self.epsilon / 2)
