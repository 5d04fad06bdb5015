"""Each rule of proofs refuses falsified evidence, whoever made it, and lets the honest pass."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from likewise.exceptions import UnprovableError
from likewise.kernel.proof import Claim, Proof, Searched, against, at_most, by_boxes, by_formula, unproven

PEOPLE = SimpleNamespace(holds=lambda rows: (rows[:, 0] >= 0) & (rows[:, 0] <= 1))
CLAIM = Claim(PEOPLE, (1,), shares=True)
PAIR = np.array([0.5, 0.0, np.nan]), np.array([0.5, 3.0, np.nan])
SEARCHED = Searched(0.2, 0.3, 9, ((1, -np.inf, 0.9), (4, 0.2, 0.5), (9, 0.2, 0.3)), False)


def refused(rule, *evidence):
    with pytest.raises(UnprovableError) as error:
        rule(*evidence)
    return str(error.value)


def test_nobody_makes_a_proof_by_hand_nor_changes_one():
    honest = by_formula(CLAIM, 0.3, "a formula", [PAIR])
    assert "made by hand" in refused(Proof, 0.1, "Because I say so.")
    with pytest.raises(UnprovableError, match="made by hand"):
        replace(honest, proven=0.1)
    with pytest.raises(AttributeError):
        honest.proven = 0.1
    assert copy.copy(honest).proven == honest.proven


# -- by_formula --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.0, 1e-9, 0.3, 1 - 1e-9])
@pytest.mark.parametrize("unit", [0.0, 2.0**-24])
def test_a_bound_is_rounded_outwards(size, unit):
    proof = by_formula(replace(CLAIM, unit=unit), size, "a formula")
    assert size + 8 * unit * (size < 0.9) < proof.proven <= min(1.0, size + 1e-11 + 9 * unit)


def test_a_share_is_at_most_all_and_a_number_has_no_limit():
    assert by_formula(CLAIM, 1.7, "a formula").proven == 1
    assert by_formula(replace(CLAIM, shares=False), 1.7, "a formula").proven > 1.7


@pytest.mark.parametrize("size", [np.nan, np.inf, -0.1])
def test_a_number_that_is_no_difference_proves_nothing(size):
    assert "is none" in refused(by_formula, CLAIM, size, "a formula")


@pytest.mark.parametrize("how", ["", "  ", None])
def test_a_proof_says_how_and_its_absence_why(how):
    assert "how, or why not" in refused(by_formula, CLAIM, 0.1, how)
    assert "how, or why not" in refused(by_boxes, CLAIM, SEARCHED, how)
    assert "how, or why not" in refused(unproven, how)


@pytest.mark.parametrize(
    ("pair", "why"),
    [
        ((PAIR[0] + [1, 0, 0], PAIR[1] + [1, 0, 0]), "not of the domain"),
        ((PAIR[0], PAIR[1] + [0.1, 0, 0]), "other columns"),
        ((PAIR[0], np.array([0.5, 3.0, 0.0])), "other columns"),
    ],
)
def test_pairs_are_people_of_the_domain_who_share_the_other_columns(pair, why):
    assert by_formula(CLAIM, 0.3, "a formula", [PAIR]).pairs == (PAIR,)
    assert why in refused(by_formula, CLAIM, 0.3, "a formula", [PAIR, pair])
    assert why in refused(by_boxes, CLAIM, SEARCHED, "boxes", [pair])


def test_a_claim_without_columns_or_with_a_wrong_unit_is_none():
    refused(by_formula, replace(CLAIM, columns=()), 0.3, "a formula")
    refused(by_formula, replace(CLAIM, unit=np.nan), 0.3, "a formula")
    refused(by_formula, replace(CLAIM, unit=-1.0), 0.3, "a formula")


# -- by_boxes ----------------------------------------------------------------------------------------------------------


def test_a_search_proves_its_largest_bound():
    proof = by_boxes(CLAIM, SEARCHED, "boxes", [PAIR])
    assert 0.3 < proof.proven < 0.3 + 1e-11
    assert (proof.n_boxes, proof.history, proof.stopped) == (9, SEARCHED.history, False)
    nobody = replace(SEARCHED, found=-np.inf, bound=-np.inf, history=())
    assert by_boxes(CLAIM, nobody, "boxes").proven < 1e-12  # a domain in which nobody is


@pytest.mark.parametrize(
    "changes",
    [
        {"bound": np.nan},
        {"bound": np.inf},
        {"found": np.nan},
        {"n_boxes": 0, "history": ()},
        {"history": ((1, 0.1, 0.3), (4, 0.1, 0.5), (9, 0.2, 0.3))},  # rose
        {"history": ((1, 0.2, 0.9), (4, 0.1, 0.5), (9, 0.2, 0.3))},  # forgot what was found
        {"history": ((5, 0.1, 0.9), (4, 0.1, 0.5))},
        {"history": ((1, 0.1, 0.25),)},  # below the end
        {"history": ((1, 0.1, np.nan),)},
    ],
    ids=str,
)
def test_a_search_that_cannot_have_been_proves_nothing(changes):
    refused(by_boxes, CLAIM, replace(SEARCHED, **changes), "boxes")


def test_a_bound_below_what_the_search_found_is_none():
    proof = by_boxes(CLAIM, replace(SEARCHED, bound=0.19), "boxes", [PAIR])
    assert proof.proven is None
    assert "exceed what follows" in proof.how
    assert not proof.pairs


def test_the_closer_of_two_bounds_counts():
    assert at_most(SEARCHED, 0.25).bound == 0.25
    assert at_most(SEARCHED, 0.35) is SEARCHED
    assert by_boxes(CLAIM, at_most(SEARCHED, 0.1), "boxes").proven is None  # below what was found
    assert at_most(replace(SEARCHED, bound=np.nan), 0.25).bound == 0.25


# -- against -----------------------------------------------------------------------------------------------------------


def test_a_proof_that_a_pair_contradicts_is_none():
    proof = by_formula(CLAIM, 0.3, "a formula")
    assert against(proof, 0.3) is proof
    assert against(unproven("no reader"), 0.9).how == "no reader"
    gone = against(proof, 0.31)
    assert gone.proven is None
    assert "please report" in gone.how


@pytest.mark.parametrize(
    ("proof", "found"),
    [
        (SimpleNamespace(proven=0.1, how="trust me"), 0.05),
        (0.1, 0.05),
        (None, 0.05),
        (by_formula(CLAIM, 0.3, "a formula"), np.nan),
    ],
)
def test_only_a_proof_is_held_against_a_number(proof, found):
    assert "held against" in refused(against, proof, found)
