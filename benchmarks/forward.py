"""The fast forward pass of a 2x128 network, as a share of the machine's float32 matrix products."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator

from benchmarks.common import network, seconds, section
from likewise import SmoothedClassifier, WeightedLp
from likewise.voting.threads import single_threaded_blas

N_DRAWS, N_PEOPLE, N_FEATURES, SIZE = 100_000, 8, 20, 2048


def run() -> str:
    X, y = make_classification(2000, N_FEATURES, random_state=0)
    net = network(X, y, n_epochs=5)
    model = SmoothedClassifier(
        FrozenEstimator(net), metric=WeightedLp(np.ones(N_FEATURES)), noise="gaussian", n_draws=N_DRAWS, random_state=0
    ).fit(X, y)
    voter = model._voter()
    people = voter.perturbation.prepare(X[:N_PEOPLE])
    parts = [draws for _, draws in voter.perturbation.parts([N_DRAWS])]

    def forward():
        with single_threaded_blas():
            for draws in parts:
                voter.scorer.sums(draws, people)

    matrix = np.random.default_rng(0).random((SIZE, SIZE), dtype=np.float32)
    forward()
    products, passes = [], []
    for _ in range(7):  # in turns, so that both see the same machine; the best of each counts
        products.append(seconds(lambda: [matrix @ matrix for _ in range(4)]) / 4)
        passes.append(seconds(forward))
    machine = 2 * SIZE**3 / min(products)
    # What is computed: the first layer once (counted as if in float32), the others for every person.
    once = 2 * N_FEATURES * 128 * N_DRAWS
    rest = 2 * (128 * 128 + 128) * N_DRAWS * N_PEOPLE
    rate = (once + rest) / min(passes)
    whole = (once * N_PEOPLE + rest) / min(passes)
    return section(
        "Forward pass of a 2x128 network over 100,000 draws",
        ["", "10^9 operations per second", "share"],
        [
            [f"float32 matrix product, {SIZE} x {SIZE}, all cores", f"{machine / 1e9:.0f}", "1"],
            ["forward pass, operations done", f"{rate / 1e9:.0f}", f"**{rate / machine:.0%}** (at least 60%)"],
            ["forward pass, operations of a plain one", f"{whole / 1e9:.0f}", f"{whole / machine:.0%}"],
        ],
        f"{N_PEOPLE} people, {N_FEATURES} features; best of 7 in turns. The first layer of the draws is computed once.",
    )


if __name__ == "__main__":
    print(run())
