"""One property over everything that promises: no pair above its bound, whatever meets (`tests/catalogue.py`)."""

from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import likewise as lw
from catalogue import METRICS, MODELS, WAYS, WRAPPERS, Cell, ask, covering, fit, strangers, training_table
from oracle import variation
from property.promises import SAME, Evidence, audited, broken, decisions

pytestmark = pytest.mark.filterwarnings("ignore:X .* feature names")  # arrays where tables were learned

PAIRS, FEATURES = covering(2)
SHARED = ("saved and loaded", "pickled", "JSON", "Dask")  # ways that lead to the model of `fit`, to the last bit


def evidence(cell):
    return Evidence(fit(replace(cell, asked=SAME)))


def holds(cell):
    found = evidence(cell)
    assert broken(found, cell.asked) == []
    if cell.way in SHARED:
        fitted = fit(replace(cell, way="fit", asked=SAME))
        assert np.array_equal(ask(fitted, found.table, SAME), found.outputs)


# Two classes, so that both workers have their share.
class TestFirstHalf:
    @pytest.mark.parametrize("cell", PAIRS[::2], ids=str)
    def test_every_promise_holds_for_every_pair_of_features(self, cell):
        holds(cell)


class TestSecondHalf:
    @pytest.mark.parametrize("cell", PAIRS[1::2], ids=str)
    def test_every_promise_holds_for_every_pair_of_features(self, cell):
        holds(cell)


@pytest.mark.parametrize("wrapper", ["none", "threshold", "recalibrated"])
@pytest.mark.parametrize("model", MODELS)
def test_decisions_of_a_round_differ_no_more_often_than_promised(model, wrapper):
    metric = "named" if "table" in MODELS[model].refuses or MODELS[model].arrays_only else "table"
    cell = Cell(model, wrapper, "fit", metric, SAME, SAME)
    slow = wrapper == "threshold" and MODELS[model].stranger and "projected" not in model  # sampled in every round
    if not cell.is_possible or slow or MODELS[model].outcome == "number":
        return
    assert list(decisions(evidence(cell))) == []


@pytest.mark.parametrize("model", MODELS)
def test_an_audit_against_the_guarantee_finds_no_pair(model):
    metric = "named" if "table" in MODELS[model].refuses or MODELS[model].arrays_only else "table"
    found = evidence(Cell(model, "none", "fit", metric, SAME, SAME))
    if not found.is_sampled:
        assert list(audited(found)) == []


def test_an_audit_against_the_guarantee_counts_the_pairs_above_it():
    found = evidence(TIGHT[0])
    scores = np.clip(0.5 + 1.2 * (found.outputs[:, 1] - 0.5), 0, 1)
    stretched = copy(found.model)
    stretched.predict_proba = lambda X: np.stack([1 - scores, scores], axis=1)
    audit = lw.audit(stretched, found.table, found.guarantee.metric, against="guarantee", n_worst=10_000)
    above = np.triu(np.abs(scores[:, None] - scores) - found.bound() > 1e-9, 1)
    assert audit.n_violations == above.sum() > 0
    assert audit.max_excess == pytest.approx((np.abs(scores[:, None] - scores) - found.bound()).max())
    worst = audit.violations.iloc[0]
    assert worst["bound"] == pytest.approx(float(found.guarantee.bound(worst["distance"])))
    assert "exceed the guarantee" in audit.headline


