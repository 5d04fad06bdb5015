"""A model that is there already: enforced from the command line, and reported with what it may know."""

import skops.io

from likewise.inspection.baselines import table_model
from shell import LOANS, run


def test_a_model_in_a_file_is_projected_and_the_report_says_that_it_may_know_the_people(tmp_path):
    X = LOANS[["income", "years", "region", "race"]]
    skops.io.dump(table_model(X, "logistic").fit(X, LOANS["approved"]), tmp_path / "inner.skops")
    LOANS.drop(columns="constant").to_csv(tmp_path / "loans.csv", index=False)
    for command in (
        "metric loans.csv --target approved --drop id --zero race --out metric.toml",
        "enforce loans.csv --method projection --target approved --metric metric.toml --model inner.skops",
        "audit loans.csv --model model.skops --max-excess 0",
        "report model.skops loans.csv --target approved --folds 2 --out report.html",
    ):
        done = run(tmp_path, command)
        assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "model.skops, projected model" in page
    assert "was given ready-made" in page
