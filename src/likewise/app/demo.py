"""The main job, start to end, on data that come with the installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.model_selection import train_test_split

from likewise import SmoothedClassifier, audit
from likewise.app.commands import edit, reveal, write_report
from likewise.app.files import save_model
from likewise.app.metric_files import write_metric
from likewise.app.scale import Order, score_file
from likewise.datasets import load_mortgages
from likewise.models.pipelines import table_model

_BLIND = ("race", "sex")
_DRAWS = 200


def run(say: Any, out: Path) -> None:
    """Train, reveal, edit, smooth, audit before and after, score and report; `say` takes words and facts."""
    bunch = load_mortgages()
    out.mkdir(parents=True, exist_ok=True)
    people, outcomes = bunch.data, bunch.target.map({0: "denied", 1: "approved"}).to_numpy()
    X, X_test, y, y_test = train_test_split(people, outcomes, test_size=0.3, random_state=0, stratify=outcomes)
    say(f"1. {len(people):,} mortgage applications: {len(X):,} to train on, {len(X_test):,} to measure on.")

    numbers = {name: unit for name, unit in bunch.units.items() if unit != "category"}
    revealed = reveal(X, y, "logistic", seed=0, units=numbers)
    say(f"2. {revealed.how}", how=revealed.how)
    metric = edit(revealed.metric, _BLIND)
    write_metric(metric, out / "metric.toml", note=f"{revealed.how} Edited: {' and '.join(_BLIND)} set to 0.")
    say(f"3. Edited: {' and '.join(_BLIND)} must not matter. What is worth one percentage point now:")
    say.table(metric.describe()[["column", "unit", "one point"]], "metric")

    model = SmoothedClassifier(
        table_model(X, "boosting"), metric=metric, vote="soft", n_draws=_DRAWS, random_state=0, verbose=not say.as_json
    ).fit(X, y)
    save_model(model.set_params(verbose=False), out / "model.skops")
    say(f"\n4. A boosted model, smoothed:\n{model.guarantee_.statement}", statement=model.guarantee_.statement)

    X_test.to_parquet(out / "people.parquet", index=False)
    (out / "scores.parquet").unlink(missing_ok=True)
    score_file(
        Order((out / "model.skops").read_bytes(), intervals=True), out / "people.parquet", out / "scores.parquet"
    )
    slack = max(1e-9, model.guarantee_.epsilon)
    before = audit(model.estimator_, X_test, metric, tolerance=slack)
    after = audit(model, X_test, metric, tolerance=slack)
    right = [float((m.predict(X_test) == y_test).mean()) for m in (model.estimator_, model)]
    say(
        f"\n5. All {before.n_pairs:,} pairs of the {len(X_test):,} people were searched.\n"
        f"   Before: {before.n_violations:,} pairs differ by more than they should, the worst by "
        f"{100 * before.max_excess:.0f} points.\n"
        f"   After:  {after.n_violations:,} pairs.\n"
        f"   Accuracy: {right[0]:.1%} before, {right[1]:.1%} after.",
        violations_before=before.n_violations,
        violations_after=after.n_violations,
        accuracy_before=right[0],
        accuracy_after=right[1],
    )
    write_report(
        model,
        X_test,
        y_test,
        out / "report.html",
        outcome="approved",
        revealed=revealed.metric,
        title="Mortgage decisions in Boston",
        subtitle="1,989 applications of 1990, a boosted model",
    )
    files = ["metric.toml", "model.skops", "people.parquet", "scores.parquet", "report.html"]
    say(f"\nWrote {out}/: {', '.join(files)}", directory=str(out), files=files)
    say.finish(
        f"open {out}/report.html in a browser",
        f"edit {out}/metric.toml and run: likewise audit {out}/people.parquet --metric {out}/metric.toml "
        f"--model {out}/model.skops",
        "likewise metric YOUR_TABLE.csv --target YOUR_OUTCOME",
    )
