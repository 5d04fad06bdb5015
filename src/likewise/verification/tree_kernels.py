"""Compiled bounds of sums of trees over boxes. Imported inside functions, as it imports numba.

A box is a set of cells for each variable: for each column that both people share, and for each exchanged column one for
either person. A piece is a box on which a tree gives both people one leaf each; the pieces of a tree cover everything
once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likewise._numba import njit

_compiled: Any = njit(nogil=True, cache=True, error_model="numpy")

IDENTITY, LOGISTIC, TANH = 0, 1, 2
D_HIGH, A_LOW, A_HIGH, B_HIGH = 0, 1, 2, 3


@_compiled
def sigmoid(z):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-z)), without overflow."""
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@_compiled
def largest_difference(link, d, a_low, a_high, b_high):  # type: ignore[no-untyped-def]
    """Largest output of b above that of a, where ``b - a <= d``, ``a_low <= a <= a_high`` and ``b <= b_high``.

    For the logistic link it is the largest ``sigma(min(a + d, b_high)) - sigma(a)``. Up to ``a = b_high - d`` this
    rises until ``a = -d / 2`` and falls then; beyond it falls. `docs/theory.md` has the proof.
    """
    if link == IDENTITY:
        return d
    if d <= 0.0:
        return 0.0
    if link == TANH:
        return math.tanh(d / 4.0)
    a = min(max(-d / 2.0, a_low), a_high)
    if a + d > b_high:
        a = max(a_low, b_high - d)
    return max(0.0, sigmoid(min(a + d, b_high)) - sigmoid(a))


@_compiled
def bound_box(  # type: ignore[no-untyped-def]
    box,
    start,
    tree_start,
    piece_a,
    piece_b,
    con_start,
    con_mask,
    mask_var,
    mask_start,
    mask_cells,
    link,
    rounding,
    baseline,
    costs,
    cost_start,
    cost_vars,
    cell_bound,
):
    """Bound of a box, and of the box with one variable fixed to one cell, for all variables and cells.

    Parameters
    ----------
    box : ndarray of bool, shape (n_cells,)
        Cells of all variables, one after the other; `start` has their limits.
    tree_start, piece_a, piece_b, con_start, con_mask
        Pieces of each tree, the leaves of both people, and the masks that a piece consists of.
    mask_var, mask_start, mask_cells
        Masks: the cells of one variable, as positions in `box`.
    costs, cost_start, cost_vars
        Least distance between the cells of both people in each exchanged column, and their two variables.
    cell_bound : ndarray of shape (n_cells,)
        Filled with the bounds of single cells; -inf outside the box.

    Returns
    -------
    float
        The smallest over variables of the largest bound of their cells: each is a bound of the whole box.
    """
    n_vars, n_cells = len(start) - 1, len(box)
    alive = np.zeros(len(mask_var), dtype=np.bool_)
    for m in range(len(mask_var)):
        for i in range(mask_start[m], mask_start[m + 1]):
            if box[mask_cells[i]]:
                alive[m] = True
                break
    n_stats = 4 if link == LOGISTIC else 1
    sums = np.zeros((n_stats, n_cells))
    here = np.empty((n_stats, n_cells))
    free = np.empty((n_stats, n_vars))
    limited = np.zeros(n_vars, dtype=np.int64)
    read = np.zeros(n_vars, dtype=np.int64)  # the last tree, counted from 1, that reads a variable
    other = np.zeros((n_stats, n_vars))  # of trees that do not: the same for all of its cells
    seen, own = np.zeros(len(mask_var), dtype=np.int64), np.empty(len(mask_var), dtype=np.int64)
    largest = np.empty((len(mask_var), n_stats))  # over the pieces of a tree with a mask: many share one
    for t in range(len(tree_start) - 1):
        free[:] = -np.inf
        n_own = 0
        for q in range(tree_start[t], tree_start[t + 1]):
            there = True
            for c in range(con_start[q], con_start[q + 1]):
                if not alive[con_mask[c]]:
                    there = False
                    break
            if not there:
                continue
            for c in range(con_start[q], con_start[q + 1]):
                m = con_mask[c]
                v = mask_var[m]
                limited[v] = q + 1
                if seen[m] != t + 1:
                    seen[m] = t + 1
                    largest[m] = -np.inf
                    own[n_own] = m
                    n_own += 1
                if read[v] != t + 1:
                    read[v] = t + 1
                    here[:, start[v] : start[v + 1]] = -np.inf
            for s in range(n_stats):
                # All four are maxima: of d, -a, a and b.
                if s == D_HIGH:
                    value = piece_b[q] - piece_a[q]
                elif s == A_LOW:
                    value = -piece_a[q]
                elif s == A_HIGH:
                    value = piece_a[q]
                else:
                    value = piece_b[q]
                for v in range(n_vars):
                    if limited[v] != q + 1 and value > free[s, v]:
                        free[s, v] = value
                for c in range(con_start[q], con_start[q + 1]):
                    largest[con_mask[c], s] = max(value, largest[con_mask[c], s])
        for m in own[:n_own]:
            for s in range(n_stats):
                for i in range(mask_start[m], mask_start[m + 1]):
                    here[s, mask_cells[i]] = max(largest[m, s], here[s, mask_cells[i]])
        for v in range(n_vars):
            for s in range(n_stats):
                if read[v] != t + 1:
                    other[s, v] += free[s, v]
                    continue
                for k in range(start[v], start[v + 1]):
                    if box[k]:
                        sums[s, k] += max(free[s, v], here[s, k])
    for v in range(n_vars):
        for s in range(n_stats):
            sums[s, start[v] : start[v + 1]] += other[s, v]
    least = np.zeros(len(cost_vars))
    cell_cost = np.zeros(n_cells)
    for c in range(len(cost_vars)):
        va, vb = cost_vars[c, 0], cost_vars[c, 1]
        nb = start[vb + 1] - start[vb]
        least[c] = np.inf
        for i in range(start[va], start[va + 1]):
            cell_cost[i] = np.inf
        for j in range(start[vb], start[vb + 1]):
            cell_cost[j] = np.inf
        for i in range(start[va], start[va + 1]):
            if not box[i]:
                continue
            for j in range(start[vb], start[vb + 1]):
                if box[j]:
                    cost = costs[cost_start[c] + (i - start[va]) * nb + (j - start[vb])]
                    cell_cost[i] = min(cell_cost[i], cost)
                    cell_cost[j] = min(cell_cost[j], cost)
                    least[c] = min(least[c], cost)
    away = least.sum()
    cost_of_var = np.full(n_vars, -1)
    for c in range(len(cost_vars)):
        cost_of_var[cost_vars[c, 0]] = c
        cost_of_var[cost_vars[c, 1]] = c
    result = np.inf
    for v in range(n_vars):
        top = -np.inf
        for k in range(start[v], start[v + 1]):
            cell_bound[k] = -np.inf
            if box[k]:
                d = sums[D_HIGH, k] + 2.0 * rounding
                if link == LOGISTIC:
                    value = largest_difference(
                        link,
                        d,
                        baseline - sums[A_LOW, k] - rounding,
                        baseline + sums[A_HIGH, k] + rounding,
                        baseline + sums[B_HIGH, k] + rounding,
                    )
                else:
                    value = largest_difference(link, d, 0.0, 0.0, 0.0)
                cost = away
                if cost_of_var[v] >= 0:
                    cost = away - least[cost_of_var[v]] + cell_cost[k]
                cell_bound[k] = value - cost
                top = max(top, cell_bound[k])
        result = min(result, top)
    return result


