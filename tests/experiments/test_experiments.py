"""The paper's experiments: cells, checkpoints, tables, the figure, and the guarantee on every pair."""

import io
import os
import shutil
import tomllib
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from experiments import DATASETS, SEEDS, Settings, Trial, reproduce, summarise, trials
from experiments import run as running
from experiments.__main__ import main
from experiments.data import load, prepare
from experiments.pages import PAGES, fill
from experiments.run import Checkpoint
from experiments.statements import goals, statements
from experiments.summary import data_name, draw, model_name, print_table, read_results, readable
from experiments.trials import (
    ADDITIVE,
    CEILING,
    CONSTANT,
    GUARANTEED,
    HINGE_LIPSCHITZ,
    LINEAR,
    LIPSCHITZ,
    LOG_LIPSCHITZ,
    NETWORK,
    SMOOTHED,
    clocked,
    largest_excess,
    network_for,
    plan,
    scores_of,
)
from likewise import Gaussian, SmoothedClassifier, WeightedLp
from likewise.smoothing.mlp_forward import NetworkVotes
from promised import promise

TINY = Settings(n_test=20, n_train=200, n_epochs=2, n_steps=20, epsilon=0.2)
HAS_TORCH = find_spec("torch") is not None
KEY = ["dataset", "split", "seed", "model", "p", "noise"]
CLOCKS = ["seconds", "cpu_seconds", "train_seconds", "train_cpu_seconds", "microseconds"]


def planned(name, seed):
    """The cells that can be computed here."""
    return [cell for cell in plan(name, "rows", seed) if HAS_TORCH or cell.model not in LIPSCHITZ]


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Runs of seconds on synthetic data, without a figure: `run(seeds)` writes into one directory."""
    monkeypatch.setattr(trials, "QUICK", TINY)
    monkeypatch.setattr(running, "draw", lambda *given: None)
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    return lambda **options: reproduce(**{"datasets": ["ssl"], "quick": True, "out": tmp_path, **options})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The directory of a finished run of the first seed."""
    out = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "QUICK", TINY)
        patch.delenv("LIKEWISE_DATA", raising=False)
        reproduce(["ssl"], quick=True, out=out)
    return out


@pytest.fixture
def tiny_again(tiny, finished, tmp_path):
    """As `tiny`, with the cells of the first seed already there."""
    shutil.copytree(finished / "cells", tmp_path / "cells")
    return tiny


@pytest.fixture
def made_up():
    """Two seeds of every cell of two data sets, with made-up results."""
    rng = np.random.default_rng(0)
    rows = []
    for cell in (c for name in ("adult", "ssl-synthetic") for seed in (0, 1) for c in plan(name, "rows", seed)):
        checked = {"n_pairs": 10, "n_violations": 0, "largest_excess": -0.1, "level": "exact"}
        row = asdict(cell) | {measure: rng.random() for measure in ("accuracy", "confidence", "brier")}
        row |= {"accuracy_all": 0.5, "confidence_all": 0.5, "brier_all": 0.2, "seconds": 1.0, "cpu_seconds": 1.0}
        row |= {"evaluations": 1500.0 if cell.model == SMOOTHED else 1.0, "train_cpu_seconds": 3.0, "n_people": 5}
        row |= {"microseconds": 2000.0 + cell.seed if cell.model == SMOOTHED else 4.0}
        row |= checked if cell.model in GUARANTEED else {}
        rows.append(row | ({"accuracy": np.nan, "brier": np.nan} if cell.model == CEILING else {}))
    return pd.DataFrame(rows)


@pytest.fixture
def summary(made_up):
    return summarise(made_up)


