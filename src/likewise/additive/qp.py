"""Quadratic programs of a few hundred variables, by an interior point method.

``min 1/2 x'Hx + g'x  subject to  G x <= h``
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.sparse import csr_array

from likewise._typing import FloatArray
from likewise.exceptions import UnsolvedError

_MOST_STEPS = 100
_NEAR = 0.97  # fraction of the way from the middle to a given point


@dataclass(frozen=True, eq=False)
class Limits:
    """Linear limits of a set with an interior.

    Attributes
    ----------
    rows : csr_array of shape (n_limits, n_variables)
    highest : ndarray of shape (n_limits,)
        ``rows @ x <= highest``.
    inside : ndarray of shape (n_variables,)
        A point strictly inside.
    """

    rows: csr_array
    highest: FloatArray
    inside: FloatArray

    @cached_property
    def turned(self) -> Any:
        """The transpose of `rows`, by rows too: products with it are fast."""
        return self.rows.T.tocsr()

    @cached_property
    def is_box(self) -> bool:
        """Whether each of `rows` limits a single variable."""
        return bool((np.diff(self.rows.indptr) == 1).all())

    def values(self, x: FloatArray) -> FloatArray:
        """All limits at `x`; inside, all are negative."""
        return np.asarray(self.rows @ x - self.highest)


def minimise_quadratic(
    H: FloatArray, g: FloatArray, limits: Limits, tolerance: float = 1e-14, near: FloatArray | None = None
) -> FloatArray:
    """Return the minimiser, strictly inside the limits, within `tolerance` of the optimal value.

    `near` is a starting guess, inside the limits or on them.

    Examples
    --------
    >>> box = Limits(csr_array([[1.0]]), np.array([0.5]), np.array([0.0]))
    >>> minimise_quadratic(np.array([[2.0]]), np.array([-2.0]), box).round(6)  # (x - 1)^2 for x <= 1/2
    array([0.5])
    """
    return solve_quadratic(H, g, limits, tolerance, near)[0]


def solve_quadratic(
    H: FloatArray, g: FloatArray, limits: Limits, tolerance: float = 1e-14, near: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the minimiser and the multipliers of the limits.

    Mehrotra's predictor and corrector (Nocedal & Wright 2006, section 16.6); all iterates are inside.

    Examples
    --------
    >>> box = Limits(csr_array([[1.0]]), np.array([0.5]), np.array([0.0]))
    >>> solve_quadratic(np.array([[2.0]]), np.array([-2.0]), box)[1].round(6)
    array([1.])
    """
    x = limits.inside if near is None else _NEAR * near + (1 - _NEAR) * limits.inside
    f = limits.values(x)
    if not len(f):
        return -solve_factorised(factorised(H), g), f
    # In units of the objective's own steepness, so that a start with weak and strong columns is balanced.
    steepness = float(np.abs(g if near is None else H @ x + g).max(initial=0.0))
    multipliers = max(1e-3, steepness) / len(f) / -f
    size_before = 1.0
    for _ in range(_MOST_STEPS):
        gap, downhill = float(-f @ multipliers), H @ x + g
        left_over = np.abs(downhill + limits.turned @ multipliers).max()
        # The gap bounds the error once the multipliers balance the gradient.
        if gap <= tolerance and left_over <= 0.01 * np.sqrt(tolerance):
            break
        system = _add_products(H, limits, multipliers / -f)
        newton = partial(_newton_step, factorised(system), downhill, limits, f, multipliers)
        _, shift, turn = newton(np.zeros_like(f))
        size = min(_longest(multipliers, turn), _longest(-f, -shift))
        left = float((-f - size * shift) @ (multipliers + size * turn))
        # The linear system leaves out the product of the two changes. After a short step, return to the centre, from
        # where steps are longer.
        centring = max(left / gap, 1 - size_before) ** 3
        step, shift, turn = newton(centring * gap / len(f) + turn * shift)
        size = 0.995 * min(_longest(multipliers, turn), _longest(-f, -shift))
        while size > 1e-10 and not (limits.values(x + size * step) <= 0.001 * f).all():
            size *= 0.8
        if size <= 1e-10:
            break  # no progress in floating point
        x, multipliers, size_before = x + size * step, multipliers + size * turn, size
        f = limits.values(x)
    return x, multipliers


def _newton_step(
    factor: FloatArray, downhill: FloatArray, limits: Limits, f: FloatArray, multipliers: FloatArray, aim: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Steps of variables, limits and multipliers towards limits times multipliers equal to `aim`."""
    step = -solve_factorised(factor, downhill + limits.turned @ (aim / -f))
    shift = limits.rows @ step
    return step, shift, -multipliers + (aim + multipliers * shift) / -f


def _add_products(H: FloatArray, limits: Limits, weights: FloatArray) -> FloatArray:
    """``H + G' diag(weights) G``, with G the rows of the limits."""
    rows = limits.rows
    if not limits.is_box:
        values = rows.data * np.repeat(weights, np.diff(rows.indptr))
        scaled = csr_array((values, rows.indices, rows.indptr), rows.shape)
        return np.asarray(H + (limits.turned @ scaled).toarray())
    out = H.copy()
    out[np.diag_indices_from(out)] += np.bincount(rows.indices, weights * rows.data * rows.data, len(H))
    return out


def _longest(values: FloatArray, change: FloatArray) -> float:
    """Largest step, at most 1, that keeps the values positive."""
    falls = change < 0
    with np.errstate(over="ignore"):
        return min(1.0, float((-values[falls] / change[falls]).min(initial=1.0)))


def factorised(system: FloatArray) -> FloatArray:
    """Cholesky factor; the diagonal is increased until it exists if rounding made the system indefinite."""
    for lift in (0.0, *(10.0**k for k in range(-14, 1))):
        lifted = system + lift * np.diag(np.diag(system)) if lift else system
        # The transpose of a symmetric matrix is itself, in the column order that LAPACK reads.
        factor, failed_at = dpotrf(lifted.T, lower=1, clean=0)
        if not failed_at:
            return np.asarray(factor)
    raise UnsolvedError(
        "The fit did not converge: its linear systems have no solution in floating point. Rescale columns whose values "
        "are extremely large or small, or take a larger penalty."
    )


def solve_factorised(factor: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a `factorised` system."""
    # Called thousands of times in a fit: SciPy's `cho_solve` checks its arguments for longer than LAPACK takes.
    return np.asarray(dpotrs(factor, right, lower=1)[0])
