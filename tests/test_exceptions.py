import ast
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import likewise
from likewise import AdditiveClassifier, LikewiseError, SmoothedClassifier, TableMetric, WeightedLp, audit
from likewise import exceptions as errors

BUILT_IN = {"ValueError", "TypeError", "RuntimeError", "ImportError", "KeyError", "OSError", "FileNotFoundError"}


def raised(source):
    """Names of the errors that a module raises."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
            yield node.exc.func.id


@pytest.mark.parametrize("path", sorted(Path(likewise.__file__).parent.rglob("*.py")), ids=lambda path: path.stem)
def test_what_is_raised_belongs_to_the_tree(path):
    assert BUILT_IN.isdisjoint(raised(path.read_text()))


def test_control_a_built_in_error_is_noticed():
    assert list(raised("def f():\n    raise ValueError('no')")) == ["ValueError"]


def test_the_tree_in_the_docstring_is_the_tree():
    lines = [
        line.split("──")[-1].split() for line in errors.__doc__.splitlines() if "Error" in line.split("──")[-1][:20]
    ]
    for name, *rest in (words for words in lines if words and words[0].endswith("Error")):
        kind = getattr(errors, name)
        assert issubclass(kind, LikewiseError)
        if rest and rest[0].startswith("("):
            assert rest[0].strip("()") in {base.__name__ for base in kind.__mro__}
    assert {words[0] for words in lines if words} >= {name for name in vars(errors) if name.endswith("Error")}


X, y = np.array([[0.0, 1], [1, 0], [2, 2], [3, 1]]), np.array([0, 1, 0, 1])
METRIC = WeightedLp([0.1, 0.2])


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: WeightedLp([-1.0]),
        lambda: TableMetric({"age": "x"}, {}),
        lambda: AdditiveClassifier("metric").fit(X, y),
        lambda: AdditiveClassifier(METRIC).fit(X, [0, 1]),
        lambda: AdditiveClassifier(METRIC).fit([["a", "b"]] * 4, y),
        lambda: AdditiveClassifier(METRIC).fit(X, y).predict_proba(X[:, :1]),
        lambda: AdditiveClassifier(METRIC).fit(X * np.nan, y),
        lambda: AdditiveClassifier(METRIC).fit(X, y, sample_weight=[1, 2]),
        lambda: AdditiveClassifier(METRIC).fit(X, [0.1, 0.2, 0.3, 0.4]),
        lambda: SmoothedClassifier(LogisticRegression, metric=METRIC).fit(X, y),
        lambda: audit(None, X, METRIC, predictions=[2, 0, 0, 0]),
        lambda: AdditiveClassifier(METRIC).predict_proba(X),
        lambda: AdditiveClassifier(METRIC).guarantee_,
        lambda: SmoothedClassifier(LogisticRegression(), metric=METRIC).noise_,
        lambda: AdditiveClassifier(METRIC, penalty=0.1).fit(X, y).decide(X, random_state="seed"),
    ],
)
def test_bad_input_is_a_likewise_error(wrong):
    with pytest.raises(LikewiseError):
        wrong()


def test_an_estimator_that_is_not_fitted_says_so_as_scikit_learn_does():
    with pytest.raises(NotFittedError, match="This AdditiveClassifier instance is not fitted yet"):
        AdditiveClassifier(METRIC).predict_proba(X)
    assert not hasattr(AdditiveClassifier(METRIC), "guarantee_")


def test_a_seed_that_is_none_is_refused_with_the_rule():
    with pytest.raises(ValueError, match=r"random_state must be a whole number .* or None; got 'seed'"):
        AdditiveClassifier(METRIC, penalty=0.1).fit(X, y).decide(X, random_state="seed")
