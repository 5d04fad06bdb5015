"""Training variants of 1-Lipschitz networks: sorted pairs or ReLU, weights normalised or projected."""

import itertools
import warnings
from unittest import mock

import numpy as np

from benchmarks.common import DataMissingError, section, skipped
from experiments.data import load, prepare
from likewise import LipschitzClassifier, WeightedLp
from likewise.lipschitz import training
from likewise.lipschitz.training import Parameters

TITLE = "1-Lipschitz networks: training variants"
SEEDS = (0, 1)  # those with which settings were chosen; the reproduced experiments have others
PROBLEMS = [("seizure", np.inf), ("seizure", 2.0), ("adult", 1.0)]


def run() -> str:
    try:
        data = {name: load(name) for name, _ in PROBLEMS}
        import torch  # noqa: F401
    except (FileNotFoundError, KeyError):
        return skipped(TITLE, DataMissingError("Not run: set `LIKEWISE_DATA` to the folder with the real data."))
    except ImportError:
        return skipped(TITLE, DataMissingError("Not run: PyTorch is not installed."))
    rows = []
    for sorts, divides in itertools.product((True, False), (True, False)):
        found = [
            np.mean([accuracy(prepared(data[name], seed), p, seed, sorts, divides) for seed in SEEDS])
            for name, p in PROBLEMS
        ]
        words = ["MaxMin" if sorts else "ReLU", "divided by their norms" if divides else "projected after each step"]
        rows.append([*words, *(f"{100 * value:.1f}" for value in found)])
    return section(
        TITLE,
        ["between layers", "weights", *(f"{name.capitalize()}, p = {p:g}" for name, p in PROBLEMS)],
        rows,
        f"Accuracy in percent on all test people, mean over seeds {' and '.join(map(str, SEEDS))}; two layers of 128 "
        "units, hinge loss on the clip link, the same steps and early stopping. The first line is "
        "`LipschitzClassifier` with its defaults. Projected: the closest weights within the limits, instead of weights "
        "normalised inside the forward pass.",
    )


def prepared(data, seed):
    return prepare(data, "rows", seed, n_train=10**6, n_test=1000)


def accuracy(problem, p, seed, sorts, divides) -> float:
    """Accuracy of a network trained with one variant, as PyTorch computes it."""
    made = []

    class Variant(Parameters):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

        def scores(self, plain, nullable, codes):
            torch = self.torch
            if sorts:
                return super().scores(plain, nullable, codes)
            h = torch.addmm(self.biases[0], plain, self._number_weights())
            for weights, bias in zip(self.weights, self.biases[1:], strict=True):
                h = torch.addmm(bias, torch.relu(h), self._within(weights, 1.0))
            return h

        def _within(self, W, q):
            return super()._within(W, q) if divides else W

        def project(self):
            super().project()
            if divides:
                return
            if not np.isinf(self.inputs.q):
                within = _closest(self.torch, self.numbers.data / self.deviations, self.inputs.q)
                self.numbers.data.copy_(within * self.deviations)
            for weights in self.weights:
                weights.data.copy_(_closest(self.torch, weights.data, 1.0))

    model = LipschitzClassifier(
        WeightedLp(problem.weights, p), link="clip", loss="hinge", n_steps=4000, random_state=seed
    )
    with warnings.catch_warnings(), mock.patch.object(training, "Parameters", Variant):
        warnings.simplefilter("ignore")  # the paper's metrics say nothing about most pairs
        model.fit(problem.X_train, problem.y_train)
    (trained,) = made
    columns = trained.inputs.columns
    z = trained.scores(*trained.to_tensors(problem.X_all[:, columns])).detach().numpy()[:, 0]
    return float(((z > 0) == problem.y_all).mean())


def _closest(torch, W, q):
    """Each unit's closest weights with a q-norm of at most 1, for q = 1 and 2."""
    if q == 2:
        return W / torch.linalg.vector_norm(W, 2, dim=0).clamp(min=1.0)
    # Soft thresholding, at the threshold that leaves a sum of 1 (Duchi et al. 2008).
    sizes = W.abs().sort(dim=0, descending=True).values
    excess = sizes.cumsum(dim=0) - 1
    ranks = torch.arange(1, len(W) + 1)[:, None]
    last = (sizes * ranks > excess).sum(dim=0, keepdim=True)
    threshold = (excess.gather(0, last - 1) / last).clamp(min=0.0)
    return W.sign() * (W.abs() - threshold).clamp(min=0.0)


if __name__ == "__main__":
    print(run())