def test_every_cell_of_the_plan_is_in_the_results(tiny_again):
    results = tiny_again(seeds=(2, 3))
    found = [Trial(*row) for row in results[KEY].itertuples(index=False)]
    assert found == [cell for seed in (2, 3) for cell in planned("ssl-synthetic", seed)]
    assert results["confidence"].between(0, 1).all()
    models = results[results["model"] != CEILING]
    assert models["accuracy"].between(0, 1).all()
    assert models["brier"].between(0, 1).all()
    assert (models[["microseconds", "train_cpu_seconds"]] >= 0).all(axis=None)
    once = models[models["model"] != SMOOTHED]
    assert (once["n_people_all"] == 2000).all()  # a fifth of 10,000
    assert once["accuracy_all"].between(0, 1).all()
    assert (once["evaluations"] == 1).all()


def test_models_within_the_metric_keep_their_guarantee_and_stay_below_the_ceiling(tiny_again):
    results = tiny_again()
    found = results[results["model"].isin(GUARANTEED)]
    assert set(found["model"]) == ({*GUARANTEED} if HAS_TORCH else {SMOOTHED, ADDITIVE})
    assert (found["n_pairs"] == 20 * 19 // 2).all()
    assert (found["n_violations"] == 0).all()
    assert (found["largest_excess"] <= 0).all()
    ceilings = results[results["model"] == CEILING].set_index("p")["confidence"]
    # A sampled model may be above it by its epsilon, and every one by rounding.
    assert (found["confidence"] <= found["p"].map(ceilings) + found["epsilon"] + 1e-9).all()
    levels = dict(zip(found["model"] + found["noise"], found["level"], strict=True))
    assert levels[f"{SMOOTHED}splitting"] == "deterministic"
    assert {level for name, level in levels.items() if SMOOTHED not in name} == {"exact"}


def test_without_torch_networks_are_left_out_with_one_line(tiny, monkeypatch, capsys):
    monkeypatch.setattr(running, "find_spec", lambda name: None)
    results = tiny(verbose=True)
    assert set(GUARANTEED) - set(results["model"]) == set(LIPSCHITZ)
    said = [line for line in capsys.readouterr().out.splitlines() if "PyTorch" in line]
    assert said == ["1-Lipschitz networks are left out: training them needs PyTorch (pip install 'likewise[torch]')."]
    assert not [said for said, *_ in goals(results) if "1-Lipschitz network (" in said]


def test_networks_that_were_left_out_are_added_by_a_later_run(tiny, monkeypatch):
    pytest.importorskip("torch")
    with monkeypatch.context() as patched:
        patched.setattr(running, "find_spec", lambda name: None)
        first = tiny()
    later = tiny()
    shared = later[~later["model"].isin(LIPSCHITZ)].reset_index(drop=True)
    pd.testing.assert_frame_equal(shared, first, check_dtype=False)  # clocks too: they were not computed again
    assert len(later) == len(first) + 6


def test_the_plan_has_the_paper_and_more_noises_for_p_1():
    smoothed = [(cell.p, cell.noise) for cell in plan("adult", "rows", 0) if cell.model == SMOOTHED]
    paper = {(p, noise) for p in ("1", "2", "inf") for noise in ("laplace", "gaussian")}
    assert set(smoothed) == paper | {("1", "uniform"), ("1", "splitting")}
    assert len(smoothed) == 8
    others = [(cell.model, cell.p) for cell in plan("adult", "rows", 0) if cell.model != SMOOTHED]
    built = {p: [(model, p) for model in (LOG_LIPSCHITZ, HINGE_LIPSCHITZ)] for p in ("1", "2", "inf")}
    assert others == [
        *((model, "") for model in (CONSTANT, LINEAR, NETWORK)),
        *((CEILING, "1"), (ADDITIVE, "1"), *built["1"]),
        *((CEILING, "2"), *built["2"]),
        *((CEILING, "inf"), *built["inf"]),
    ]


def test_the_fast_forward_pass_is_taken():
    data = load("ssl", data_home=os.devnull)
    problem = prepare(data, "rows", 0, n_train=200, n_test=20)
    metric = WeightedLp(problem.weights, 2)
    model = SmoothedClassifier(network_for(0, TINY), metric=metric, noise="gaussian", augment=1, random_state=0)
    assert isinstance(model.fit(problem.X_train, problem.y_train).scorer_.sums, NetworkVotes)


def test_synthetic_data_are_called_so(tiny_again, tmp_path):
    assert set(tiny_again()["dataset"]) == {"ssl-synthetic"}
    assert data_name("ssl-synthetic", "rows") == "SSL (synthetic)"
    assert "ssl-synthetic" in (tmp_path / "results.csv").read_text()


def test_a_quick_run_has_the_first_seed(tiny_again):
    assert SEEDS == (2, 3, 4)
    assert set(tiny_again()["seed"]) == {2}


def test_an_interrupted_run_continues_where_it_stopped(tiny, finished, monkeypatch, tmp_path):
    compute, computed = trials.run, []

    def interrupted(cell, *args):
        if len(computed) == 4:
            raise KeyboardInterrupt
        computed.append(cell)
        return compute(cell, *args)

    monkeypatch.setattr(trials, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tiny()
    assert len(list((tmp_path / "cells").iterdir())) == 4
    monkeypatch.setattr(trials, "run", lambda cell, *args: computed.append(cell) or compute(cell, *args))
    results = tiny()
    assert computed == planned("ssl-synthetic", 2)
    whole = tiny(out=finished)
    assert computed == planned("ssl-synthetic", 2)  # and nothing again for the whole run
    pd.testing.assert_frame_equal(results.drop(columns=CLOCKS), whole.drop(columns=CLOCKS))


def test_the_written_table_reads_back(tiny_again, tmp_path):
    results = tiny_again()
    read = read_results(tmp_path / "results.csv")
    pd.testing.assert_frame_equal(read[[*KEY, "accuracy", "confidence"]], results[[*KEY, "accuracy", "confidence"]])
    assert len(pd.read_csv(tmp_path / "summary.csv")) == len(summarise(results))


def test_results_of_other_settings_are_not_mixed(tiny, finished):
    with pytest.raises(ValueError, match="out must hold results of the same settings"):
        tiny(rows=10, out=finished)
    with pytest.raises(ValueError, match="out must hold results of the same settings"):
        tiny(n_draws=100, out=finished)


def test_a_fixed_number_of_draws_is_taken(tiny):
    results = tiny(n_draws=300)
    sampled = results[results["level"] == "sampled"]
    assert len(sampled) == 7
    assert (sampled["evaluations"] == 300).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"datasets": ["iris"]}, "datasets must be among adult, compas, ssl, seizure; got 'iris'"),
        ({"datasets": []}, "datasets must name at least one"),
        ({"rows": 0}, "rows must be a whole number >= 2; got 0"),
        ({"rows": -5}, "rows must be a whole number >= 2; got -5"),
        ({"n_draws": 0}, "n_draws must be a whole number >= 1; got 0"),
        ({"seeds": ()}, "seeds must hold at least one"),
        ({"seeds": (-1,)}, "seeds must be a whole number >= 0; got -1"),
    ],
)
def test_wrong_parameters_are_named(tiny, options, message):
    with pytest.raises(ValueError, match=message):
        tiny(**options)


