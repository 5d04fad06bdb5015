"""Domains: learned, edited, written, read, and who is in them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import Domain, TableMetric, attack, read_metric, write_metric
from likewise.exceptions import FileError, InvalidInputError
from likewise.kernel.schema import TableEncoder
from likewise.metric_file import MetricFile, format_metric, read_metric_file
from likewise.verification.base import InputSpace
from likewise.verification.domain import CategoricalDomain, NumericDomain, Rule

PEOPLE = pd.DataFrame(
    {
        "age": [19, 40, 64],
        "debt": [10.5, 20.25, np.nan],
        "income": [100.0, 30.0, 55.5],
        "rate": [0.07, 0.03, 0.29],
        "height": [np.pi, 1.7, 1.8],
        "sex": ["f", "m", None],
    }
)


def test_what_is_learned():
    found = Domain.learn(PEOPLE).columns
    assert found["age"] == NumericDomain(19, 64, 1)
    assert found["debt"] == NumericDomain(10.5, 20.25, 0.25, blank=True)
    assert found["rate"] == NumericDomain(0.03, 0.29, 0.01)
    assert found["height"].step is None
    assert found["sex"] == CategoricalDomain(("f", "m"), blank=True)
    assert Domain.learn(PEOPLE, ["age"]).columns["age"] == CategoricalDomain((19, 40, 64))
    assert Domain.learn(PEOPLE).holds(PEOPLE).all()


def test_numbers_on_a_grid_are_the_decimals_themselves():
    cents = NumericDomain(0, 1, 0.01)
    values = cents.at(np.arange(cents.first, cents.last + 1)).tolist()
    assert values == [float(f"0.{i:02d}") for i in range(100)] + [1.0]


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.sampled_from([None, 1.0, 0.5, 0.01]), st.floats(-2e6, 2e6))
def test_the_nearest_value_is_in_the_domain(a, b, step, value):
    low, high = min(a, b), max(a, b) + 2
    held = NumericDomain(low, high, step)
    nearest = held.nearest(np.array([value, np.nan]))
    assert held.holds(nearest).all()
    assert held.at(np.array([held.first]))[0] >= low - 1e-6
    assert held.at(np.array([held.last]))[0] <= high + 1e-6


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_positions_of_floats_ascend_with_them(a, b):
    held = NumericDomain(min(a, b), max(a, b))
    assert held.at(np.array([held.first, held.last])).tolist() == [min(a, b), max(a, b)]
    assert held.first <= held.last
    assert (held.first == held.last) == (a == b)


@pytest.mark.parametrize(
    ("text", "coefficients", "bound"),
    [
        ("debt <= income", {"debt": 1, "income": -1}, 0),
        ("debt >= income", {"debt": -1, "income": 1}, 0),
        ("2 * debt + 3 <= income - 4", {"debt": 2, "income": -1}, -7),
        ("debt >= 3", {"debt": -1}, -3),
        ("debt + 2 >= income - 4", {"debt": -1, "income": 1}, 6),
        ("2 - debt == 1", {"debt": -1}, -1),
        ("debt + 2 * debt - income <= 3 * income - debt", {"debt": 4, "income": -4}, 0),
        ("`other costs` + 0.5 rent <= 1e3", {"other costs": 1, "rent": 0.5}, 1000),
    ],
)
def test_rules_are_read(text, coefficients, bound):
    rule = Rule.parse(text)
    assert dict(rule.coefficients) == coefficients
    assert rule.bound == bound
    assert Rule.parse(str(rule)) == rule


@pytest.mark.parametrize(
    "text", ["debt", "debt < income", "debt <= income <= rent", "debt * income <= 1", "1 <= 2", "<= 3"]
)
def test_rules_that_are_none(text):
    with pytest.raises(InvalidInputError, match="A rule must"):
        Rule.parse(text)


def test_a_rule_about_one_member_of_a_set_leaves_it_a_set():
    kinds = ["kind_a", "kind_b", "kind_c"]
    X = pd.DataFrame(np.eye(3)[np.arange(60) % 3], columns=kinds).assign(age=30.0)
    columns = {"age": NumericDomain(0, 99, 1), **dict.fromkeys(kinds, NumericDomain(0, 1, 1))}
    one, two = (Domain(columns).with_rules(r).with_one_hot(X) for r in ("20 * kind_a <= age", "kind_a + kind_b <= 2"))
    assert [[*each.members] for each in one.one_hot] == [kinds]
    assert two.one_hot == []  # it says that both may be 1


def test_rules_hold_for_people_of_whom_all_is_known():
    domain = Domain.learn(PEOPLE).with_rules("debt <= 0.5 * income")
    assert domain.holds(PEOPLE).tolist() == [True, False, True]
    assert [str(rule) for rule in Domain.learn(PEOPLE).orders(PEOPLE)] == ["debt - age <= 0"]
    equal = PEOPLE.assign(debt=PEOPLE["debt"].where(PEOPLE["debt"] < PEOPLE["debt"].max(), PEOPLE["age"]))
    assert [str(rule) for rule in Domain.learn(equal).orders(equal)] == ["debt - age <= 0"]


def test_errors_name_the_column_and_the_cure():
    with pytest.raises(InvalidInputError, match="low must be at most high"):
        NumericDomain(2, 1)
    with pytest.raises(InvalidInputError, match="multiple of step"):
        NumericDomain(0.1, 0.2, 1)
    with pytest.raises(InvalidInputError, match="no column 'x'"):
        Domain.learn(PEOPLE).with_column("x", low=1)
    with pytest.raises(TypeError, match="takes"):
        Domain.learn(PEOPLE).with_column("sex", low=1)
    with pytest.raises(InvalidInputError, match="columns of numbers"):
        Domain.learn(PEOPLE).with_rules("sex <= age")


METRIC = TableMetric({"age": 0.01, "debt": 0.01, "income": 0.01}, {"sex": 0}, missing="category")


def test_a_domain_is_kept_in_the_metric_file(tmp_path):
    domain = Domain.learn(PEOPLE[["age", "debt", "income", "sex"]]).with_rules("debt <= income")
    path = tmp_path / "metric.toml"
    write_metric(MetricFile(METRIC, protected=("sex",), domain=domain), path)
    assert read_metric(path) == METRIC
    found = read_metric_file(path).domain
    assert found == domain
    assert format_metric(read_metric_file(path)) == path.read_text()
    edited = path.read_text().replace("low = 19", "low = 18")
    path.write_text(edited)
    assert read_metric_file(path).domain.columns["age"].low == 18


@pytest.mark.parametrize(
    ("was", "becomes", "match"),
    [
        ("age = {low = 19, high = 64, step = 1}", "age = {low = 99, high = 64}", r"line \d+: 'age' must have"),
        ("age = {low = 19, high = 64, step = 1}", "age = 3", r"line \d+: 'age' must be like"),
        ("age = {low = 19, high = 64, step = 1}", "age = {from = 3}", r"line \d+: 'age' must have"),
        ("debt - income <= 0", "debt < income", r"line \d+: A rule must"),
    ],
)
def test_mistakes_in_a_file_are_told_with_their_line(tmp_path, was, becomes, match):
    path = tmp_path / "metric.toml"
    domain = Domain.learn(PEOPLE[["age", "debt", "income", "sex"]]).with_rules("debt <= income")
    text = format_metric(MetricFile(METRIC, domain=domain))
    assert was in text
    path.write_text(text.replace(was, becomes))
    with pytest.raises(FileError, match=match):
        read_metric_file(path)


def model(table):
    """Sex counts in one corner: for people above 50 with debts."""
    corner = (table["age"] > 50) & (table["debt"] > 15) & (table["sex"] == "m")
    return 0.3 + 0.005 * (table["age"] - 19) * (table["income"] > 50) + 0.4 * corner


@pytest.fixture
def applicants():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(19, 65, 300),
            "debt": rng.integers(0, 30, 300).astype(float),
            "income": rng.integers(30, 100, 300).astype(float),
            "sex": rng.choice(["f", "m"], 300),
        }
    )


def test_an_attack_stays_in_the_domain_and_in_the_columns(applicants):
    metric = TableMetric(METRIC.numeric, METRIC.categorical)
    found = attack(model, metric, applicants, only=["sex"], n_pairs=20_000, random_state=0)
    a, b = found.pair.iloc[0], found.pair.iloc[1]
    assert found.difference == pytest.approx(0.4)
    assert {name for name in applicants if a[name] != b[name]} == {"sex"}
    assert Domain.learn(applicants).holds(found.pair).all()


def test_an_attack_keeps_rules(applicants):
    metric = TableMetric(METRIC.numeric, METRIC.categorical)
    domain = Domain.learn(applicants).with_rules("age <= 45")
    found = attack(model, metric, applicants, domain=domain, n_pairs=20_000, random_state=0)
    assert domain.holds(found.pair).all()
    assert found.difference < 0.39
    with pytest.raises(InvalidInputError, match="only must list columns of X"):
        attack(model, metric, applicants, only=["race"], n_pairs=1000)
    with pytest.raises(InvalidInputError, match="domain must say"):
        attack(model, metric, applicants, domain=Domain.learn(applicants[["age"]]), n_pairs=1000)


def test_numbers_of_a_domain_are_listed_for_a_metric_that_takes_them_as_categories():
    codes = TableEncoder.learn(pd.DataFrame({"code": [3, 1], "age": [19, 20]}), ["age"], ["code"]).columns
    domain = Domain({"code": NumericDomain(1, 3, 0.5, blank=True), "age": NumericDomain(19, 20, 1)})
    listed = domain.listing(codes)
    assert listed.columns["code"] == CategoricalDomain((1, 1.5, 2, 2.5, 3), blank=True)
    assert listed.columns["age"] == domain.columns["age"]
    with pytest.raises(InvalidInputError, match="'code', which the metric takes as categories"):
        domain.with_column("code", step=None).listing(codes)


@pytest.mark.parametrize(("high", "step"), [(223696.36, 0.01), (16777.224, 0.001), (1e9 + 0.25, 0.25), (0.07, 0.01)])
def test_the_ends_of_a_fine_grid_are_in_it(high, step):
    learned = NumericDomain.learn(pd.Series([0.0, high]))
    assert (learned.low, learned.high) == (0.0, high)
    for domain in (learned, NumericDomain(0.0, high, step, False), NumericDomain(-high, 0.0, step, False)):
        assert domain.at(domain.last) == domain.high
        assert domain.at(domain.first) == domain.low
    assert NumericDomain.learn(pd.Series([high, high])).first == NumericDomain.learn(pd.Series([high, high])).last


@pytest.mark.parametrize("step", [0.1, 0.01, 0.3, 0.25, 2.5, 1.0])
def test_a_domain_holds_what_it_enumerates_and_nothing_next_to_it(step):
    held = NumericDomain(0, 100 * step, step)
    values = held.at(np.arange(held.first, held.last + 1))
    assert [float(f"{value:.6g}") for value in values.tolist()] == values.tolist()  # as decimals are read
    assert held.holds(values).all()
    for away in (-np.inf, np.inf):
        assert not held.holds(np.nextafter(values, away)).any()


def test_sums_of_decimals_have_no_grid():
    assert NumericDomain.learn(pd.Series([0.1, 0.3])).step == 0.1
    assert NumericDomain.learn(pd.Series([0.1, 0.1 + 0.2])).step is None


def test_a_domain_of_categories_knows_how_blanks_are_written():
    column = pd.Series(["u", None, "v", None], dtype=object)
    assert CategoricalDomain.learn(column).blanks == (None,)
    assert [*map(str, CategoricalDomain.learn(column.fillna(np.nan)).blanks)] == ["nan"]
    assert CategoricalDomain.learn(pd.Series(["u"])).blanks == ()


@pytest.mark.parametrize("size", [1.0, 1e7])
def test_a_rule_holds_for_sums_of_decimals_that_are_rounded(size):
    """3e9 tenths and as many more are their sum, whatever their floats add up to; one more is not."""
    rng = np.random.default_rng(0)
    tenths = np.rint(rng.uniform(0, 50 * size, (500, 2)))
    both = tenths.sum(axis=1)
    X = pd.DataFrame({"a": tenths[:, 0] / 10, "b": tenths[:, 1] / 10, "c": both / 10})
    more = X.assign(c=both / 10 - 1)
    assert (X["a"] + X["b"] > X["c"]).any()
    for rule in ("a + b <= c", "a + b == c"):
        domain = Domain({name: NumericDomain(-0.1, 20 * size, 0.1) for name in "abc"}).with_rules(rule)
        space = InputSpace.of(lambda table: np.zeros(len(table)), X, domain=domain)
        for people, holds in ((X, True), (more, False)):
            assert (domain.keeps_rules(people.to_numpy(), ["a", "b", "c"]) == holds).all()
            assert (space.keeps_rules(people.to_numpy()) == holds).all()


def test_who_is_in_a_domain_does_not_depend_on_how_people_are_coded():
    """Blanks, steps, sums of columns, and 0/1 columns of which one is 1, as tables and as codes."""
    rng = np.random.default_rng(0)
    columns = {
        "a": NumericDomain(0.5, 8, 0.5, blank=True),
        "b": NumericDomain(-1, 4, blank=True),
        "kind": CategoricalDomain(("x", "y"), blank=True),
        **{name: NumericDomain(0, 1, 1) for name in ("red", "green", "blue")},
    }
    domain = Domain(columns).with_rules("a <= 2 * b + 3", "green + a <= 7", "red + green + blue == 1")
    n = 3000
    numbers = {"a": np.round(rng.uniform(-1, 9, n) * 4) / 4, "b": rng.uniform(-2, 5, n)}
    X = pd.DataFrame({name: np.where(rng.random(n) < 0.2, np.nan, values) for name, values in numbers.items()})
    X["kind"] = rng.choice(["x", "y", "z", None], n)
    X[["red", "green", "blue"]] = np.eye(3)[rng.integers(0, 3, n)]
    holds = domain.holds(X)
    space = InputSpace.of(lambda table: np.zeros(len(table)), X, domain=domain)
    assert [name for name, held in zip(space.names, space.held, strict=True) if "green" in str(held)]
    np.testing.assert_array_equal(space.holds(space.rows), holds)
    blank = X[["a", "b"]].isna().any(axis=1).to_numpy()
    for kind in (blank, ~blank):  # controls
        assert holds[kind].any()
        assert not holds[kind].all()


@pytest.mark.parametrize(("bits", "members"), [({}, "abc"), ({"a": (0, 0)}, "bc"), ({"b": (1, 1)}, "b")])
def test_the_one_of_a_set_is_a_member_that_may_be_1_beside_others_that_may_be_0(bits, members):
    columns = {name: NumericDomain(*bits.get(name, (0, 1)), 1) for name in "abc"}
    X = pd.DataFrame(np.eye(3), columns=[*"abc"]).iloc[[1, 1]]
    space = InputSpace.of(lambda table: np.zeros(len(table)), X, domain=Domain(columns).with_rules("a + b + c == 1"))
    assert [held.values for held in space.held] == [tuple(members)]
