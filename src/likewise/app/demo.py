"""The main job, start to end, on data that come with the installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from likewise import audit, compare, price
from likewise._extras import need
from likewise.app.commands import edit, reveal, write_report
from likewise.app.files import save_model
from likewise.app.metric_files import write_metric
from likewise.app.scale import Order, score_file
from likewise.datasets import load_mortgages
from likewise.models.pipelines import table_model

_BLIND = ("race", "sex")
_WAYS = ["additive", "smoothing", "linear"]
_SCALES = (0.25, 0.5, 1, 2)


def run(say: Any, out: Path) -> None:
    """Reveal, edit, compare, enforce, audit, price, explain and report; `say` takes words and facts."""
    need("jinja2", "The report at the end of the demo")
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

    say("\n4. The ways to enforce it, compared on the people to train on:")
    result = compare(X, y, metric, ways=_WAYS, cv=3, n_people=300, n_draws=50, verbose=not say.as_json)
    best = result.best()
    say(str(result), best=best.name, reason=best.reason)

    model, plain = best.fit(X, y), table_model(X, "boosting").fit(X, y)
    save_model(model, out / "model.skops")
    say(f"\n5. Enforced by the best of them, {best.name}:\n{model.guarantee_.statement}", level=model.guarantee_.level)
    X_test.to_parquet(out / "people.parquet", index=False)
    (out / "scores.parquet").unlink(missing_ok=True)
    score_file(Order((out / "model.skops").read_bytes()), out / "people.parquet", out / "scores.parquet")

    before, after = (audit(each, X_test, metric, tolerance=1e-9) for each in (plain, model))
    say(
        f"\n6. All {before.n_pairs:,} pairs of the {len(X_test):,} people to measure on were searched. Boosting with "
        f"no promise: {before.n_violations:,} pairs differ by more than they should, the worst by "
        f"{100 * before.max_excess:.0f} points. With the promise: {after.n_violations:,}.",
        violations_before=before.n_violations,
        violations_after=after.n_violations,
    )
    way: Any = best
    if hasattr(model, "penalty_"):  # found once, it need not be searched for again
        way = (best.name, clone(model).set_params(penalty=model.penalty_))
    curve = price(X, y, metric, _SCALES, way=way, cv=3, n_people=300, n_draws=50, verbose=not say.as_json)
    say(f"\n7. What a stricter metric costs:\n{curve}", meets=curve.meets)
    _say_reasons(say, model, X_test)
    write_report(
        model,
        X_test,
        y_test,
        out / "report.html",
        outcome="approved",
        revealed=revealed.metric,
        title="Mortgage decisions in Boston",
        subtitle=f"1,989 applications of 1990; model: {best.name}",
    )
    _say_verdict(say, {"with the promise": model, "without a promise": plain}, X_test, y_test, y, before, after)
    files = ["metric.toml", "model.skops", "people.parquet", "scores.parquet", "report.html"]
    say(f"\nWrote {out}/: {', '.join(files)}", directory=str(out), files=files)
    say.finish(
        f"open {out}/report.html in a browser",
        f"edit {out}/metric.toml and run: likewise audit {out}/people.parquet --metric {out}/metric.toml "
        f"--model {out}/model.skops",
        "likewise metric YOUR_TABLE.csv --target YOUR_OUTCOME",
    )


def _say_reasons(say: Any, model: Any, people: pd.DataFrame) -> None:
    """Why three people are the least likely to be approved, where the model can be read."""
    if not hasattr(model, "reasons"):
        return
    approved = model.predict_proba(people)[:, list(model.classes_).index("approved")]
    lowest = people.iloc[np.argsort(approved, kind="stable")[:3]]
    # The scores of the model are of its second class.
    say("\n8. What lowers the chances of the three people with the lowest scores most, in log-odds:")
    reasons = model.reasons(lowest, n=3) if model.classes_[1] == "approved" else _turned(model, lowest)
    for name, row in reasons.iterrows():
        say(f"   application {name}: {'; '.join(str(reason) for reason in row.dropna())}")


def _turned(model: Any, people: pd.DataFrame) -> pd.DataFrame:
    """Points for the first class are those of the second, turned round."""
    points = -model.explain(people).drop(columns=["intercept", "log-odds"])
    rows = [
        [f"{column} is {_shown(people.loc[name, column])}: {value:+.2f}" for column, value in row.nsmallest(3).items()]
        for name, row in points.iterrows()
    ]
    return pd.DataFrame(rows, index=people.index)


def _shown(value: Any) -> str:
    return "missing" if pd.isna(value) else f"{value:.4g}" if isinstance(value, float) else str(value)


def _say_verdict(say: Any, models: dict[str, Any], X: Any, y: Any, y_learned: Any, before: Any, after: Any) -> None:
    """What is promised, what it cost, and what is gone, in plain words."""
    truth = (y == "approved").astype(int)
    scores = {n: m.predict_proba(X)[:, list(m.classes_).index("approved")] for n, m in models.items()}
    scores["a constant"] = np.full(len(y), (y_learned == "approved").mean())
    table = pd.DataFrame(
        [(n, round(brier_score_loss(truth, p), 4), round(roc_auc_score(truth, p), 3)) for n, p in scores.items()],
        columns=["model", "Brier score (less is better)", "AUC"],
    )
    brier = table.set_index("model").iloc[:, 0]
    cost = brier["with the promise"] - brier["without a promise"]
    words = f"cost {cost:.4f} of Brier score against" if cost > 0 else f"cost nothing: {-cost:.4f} less than"
    say(
        f"\nVerdict, on {len(y):,} people whom no model had seen:\n"
        f"   For any two people, seen or not, chances of approval differ by at most their distance, whatever their "
        f"{' and '.join(_BLIND)}.\n   The promise {words} boosting without one; "
        f"{before.n_violations - after.n_violations:,} violating pairs are gone.",
        brier=brier.to_dict(),
    )
    say.table(table, "verdict")
