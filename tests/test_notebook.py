"""The notebook shows what its code gives."""

import ast
import json
import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parent.parent / "examples" / "first_look.ipynb"
NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


def shown(source, names):
    """What a notebook shows of a cell: the value of its last line."""
    *lines, last = ast.parse(source).body
    exec(compile(ast.Module(lines, []), "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        exec(compile(ast.Module([last], []), "cell", "exec"), names)
        return None
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


def assert_says_the_same(text, stored):
    """Word by word; numbers to a few percent, since other versions of a library round otherwise."""
    assert NUMBER.sub("#", text) == NUMBER.sub("#", stored)
    numbers = [[float(n.replace(",", "") or 0) for n in NUMBER.findall(part)] for part in (text, stored)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.05, abs=0.02)


def cells():
    return [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_shows_what_its_code_gives():
    names, n_shown = {}, 0
    for cell in cells():
        text = shown("".join(cell["source"]), names)
        outputs = [output for output in cell["outputs"] if output["output_type"] == "execute_result"]
        assert (text is not None) == bool(outputs)
        if outputs:
            data = outputs[0]["data"]
            assert_says_the_same(text, "".join(data.get("text/html", data["text/plain"])))
            n_shown += 1
    assert n_shown >= 5


def test_control_another_result_is_noticed():
    for other in ("3 of 10 pairs", "4 of 99 pairs", "4 of 10 people"):
        with pytest.raises(AssertionError):
            assert_says_the_same(other, "4 of 10 pairs")


def test_the_notebook_is_small_and_was_executed_from_top_to_bottom():
    assert NOTEBOOK.stat().st_size < 100_000
    assert [cell["execution_count"] for cell in cells()] == list(range(1, len(cells()) + 1))


def test_the_notebook_is_a_valid_one():
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.read(NOTEBOOK, as_version=4))