def test_out_that_cannot_be_written_is_one_clear_error(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"out must be a directory that can be written; got .*file"):
        tiny(out=tmp_path / "file")


def test_a_damaged_cell_is_named(tmp_path):
    checkpoint = Checkpoint(tmp_path, TINY)
    (checkpoint.directory / "broken.json").write_text("{")
    with pytest.raises(ValueError, match=r"broken\.json is not a finished cell"):
        Checkpoint(tmp_path, TINY)


def test_checkpoints_are_shared_between_runs(tmp_path):
    done = [Trial("adult", "rows", 0, NETWORK), Trial("adult", "rows", 0, SMOOTHED, "inf", "gaussian")]
    first, second = Checkpoint(tmp_path, TINY), Checkpoint(tmp_path, TINY)
    for cell in done:
        first.add(cell, {"accuracy": 0.5, "confidence": 0.5})
    assert all(cell in second for cell in done)
    assert Trial("adult", "rows", 1, NETWORK) not in second
    pd.testing.assert_frame_equal(second.table(done), first.table(done))
    assert {path.suffix for path in first.directory.iterdir()} == {".json"}


def test_the_summary_averages_over_seeds():
    rows = [
        {"dataset": "a", "split": "rows", "seed": seed, "model": NETWORK, "p": "", "noise": ""}
        | {"accuracy": accuracy, "confidence": 0.5, "n_people": 10, "n_pairs": 45, "n_violations": seed}
        | {"largest_excess": -0.1 * seed, "evaluations": 100, "microseconds": 2 + seed, "brier": 0.1}
        | {"accuracy_all": 0.8, "confidence_all": 0.5, "brier_all": 0.1}
        | {"train_cpu_seconds": 1, "seconds": 1, "cpu_seconds": 1}
        for seed, accuracy in ((0, 0.8), (1, 0.9))
    ]
    (found,) = summarise(pd.DataFrame(rows)).to_dict("records")
    assert found["accuracy"] == pytest.approx(0.85)
    assert (found["accuracy_low"], found["accuracy_high"]) == (0.8, 0.9)
    assert found["largest_excess"] == 0
    assert found["microseconds"] == 2  # the best: other load only adds
    assert (found["n_seeds"], found["n_people"], found["n_pairs"], found["n_violations"]) == (2, 20, 90, 1)


