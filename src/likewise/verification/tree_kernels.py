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


@_compiled
def sigmoid(z):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-z)), without overflow."""
    if z >= 0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)


@_compiled
def box_limits(box, start, pieces):  # type: ignore[no-untyped-def]
    """Upper limits of sums over all trees, of the box with one variable fixed to one cell, for all of them.

    Parameters
    ----------
    box : ndarray of bool, shape (n_cells,)
        Cells of all variables, one after the other; `start` has their limits.
    pieces : Pieces

    Returns
    -------
    ndarray of shape (n_limits, n_cells)
        Of cells outside the box it means nothing.
    """
    tree_start, limits, con_start, con_mask, mask_var, mask_start, mask_cells = pieces
    n_vars, n_cells = len(start) - 1, len(box)
    alive = np.zeros(len(mask_var), dtype=np.bool_)
    for m in range(len(mask_var)):
        for i in range(mask_start[m], mask_start[m + 1]):
            if box[mask_cells[i]]:
                alive[m] = True
                break
    n_limits = limits.shape[1]
    sums = np.zeros((n_limits, n_cells))
    here = np.empty((n_limits, n_cells))
    free = np.empty((n_limits, n_vars))
    limited = np.zeros(n_vars, dtype=np.int64)
    read = np.zeros(n_vars, dtype=np.int64)  # the last tree, counted from 1, that reads a variable
    other = np.zeros((n_limits, n_vars))  # of trees that do not: the same for all of its cells
    seen, own = np.zeros(len(mask_var), dtype=np.int64), np.empty(len(mask_var), dtype=np.int64)
    largest = np.empty((len(mask_var), n_limits))  # over the pieces of a tree with a mask: many share one
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
            for s in range(n_limits):
                value = limits[q, s]
                for v in range(n_vars):
                    if limited[v] != q + 1 and value > free[s, v]:
                        free[s, v] = value
                for c in range(con_start[q], con_start[q + 1]):
                    largest[con_mask[c], s] = max(value, largest[con_mask[c], s])
        for m in own[:n_own]:
            for s in range(n_limits):
                for i in range(mask_start[m], mask_start[m + 1]):
                    here[s, mask_cells[i]] = max(largest[m, s], here[s, mask_cells[i]])
        for v in range(n_vars):
            for s in range(n_limits):
                if read[v] != t + 1:
                    other[s, v] += free[s, v]
                    continue
                # A cell may be reached by pieces that fix it, and by those that leave the variable free.
                for k in range(start[v], start[v + 1]):
                    if box[k]:
                        sums[s, k] += max(free[s, v], here[s, k])
    for v in range(n_vars):
        for s in range(n_limits):
            sums[s, start[v] : start[v + 1]] += other[s, v]
    return sums


@_compiled
def box_bound(box, start, values, costs, cell_bound):  # type: ignore[no-untyped-def]
    """Bound of a box, from the largest differences with one variable fixed to one cell.

    Parameters
    ----------
    values : ndarray of shape (n_cells,)
    costs : Costs
    cell_bound : ndarray of shape (n_cells,)
        Filled with the bounds of single cells; -inf outside the box.

    Returns
    -------
    float
        The smallest over variables of the largest bound of their cells: each is a bound of the whole box.
    """
    table, cost_start, cost_vars = costs
    n_vars = len(start) - 1
    least = np.zeros(len(cost_vars))
    cell_cost = np.zeros(len(box))
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
                    cost = table[cost_start[c] + (i - start[va]) * nb + (j - start[vb])]
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
                cost = away
                if cost_of_var[v] >= 0:
                    cost = away - least[cost_of_var[v]] + cell_cost[k]
                cell_bound[k] = values[k] - cost
                top = max(top, cell_bound[k])
        result = min(result, top)
    return result


@_compiled
def add_leaves(cells, trees, total):  # type: ignore[no-untyped-def]
    """Fill `total` with the sum of the leaves of one person, given by a cell for each column."""
    left, right, test, column, answers, values, roots = trees
    total[:] = 0.0
    for root in roots:
        node = root
        while left[node] >= 0:
            node = left[node] if answers[test[node], cells[column[node]]] else right[node]
        for k in range(len(total)):
            total[k] += values[node, k]


@_compiled
def variation(is_identity, baseline, a, b):  # type: ignore[no-untyped-def]
    """Difference of the outputs for two sums of leaves: of b above a for one score, otherwise the total variation."""
    m = len(a)
    if is_identity:
        if m == 1:
            return b[0] - a[0]
        total = 0.0
        for k in range(m):
            total += max(0.0, b[k] - a[k])
        return total
    if m == 1:
        return sigmoid(baseline[0] + b[0]) - sigmoid(baseline[0] + a[0])
    total_a, total_b = 0.0, 0.0
    most_a, most_b = (baseline + a).max(), (baseline + b).max()
    for k in range(m):
        total_a += math.exp(baseline[k] + a[k] - most_a)
        total_b += math.exp(baseline[k] + b[k] - most_b)
    total = 0.0
    for k in range(m):
        rise = math.exp(baseline[k] + b[k] - most_b) / total_b - math.exp(baseline[k] + a[k] - most_a) / total_a
        total += max(0.0, rise)
    return total


@_compiled
def climb(point, allowed, variables, trees, is_identity, baseline, costs, n_columns):  # type: ignore[no-untyped-def]
    """Improve a point, one cell for each variable, by changing one variable at a time until nothing helps.

    `point` is changed in place; only cells of `allowed` are tried. Returns the difference minus the distance.
    """
    var_column, var_side, start = variables
    table, cost_start, cost_vars = costs
    n_vars = len(start) - 1
    cells_a, cells_b = np.zeros(n_columns, dtype=np.int64), np.zeros(n_columns, dtype=np.int64)
    a, b = np.empty(len(baseline)), np.empty(len(baseline))
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
                    distance += table[cost_start[c] + point[va] * (start[vb + 1] - start[vb]) + point[vb]]
                add_leaves(cells_a, trees, a)
                add_leaves(cells_b, trees, b)
                value = variation(is_identity, baseline, a, b) - distance
                if value > best:
                    best = value
                    chosen = k
                    if k != keep:
                        improved = True
            point[v] = chosen
        first = False
    return best