def falls(metric, way, sign):
    """The largest fall of the score of anybody as they grow older (or younger), where the card must only rise."""
    X = training_table(metric)
    y = np.where(X["age"] // 8 % 2 > 0, "yes", "no")
    estimator = lw.AdditiveClassifier(METRICS[metric].make(), max_knots=30, penalty=1e-5, monotone={"age": sign})
    model = WAYS[way](estimator if sign else estimator.set_params(monotone=None), X, y)
    ages, people = np.arange(0.0, 90.0, 0.5), strangers(metric, 3, 4)
    older = people.iloc[np.repeat(np.arange(len(people)), len(ages))].assign(age=np.tile(ages, len(people)))
    scores = model.predict_proba(older)[:, 1].reshape(len(people), -1)
    return float(-np.diff((sign or 1) * scores).min())


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("metric", ["named, other order", "blanks weigh little", "order given"])
def test_a_score_only_rises_in_a_column_in_which_it_must(metric, way, sign):
    assert falls(metric, way, sign) <= 1e-12
    if way == "fit":
        assert falls(metric, way, 0) > 1e-3  # the control


# -- controls: the same checks find what is false ----------------------------------------------------------------------

TIGHT = [
    Cell("additive", "none", "fit", "table", SAME, SAME),
    Cell("additive, three classes", "none", "fit", "blanks weigh little", SAME, SAME),
    Cell("projected", "none", "fit", "named", SAME, SAME),
    Cell("additive", "threshold", "fit", "table", SAME, SAME),
    Cell("projected", "threshold", "fit", "named", SAME, SAME),
    Cell("splitting", "none", "fit", "named", SAME, SAME),
    Cell("additive regression", "none", "fit", "order given", SAME, SAME),
]


class Falsified(Evidence):
    """Evidence in which one statement is a little too strong."""

    statement = None

    def bound(self):
        return super().bound() * (0.9 if self.statement == "bound" else 1)

    def guaranteed(self):
        return super().guaranteed() * {"distances too small": 0.999, "distances too large": 1.001}.get(
            self.statement, 1
        )

    def odds_ratio(self):
        return super().odds_ratio() ** (0.9 if self.statement == "odds_ratio" else 1)

    def range_at(self, scores):
        limits = super().range_at(scores)
        return scores[:, None, None] + (limits - scores[:, None, None]) * (0.9 if self.statement == "range_at" else 1)

    def certificate(self):
        found = super().certificate()
        if self.statement == "certified distance":
            return replace(found, distance=None if found.distance is None else 1.5 * found.distance + 0.1)
        if self.statement == "certified range":
            return replace(found, lower=found.upper, upper=found.lower + 0.0, curve=_Half(found.curve))
        return found

    def sure_distance(self):
        return super().sure_distance() * (3 if self.statement == "sure_distance" else 1)

    def visible_rows(self):
        rows = super().visible_rows()
        return rows * 0 if self.statement == "visible_rows" else rows

    def decision_bound(self):
        return super().decision_bound() * (0.2 if self.statement == "decision_bound" else 1)


class _Half:
    """A bound that promises half of what holds."""

    def __init__(self, curve):
        self.curve = curve

    def highest(self, probability, distance):
        return self.curve.highest(probability, distance / 2)


STATEMENTS = {
    "bound": "above the bound",
    "distances too small": "smaller than those given",
    "distances too large": "larger than those given",
    "odds_ratio": "above the limit",
    "range_at": "outside range_at",
    "certified distance": "within the certified distance",
    "certified range": "outside the certified range",
    "sure_distance": "within the sure distance",
    "visible_rows": "equal visible rows",
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_is_a_little_too_strong_is_found(statement):
    found = []
    for cell in TIGHT:
        false = Falsified(fit(cell))
        false.statement = statement
        found += broken(false)
    assert any(STATEMENTS[statement] in sentence for sentence in found)


def test_decisions_that_differ_too_often_are_found():
    false = Falsified(fit(TIGHT[3]))
    false.statement = "decision_bound"
    assert list(decisions(false)) != []


@pytest.mark.parametrize("cell", TIGHT, ids=str)
def test_the_model_of_a_looser_metric_is_found(cell):
    fitted = fit(cell)
    stricter = replace(fitted, described=replace(fitted.described, metric=fitted.described.metric.scaled(0.8)))
    assert any("larger than those given" in sentence for sentence in broken(Evidence(stricter)))


def test_a_form_that_changes_people_is_found(monkeypatch):
    import catalogue

    monkeypatch.setitem(catalogue.FORMS, "older", lambda frame, entry: frame.assign(age=frame["age"] + 1))
    assert "asked as 'older'" in broken(evidence(TIGHT[0]), "older")[0]


def test_models_use_what_the_metric_allows():
    """Otherwise nothing above would be tested: somewhere, outputs come within 5% of their bound."""
    for cell in TIGHT:
        found = evidence(cell)
        with np.errstate(divide="ignore", invalid="ignore"):
            used = np.nan_to_num(variation(found.outputs) / found.bound())
        assert used[(found.D > 0) & (found.bound() < 0.9)].max() > 0.95, cell


def test_every_feature_is_met():
    for factor, names in (("model", MODELS), ("wrapper", WRAPPERS), ("metric", METRICS)):
        assert {getattr(cell, factor) for cell in PAIRS} == set(names)


def test_the_page_counts_what_is_tried():
    pytest.importorskip("torch")  # networks are counted, too
    page = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")
    assert f"**{len(PAIRS):,} combinations**" in page
    assert f"**{len(FEATURES):,} pairs of features**" in page


@pytest.mark.slow
def test_the_page_counts_triples():
    pytest.importorskip("torch")
    page = (Path(__file__).parents[2] / "docs" / "trust.md").read_text(encoding="utf-8")
    cells, triples = covering(3)
    assert f"tries {len(cells):,} more, with all {len(triples):,} triples" in page
