"""The cheapest transport along given pairs, by successive shortest paths.

Importing this module imports numba; callers do so inside functions.
"""

from __future__ import annotations

import numpy as np

from likewise._compiling import njit
from likewise._typing import FloatArray, IntArray


def cheapest_transport(
    pairs: IntArray, prices: FloatArray, amount: FloatArray, n_sources: int, h: FloatArray
) -> FloatArray:
    """Potentials of the cheapest transport: the h in [0, 1] with the largest sum over sources minus that over targets.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        Sources and targets between which ``h_i - h_j <= price``, sorted.
    amount : ndarray of shape (n_people,)
        How much each source has and each target takes; sources come first. Whole numbers.
    h : ndarray of shape (n_people,)
        Values to start from, which respect all prices.
    """
    n = len(amount)
    start = np.searchsorted(pairs[:, 0], np.arange(n_sources + 1))
    back = np.argsort(pairs[:, 1], kind="stable")
    back_start = np.searchsorted(pairs[back, 1], np.arange(n + 1))
    result: FloatArray = _shortest_paths(pairs, prices, start, back, back_start, amount, n_sources, h)
    return result


@njit(cache=True, error_model="numpy")
def _push(keys, nodes, size, key, node):
    """Put a node in a heap whose root has the smallest key; return its new size."""
    hole = size
    while hole > 0 and keys[(hole - 1) // 2] > key:
        keys[hole], nodes[hole] = keys[(hole - 1) // 2], nodes[(hole - 1) // 2]
        hole = (hole - 1) // 2
    keys[hole], nodes[hole] = key, node
    return size + 1


@njit(cache=True, error_model="numpy")
def _pop(keys, nodes, size):
    """Take the root out of a heap; return the new size."""
    size -= 1
    key, node, hole = keys[size], nodes[size], 0
    while 2 * hole + 1 < size:
        down = 2 * hole + 1
        if down + 1 < size and keys[down + 1] < keys[down]:
            down += 1
        if key <= keys[down]:
            break
        keys[hole], nodes[hole] = keys[down], nodes[down]
        hole = down
    keys[hole], nodes[hole] = key, node
    return size


@njit(cache=True, error_model="numpy")
def _shortest_paths(pairs, prices, start, back, back_start, amount, n_sources, h):
    n = len(amount)
    ground = n  # where sources drop mass, at the price 1, and targets send theirs, for nothing
    potential = np.append(h, 0.0)
    # Along every arc that has flow or could take more, potentials obey the conditions of an optimum from the start and
    # ever after; what is missing is balance. An arc from x to y costs price - potential[x] + potential[y] >= 0.
    flow, grounded, balance = np.zeros(len(pairs)), np.zeros(n), np.zeros(n + 1)
    for i in range(n):
        if i < n_sources:
            grounded[i] = amount[i] if potential[i] >= 1.0 else 0.0
            balance[i] = amount[i] - grounded[i]
        else:
            grounded[i] = amount[i] if potential[i] > 0.0 else 0.0
            balance[i] = -grounded[i]
    balance[ground] = -balance[:n].sum()
    length, parent, arc = np.full(n + 1, np.inf), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    done, touched = np.zeros(n + 1, np.bool_), np.empty(n + 1, np.int64)
    room = 2 * len(pairs) + 4 * n + 4
    keys, nodes = np.empty(room), np.empty(room, np.int64)
    for turn in range(n_sources + 1):
        origin = turn if turn < n_sources else ground
        while balance[origin] > 0:
            # Dijkstra's algorithm, to the nearest node that lacks mass.
            length[origin], parent[origin], touched[0], n_touched = 0.0, -1, origin, 1
            size = _push(keys, nodes, 0, 0.0, origin)
            while True:
                nearest, node = keys[0], nodes[0]
                size = _pop(keys, nodes, size)
                if done[node]:
                    continue
                if balance[node] < 0:
                    break
                done[node] = True
                base = nearest - potential[node]
                if node == ground:
                    for k in range(n):  # take back what was sent
                        if grounded[k] > 0 and not done[k]:
                            reached = max(nearest, base + potential[k] - (1.0 if k < n_sources else 0.0))
                            if reached < length[k]:
                                if length[k] == np.inf:
                                    touched[n_touched] = k
                                    n_touched += 1
                                length[k], parent[k] = reached, ground
                                size = _push(keys, nodes, size, reached, k)
                    continue
                down = node < n_sources
                low, high = (start[node], start[node + 1]) if down else (back_start[node], back_start[node + 1])
                for e in range(low, high):
                    one = e if down else back[e]
                    if not down and flow[one] == 0:
                        continue
                    other = pairs[one, 1] if down else pairs[one, 0]
                    reached = max(nearest, base + prices[one] + potential[other]) if down else nearest
                    if not done[other] and reached < length[other]:
                        if length[other] == np.inf:
                            touched[n_touched] = other
                            n_touched += 1
                        length[other], parent[other], arc[other] = reached, node, one
                        size = _push(keys, nodes, size, reached, other)
                if not done[ground] and (down or grounded[node] < amount[node]):
                    reached = max(nearest, base + potential[ground] + (1.0 if down else 0.0))
                    if reached < length[ground]:
                        if length[ground] == np.inf:
                            touched[n_touched] = ground
                            n_touched += 1
                        length[ground], parent[ground] = reached, node
                        size = _push(keys, nodes, size, reached, ground)
            for k in range(n_touched):  # potentials that make the path free of charge
                if done[touched[k]]:
                    potential[touched[k]] += nearest - length[touched[k]]
            most, k = min(balance[origin], -balance[node]), node
            while parent[k] >= 0:
                up = parent[k]
                if up == ground:
                    most = min(most, grounded[k])
                elif k == ground and up >= n_sources:
                    most = min(most, amount[up] - grounded[up])
                elif k < n_sources:
                    most = min(most, flow[arc[k]])
                k = up
            balance[origin] -= most
            balance[node] += most
            k = node
            while parent[k] >= 0:
                up = parent[k]
                if up == ground:
                    grounded[k] -= most
                elif k == ground:
                    grounded[up] += most
                else:
                    flow[arc[k]] += -most if k < n_sources else most
                k = up
            for k in range(n_touched):
                length[touched[k]], done[touched[k]] = np.inf, False
    return np.minimum(1.0, np.maximum(0.0, potential[:n] - potential[ground]))
