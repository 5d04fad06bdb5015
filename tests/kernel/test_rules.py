"""Each rule refuses falsified evidence, whoever made it, and lets the honest pass."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from likewise import (
    AdditiveClassifier,
    Gaussian,
    ProjectedClassifier,
    RecalibratedClassifier,
    SmoothedClassifier,
    TableMetric,
    ThresholdDecision,
    WeightedLp,
    load_model,
    save_model,
)
from likewise.dummy import ConstantClassifier, ConstantRegressor
from likewise.exceptions import FileError, InvalidInputError, UnprovableError
from likewise.kernel import rules
from likewise.kernel.bounds import Bound
from likewise.kernel.concentration import FixedDraws
from likewise.kernel.evidence import Layers
from likewise.kernel.guarantee import Guarantee
from likewise.lipschitz.network import WeightedSamples, enforce_slope, read_columns
from parts import of_parts

N = 120
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(int)
METRIC = WeightedLp([0.3, 0.1])
TABLE = pd.DataFrame({"age": X[:, 0], "debt": np.where(X[:, 1] > 1, np.nan, X[:, 1]), "job": np.where(Y, "a", "b")})
TABLE_METRIC = TableMetric({"age": 0.3, "debt": 0.2}, {"job": 0.3}, missing={"debt": 0.4})
CODED, CODED_METRIC = (
    TABLE.assign(age=TABLE["age"].where(TABLE["age"] < 1.2, -99)),
    TABLE_METRIC.with_params(special={"age": {-99: 0.2, -98: 0.1}}),
)
GROUPED = TableMetric({"age": 0.3}, {"job": 0.3}, groups={"job": {"within": 0.2, "groups": [["a", "b"]]}})


def forged(evidence, **changes):
    """The same with other numbers, as a file could hold them."""
    found = copy.copy(evidence)
    for name in list(found.__dict__):  # what was computed from the old ones
        if name not in type(evidence).__dataclass_fields__:
            del found.__dict__[name]
    found.__dict__.update(changes)
    return found


def refused(rule, *evidence):
    with pytest.raises((UnprovableError, InvalidInputError)) as error:
        rule(*evidence)
    return str(error.value)


# -- the seal ----------------------------------------------------------------------------------------------------------


def test_nobody_makes_a_guarantee_by_hand_nor_changes_one():
    honest = ConstantClassifier(METRIC).fit(X, Y).guarantee_
    with pytest.raises(UnprovableError, match="made by hand"):
        Guarantee(honest.bound_metric, Bound(), "exact", "Because I say so.")
    with pytest.raises(UnprovableError, match="made by hand"):
        replace(honest, level="exact")
    with pytest.raises(AttributeError):
        honest.slack = 0.0


# -- constant ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", [[0.5, 0.6], [np.nan, 1.0], [-0.1, 1.1]])
def test_a_constant_that_is_no_distribution_is_refused(output):
    scorer = ConstantClassifier(METRIC).fit(X, Y).scorer_
    assert scorer.prove().level == "exact"
    refused(forged(scorer, output=np.array(output)).prove)


def test_a_constant_outside_its_range_is_refused():
    scorer = ConstantRegressor(METRIC, output_range=(0.0, 2.0)).fit(X, Y).scorer_
    assert scorer.prove().output_range == (0.0, 2.0)
    refused(forged(scorer, output=np.array([3.0])).prove)
    refused(forged(scorer, output_range=(2.0, 0.0)).prove)


# -- cards -------------------------------------------------------------------------------------------------------------


def card(metric=CODED_METRIC, points=False):
    model = AdditiveClassifier(metric, penalty=1e-4).fit(CODED if metric.special else TABLE, Y)
    return (model.in_points() if points else model).scorer_


def with_shape(scorer, kind, **changes):
    """One shape of this kind with other numbers."""
    pick = {
        "code": lambda s: s.special is not None,
        "number": lambda s: s.knots is not None,
        "blank": lambda s: s.other is not None and s.knots is not None,
    }
    shapes = list(scorer.model.shapes)
    k = next(i for i, s in enumerate(shapes) if pick.get(kind, lambda s: s.knots is None)(s))
    shapes[k] = replace(shapes[k], **{name: change(getattr(shapes[k], name)) for name, change in changes.items()})
    return forged(scorer, model=replace(scorer.model, shapes=tuple(shapes)))


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("number", {"values": lambda v: 20 * v}),  # steeper
        ("number", {"knots": lambda k: 0.01 * k}),
        ("number", {"knots": lambda k: k[::-1].copy()}),
        ("number", {"values": lambda v: np.where(np.arange(v.shape[1]), v, np.nan)}),
        ("code", {"special": lambda v: v + np.array([[1e4, 0]])}),  # a special code further than it costs
        ("code", {"special": lambda v: v * np.nan}),
        ("code", {"special": lambda v: v[:, :1]}),  # one of two without points
        ("code", {"special": lambda v: None}),
        ("blank", {"other": lambda v: v + 1e4}),  # a blank further than it costs
        ("blank", {"other": lambda v: None}),  # and one without points
        ("job", {"values": lambda v: v * [[1e3, -1e3]] - 1e3}),
        ("job", {"other": lambda v: v + 1e4}),  # unseen categories count too
        ("job", {"column": lambda i: 0}),  # a category in the place of a number
        ("number", {"column": lambda i: 7}),
        ("number", {"column": lambda i: -1}),
    ],
)
def test_a_card_that_uses_more_than_the_metric_allows_is_refused(kind, changes, points):
    scorer = card(points=points)
    assert scorer.prove().epsilon == 0
    refused(with_shape(scorer, kind, **changes).prove)


def test_special_codes_that_are_too_far_from_each_other_are_refused():
    """Each is within its distance of every number: 0.8 and 0.4 in log-odds; they may be 0.8 apart."""
    scorer, flat = card(), {"values": lambda v: 0 * v}
    allowed = with_shape(scorer, "code", special=lambda v: np.array([[0.5, -0.25]]), **flat)
    assert allowed.prove().epsilon == 0
    apart = with_shape(scorer, "code", special=lambda v: np.array([[0.625, -0.25]]), **flat)
    assert "of what the metric allows" in refused(apart.prove)


def test_a_card_under_another_exponent_is_refused():
    """For p > 1 columns that are steep together move a score by more than the distance."""
    scorer = AdditiveClassifier(WeightedLp([0.3, 0.2]), penalty=1e-4).fit(X, Y).scorer_
    assert scorer.prove().epsilon == 0
    other = WeightedLp([0.3, 0.2], p=2).bind(scorer.model.metric.schema)
    assert "p = 1" in refused(forged(scorer, model=forged(scorer.model, metric=other)).prove)


def test_a_card_of_another_link_scale_or_grid_is_refused():
    scorer, whole = card(), card(points=True)
    assert "too coarse" in refused(forged(scorer, model=replace(scorer.model, bits=3)).prove)
    assert "link" in refused(forged(scorer, link="logit").prove)
    refused(forged(scorer, link="clip").prove)  # a unit of 1 for one of 4
    refused(forged(whole, points_to_double=whole.points_to_double / 3).prove)
    refused(forged(scorer, model=replace(scorer.model, shapes=2 * scorer.model.shapes)).prove)  # slopes that add up
    refused(forged(scorer, model=replace(scorer.model, intercepts=np.array([np.inf]))).prove)


def test_a_card_for_a_wider_metric_is_refused():
    """The same numbers under half the weights; a metric comes with the evidence, so a file has to hold it."""
    scorer = card()
    stricter = CODED_METRIC.scaled(0.5).bind(scorer.model.metric.schema)
    assert "of what the metric allows" in refused(forged(scorer, model=replace(scorer.model, metric=stricter)).prove)


def test_a_card_says_how_much_of_its_metric_it_uses():
    scorer = card()
    looser = CODED_METRIC.scaled(1.06).bind(scorer.model.metric.schema)
    assert "these use all of the slope" in scorer.prove().basis
    assert "these use 94.4% of" in forged(scorer, model=replace(scorer.model, metric=looser)).prove().basis


def test_levels_further_apart_than_their_group_allows_are_refused():
    scorer = AdditiveClassifier(GROUPED, penalty=1e-4).fit(TABLE[["age", "job"]], Y).scorer_
    assert scorer.prove().level == "exact"
    refused(with_shape(scorer, "job", values=lambda v: v + np.array([[0.0, 0.5]])).prove)


# -- metrics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "table",
    [
        [[0, 0.5, 1], [0.4, 0, 1], [1, 1, 0]],  # not symmetric
        [[0, -0.5, 1], [-0.5, 0, 1], [1, 1, 0]],
        [[0, np.nan, 1], [np.nan, 0, 1], [1, 1, 0]],
        [[0.1, 0.5, 1], [0.5, 0, 1], [1, 1, 0]],
    ],
)
def test_a_table_that_is_no_distance_is_refused(table):
    ones = np.ones(1), np.zeros(1, bool), np.full(1, np.nan)
    of_parts(*ones, 1.0, {0: np.array([[0, 0.5, 1], [0.5, 0, 1], [1, 1, 0]])})
    refused(of_parts, *ones, 1.0, {0: np.array(table, dtype=float)})


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_a_weight_that_is_none_is_refused(weight):
    with pytest.raises((UnprovableError, InvalidInputError)):
        rules.constant(of_parts([weight], [True], [np.nan]), np.array([0.5, 0.5]))


# -- layers ------------------------------------------------------------------------------------------------------------


def network():
    people = TABLE_METRIC.encode_rows(TABLE)
    metric = TABLE_METRIC.bind(people.encoder)
    inputs = read_columns(WeightedSamples.from_data(people.rows, Y.astype(float), None), np.arange(3), metric)
    rng = np.random.default_rng(1)
    first, weights = 9 * rng.normal(size=(int(inputs.starts[-1]), 4)), (9 * rng.normal(size=(4, 1)),)
    return enforce_slope(Layers(inputs, first, weights, (np.zeros(4), np.zeros(1))))


@pytest.mark.parametrize(
    "falsify",
    [
        lambda net: replace(net, first=1.1 * net.first),
        lambda net: replace(net, weights=(1.01 * net.weights[0],)),
        lambda net: replace(net, weights=(np.where(np.arange(4)[:, None], net.weights[0], np.nan),)),
        lambda net: replace(net, biases=(np.full(4, np.inf), net.biases[1])),
        lambda net: replace(net, first=net.first[:-1]),
        lambda net: replace(net, inputs=forged(net.inputs, columns=np.array([0, 0, 2]))),
        # Layers of another metric, in which a category and a blank cost half as much:
        lambda net: replace(
            net, inputs=forged(net.inputs, metric=TABLE_METRIC.scaled(0.5).bind(net.inputs.metric.schema))
        ),
        lambda net: replace(net, first=net.first + 0.9),
        lambda net: replace(net, inputs=forged(net.inputs, metric=CODED_METRIC.bind(net.inputs.metric.schema))),
    ],
)  # fmt: skip
def test_layers_that_are_steeper_than_their_metric_are_refused(falsify):
    honest = network()
    assert rules.layers(honest, "logistic").level == "exact"
    refused(rules.layers, falsify(honest), "logistic")


# -- envelopes ---------------------------------------------------------------------------------------------------------


def test_envelopes_that_move_by_more_than_the_distance_are_refused():
    model = ProjectedClassifier(LogisticRegression(), metric=METRIC, random_state=0).fit(X, Y)
    scorer = model.scorer_
    assert scorer.prove().epsilon == 0
    blend = scorer.blend
    for values in (scorer.values + 1.0, np.where(np.arange(len(scorer.values)), scorer.values, np.nan), np.empty(0)):
        refused(forged(scorer, values=values).prove)
    for changed in (replace(blend, lower=blend.lower + 0.1), replace(blend, base=-0.1, lower=blend.lower + 0.1)):
        refused(forged(scorer, blend=changed).prove)
    steep = AdditiveClassifier(METRIC.scaled(2)).fit(X, Y)
    assert "another metric" in refused(forged(scorer, base=steep).prove)
    smoothed = SmoothedClassifier(LogisticRegression(), metric=METRIC, n_draws=100, random_state=0).fit(X, Y)
    assert "exceed" in refused(forged(scorer, base=smoothed).prove)


def test_anchors_in_a_table_that_violates_the_triangle_inequality_are_refused():
    table = np.array([[0, 0.1, 1, 1], [0.1, 0, 0.1, 1], [1, 0.1, 0, 1], [1, 1, 1, 0.0]])
    metric = of_parts(np.ones(1), np.zeros(1, bool), np.full(1, np.nan), 1.0, {0: table})

    class Anchors:
        pass

    Anchors.metric = metric
    assert "triangle" in refused(rules.envelope, Anchors, np.array([0.5]), (0.0, 0.5, 0.5), None)


# -- noise -------------------------------------------------------------------------------------------------------------


def smoothed(noise="gaussian", metric=METRIC, people=X, model=None, **options):
    model = LogisticRegression() if model is None else model
    return SmoothedClassifier(model, metric=metric, noise=noise, random_state=0, **options).fit(people, Y).scorer_


class Codes:
    """A model that takes tables."""

    classes_ = np.array([0, 1])

    def __call__(self, people):
        return (people["age"] > 0).astype(int)


def mixed(noise="uniform"):
    return smoothed(noise, TABLE_METRIC, TABLE, Codes(), n_draws=200, batch=True)


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "uniform", "splitting"])
def test_noise_that_is_narrower_than_its_metric_is_refused(noise):
    scorer = mixed(noise)
    perturbation, excess = scorer.perturbation, scorer.guarantee.curve.excess
    assert scorer.guarantee.curve.bound(0.1) <= 0.1 + excess + 1e-12
    kind = type(perturbation.noise)
    for scales in ([0.303, 0.2], [0.2, 0.3]):  # a little narrower, and in another order
        narrow = forged(perturbation.numbers, noise=kind.for_metric(WeightedLp(scales)))
        assert "the metric needs" in refused(forged(scorer, perturbation=forged(perturbation, numbers=narrow)).prove)


@pytest.mark.parametrize(
    "changes",
    [
        lambda p: {"keep": np.minimum(1.0, p.keep + 0.2)},  # categories and blanks kept more often than they may be
        lambda p: {"visible": np.zeros(3, dtype=bool)},  # numbers without noise
        lambda p: {"visible": np.ones(3, dtype=bool)},
        lambda p: {"numbers": None},
        lambda p: {"keep": np.full_like(p.keep, np.nan)},
        lambda p: {"replaceable": np.zeros(3, dtype=bool), "keep": np.empty(0)},
    ],
)
@pytest.mark.parametrize("noise", ["uniform", "splitting"])
def test_perturbations_of_tables_that_keep_too_much_are_refused(noise, changes):
    scorer = mixed(noise)
    assert scorer.prove().level in ("sampled", "deterministic")
    false = forged(scorer.perturbation, **changes(scorer.perturbation))
    refused(forged(scorer, perturbation=false).prove)
    assert rules.exact_noise(scorer.perturbation).level == "exact"
    refused(rules.exact_noise, false)


def test_the_excess_of_a_splitting_is_counted_and_not_believed():
    scorer = smoothed("splitting", vote="soft", n_draws=200)
    boast = replace(scorer.perturbation.noise, excess=0.0)
    found = forged(scorer, perturbation=forged(scorer.perturbation, noise=boast)).prove()
    assert found.curve.excess == scorer.guarantee.curve.excess == 2 / 200


@pytest.mark.parametrize("draws", [(100, 0.0), (100, 1.0), (100, np.nan), (0, 0.001)])
def test_draws_that_cannot_be_are_refused(draws):
    scorer = smoothed(vote="soft", n_draws=100)
    assert scorer.prove().delta == 0.001
    with pytest.raises((UnprovableError, InvalidInputError)):
        forged(scorer, draws=FixedDraws(*draws, 2)).prove()


def test_noise_without_a_theorem_is_refused():
    class Wide(Gaussian):
        pass

    assert "no theorem" in refused(smoothed, Wide.for_metric(METRIC))


# -- what comes after a model ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        lambda m: {"knots": 0.5 * m.knots},  # twice as steep
        lambda m: {"values": m.values[::-1].copy()},
        lambda m: {"values": m.values + 1.0},
        lambda m: {"knots": m.knots[::-1].copy()},
        lambda m: {"values": np.full_like(m.values, np.nan)},
    ],
)
def test_an_isotonic_calibrator_that_is_too_steep_is_refused(changes):
    scorer = RecalibratedClassifier(AdditiveClassifier(METRIC, penalty=1e-3), random_state=0).fit(X, Y).scorer_
    assert scorer.prove().epsilon == 0
    refused(forged(scorer, map=forged(scorer.map, **changes(scorer.map))).prove)


def test_a_sigmoid_that_is_too_steep_or_without_log_odds_is_refused():
    card = AdditiveClassifier(METRIC, penalty=1e-3)
    scorer = RecalibratedClassifier(card, method="sigmoid", random_state=0).fit(X, Y).scorer_
    assert scorer.prove().odds_ratio(0.05) == pytest.approx(np.exp(0.2))
    for changes in ({"slope": 1.01}, {"slope": -0.1}, {"slope": np.nan}, {"shifts": np.array([0.0, np.inf])}):
        refused(forged(scorer, map=forged(scorer.map, **changes)).prove)
    sampled = smoothed(vote="soft", n_draws=100)
    assert "log-odds" in refused(forged(scorer, scorer=sampled).prove)


@pytest.mark.parametrize(
    "changes",
    [
        {"width": 0.0},
        {"width": 1.5},
        {"width": np.nan},
        {"thresholds": np.array([0.5, 0.55])},  # bands that overlap
        {"thresholds": np.array([1.2])},
        {"thresholds": np.array([np.nan])},
    ],
)
def test_bands_that_overlap_or_are_none_are_refused(changes):
    model = AdditiveClassifier(METRIC, penalty=1e-3).fit(X, Y)
    scorer = ThresholdDecision.from_model(model, threshold=0.6, width=0.2).scorer_
    assert scorer.prove().bound(0.05) == pytest.approx(np.tanh(0.05 * 0.2) / 0.2)
    refused(forged(scorer, **changes).prove)


@pytest.mark.parametrize(
    "other",
    [
        CODED_METRIC.scaled(0.5),
        CODED_METRIC.with_params(missing={"debt": 0.3}),
        CODED_METRIC.with_params(special={"age": {-99: 0.2}}),
        CODED_METRIC.with_params(special={"age": {-99: 0.2, -98: 0.2}}),
    ],
)
def test_a_guarantee_is_not_read_where_columns_cost_something_else(other):
    guarantee, turned = card().prove(), CODED_METRIC.encoder(CODED[["job", "debt", "age"]])
    assert rules.reread(guarantee, turned).bound_metric.schema.names == ["job", "debt", "age"]
    false = forged(guarantee.bound_metric)
    false.__dict__["description"] = other
    assert "cost something else" in refused(rules.reread, forged(guarantee, bound_metric=false), turned)


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_file_holds_numbers_and_the_guarantee_is_proven_when_it_is_read(tmp_path):
    model, path = AdditiveClassifier(TABLE_METRIC, penalty=1e-4).fit(TABLE, Y), tmp_path / "model.skops"
    save_model(model, path)
    assert load_model(path).guarantee_ == model.guarantee_
    model.scorer_ = forged(with_shape(model.scorer_, "number", values=lambda v: 20 * v), guarantee=model.guarantee_)
    assert model.guarantee_.level == "exact"  # nobody has looked yet
    save_model(model, path)
    with pytest.raises(FileError, match=r"outside its metric.*of what the metric allows"):
        load_model(path)
