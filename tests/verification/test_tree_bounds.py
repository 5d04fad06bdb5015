"""Bounds of sums of trees against brute force over all points, on thousands of random ensembles."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, softmax

from likewise.inspection.tree_ensembles import Tree
from likewise.verification import tree_problem
from likewise.verification.search import Limits
from likewise.verification.tree_bounds import bound_trees, interval_bound
from likewise.verification.tree_merging import TreeMerger
from likewise.verification.tree_problem import Cells, TreeProblem, Variables, pieces_of

LINKS = ("identity", "logistic", "softmax")


def random_tree(rng, n_tests, depth, n_scores=1):
    """A tree with random tests; some branches end early."""
    left, right, test, values = [], [], [], []

    def grow(level):
        here = len(left)
        left.append(-1)
        right.append(-1)
        test.append(-1)
        values.append(rng.normal(size=n_scores))
        if level < depth and rng.random() < 0.9:
            test[here] = int(rng.integers(n_tests))
            left[here] = grow(level + 1)
            right[here] = grow(level + 1)
        return here

    grow(0)
    return Tree(np.array(left), np.array(right), np.array(test), np.array(values))


def random_problem(rng, *, link=None, n_exchanged=1, metric=False, rules=False, n_scores=None):
    """Few columns with few cells, so that all points can be tried."""
    link = link or LINKS[int(rng.integers(3))]
    several = {"identity": int(rng.choice([1, 3])), "logistic": 1, "softmax": 3}
    n_scores = n_scores or several[link]
    n_columns = int(rng.integers(2, 5))
    cells, rows = [], []
    for column in range(n_columns):
        size = int(rng.integers(2, 5))
        n_tests = int(rng.integers(1, 4))
        ordered = rng.random() < 0.6
        if ordered:
            cuts = rng.integers(1, size, n_tests)
            answers = np.arange(size) < cuts[:, None]
        else:
            answers = rng.random((n_tests, size)) < 0.5
        low = np.sort(rng.uniform(0, 10, 2 * size)).reshape(size, 2) if ordered else np.full((size, 2), np.nan)
        if rules and rng.random() < 0.5:
            low[-1] = np.nan  # a blank, which no rule applies to
        values = np.where(np.isnan(low[:, 0]) & ordered, np.nan, np.arange(float(size)))
        cells.append(Cells(values, low[:, 0], low[:, 1], answers, ordered))
        rows += [(column, row) for row in range(n_tests)]
    trees = [random_tree(rng, len(rows), int(rng.integers(1, 4)), n_scores) for _ in range(int(rng.integers(1, 7)))]
    if link == "identity" and n_scores > 1:  # shares of classes
        trees = [replace(tree, values=softmax(tree.values, axis=1) / len(trees)) for tree in trees]
    exchanged = rng.permutation(n_columns)[:n_exchanged].tolist()
    distances = {}
    if metric:
        for i in exchanged:
            size = len(cells[i])
            table = rng.uniform(0, 0.4, (size, size))
            distances[i] = (table + table.T) * (1 - np.eye(size))
    limits = []
    numbers = [i for i in range(n_columns) if cells[i].ordered]
    if rules and len(numbers) >= 2:
        signs = {numbers[0]: 1.0, numbers[1]: -1.0}
        added, limit = (lambda i, values: signs[i] * values), float(rng.uniform(-3, 3))
        limits = [SimpleNamespace(terms=signs, added=added, limit=limit)]
    return TreeProblem(cells, exchanged, trees, rows, rng.normal(size=n_scores), link, 0.0, distances, limits)


def sum_of_leaves(problem, point):
    total = np.zeros(len(problem.baseline))
    for tree in problem.trees:
        node = 0
        while tree.left[node] >= 0:
            column, row = problem.rows[tree.test[node]]
            node = tree.left[node] if problem.cells[column].answers[row, point[column]] else tree.right[node]
        total += tree.values[node]
    return total


def can_keep(problem, point):
    """Whether some person of these cells keeps the rules, one rule at a time."""
    for rule in problem.rules:
        ends = [
            min(rule.added(i, problem.cells[i].low)[point[i]], rule.added(i, problem.cells[i].high)[point[i]])
            for i in rule.terms
        ]
        if sum(ends) > rule.limit:  # never so for a blank
            return False
    return True


def bound(problem, tolerance=1e-9, n=None, **options):
    """What is found, and a bound with room for rounding."""
    searched = bound_trees(problem, Limits(None, n, 2 * tolerance), **options).searched
    return searched.found, searched.bound + 1e-12


def brute_force(problem):
    """The largest difference over all pairs of points, by the definition."""
    sizes = [range(len(cells)) for cells in problem.cells]
    sums = {point: sum_of_leaves(problem, point) for point in product(*sizes) if can_keep(problem, point)}
    best = -np.inf
    for a in sums:
        for other in product(*(sizes[i] for i in problem.exchanged)):
            b = list(a)
            for i, k in zip(problem.exchanged, other, strict=True):
                b[i] = k
            if tuple(b) not in sums:
                continue
            p, q = problem.baseline + sums[a], problem.baseline + sums[tuple(b)]
            if problem.link == "logistic":
                p, q = expit(p), expit(q)
            elif problem.link == "softmax":
                p, q = softmax(p), softmax(q)
            gap = float(q[0] - p[0]) if len(p) == 1 else float(np.abs(q - p).sum() / 2)
            best = max(best, gap - sum(problem.distances[i][a[i], b[i]] for i in problem.distances))
    return best


@pytest.mark.parametrize("n_problems", [400, pytest.param(2500, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("kept", "tried"), [(1, 1), (2, 5), (20, 100), (10**4, 10**6)])
def test_merged_trees_bound_every_box(kept, tried, n_problems):
    """For each size of the lists; with nothing left out, the bound of all people is the truth."""
    rng = np.random.default_rng(kept)
    for _ in range(n_problems):
        problem = random_problem(rng, link="identity", n_exchanged=int(rng.integers(1, 3)), n_scores=1)
        variables = Variables.of(problem.cells, problem.exchanged)
        merger = TreeMerger(pieces_of(problem, variables), variables.start, kept=kept, tried=tried)
        point = np.array([rng.integers(len(problem.cells[i])) for i in variables.column])
        for share in (0.0, 0.5, 1.0):
            box = rng.random(int(variables.start[-1])) < share
            box[variables.start[:-1] + point] = True
            first, second = ([point[variables.find(i, side)] for i in range(len(problem.cells))] for side in (0, 1))
            gap = (sum_of_leaves(problem, second) - sum_of_leaves(problem, first))[0]
            assert merger.bound(box) >= gap - 1e-9
        if kept == 10**4:
            assert merger.bound(np.ones_like(box)) == pytest.approx(brute_force(problem), abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", [{}, {"n_exchanged": 2}, {"n_exchanged": 2, "metric": True}, {"rules": True}])
def test_found_and_proven_are_the_truth(seed, kind):
    rng = np.random.default_rng([seed, len(kind)])
    for _ in range(15):
        problem = random_problem(rng, **kind)
        merge_after, tolerance = int(rng.choice([0, 10, 10**6])), float(rng.choice([1e-9, 0.1, 0.5]))
        truth = brute_force(problem)
        found, proven = bound(problem, tolerance, merge_after=merge_after)
        assert truth - tolerance - 1e-8 <= found <= truth + 1e-8
        assert truth <= proven <= truth + tolerance + 1e-8


def test_a_bound_without_a_search_holds():
    rng = np.random.default_rng(8)
    problems = [random_problem(rng, n_exchanged=int(rng.integers(1, 3)), rules=True) for _ in range(300)]
    assert all(interval_bound(problem) + 1e-12 >= brute_force(problem) for problem in problems)
    # A tree that is left out is noticed.
    assert any(interval_bound(replace(problem, trees=problem.trees[1:])) < brute_force(problem) for problem in problems)


@pytest.mark.parametrize("seed", range(10))
def test_a_search_that_is_cut_short_has_a_bound_that_holds(seed):
    rng = np.random.default_rng([99, seed])
    for _ in range(15):
        problem = random_problem(rng, n_exchanged=int(rng.integers(1, 3)))
        truth = brute_force(problem)
        proven = [bound(problem, n=n)[1] for n in (1, 5, 20, 1000)]
        assert min(proven) >= truth
        assert proven[-1] <= proven[0] + 1e-12


def test_the_result_for_a_number_of_boxes_is_always_the_same():
    problem = random_problem(np.random.default_rng(3), n_exchanged=2)
    first, second = (bound_trees(problem, Limits(None, 20, 1e-4)).searched for _ in range(2))
    assert first == second


def breaks(change, monkeypatch=None):
    """Whether brute force shows a bound to be too low, after a change of the problem that is bounded."""
    rng = np.random.default_rng(7)
    for _ in range(60):
        problem = random_problem(rng, link="logistic")
        if bound(change(problem))[1] < brute_force(problem) - 1e-9:
            return True
    return False


def test_control_a_bound_that_forgets_a_tree_is_found_out():
    assert not breaks(lambda problem: problem)
    assert breaks(lambda problem: replace(problem, trees=problem.trees[1:]))


def test_control_a_bound_without_the_baseline_is_found_out():
    assert breaks(lambda problem: replace(problem, baseline=problem.baseline + 2.0))


def test_control_a_bound_that_forgets_a_cell_is_found_out():
    def without_a_cell(problem):
        first = problem.cells[0]
        fewer = Cells(first.values[1:], first.low[1:], first.high[1:], first.answers[:, 1:], first.ordered)
        return replace(problem, cells=[fewer, *problem.cells[1:]])

    assert breaks(without_a_cell)


def test_trees_that_do_not_read_the_column_cancel():
    problem = random_problem(np.random.default_rng(0), link="identity", n_scores=1)
    (column,) = problem.exchanged
    others = [i for i, (where, _) in enumerate(problem.rows) if where != column]
    idle = Tree(
        np.array([1, -1, -1]), np.array([2, -1, -1]), np.array([others[0], -1, -1]), np.array([[0.0], [1e6], [-1e6]])
    )
    more = replace(problem, trees=[*problem.trees, idle])
    assert bound(more) == bound(problem)


@pytest.mark.parametrize("merge_after", [0, 10**6])
def test_rounding_is_added_to_the_bound(merge_after):
    """Of both scores, so that a difference is larger by twice as much, also where trees are merged."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        problem = random_problem(rng, link="identity", n_exchanged=2, n_scores=1)
        _, proven = bound(replace(problem, rounding=0.5), n=200, merge_after=merge_after)
        assert proven >= brute_force(problem) + 1.0 - 1e-9


@pytest.mark.parametrize("rounding", [0.0, 0.5])
def test_rounding_leaves_room_on_both_sides_of_a_score(rounding):
    """Two people with the score 1 are at most as far apart as the scores 1 - rounding and 1 + rounding."""
    problem = random_problem(np.random.default_rng(1), link="logistic", n_exchanged=2, n_scores=1)
    problem = replace(problem, baseline=np.zeros(1), rounding=rounding)
    apart = expit(1 + rounding) - expit(1 - rounding)
    assert problem.largest(np.array([[0.0, -1.0, 1.0, 1.0]])) == pytest.approx([apart])


def test_too_many_pieces_are_refused(monkeypatch):
    monkeypatch.setattr(tree_problem, "_MOST_PIECES", 3)
    with pytest.raises(Exception, match="pairs of leaves"):
        bound(random_problem(np.random.default_rng(5), link="logistic"))
