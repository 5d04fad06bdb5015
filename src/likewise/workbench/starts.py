"""Weights to start from, as the data of an event: a version, a designed point, a file, a model, or answers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from likewise.exceptions import InvalidInputError, LikewiseError
from likewise.metric_file import read_metric_file
from likewise.metrics.table import TableMetric
from likewise.reveal.linear import least_missing_weight
from likewise.workbench.engine import Engine
from likewise.workbench.judging import Judging
from likewise.workbench.state import Log, Weights


def from_version(log: Log, title: str) -> dict[str, Any]:
    """The weights of a saved version."""
    if title not in log.versions:
        raise InvalidInputError(f"There is no version {title[:80]!r}.")
    return {"set": log.versions[title].weights, "how": f"Back to the version “{title}”."}


def from_point(log: Log, k: Any) -> dict[str, Any]:
    """The weights of a point of the designed frontier."""
    frontier = log.frontier
    if frontier is None or not isinstance(k, int) or not 0 <= k < len(frontier["points"]):
        raise InvalidInputError("There is no such point. Design metrics first.")
    point = frontier["points"][k]
    how = (
        f"Designed together with a scorecard, from {frontier['n_people']:,} people: mean distance "
        f"{point['mean_distance']:.3g}, {frontier['loss_name']} {point['loss']:.4g} ± {point['loss_se']:.2g} on "
        "held-out people."
    )
    return {"set": point["set"], "how": how}


def from_answers(engine: Engine, judging: Judging, which: str) -> dict[str, Any]:
    """Weights learned from the answers: "judged" (the middle of the ranges), "near" the present ones, or "strict"."""
    learned = judging.learn(near=which == "near")
    if learned is None:
        raise InvalidInputError("Nobody has answered a question yet. Answer some under Pairs first.")
    words = {
        "judged": "close to the middle of the ranges that",
        "near": "of the metrics that fit, the one closest to the weights until then, which",
        "strict": "the lower end of every range that",
    }[which]
    weights = engine.weights_from(learned.strict() if which == "strict" else learned.metric)
    n = judging.n_answers
    how = f"Learned from {n} answer{'s' if n > 1 else ''}: {words} the answers leave."
    if which == "judged":
        how += _without_guesses(engine, judging, weights)
    return {"set": weights, "how": how}


def _without_guesses(engine: Engine, judging: Judging, weights: Weights) -> str:
    """Set what no answer is about to 0, and say so; a blank of a judged column leaves the column its full effect."""
    asked = {key for key, n in judging.n_asked().items() if n}
    left = [(section, name) for section, part in weights.items() for name in part if (section, name) not in asked]
    for section, name in left:
        weights[section][name] = 0.0
    blanks = [name for section, name in left if section == "missing" and weights["numeric"][name]]
    for name in blanks:
        weights["missing"][name] = least_missing_weight(weights["numeric"][name], *engine.ranges[name])
    others = [name for section, name in left if section != "missing" and name not in judging.session.sheet.locked]
    said = f" No answer is about {', '.join(others)}: at 0." if others else ""
    if blanks:
        said += f" No answer is about blanks of {', '.join(blanks)}: they leave the column its full effect."
    return said


def from_text(engine: Engine, text: Any, name: str) -> dict[str, Any]:
    """The weights of the text of a metric file."""
    if not isinstance(text, str):
        raise InvalidInputError("text must be the text of a metric file.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metric.toml"
        path.write_text(text, encoding="utf-8")
        try:
            file = read_metric_file(path)
        except LikewiseError as error:
            raise InvalidInputError(str(error).replace(str(path), name)) from None
    return from_file(engine, file, name)


def from_file(engine: Engine, file: Any, name: str) -> dict[str, Any]:
    """The weights of a metric file."""
    known = [column for column in file.metric.columns if column in engine.names]
    if not known:
        raise InvalidInputError(f"{name} names no column of this table.")
    if file.output_range is not None and file.output_range != engine.problem.output_range:
        raise InvalidInputError(
            f"The weights of {name} are shares of the range {file.output_range}; here it is "
            f"{engine.problem.output_range}. Give --range."
        )
    _refuse_other_kinds(engine, file.metric, name)
    left = [str(column) for column in file.metric.columns if column not in engine.names]
    left += [] if file.domain is None else ["its domain"]
    more = f" Left out: {', '.join(left)}." if left else ""
    return {"set": engine.weights_from(file.metric), "how": f"From {name}. {file.how}{more}".strip()}


def _refuse_other_kinds(engine: Engine, metric: TableMetric, name: str) -> None:
    """Raise if a column of the file would get another distance here."""
    for section in ("order", "groups", "distances"):
        if getattr(metric, section):
            raise InvalidInputError(
                f"{name} has [{section}]; the workbench gives any two categories of a column the same distance. Leave "
                f"[{section}] out, and give each column of categories one weight."
            )
    numbers = dict(zip(engine.names, engine.encoder.is_number, strict=True))
    for column in metric.columns:
        if column in numbers and numbers[column] != (column in metric.numeric):
            here, there = ("numeric", "categorical") if numbers[column] else ("categorical", "numeric")
            raise InvalidInputError(
                f"{name} has {column!r} as {there}, but it is {here} here. Start the workbench with --categorical, or "
                "change the file."
            )
