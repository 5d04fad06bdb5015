"""The fast forward pass of a 2x128 network, as a share of the machine's float32 matrix products."""

import time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator

from benchmarks.common import network, seconds, section
from likewise import SmoothedClassifier, WeightedLp
from likewise._parallel import single_threaded_blas
from likewise.smoothing.mlp_forward import NetworkVotes

N_DRAWS, N_PEOPLE, N_FEATURES, SIZE = 100_000, 8, 20, 2048


def run() -> str:
    X, y = make_classification(2000, N_FEATURES, random_state=0)
    net = network(X, y, n_epochs=5)
    model = SmoothedClassifier(
        FrozenEstimator(net), metric=WeightedLp(np.ones(N_FEATURES)), noise="gaussian", n_draws=N_DRAWS, random_state=0
    ).fit(X, y)
    scorer = model.scorer_
    people = scorer.perturbation.prepare(X[:N_PEOPLE])
    parts = [draws for _, draws in scorer.perturbation.iter_draws([N_DRAWS])]

    def forward(votes):
        with single_threaded_blas():
            for draws in parts:
                votes.sums(draws, people)

    matrix = np.random.default_rng(0).random((SIZE, SIZE), dtype=np.float32)
    one_core = NetworkVotes(scorer.sums.network, n_jobs=1)
    forward(one_core)
    product, whole, product_1, whole_1 = [], [], [], []
    for _ in range(5):  # in turns, so that both see the same machine; the best of each counts
        product.append(seconds(lambda: [matrix @ matrix for _ in range(4)]) / 4)
        time.sleep(0.5)  # until the product's threads stop waiting busily for more
        whole.append(seconds(lambda: forward(scorer.sums)))
        with single_threaded_blas():
            product_1.append(cpu_seconds(lambda: matrix @ matrix))
        whole_1.append(cpu_seconds(lambda: forward(one_core)))
    # What is computed: the first layer once (counted as if in float32), the others for every person.
    operations = 2 * N_FEATURES * 128 * N_DRAWS + 2 * (128 * 128 + 128) * N_DRAWS * N_PEOPLE
    rows = []
    for name, gemm, fast in (("all cores, time", product, whole), ("one core, processor time", product_1, whole_1)):
        machine, rate = 2 * SIZE**3 / min(gemm), operations / min(fast)
        rows.append([name, f"{machine / 1e9:.0f}", f"{rate / 1e9:.0f}", f"**{rate / machine:.0%}** (at least 60%)"])
    return section(
        "Forward pass of a 2x128 network over 100,000 draws",
        ["10^9 operations per second", f"float32 matrix product, {SIZE} x {SIZE}", "forward pass", "share"],
        rows,
        f"{N_PEOPLE} people, {N_FEATURES} features; best of 5 in turns. The first layer of the draws is computed once, "
        "and counted once. Processor time is little affected by other programs on the machine.",
    )


def cpu_seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    print(run())