def test_the_table_has_every_model_in_words(summary):
    console = Console(file=io.StringIO(), width=90)
    print_table(summary, console)
    printed = console.file.getvalue()
    assert "Adult: 10 test people in 2 seeds" in printed
    assert "SSL (synthetic)" in printed
    for row in summary.itertuples():
        assert model_name(row.model, row.p, row.noise) in printed
    assert f"{100 * summary['accuracy'].iloc[0]:.1f}" in printed
    assert "nan" not in printed


def test_only_models_within_the_metric_are_checked_against_a_guarantee(summary):
    words = readable(summary)
    checked = words["above D + ε"] != ""
    assert (checked == summary["model"].isin(GUARANTEED)).all()


def test_the_figure_is_the_same_bytes_for_the_same_results(summary, tmp_path):
    for name in ("a", "b"):
        draw(summary, tmp_path / f"{name}.svg", tmp_path / f"{name}.png")
    for suffix, start in ((".svg", b"<?xml"), (".png", b"\x89PNG")):
        first, second = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("a", "b"))
        assert first == second
        assert first.startswith(start)
        assert len(first) > 10_000


def test_the_figure_can_be_drawn_for_one_data_set(summary, tmp_path):
    draw(summary[summary["dataset"] == "adult"], tmp_path / "one.png")
    assert (tmp_path / "one.png").exists()


