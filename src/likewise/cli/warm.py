"""The command that compiles ahead, for image builds: warm."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from likewise.cli.console import Output, command, new_command


@new_command()
@command
def warm(echo: Output) -> None:
    """Compile the loops for large tables ahead, into numba's cache.

    Small tables need none of them. Large ones compile on first use, which takes up to half a minute; run this once in
    the build of an image, as the account that will use it, or with NUMBA_CACHE_DIR set to a directory it can read.
    Not covered are 1-Lipschitz networks, upper bounds for tree ensembles, and tables in partitions: each compiles its
    own loops on first use.

    Example: likewise warm
    """
    from likewise._engine import always_compiled
    from likewise._progress import progress_bar

    logging.getLogger("likewise").setLevel(logging.ERROR)  # that loops are compiled is said below
    jobs = _jobs()
    with progress_bar("Compiling", len(jobs), show=not echo.as_json) as advance, always_compiled():
        for name, job in jobs.items():
            echo.note(f"Compiling for {name}.")
            job()
            advance(1)
    echo("Compiled.", compiled=list(jobs))
    echo.finish()


def _jobs() -> dict[str, Callable[[], Any]]:
    """Small work that calls every loop with the types that large work has."""
    import numpy as np
    import pandas as pd
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.neural_network import MLPClassifier

    import likewise

    rng = np.random.default_rng(0)
    n = 80
    people = pd.DataFrame({"age": rng.integers(18, 80, n).astype(float), "job": rng.choice(["a", "b"], n)})
    people["income"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    numbers, y = people[["age"]].assign(points=rng.normal(size=n)), rng.integers(0, 2, n)
    metric = likewise.TableMetric({"age": 0.01, "income": 0.1}, {"job": 0.1}, missing="category")
    plain = likewise.TableMetric({"age": 0.01, "points": 0.1})
    forest = RandomForestClassifier(5, max_depth=3, random_state=0)
    network = MLPClassifier((8, 4), tol=1.0, random_state=0)

    def scored(model: Any, X: pd.DataFrame, outcomes: Any) -> Any:
        return model.fit(X, outcomes).predict_proba(X)

    return {
        "cards": lambda: [
            scored(likewise.AdditiveClassifier(metric), people, outcomes) for outcomes in (y, np.arange(n) % 3)
        ],
        "audits": lambda: likewise.audit(None, people, metric, predictions=rng.random(n)),
        "attacks": lambda: likewise.attack(
            likewise.AdditiveClassifier(metric).fit(people, y), metric, people, n_pairs=2000, random_state=0
        ),
        "estimates": lambda: likewise.estimate_minimal_metric(
            None, numbers, predictions=0.5 + np.tanh(numbers["points"]) / 2, exchange=False
        ),
        "ceilings": lambda: [likewise.ceiling(numbers, y, plain), likewise.ceiling(people, y, metric)],
        "projection": lambda: scored(likewise.ProjectedClassifier(forest, metric=plain, random_state=0), numbers, y),
        "smoothing": lambda: [
            scored(likewise.SmoothedClassifier(model, metric=plain, random_state=0, **options), numbers, y)
            for model, options in (
                (forest, {"n_draws": 50}),
                (forest, {"vote": "soft", "noise": "laplace"}),  # a closed form
                (network, {"n_draws": 50, "noise": "laplace"}),
            )
        ],
    }
