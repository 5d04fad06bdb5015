"""Records of rounds: what they hold, what they refuse, and decisions recomputed from them by exact arithmetic."""

import json
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, ThresholdDecision, WeightedLp
from likewise._shared_draw import SharedDraw, key_commitment
from likewise.decisions.round_record import DecisionRule, RoundRecord
from likewise.exceptions import FileError, InvalidInputError

KEY = b"a key of 21 bytes...!"
RULES = {
    "chances": DecisionRule(("no", "yes")),
    "several": DecisionRule(("a", "b", "c")),
    "band": DecisionRule(("no", "yes"), (0.6,), 0.2, 1),
    "first class": DecisionRule(("yes", "no"), (0.45,), 0.3, 0),
    "grades": DecisionRule(("C", "B", "A"), (0.35, 0.6), 0.2, 1),
}


def scores_of(rule, n=300):
    """A table of scores as a model would give it: exact at the ends of bands, and anything else."""
    rng = np.random.default_rng(0)
    if not rule.thresholds:
        return pd.DataFrame(rng.dirichlet(np.ones(len(rule.labels)), n), columns=rule.names)
    ends = [t + sign * rule.width / 2 for t in rule.thresholds for sign in (-1, 1)]
    score = np.concatenate([[0.0, 1.0, *ends, *rule.thresholds], rng.random(n)])
    table = pd.DataFrame({"score": score})
    reached = [
        np.ones(len(score)),
        *(np.clip((score - t) / rule.width + 0.5, 0, 1) for t in rule.thresholds),
        0 * score,
    ]
    for k, name in enumerate(rule.names):
        table[name] = reached[k] - reached[k + 1]
    return table[rule.columns]


def test_one_probability_outside_of_0_and_1_is_a_fault_though_they_add_up():
    rule = RULES["several"]
    wrong = pd.DataFrame([[0.6, 0.6, -0.2], [1.25, -0.5, 0.25], [0.5, 0.25, 0.25]], columns=rule.names)
    assert rule.faults(wrong).tolist() == [True, True, False]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_decisions_are_those_of_one_cut_off_in_each_band(rule):
    """The cut-off is a share 1 - u below the upper end of each band: who is above it has reached the next grade."""
    table = scores_of(rule)
    assert not rule.faults(table).any()
    for i in range(20):
        draw = SharedDraw.from_key(KEY, str(i))
        found = rule.choose(table, draw).tolist()
        if not rule.thresholds:
            assert found == draw.choose(table.to_numpy(), rule.labels).tolist()
            continue
        u, width = Fraction(draw.uniform), Fraction(rule.width)
        for score, grade in zip(table["score"], found, strict=True):
            cuts = [Fraction(t) + width * (u - Fraction(1, 2)) for t in rule.thresholds]
            sure = all(abs(Fraction(score) - cut) > Fraction(1, 10**12) for cut in cuts)
            assert not sure or grade == sum(Fraction(score) > cut for cut in cuts)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_each_number_that_a_model_cannot_have_given_is_a_fault(rule):
    table = scores_of(rule)
    undecided = ((table[rule.names] > 0.1) & (table[rule.names] < 0.9)).sum(axis=1) >= 2
    inside = table.index[undecided][0]
    for name in rule.columns:
        for wrong in (np.nan, -1e-6, 1 + 1e-6, table.loc[inside, name] + 1e-6, table.loc[inside, name] - 1e-6):
            changed = table.copy()
            changed.loc[inside, name] = wrong
            assert np.flatnonzero(rule.faults(changed)).tolist() == [inside], (name, wrong)
    # Two chances that are exchanged still add up to 1: with a score beside them, it shows.
    changed = table.copy()
    first, second = rule.names[-2:]
    row = (changed[first] - changed[second]).abs().argmax()
    changed.loc[row, [first, second]] = changed.loc[row, [second, first]].to_numpy()
    assert rule.faults(changed)[row] == bool(rule.thresholds)


def test_the_rule_of_a_model_scores_people_as_the_model_decides():
    X = np.random.default_rng(0).uniform(-2, 2, (200, 2))
    card = AdditiveClassifier(WeightedLp([0.4, 0.1]), penalty=0.01).fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    bands = {"threshold": [0.4, 0.6], "width": 0.1, "grades": ["C", "B", "A"]}
    for model in (
        card,
        ThresholdDecision.from_model(card, threshold=0.5, width=0.3),
        ThresholdDecision.from_model(card, threshold=0.4, width=0.3, favourable="no"),
        ThresholdDecision.from_model(card, **bands, favourable="no"),
    ):
        rule, draw = DecisionRule.of(model), SharedDraw.from_key(KEY, "r")
        table = rule.scores(model, X)
        assert not rule.faults(table).any()
        decided = [rule.labels[k] for k in rule.choose(table, draw)]
        assert decided == model.decide(X, round="r", key=KEY).tolist()
        by_class = pd.DataFrame(model.predict_proba(X), columns=[f"p_{label}" for label in model.classes_])
        np.testing.assert_allclose(table[by_class.columns], by_class, rtol=0, atol=1e-15)


def record(rule=RULES["grades"]):
    draw = SharedDraw.from_key(KEY, "2026-11-17")
    digests = {"kept": ("id",), "model": "aa", "table": "bb", "decisions": "cc"}
    found = RoundRecord(draw.round, key_commitment(KEY), draw.commitment, draw.opening.hex(), rule, 200, **digests)
    return found.sealed(KEY)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_record_is_the_same_after_writing_and_reading(rule):
    text = record(rule).to_json()
    assert RoundRecord.from_json(text, "a file") == record(rule)
    assert RoundRecord.from_json(text, "a file").draw == SharedDraw.from_key(KEY, "2026-11-17")
    assert RoundRecord.from_json(text, "a file").changes(KEY) is None


@pytest.mark.parametrize(
    "change",
    [
        {"format": "likewise round 3"},
        {"round": 3},
        {"opening": None},
        {"draw_commitment": 1},
        {"more": 1},
        {"rule": {"labels": [1, 2], "thresholds": []}},
        {"rule": {"labels": 3, "thresholds": []}},
        {"rule": {"thresholds": []}},
    ],
    ids=str,
)
def test_what_is_no_record_is_refused(change):
    with pytest.raises(FileError, match="a file must be a record of a round"):
        RoundRecord.from_json(json.dumps(json.loads(record().to_json()) | change), "a file")


@pytest.mark.parametrize("change", [{"round": "2026-11-18"}, {"opening": "00" * 32}, {"draw_commitment": "00" * 32}])
def test_a_draw_that_was_not_committed_to_is_refused(change):
    with pytest.raises(InvalidInputError, match="must be the one committed to"):
        _ = replace(record(), **change).draw


@pytest.mark.parametrize("name", [field.name for field in fields(RoundRecord)])
def test_whatever_is_changed_shows_in_the_digest_and_with_the_key_even_where_that_is_written_anew(name):
    """Another rule, file, person or round: whoever has no key can compute a digest, and no seal."""
    others = {"rule": RULES["band"], "n_people": 199, "kept": ("name",)}
    changed = replace(record(), **{name: others.get(name, "00" * 32)})
    assert changed.changes() is not None
    forged = replace(changed, digest=changed._digest)
    assert (forged.changes() is None, forged.changes(KEY) is None) == (True, name == "digest")
