"""Other implementations of averaging a network over 100,000 draws; ratios are against the fastest of them.

- the paper's loop through scikit-learn's own `predict`,
- the same loop in PyTorch: weights, noise and sums in float32, every core, the better of two batch sizes,
- `certify` of the Adversarial Robustness Toolbox (ART) with its PyTorch classifier: Gaussian noise only.

What is not installed is left out, and the page says so.
"""

import os
from contextlib import suppress

import numpy as np

from benchmarks.common import BATCH, N_DRAWS, papers_loop, seconds
from likewise import Gaussian

LARGER = 10_000


def rivals(net, noise, rng):
    """Name of each implementation, and a function that scores one person."""
    methods = {"scikit-learn": lambda person: papers_loop(net, noise, person, rng)}
    try:
        import torch
    except ImportError:
        return methods
    torch.set_num_threads(os.cpu_count())
    copy = in_torch(net)
    for batch in (BATCH, LARGER):
        methods[f"torch, {batch:,} at a time"] = lambda person, batch=batch: torch_loop(copy, noise, person, batch)
    if isinstance(noise, Gaussian):
        with suppress(ImportError):
            methods["ART"] = art_certify(net, noise)
    return methods


def timed(methods, people):
    """Seconds per person of each implementation, the best over these people in turns, and the results."""
    spent, found = {name: [] for name in methods}, {name: [] for name in methods}
    for method in methods.values():
        method(people[0])  # libraries start their threads
    for person in people:
        for name, method in methods.items():
            spent[name].append(seconds(lambda a=found[name], method=method, who=person: a.append(method(who))))
    return {name: min(times) for name, times in spent.items()}, found


def words(spent):
    """All methods and their times, the fastest first."""
    return "; ".join(f"{name} {1e3 * spent[name]:.0f} ms" for name in sorted(spent, key=spent.get))


def missing(spent):
    """What was not installed, in words."""
    absent = [name for name in ("torch", "ART") if not any(name in method for method in spent)]
    return f" Not installed, so not compared: {', '.join(absent)}." if absent else ""


def in_torch(net, scales=None):
    """The network of an `MLPClassifier` with one output, in float32; its inputs in units of `scales`."""
    import torch

    layers = []
    for i, (W, b) in enumerate(zip(net.coefs_, net.intercepts_, strict=True)):
        layer = torch.nn.Linear(*W.shape)
        W = W * scales[:, None] if i == 0 and scales is not None else W
        layer.weight.data, layer.bias.data = (torch.tensor(part, dtype=torch.float32) for part in (W.T.copy(), b))
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1]).eval()


def torch_loop(net, noise, person, batch):
    import torch

    place = torch.tensor(person, dtype=torch.float32)
    gaussian = isinstance(noise, Gaussian)
    width = torch.tensor(noise.widths * (Gaussian.SIGMA if gaussian else 1.0), dtype=torch.float32)
    votes = 0
    with torch.inference_mode():
        for _ in range(N_DRAWS // batch):
            t = torch.randn(batch, len(person)) if gaussian else torch.rand(batch, len(person)) - 0.5
            votes += int((net(place + t * width) > 0).sum())
    return votes / N_DRAWS


def art_certify(net, noise):
    """ART adds the same noise to all inputs, so these are given in units of the noise."""
    import torch
    from art.estimators.certification.randomized_smoothing import PyTorchRandomizedSmoothing

    scales = noise.widths * Gaussian.SIGMA

    class TwoOutputs(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = in_torch(net, scales)

        def forward(self, rows):
            margin = self.net(rows)
            return torch.cat([-margin, margin], dim=1)

    model = PyTorchRandomizedSmoothing(
        TwoOutputs(), torch.nn.CrossEntropyLoss(), (len(scales),), 2, sample_size=1, scale=1.0, alpha=0.001
    )
    return lambda person: model.certify(np.float32(person / scales)[None], N_DRAWS, batch_size=LARGER)


if __name__ == "__main__":
    from benchmarks.common import adult, metric_for, network

    X, y, people = adult()
    net = network(X, y)
    spent, found = timed(rivals(net, Gaussian.for_metric(metric_for(X, y)), np.random.default_rng(0)), people[:4])
    print(words(spent))
    print({name: values for name, values in found.items() if name != "ART"})