def test_a_run_writes_its_figure_and_says_so(tiny_again, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(running, "draw", draw)
    tiny_again(verbose=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cells",
        "figure.png",
        "figure.svg",
        "results.csv",
        "summary.csv",
    ]
    assert f"Wrote results.csv, summary.csv, figure.svg and figure.png to {tmp_path}." in capsys.readouterr().out


def test_scores_by_hand():
    h = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
    found = scores_of(h, np.array([0, 0, 1]))
    assert found == pytest.approx({"accuracy": 2 / 3, "confidence": 2.1 / 3, "brier": (0.01 + 0.36 + 0.04) / 3})


def test_the_best_round_counts_and_long_ones_are_not_repeated(monkeypatch):
    times = iter([0.0, 0.3, 1.0, 1.1, 2.0, 2.4, 3.0, 3.3])  # rounds of 0.3, 0.1, 0.4 and 0.3 seconds
    monkeypatch.setattr("experiments.trials.time.process_time", lambda: next(times))
    result, took = clocked(lambda: "done")
    assert (result, took) == ("done", pytest.approx(0.1))
    times = iter([0.0, 2.0])
    assert clocked(lambda: "long") == ("long", 2.0)


def test_largest_excess_finds_the_pair_that_breaks_the_guarantee():
    metric = WeightedLp([1.0], p=1)
    guarantee = promise(metric, Gaussian.for_metric(metric).curve, "exact", "")
    X = np.array([[0.0], [0.1], [0.9]])
    kept = np.array([0.5, 0.52, 0.6])
    broken = np.array([0.5, 0.8, 0.6])
    assert largest_excess(X, np.column_stack([1 - kept, kept]), guarantee) < 0
    expected = 0.3 - float(guarantee.bound(0.1))
    assert largest_excess(X, np.column_stack([1 - broken, broken]), guarantee) == pytest.approx(expected)


@pytest.mark.skipif("LIKEWISE_DATA" not in os.environ, reason="LIKEWISE_DATA names no directory with the data")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "seizure")) for name in DATASETS if name != "ssl"],
)
def test_real_data_run_with_few_rows(monkeypatch, tmp_path, name):
    monkeypatch.setattr(trials, "QUICK", Settings(n_test=20, n_train=300, n_epochs=2, n_steps=20, epsilon=0.2))
    if name == "seizure":  # an additive fit of 178 columns takes a minute
        monkeypatch.setattr(running, "plan", lambda *split: (c for c in plan(*split) if c.model != ADDITIVE))
    results = reproduce([name], quick=True, rows=15, out=tmp_path)
    assert set(results["dataset"]) == {name}
    assert set(results["split"]) == ({"rows", "recordings"} if name == "seizure" else {"rows"})
    assert (results["n_people"] == 15).all()
    assert results["n_violations"].sum() == 0


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_say_what_the_results_say(name):
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / name).read_text(encoding="utf-8")
    assert "<!-- begin: " in page
    assert page == fill(page, read_results(docs / "reproduced" / "results.csv"))


def test_a_statement_that_does_not_hold_is_a_no(tiny_again):
    results = tiny_again()
    assert [holds for said, *_, holds in statements(results) if said.startswith("No pair")] == ["yes"]
    results.loc[results["noise"] == "splitting", "n_violations"] = 1
    results.loc[results["noise"] == "gaussian", "confidence"] = 0.0
    found = {said: (ours, holds) for said, _, ours, holds in statements(results)}
    (pairs,) = (value for said, value in found.items() if said.startswith("No pair"))
    (gaussian,) = (value for said, value in found.items() if said.startswith("Gaussian noise keeps"))
    assert pairs[0].startswith("1 of 1,520 pairs")
    assert pairs[1] == "**no**"
    assert gaussian[0].startswith("not in 3 of 3: SSL (synthetic)")
    assert gaussian[1] == "**no**"


def test_goals_are_judged_by_the_noise_that_is_best(made_up):
    def verdicts():
        return {said: (ours, holds) for said, _, ours, holds in goals(made_up)}

    def said_of(words):
        return next(value for said, value in verdicts().items() if words in said)

    network, noise = (made_up["model"] == model for model in (HINGE_LIPSCHITZ, SMOOTHED))
    made_up.loc[noise, ["accuracy", "confidence", "brier"]] = 0.8, 0.7, 0.1
    made_up.loc[network, ["accuracy", "confidence"]] = 0.796, 0.691
    made_up.loc[made_up["model"] == LOG_LIPSCHITZ, "brier"] = 0.09
    assert said_of("accuracy of")[1] == said_of("mean confidence")[1] == said_of("1-Lipschitz network (log")[1] == "yes"
    # One noise that is better by more than the limits, under one of the metrics, is enough for a "no".
    one = noise & (made_up["p"] == "2") & (made_up["noise"] == "laplace")
    made_up.loc[one, ["accuracy", "confidence", "brier"]] = 0.81, 0.71, 0.08
    found = [said_of(words) for words in ("accuracy of", "mean confidence", "1-Lipschitz network (log")]
    assert [holds for _, holds in found] == ["**no**"] * 3
    assert "Adult L2 -1.40 ± 0.00" in found[0][0]
    assert "at least 500 times as much" in said_of("Processor time")[0]
    assert said_of("No pair")[1] == "yes"
    made_up.loc[network, "n_violations"] = 1
    assert said_of("No pair") == (
        "12 of 280 pairs are above D + ε; the largest excess over the tighter bound(D) + ε is -0.1",
        "**no**",
    )


