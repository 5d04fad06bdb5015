import numpy as np

from likewise.inspection.prediction import clipped_predictions


def test_predictions_are_clipped_to_the_range_of_the_guarantee():
    vote = clipped_predictions(lambda rows: 10 * rows[:, 0], (-1.0, 2.0))
    assert vote(np.array([[-3.0], [0.0], [0.1], [7.0]])).tolist() == [[-1], [0], [1], [2]]
