"""The plot of an effect shows its numbers."""

import matplotlib as mpl
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.pipeline import make_pipeline

from likewise import EffectDisplay, effect
from likewise.exceptions import InvalidTypeError
from small_domain import one_hot, people

mpl.use("Agg")


def test_people_the_worst_pair_and_the_bound_are_shown():
    X, y = people(0)
    result = effect(make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=9)).fit(X, y), X, "sex")
    ax = EffectDisplay.from_effect(result).ax_
    assert sum(bar.get_height() for bar in ax.patches if hasattr(bar, "get_height")) >= len(X)
    places = [line.get_xdata()[0] for line in ax.lines]
    shown = [result.mean, result.on_people["effect"].max(), result.found, result.proven]
    assert places == pytest.approx([100 * each for each in shown])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[2] == f"worst pair found: {100 * result.found:.4g} points"
    assert float(labels[3].split("nobody in the domain is beyond ")[1].removesuffix(" points")) >= 100 * result.proven
    assert "sex alone" in ax.get_xlabel()


def test_without_a_proof_there_is_no_bound():
    X, y = people(0)
    model = make_pipeline(one_hot(), GradientBoostingClassifier(n_estimators=9)).fit(X, y)
    result = effect(lambda table: model.predict_proba(table)[:, 1], X, "sex", n_queries=500)
    ax = EffectDisplay.from_effect(result).ax_
    assert len(ax.lines) == 3
    with pytest.raises(InvalidTypeError, match="what effect returned"):
        EffectDisplay.from_effect(result.pair)


def test_if_no_pair_was_found_the_legend_says_so():
    X, y = people(0)
    result = effect(DummyClassifier().fit(X, y), X, "sex")
    labels = [text.get_text() for text in EffectDisplay.from_effect(result).ax_.get_legend().get_texts()]
    assert labels[2] == "no pair found whose outputs differ"