def test_the_page_has_every_model_of_the_costs(made_up):
    page = fill("<!-- begin: costs -->\n<!-- end -->", made_up)
    assert "| L1 Splitting | 1,500 / 2,000.0 / 3 | 1,500 / 2,000.0 / 3 |" in page
    assert "| L∞ 1-Lipschitz, log loss | 1 / 4.0 / 3 | 1 / 4.0 / 3 |" in page
    assert "ceiling" not in page


def test_methods_are_compared_on_real_data_with_the_noise_of_the_lowest_brier_score(made_up):
    of = (made_up["model"] == SMOOTHED) & (made_up["p"] == "inf")
    made_up.loc[of, ["brier", "accuracy"]] = 0.3, 0.5
    made_up.loc[of & (made_up["noise"] == "laplace"), ["brier", "accuracy"]] = 0.2, 0.6
    page = fill("<!-- begin: methods -->\n<!-- end -->", made_up)
    assert "| L∞ smoothed | 0.2000 / 60.0% / 1,500 / 2,000.0 µs |" in page
    assert "synthetic" not in page
    assert [line.split(" |")[0] for line in page.splitlines() if "| L1" in line] == [
        *("| L1 smoothed", "| L1 additive", "| L1 1-Lipschitz, log loss", "| L1 1-Lipschitz, hinge loss"),
    ]


def test_the_command_runs_the_named_data_sets(monkeypatch, tmp_path):
    called = []
    monkeypatch.setattr("experiments.__main__.reproduce", lambda *given, **options: called.append((given, options)))
    main(["adult", "compas", "--quick", "--rows", "5", "--out", str(tmp_path)])
    main([])
    assert called == [
        ((["adult", "compas"],), {"quick": True, "rows": 5, "out": tmp_path, "verbose": True}),
        ((DATASETS,), {"quick": False, "rows": None, "out": Path("reproduced"), "verbose": True}),
    ]


@pytest.mark.parametrize(("words", "said"), [(["mars"], "got 'mars'"), (["ssl", "--rows", "1"], "rows must be")])
def test_a_mistake_on_the_command_line_is_one_line(words, said, capsys, tmp_path):
    with pytest.raises(SystemExit) as caught:
        main([*words, "--out", str(tmp_path / "new")])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "new").exists()


def test_the_command_fills_the_pages_from_finished_results(monkeypatch, made_up, tmp_path):
    for folder in ("docs", "results"):
        (tmp_path / folder).mkdir()
    made_up.to_csv(tmp_path / "results" / "results.csv", index=False)
    for name in PAGES:
        (tmp_path / "docs" / name).write_text("before <!-- begin: costs -->\nold\n<!-- end --> after")
    monkeypatch.chdir(tmp_path)
    main(["--pages", "results"])
    page = (tmp_path / "docs" / PAGES[0]).read_text()
    assert "old" not in page
    assert "L1 Splitting" in page
    assert (tmp_path / "docs" / "reproduced" / "figure.png").exists()


def test_the_distributions_do_not_contain_the_experiments():
    build = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert build["targets"]["wheel"]["packages"] == ["src/likewise"]
    assert not [path for path in build["targets"]["sdist"]["include"] if "experiments" in path]
