"""A search for pairs of people who break a promise, guided by gradients."""

import numpy as np

_STEP = 1e-6  # of differences that stand for slopes, in units of the metric


class Climb:
    """Pairs that climb towards larger ``|h(x) - h(x')| - bound(D(x, x'))``, both people at once.

    Each pair starts along the steepest way of the score per unit of distance (equality in Hölder's inequality), and
    then follows the gradient of the excess with steps of its own, which are halved where they lead down.

    Parameters
    ----------
    score : function of rows
    metric : WeightedLp
    bound : function of distances
    """

    def __init__(self, score, metric, bound):
        self.score, self.metric, self.bound = score, metric, bound
        self.matters = np.flatnonzero(metric.weights > 0)
        self.scales = metric.weights[self.matters] ** (1.0 if np.isinf(metric.p) else 1 / metric.p)
        self.n_pairs = 0

    def excess(self, a, b):
        distances = self.metric(a, b)
        self.n_pairs += int((distances > 0).sum())
        return np.abs(self.score(a) - self.score(b)) - self.bound(distances)

    def most(self, people, rng, n_steps):
        """The largest excess that is found from these people."""
        a, b = people.copy(), people.copy()
        b[:, self.matters] += 10 ** rng.uniform(-4, 0, size=(len(a), 1)) * self._steepest(a) / self.scales
        found, sizes = self.excess(a, b), np.full((len(a), 1), 0.1)
        for _ in range(n_steps):
            ends = [a + sizes * self._gradient(a, b, found, end=0), b + sizes * self._gradient(a, b, found, end=1)]
            climbed = self.excess(*ends)
            better = climbed > found
            a[better], b[better], found[better] = ends[0][better], ends[1][better], climbed[better]
            sizes[~better] /= 2
        return float(found.max())

    def _steepest(self, people):
        slopes = np.empty((len(people), len(self.matters)))
        for k, column in enumerate(self.matters):
            ahead = people.copy()
            ahead[:, column] += _STEP / self.scales[k]
            slopes[:, k] = (self.score(ahead) - self.score(people)) / _STEP
        shares = np.abs(slopes) / np.maximum(np.abs(slopes).max(axis=1, keepdims=True), 1e-300)
        p = self.metric.p
        steps = shares == 1 if p == 1 else shares ** (0 if np.isinf(p) else 1 / (p - 1))
        return np.sign(slopes) * steps

    def _gradient(self, a, b, found, end):
        """Direction of the steepest ascent of the excess, in natural units, of length 1 in units of the metric."""
        rises = np.zeros_like(a)
        for k, column in enumerate(self.matters):
            moved = [a, b]
            moved[end] = moved[end].copy()
            moved[end][:, column] += _STEP / self.scales[k]
            rises[:, column] = self.excess(*moved) - found
        largest = np.maximum(np.abs(rises).max(axis=1, keepdims=True), 1e-300)
        rises[:, self.matters] /= self.scales
        return rises / largest
