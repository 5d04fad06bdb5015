"""The rule of one standard error, on losses written down by hand."""

import numpy as np
import pytest

from likewise.selection.compare import difference, measured_on, recommend
from likewise.selection.cross_validation import CVResult, Fold

N, K = 40, 4
FOLDS = tuple(Fold(np.empty(0, int), np.arange(10 * k, 10 * k + 10), np.arange(10)) for k in range(K))
# Means of folds with mean 0 and standard error 1: their sum of squares is 12 = 3 * 4.
WAVES = np.repeat(np.array([3.0, -1.0, -1.0, -1.0]), 10)


def result_of(name, losses, *, keeps=True):
    losses = np.asarray(losses, dtype=float)
    means = [np.nanmean(losses[fold.test]) for fold in FOLDS]
    return CVResult({"title": name, "brier": float(np.mean(means))}, losses, np.empty((N, 2)), keeps)


def chosen(**results):
    found = recommend(results, dict.fromkeys(results), FOLDS, "classification")
    return found.name, found.constant_is_as_good


def test_a_difference_is_the_mean_over_folds_with_the_standard_error_of_that_mean():
    gap, error = difference(result_of("a", 5 + 0.5 * WAVES), result_of("b", np.full(N, 4.0)), FOLDS)
    assert (gap, error) == pytest.approx((1.0, 0.5))


def test_folds_are_compared_on_people_whom_both_were_measured_on():
    few = np.where(np.arange(N) % 2 == 0, 4.0, np.nan)
    others = np.where(np.arange(N) % 2 == 0, 6.0, 100.0)
    assert difference(result_of("a", others), result_of("b", few), FOLDS) == pytest.approx((2.0, 0.0))


def test_folds_count_alike_whatever_their_size():
    folds = (Fold(np.empty(0, int), np.arange(4), np.arange(4)), Fold(np.empty(0, int), np.arange(4, N), np.arange(9)))
    gap, error = difference(result_of("a", np.where(np.arange(N) < 4, 3.0, 1.0)), result_of("b", np.zeros(N)), folds)
    assert (gap, error) == pytest.approx((2.0, 1.0))


@pytest.mark.parametrize(("errors", "name"), [(0.9, "constant"), (1.1, "additive"), (1.9, "additive")])
def test_the_simpler_method_is_taken_within_one_standard_error_and_not_beyond(errors, name):
    """The constant loses by so many standard errors."""
    constant = result_of("constant", 5 + 0.1 * WAVES + 0.1 * errors)
    assert chosen(constant=constant, additive=result_of("additive", np.full(N, 5.0))) == (name, name == "constant")


def test_of_several_within_one_standard_error_the_simplest_is_taken():
    constant = result_of("constant", np.full(N, 9.0))
    additive, network = (result_of("", 5 + 0.1 * WAVES + 0.1 * errors) for errors in (0.8, 0.5))
    best = result_of("smoothing", np.full(N, 5.0))
    assert chosen(constant=constant, additive=additive, network=network, smoothing=best)[0] == "additive"
    further = result_of("additive", 5 + 0.1 * WAVES + 0.2)
    assert chosen(constant=constant, additive=further, network=network, smoothing=best)[0] == "network"


def test_what_does_not_keep_its_promise_is_neither_taken_nor_a_yardstick():
    constant, additive = result_of("constant", np.full(N, 9.0)), result_of("additive", np.full(N, 5.0))
    liar = result_of("liar", np.zeros(N), keeps=False)
    assert chosen(constant=constant, additive=additive, liar=liar)[0] == "additive"
    assert chosen(constant=constant, liar=liar) == ("constant", True)


def test_the_words_name_the_scores_and_the_standard_error():
    constant = result_of("constant", np.full(N, 0.25))
    additive, best = result_of("additive", 0.2 + 0.001 * WAVES + 0.0005), result_of("smoothing", np.full(N, 0.2))
    found = recommend(
        {"constant": constant, "additive": additive, "smoothing": best},
        {"constant": 1, "additive": 2, "smoothing": 3},
        FOLDS,
        "classification",
    )
    assert found.estimator == 2
    for words in ("Best: additive", "0.2005", "(0.001)", "0.2 (smoothing)", "A constant has 0.25"):
        assert words in found.reason


@pytest.mark.parametrize(
    ("sizes", "samples", "words"),
    [
        (
            [1200, 1200],
            [1200, 1200],
            ["2 folds", "on 1,200 held-out people per fold", "All pairs of these people were searched."],
        ),
        (
            [9, 1300, 10],
            [9, 1000, 10],
            ["3 folds", "on 9 to 1,300 held-out", "All pairs of an even sample of 9 to 1,000 of them were searched."],
        ),
    ],
)
def test_the_words_say_how_many_were_held_out_and_searched(sizes, samples, words):
    folds = tuple(Fold(np.arange(7), np.arange(n), np.arange(m)) for n, m in zip(sizes, samples, strict=True))
    for part in words:
        assert part in measured_on(folds)