@_compiled
def score(cells, left, right, test, column, answers, values, roots):  # type: ignore[no-untyped-def]
    """Sum of the leaves of one person, given by a cell for each column."""
    total = 0.0
    for root in roots:
        node = root
        while left[node] >= 0:
            node = left[node] if answers[test[node], cells[column[node]]] else right[node]
        total += values[node]
    return total


@_compiled
def objective(a, b, link, baseline, distance):  # type: ignore[no-untyped-def]
    """Difference of the outputs for two sums of leaves, minus the distance."""
    if link == LOGISTIC:
        return sigmoid(baseline + b) - sigmoid(baseline + a) - distance
    if link == TANH:
        return math.tanh(max(0.0, b - a) / 4.0) - distance
    return b - a - distance


@_compiled
def climb(  # type: ignore[no-untyped-def]
    point,
    allowed,
    start,
    var_column,
    var_side,
    left,
    right,
    test,
    column,
    answers,
    values,
    roots,
    link,
    baseline,
    costs,
    cost_start,
    cost_vars,
    n_columns,
):
    """Improve a point, one cell for each variable, by changing one variable at a time until nothing helps.

    `point` is changed in place; only cells of `allowed` are tried. Returns the objective.
    """
    n_vars = len(start) - 1
    cells_a, cells_b = np.zeros(n_columns, dtype=np.int64), np.zeros(n_columns, dtype=np.int64)

    best = -np.inf
    improved = True
    first = True
    while improved:
        improved = False
        for v in range(n_vars):
            keep = point[v]
            chosen = keep
            for k in range(start[v + 1] - start[v]):
                # The point itself comes first, and is evaluated once.
                if k == keep and (v > 0 or not first):
                    continue
                if k != keep and not allowed[start[v] + k]:
                    continue
                point[v] = k
                for u in range(n_vars):
                    if var_side[u] != 1:
                        cells_a[var_column[u]] = point[u]
                    if var_side[u] != 0:
                        cells_b[var_column[u]] = point[u]
                distance = 0.0
                for c in range(len(cost_vars)):
                    va, vb = cost_vars[c, 0], cost_vars[c, 1]
                    distance += costs[cost_start[c] + point[va] * (start[vb + 1] - start[vb]) + point[vb]]
                a = score(cells_a, left, right, test, column, answers, values, roots)
                b = score(cells_b, left, right, test, column, answers, values, roots)
                value = objective(a, b, link, baseline, distance)
                if value > best:
                    best = value
                    chosen = k
                    if k != keep:
                        improved = True
            point[v] = chosen
        first = False
    return best
