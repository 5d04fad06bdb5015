"""Of two columns that are nearly copies of one another, nothing says that either does not matter."""

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from likewise import MetricDisplay, RangesDisplay, estimate_minimal_metric
from shell import run

mpl.use("Agg")
CLAIM = re.compile(r"must not matter|not matter|not used|ignore[sd]?\b", re.IGNORECASE)
# What is said of other columns, or of nobody: how the file's list of decisions is called.
GENERAL = ("does not show that the model ignores", "Nobody has decided")


def claims(text, names=("debt", "loans")):
    """Lines that name one of the columns and say that it does not matter."""
    return [
        line
        for line in text.splitlines()
        if CLAIM.search(line) and any(name in line for name in names) and not any(part in line for part in GENERAL)
    ]


def test_nothing_says_of_either_column_that_it_does_not_matter(tmp_path):
    rng = np.random.default_rng(0)
    debt = rng.normal(20, 5, 200)
    people = pd.DataFrame({"debt": debt.round(4), "loans": (debt + rng.normal(0, 1e-3, 200)).round(4)})
    people["age"] = rng.normal(40, 9, 200).round(1)
    scores = (0.3 + 0.01 * people["debt"] + 0.002 * people["age"]).round(6)
    table = people.assign(score=scores, paid=np.where(rng.random(200) < scores, "yes", "no"))
    table.to_csv(tmp_path / "t.csv", index=False)
    commands = [
        "metric t.csv --scores score --drop paid --out m.toml",
        "metric show m.toml",
        "metric check m.toml t.csv",
        "metric scale m.toml --by 0.5 --out s.toml",
        "metric round m.toml --out r.toml",
        "metric diff m.toml s.toml",
        "audit t.csv --scores score --metric m.toml",
        "enforce t.csv --target paid --metric m.toml --method additive --out model.skops",
        "report model.skops t.csv --target paid --folds 2 --out report.html",
    ]
    outputs = {}
    for command in commands:
        done = run(tmp_path, command)
        assert done.exit_code == 0, (command, done.output)
        outputs[command] = done.output
    page = (tmp_path / "report.html").read_text()
    assert "loans" in page
    assert "must not matter" not in page.lower()
    for name in "msr":
        outputs[name] = (tmp_path / f"{name}.toml").read_text()
    found = estimate_minimal_metric(None, people, predictions=scores)
    # What the page says of near copies, and the table that a notebook shows.
    pages = Path(__file__).parents[2] / "docs"
    outputs |= {page.name: page.read_text() for page in (pages / "howto/from_nothing.md", pages / "reveal.md")}
    outputs |= {"ranges": found.weights.to_string(), "html": found.describe().to_html()}
    outputs |= {"describe": found.describe().to_string(), "repr": repr(found), "notes": "\n".join(found.notes)}
    for display in (MetricDisplay.from_metric(found, people), RangesDisplay.from_result(found, people)):
        texts = [
            f"{label.get_text()}: {text.get_text()}"
            for label in display.ax_.get_yticklabels()
            for text in display.ax_.texts
        ]
        outputs[type(display).__name__] = "\n".join(text for text in texts if "matter" in text)
    named = {"from_nothing.md": ("debts", "obligations"), "reveal.md": ("debts", "near copies")}
    found_claims = {source: claims(text, named.get(source, ("debt", "loans"))) for source, text in outputs.items()}
    assert {source: lines for source, lines in found_claims.items() if lines} == {}
    # Ranges show it, the commands say that it is not known, and a model that would do without a column is announced.
    first = outputs[commands[0]]
    assert not [line for line in first.splitlines() if line.startswith("Forced")]
    known = [line for line in first.splitlines() if "so not known" in line]
    assert all(any(name in line for line in known) for name in ("debt", "loans"))
    assert "Nobody has decided that" in outputs[commands[-2]]
    assert "must not matter" not in outputs["m"]


def test_control_a_column_that_people_set_to_0_is_claimed():
    assert claims("loans = 0 # must not matter") == ["loans = 0 # must not matter"]
