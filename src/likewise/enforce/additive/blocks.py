"""Fits with too many variables for one matrix: block after block, the others held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from likewise._typing import FloatArray, IntArray
from likewise.enforce.additive.fitting import Objective, solve
from likewise.enforce.additive.layout import Layout, constant
from likewise.errors import InvalidInputError

_MOST_VARIABLES = 1000
_MOST_ROUNDS = 100
_TOLERANCE = 1e-8  # of the mean loss, per round


def needs_blocks(problem: Objective) -> bool:
    """Whether there are too many variables for one matrix."""
    return problem.loss.n_functions * problem.layout.n_variables > _MOST_VARIABLES


def solve_any(problem: Objective, start: FloatArray, advance: Callable[[int], None] = lambda steps: None) -> FloatArray:
    """As `solve`, for any number of columns and classes."""
    n_functions, layout = problem.loss.n_functions, problem.layout
    if not needs_blocks(problem):
        return solve(problem, start, advance)
    if layout.n_budgets:
        raise InvalidInputError("budgets must be given where there are too many variables to solve for at once.")
    x, value, gain = start, problem.value(start, problem.scores(start)), 1.0
    for _ in range(_MOST_ROUNDS):
        # No block need be solved much better than the last round left the others.
        rough = replace(problem, tolerance=max(_TOLERANCE / 10, gain / 100))
        for k in range(n_functions):
            for chosen in _groups(layout):
                x = _improve(rough, x, k, chosen, advance)
        if n_functions > 1:
            x[:, 0] -= x[:, 0].mean()  # nobody sees a common shift
        before, value = value, problem.value(x, problem.scores(x))
        gain = before - value
        if gain <= max(_TOLERANCE, problem.tolerance):
            break
    return x


def settle_budgets(problem: Objective) -> FloatArray:
    """Budgets of each function, shape (n_functions, n_columns), from a fit with few enough knots for one matrix."""
    layout, n_functions = problem.layout, problem.loss.n_functions
    at_once = max(1, (_MOST_VARIABLES // n_functions - layout.n_budgets) // max(1, len(layout.parts)))
    coarse = problem.coarser(at_once + 1)
    x = solve(coarse, constant(coarse.layout, problem.best_constants()))
    return np.stack([coarse.layout.found_budgets(line) for line in x])


def _groups(layout: Layout) -> list[list[int]]:
    """Parts in groups that fit one matrix; the intercept is in each."""
    sizes = np.diff(layout.starts).tolist()
    # Half as much as fits: a block costs its cube.
    most, groups, size = _MOST_VARIABLES // 2, [[0]], 1
    for j, n in enumerate(sizes[1:], 1):
        if size + n > most and len(groups[-1]) > 1:
            groups.append([0])
            size = 1
        groups[-1].append(j)
        size += n
    return groups


def _improve(
    problem: Objective, x: FloatArray, k: int, chosen: list[int], advance: Callable[[int], None]
) -> FloatArray:
    """Solve for the variables of function k in some parts."""
    layout = problem.layout
    where: IntArray = np.concatenate([np.arange(layout.starts[j], layout.starts[j + 1]) for j in chosen])
    held = x.copy()
    held[k, where] = 0.0
    smaller = problem.facing(np.asarray(held @ layout.to_slots.T), k, chosen)
    found = solve(smaller, x[k : k + 1, where], advance)
    out = x.copy()
    out[k, where] = found[0]
    return out
