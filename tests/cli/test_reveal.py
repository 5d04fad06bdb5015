import numpy as np
import pandas as pd
import pytest

from likewise.cli import training as commands
from likewise.exceptions import UnprovableError

RNG = np.random.default_rng(0)
X = pd.DataFrame({"age": RNG.normal(40, 10, 200), "job": RNG.choice(["a", "b"], 200)})
Y = np.where(X["age"] + RNG.normal(0, 5, 200) > 40, "yes", "no")


def test_a_logistic_model_is_read_exactly_and_a_forest_on_its_people():
    assert "exactly" in commands.reveal(X, Y, "logistic", 0).how
    found = commands.reveal(X, Y, "forest", 0)
    assert "200 distinct people" in found.how
    assert set(found.metric.columns) == {"age", "job"}


def test_only_what_cannot_be_proven_is_estimated(monkeypatch):
    def broken(model, X, **options):
        raise TypeError("unsupported operand")

    monkeypatch.setattr(commands, "minimal_metric", broken)
    with pytest.raises(TypeError, match="unsupported operand"):
        commands.reveal(X, Y, "logistic", 0)

    def unproven(model, X, **options):
        raise UnprovableError("no constant")

    monkeypatch.setattr(commands, "minimal_metric", unproven)
    assert "For other people it is an estimate" in commands.reveal(X, Y, "logistic", 0).how


def test_a_few_blanks_do_not_change_the_method_nor_the_weights():
    rng = np.random.default_rng(1)
    full = X.assign(income=rng.normal(30, 8, 200))
    holes = full.assign(income=full["income"].where(np.arange(200) % 100 > 0))
    one, other = (commands.reveal(table, Y, "logistic", 0) for table in (full, holes))
    assert one.exact
    assert other.exact
    for part in ("numeric", "categorical"):
        before, after = (dict(getattr(found.metric, part)) for found in (one, other))
        assert after == pytest.approx(before, rel=0.2, abs=0.002)
    assert other.metric.missing["income"] >= other.metric.numeric["income"] * np.ptp(holes["income"].dropna()) / 2
    assert not one.metric.missing
