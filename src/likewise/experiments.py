"""The paper's experiments (Section 6), from data to table, in cells that are computed once.

A cell is one model on one split of one data set under one seed. Every finished cell is written to ``results.csv`` at
once, so that an interrupted run continues where it stopped.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from likewise._checks import check_count
from likewise.datasets import fetch_adult, fetch_compas, fetch_seizure, fetch_ssl, make_ssl_like
from likewise.guarantee import Guarantee
from likewise.metrics import FloatArray, WeightedLp
from likewise.noise import Gaussian, Laplace, Noise, Splitting, Uniform
from likewise.progress import progress_bar
from likewise.smoothing import SmoothedClassifier
from likewise.voting.threads import single_threaded_blas

DATASETS = ("adult", "compas", "ssl", "seizure")
_EXPONENTS = (1.0, 2.0, np.inf)
_NOISES: dict[str, type[Noise]] = {"laplace": Laplace, "gaussian": Gaussian, "uniform": Uniform, "splitting": Splitting}


@dataclass(frozen=True)
class Settings:
    """How much work a run does; results of different settings are not mixed.

    Attributes
    ----------
    n_test : int
        People of the test set who are scored, drawn at random for each seed; all, if there are fewer.
    n_train : int
        People of the training set at most.
    n_draws : int
        Evaluations of the network per person.
    n_shifts : int
        The same for splitting, which has no error of sampling and needs fewer.
    n_epochs : int
        Passes over the training data at most; training stops earlier when held-out people do not gain.
    """

    n_test: int = 2000
    n_train: int = 100_000
    n_draws: int = 100_000
    n_shifts: int = 10_000
    n_epochs: int = 200


FULL = Settings()
QUICK = Settings(n_test=200, n_train=4000, n_draws=1000, n_shifts=1000, n_epochs=20)


@dataclass(frozen=True)
class Cell:
    """One model on one split of one data set under one seed; `p` and `noise` are empty for the baselines."""

    dataset: str
    split: str
    seed: int
    model: str
    p: str = ""
    noise: str = ""


@dataclass(frozen=True, eq=False)
class Problem:
    """One split, standardised, with the metric weights that its logistic regression gives."""

    X_train: FloatArray
    y_train: npt.NDArray[Any]
    X_test: FloatArray
    y_test: npt.NDArray[Any]
    linear: LogisticRegression
    weights: FloatArray


def reproduce(
    datasets: Iterable[str] = DATASETS,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    quick: bool = False,
    rows: int | None = None,
    out: str | os.PathLike[str] = "reproduced",
    data_home: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> pd.DataFrame:
    """Run the paper's experiments, and return (and write) one row per cell.

    For each data set and seed: a logistic regression; a network with two hidden layers of 128 units; and the network
    trained with noise and smoothed, under weighted L1, L2 and L-infinity metrics whose weights are those of the
    logistic regression on standardised features, scaled to mean 1.

    Parameters
    ----------
    datasets : iterable of {"adult", "compas", "ssl", "seizure"}
        "ssl" is synthetic (and called "ssl-synthetic") where the city's file is not found. "seizure" is split by
        rows, as in the paper, and by recordings.
    seeds : sequence of int, default=(0, 1, 2)
    quick : bool, default=False
        Less of everything, for a first look in minutes.
    rows : int, optional
        Test people to score, instead of 2,000 (200 if quick).
    out : path-like, default="reproduced"
        Directory for ``results.csv``. Cells found there are not computed again.
    data_home : path-like, optional
        As in `likewise.datasets`.
    verbose : bool, default=False
        Show progress.

    Returns
    -------
    DataFrame
        The cell (dataset, split, seed, model, p, noise), ``accuracy``, ``confidence`` (mean probability of the correct
        class), ``largest_excess`` (over all pairs of test people, how far the difference of their outputs is above the
        promise; never positive if it is kept), ``seconds``, and the settings.
    """
    settings = QUICK if quick else FULL
    if rows is not None:
        settings = Settings(**{**asdict(settings), "n_test": check_count("rows", rows, least=2)})
    datasets = list(datasets)
    for name in datasets:
        if name not in DATASETS:
            raise ValueError(f"datasets must be among {', '.join(DATASETS)}; got {name!r}.")
    checkpoint = Checkpoint(Path(out), settings)
    plans = [(name, split, seed) for seed in seeds for name in datasets for split in _splits(name)]
    per_plan = sum(1 for _ in plan("", "", 0))
    # One thread for the matrix products of training: as fast for batches this small, and the results do not depend
    # on the number of cores.
    with single_threaded_blas(), progress_bar("Experiments", len(plans) * per_plan, show=verbose) as advance:
        for name, split, seed in plans:
            loaded = load(name, data_home=data_home)
            cells = list(plan(loaded.name, split, seed))
            todo = [cell for cell in cells if cell not in checkpoint]
            advance(len(cells) - len(todo))
            if not todo:
                continue
            problem = prepare(loaded, split, seed, settings)
            for cell in todo:
                checkpoint.add(cell, run(cell, problem, settings))
                advance(1)
    return checkpoint.table()


def plan(dataset: str, split: str, seed: int) -> Iterator[Cell]:
    """Yield the cells of one split, baselines first."""
    yield Cell(dataset, split, seed, "logistic regression")
    yield Cell(dataset, split, seed, "network")
    for p in _EXPONENTS:
        for noise in _NOISES:
            # Beyond the paper: uniform noise and splitting, where they are at home.
            if noise in ("laplace", "gaussian") or p == 1:
                yield Cell(dataset, split, seed, "smoothed network", f"{p:g}", noise)


@dataclass(frozen=True, eq=False)
class Loaded:
    """Numbers and classes of a data set, with its own test people or its groups if it has any."""

    name: str
    X: FloatArray
    y: npt.NDArray[Any]
    is_test: npt.NDArray[np.bool_] | None = None
    groups: npt.NDArray[Any] | None = None


def load(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Loaded:
    """Load a data set as numbers, categories one-hot coded."""
    if name == "adult":
        train, test = (fetch_adult(subset=subset, data_home=data_home) for subset in ("train", "test"))
        X = np.vstack([train.data.to_numpy(float), test.data.to_numpy(float)])
        is_test = np.repeat([False, True], [len(train.data), len(test.data)])
        return Loaded(name, X, np.concatenate([train.target, test.target]), is_test=is_test)
    if name == "compas":
        compas = fetch_compas(data_home=data_home)
        return Loaded(name, pd.get_dummies(compas.data).to_numpy(float), compas.target.to_numpy())
    if name == "seizure":
        seizure = fetch_seizure(data_home=data_home)
        return Loaded(name, seizure.data.to_numpy(), seizure.target.to_numpy(), groups=seizure.groups.to_numpy())
    try:
        ssl = fetch_ssl(data_home=data_home)
    except FileNotFoundError:
        name, ssl = "ssl-synthetic", make_ssl_like(10_000, random_state=0)
    return Loaded(name, ssl.data.to_numpy(), ssl.target.to_numpy())


def prepare(data: Loaded, split: str, seed: int, settings: Settings) -> Problem:
    """Split, standardise, and fit the logistic regression that the metric comes from."""
    everyone = np.arange(len(data.X))
    if data.is_test is not None:
        train, test = everyone[~data.is_test], everyone[data.is_test]
    elif split == "recordings":
        folds = StratifiedGroupKFold(5, shuffle=True, random_state=seed)
        train, test = next(folds.split(data.X, data.y, data.groups))
    else:
        train, test = train_test_split(everyone, test_size=0.2, random_state=seed, stratify=data.y)
    rng = np.random.default_rng(seed)
    train, test = _at_most(train, settings.n_train, rng), _at_most(test, settings.n_test, rng)
    scaler = StandardScaler().fit(data.X[train])
    X_train, y_train = scaler.transform(data.X[train]), data.y[train]
    linear = LogisticRegression(max_iter=10_000).fit(X_train, y_train)
    weights = np.abs(linear.coef_[0])
    return Problem(X_train, y_train, scaler.transform(data.X[test]), data.y[test], linear, weights / weights.mean())


def run(cell: Cell, problem: Problem, settings: Settings) -> dict[str, float]:
    """Train and score the model of a cell."""
    start = time.perf_counter()
    excess = np.nan
    if cell.model == "logistic regression":
        h = problem.linear.predict_proba(problem.X_test)
    elif cell.model == "network":
        network = _network(cell.seed, settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the last epoch is a limit we set
            network.fit(problem.X_train, problem.y_train)
        h = network.predict_proba(problem.X_test)
    else:
        metric = WeightedLp(problem.weights, float(cell.p))
        model = SmoothedClassifier(
            _network(cell.seed, settings),
            noise=_NOISES[cell.noise].for_metric(metric),
            n_draws=settings.n_shifts if cell.noise == "splitting" else settings.n_draws,
            augment=1,
            random_state=cell.seed,
        ).fit(problem.X_train, problem.y_train)
        # Equal people have equal scores, so each is scored once.
        distinct, where = np.unique(problem.X_test, axis=0, return_inverse=True)
        scores = model.predict_proba(distinct)
        h = scores[where]
        excess = largest_excess(distinct, scores, model.guarantee_)
    correct = h[np.arange(len(h)), problem.y_test]
    return {
        "accuracy": float((h.argmax(axis=1) == problem.y_test).mean()),
        "confidence": float(correct.mean()),
        "largest_excess": excess,
        "seconds": time.perf_counter() - start,
    }


def largest_excess(X: FloatArray, probabilities: FloatArray, guarantee: Guarantee) -> float:
    """Largest difference between the outputs for two people in excess of what is promised; two classes."""
    most = -np.inf
    for i, (x, h) in enumerate(zip(X[:-1], probabilities[:-1, 1], strict=True)):
        promised = guarantee.bound(guarantee.metric(X[i + 1 :], x))
        most = max(most, float((np.abs(probabilities[i + 1 :, 1] - h) - promised).max()))
    return most


def summarise(results: pd.DataFrame) -> pd.DataFrame:
    """Average the cells over seeds."""
    key = [field.name for field in fields(Cell) if field.name != "seed"]
    groups = results.groupby(key, sort=False)
    return groups.agg(
        accuracy=("accuracy", "mean"),
        confidence=("confidence", "mean"),
        largest_excess=("largest_excess", "max"),
        n_seeds=("seed", "nunique"),
    ).reset_index()


class Checkpoint:
    """The finished cells, in ``results.csv`` of a directory."""

    def __init__(self, out: Path, settings: Settings) -> None:
        self._path = out / "results.csv"
        self._settings = asdict(settings)
        self._rows: dict[Cell, dict[str, Any]] = {}
        out.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            names = [field.name for field in fields(Cell)]
            found = pd.read_csv(self._path, keep_default_na=False, na_values={"largest_excess": ""}, dtype={"p": str})
            if not all((found[name] == value).all() for name, value in self._settings.items()):
                raise ValueError(
                    f"out must hold results of the same settings, {self._settings}; {self._path} has others. "
                    "Choose another directory, or remove the file."
                )
            for row in found.to_dict("records"):
                self._rows[Cell(*(row[name] for name in names))] = {str(name): value for name, value in row.items()}

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._rows

    def add(self, cell: Cell, result: dict[str, float]) -> None:
        """Record a cell; the file is replaced at once, so it is whole whenever the run is interrupted."""
        self._rows[cell] = {**asdict(cell), **result, **self._settings}
        unfinished = self._path.with_suffix(".csv.part")
        self.table().to_csv(unfinished, index=False)
        os.replace(unfinished, self._path)

    def table(self) -> pd.DataFrame:
        """All finished cells."""
        return pd.DataFrame(list(self._rows.values()))


def _splits(name: str) -> tuple[str, ...]:
    return ("rows", "recordings") if name == "seizure" else ("rows",)


def _network(seed: int, settings: Settings) -> Pipeline:
    # The scaler sees people with their noise, which can be many times as wide as they are apart: without it the network
    # starts far from where it can learn (Seizure, L-infinity, Gaussian: 80% accuracy without, 89% with).
    # Patience of 20 epochs: with 10, the epoch at which training stopped varied more than the noises differ.
    network = MLPClassifier(
        (128, 128), max_iter=settings.n_epochs, early_stopping=True, n_iter_no_change=20, random_state=seed
    )
    return make_pipeline(StandardScaler(), network)


def _at_most(rows: npt.NDArray[np.intp], n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    return rows if len(rows) <= n else np.sort(rng.choice(rows, n, replace=False))
