"""What is compared: total variation of probabilities, absolute differences of numbers."""

import numpy as np
import pytest

from likewise import WeightedLp
from likewise.pairs.model_outputs import ModelOutputs
from likewise.pairs.points import Points

X = np.zeros((3, 1))
POINTS = Points.of(WeightedLp([1.0]).encode_rows(X))


def differences(predictions, output_range=None):
    return ModelOutputs.of(None, X, POINTS, predictions, output_range).differences(np.array([0, 0]), np.array([1, 2]))


def test_classes_are_compared_by_total_variation():
    assert differences([[1, 0, 0], [0, 1, 0], [0.5, 0.25, 0.25]]) == pytest.approx([1, 0.5], rel=1e-12)
    assert differences([[1, 0], [0, 1], [0.75, 0.25]]) == pytest.approx([1, 0.25], rel=1e-12)
    assert differences([1, 0, 0.75]) == pytest.approx([1, 0.25], rel=1e-12)


def test_numbers_are_compared_as_shares_of_their_range():
    assert differences([0, 10, 30], (0, 40)) == pytest.approx([0.25, 0.75], rel=1e-12)
