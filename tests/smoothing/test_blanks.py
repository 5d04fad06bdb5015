"""The curve of a table with blanks and categories, against exact total variations for every division of a distance."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from likewise import TableMetric, WeightedLp
from likewise.kernel import rules
from likewise.smoothing.mixed_type import MixedTypeNoise
from likewise.smoothing.noise import NOISES

BLANKS = [0.0, 0.2, 0.7, 1.0]


def excess_of_blanks(noise, blank, category):
    """Largest exact total variation between two kept or noisy people, over the curve at their distance."""
    metric = TableMetric({"x": 0.5}, {"c": category}, missing={"x": blank})
    table = pd.DataFrame({"x": [0.0, 1.0, np.nan, 2.0] * 25, "c": list("uuvv") * 25})
    encoder = metric.encoder(table)
    weights = metric.bind(encoder)
    fitted = MixedTypeNoise.from_training_data(NOISES[noise], encoder.encode(table), encoder, weights, 0)
    worst, curve = -1.0, rules.exact_noise(fitted).curve
    for blanks, codes, D in product((0, 1), (0, 1), np.linspace(0, 3, 31)):
        if blanks and D:  # a number that one of them lacks has no distance
            continue
        # A model that sees the blank when it is kept, the category when it is kept, or the half-space of the number.
        kept = 1 - (1 - blank * blanks) * (1 - category * codes)
        numbers = float(NOISES[noise].for_metric(WeightedLp([1.0])).curve.bound(D))
        shown = blank * numbers  # a number is kept as often as its blank
        true = kept + (1 - kept) * shown
        worst = max(worst, true - float(curve.bound(D + blank * blanks + category * codes)))
    return worst


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "uniform"])
@pytest.mark.parametrize("category", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("blank", BLANKS)
def test_no_blank_or_category_is_above_the_curve_however_a_distance_is_divided(noise, blank, category):
    assert excess_of_blanks(noise, blank, category) <= 1e-12
