"""The paper's experiments: cells, checkpoints, and the promise on every pair."""

import numpy as np
import pandas as pd
import pytest

from likewise import Gaussian, Guarantee, WeightedLp, experiments
from likewise.experiments import Cell, Checkpoint, Settings, largest_excess, plan, reproduce, summarise

TINY = Settings(n_test=20, n_train=200, n_draws=50, n_shifts=50, n_epochs=2)


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Runs of seconds on synthetic data: `run(seeds)` writes into one directory."""
    monkeypatch.setattr(experiments, "QUICK", TINY)
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    return lambda seeds=(0,), **options: reproduce(["ssl"], seeds=seeds, quick=True, out=tmp_path, **options)


def test_every_cell_of_the_plan_is_in_the_results(tiny):
    results = tiny(seeds=(0, 1))
    cells = [Cell(*row) for row in results[["dataset", "split", "seed", "model", "p", "noise"]].itertuples(index=False)]
    assert cells == [cell for seed in (0, 1) for cell in plan("ssl-synthetic", "rows", seed)]
    assert results[["accuracy", "confidence"]].stack().between(0, 1).all()


def test_the_plan_has_the_paper_and_more_noises_for_p_1():
    smoothed = [(cell.p, cell.noise) for cell in plan("adult", "rows", 0) if cell.model == "smoothed network"]
    paper = {(p, noise) for p in ("1", "2", "inf") for noise in ("laplace", "gaussian")}
    assert set(smoothed) == paper | {("1", "uniform"), ("1", "splitting")}
    assert len(smoothed) == 8


def test_synthetic_data_are_called_so(tiny):
    assert set(tiny()["dataset"]) == {"ssl-synthetic"}


def test_an_interrupted_run_continues_where_it_stopped(tiny, monkeypatch, tmp_path):
    whole = tiny(seeds=(0,))
    (tmp_path / "results.csv").unlink()
    compute, computed = experiments.run, []

    def interrupted(cell, *args):
        if len(computed) == 4:
            raise KeyboardInterrupt
        computed.append(cell)
        return compute(cell, *args)

    monkeypatch.setattr(experiments, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tiny()
    assert len(pd.read_csv(tmp_path / "results.csv")) == 4
    first = list(computed)
    monkeypatch.setattr(experiments, "run", lambda cell, *args: computed.append(cell) or compute(cell, *args))
    results = tiny()
    assert len(computed) == len(set(computed)) == len(whole)
    assert computed[:4] == first
    pd.testing.assert_frame_equal(results.drop(columns="seconds"), whole.drop(columns="seconds"))


def test_results_of_other_settings_are_not_mixed(tiny):
    tiny()
    with pytest.raises(ValueError, match="out must hold results of the same settings"):
        tiny(rows=10)


def test_an_unknown_data_set_is_named(tmp_path):
    with pytest.raises(ValueError, match="datasets must be among adult, compas, ssl, seizure; got 'iris'"):
        reproduce(["iris"], out=tmp_path)


def test_a_checkpoint_reads_back_what_it_wrote(tmp_path):
    cells = [Cell("adult", "rows", 0, "network"), Cell("adult", "rows", 0, "smoothed network", "inf", "gaussian")]
    written = Checkpoint(tmp_path, TINY)
    for cell, excess in zip(cells, (np.nan, -0.1), strict=True):
        written.add(cell, {"accuracy": 0.5, "confidence": 0.5, "largest_excess": excess, "seconds": 1.0})
    read = Checkpoint(tmp_path, TINY)
    assert all(cell in read for cell in cells)
    assert Cell("adult", "rows", 1, "network") not in read
    pd.testing.assert_frame_equal(read.table(), written.table())
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]


def test_the_summary_averages_over_seeds():
    rows = [
        {"dataset": "a", "split": "rows", "seed": seed, "model": "network", "p": "", "noise": ""}
        | {"accuracy": accuracy, "confidence": 0.5, "largest_excess": -0.1 * seed}
        for seed, accuracy in ((0, 0.8), (1, 0.9))
    ]
    (summary,) = summarise(pd.DataFrame(rows)).to_dict("records")
    assert summary["accuracy"] == pytest.approx(0.85)
    assert summary["largest_excess"] == 0
    assert summary["n_seeds"] == 2


def test_largest_excess_finds_the_pair_that_breaks_the_promise():
    metric = WeightedLp([1.0], p=1)
    guarantee = Guarantee(Gaussian.for_metric(metric), 0.0, 0.0, "exact", 1)
    X = np.array([[0.0], [0.1], [0.9]])
    kept = np.array([0.5, 0.52, 0.6])
    broken = np.array([0.5, 0.8, 0.6])
    assert largest_excess(X, np.column_stack([1 - kept, kept]), guarantee) < 0
    expected = 0.3 - float(guarantee.bound(0.1))
    assert largest_excess(X, np.column_stack([1 - broken, broken]), guarantee) == pytest.approx(expected)
