"""The workbench itself: one session, its live figures, its long jobs, and the browsers that watch."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from likewise.exceptions import InvalidInputError, LikewiseError
from likewise.workbench import starts
from likewise.workbench.browsers import Browsers, as_json
from likewise.workbench.comparing import compare, person
from likewise.workbench.engine import GUARANTEED, Engine
from likewise.workbench.exports import FILES, MODEL, REPORT, Tools, commands, write_model, write_report, write_texts
from likewise.workbench.judging import Judging
from likewise.workbench.minutes import minutes, record
from likewise.workbench.state import SECTIONS, Event, Session, Sheet

_FROM_PAGE = (
    *("weights", "lock", "unlock", "unit", "undo", "redo", "version"),
    *("answer", "withdraw", "explain", "note"),
)
_MAX_KEPT = 16  # results of metrics

Queue = SimpleQueue[Callable[[], object]]


class Hub:
    """Takes requests of browsers and tells all of them what has changed.

    Parameters
    ----------
    session : Session
    engine : Engine
    tools : Tools
    folder : Path
        Where exports are written.
    tour : bool
        Whether to offer the tour.
    """

    def __init__(self, session: Session, engine: Engine, tools: Tools, folder: Path, *, tour: bool = False) -> None:
        self.session, self.engine, self.tools, self.folder, self.tour = session, engine, tools, folder, tour
        self.judging, self.browsers = Judging(engine, session), Browsers()
        self.job: dict[str, Any] | None = None
        self.trouble: dict[str, str] = {}
        self.judged: dict[str, Any] | None = None  # until it is worked out for the answers that stand now
        self.result: dict[str, Any] | None = None
        self.results: OrderedDict[str, dict[str, Any]] = OrderedDict()
        # Work that nobody waits for: figures of the present weights, and all else, which may take minutes.
        self._live: Queue = SimpleQueue()
        self._later: Queue = SimpleQueue()
        self._wanted = self._judgement = object()  # the newest requests
        self._closing = False

    # -- lifecycle ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def lifespan(self, app: Any) -> AsyncIterator[None]:
        """Start the threads with the server, and end them with it."""
        self.browsers.open()
        for queue in (self._live, self._later):
            _in_thread(self._work, queue)
        self._evaluate()
        self._judge()  # first: models are measured for minutes
        self._measure_references()
        yield
        self.close()

    def close(self) -> None:
        """End streams and threads; work that is under way is not waited for."""
        self._closing = True
        for queue in (self._live, self._later):
            queue.put(lambda: None)
        self.browsers.close()

    def stream(self) -> AsyncIterator[str]:
        """Everything that a page shows, then each change."""
        return self.browsers.stream(self.snapshot)

    # -- what browsers see ----------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Everything that a page shows."""
        return {**self._state(), "result": self._shown(self.result), "judged": self.judged}

    def _state(self) -> dict[str, Any]:
        session, engine = self.session, self.engine
        log, problem = session.log, engine.problem
        sheet = session.sheet
        return {
            "last": session.last,
            "table": {
                "name": session.table["name"],
                "target": session.table["target"],
                "task": problem.task,
                "outcome": str(problem.target if engine.favourable is None else engine.favourable),
                "n": engine.n_table,
                "n_live": len(engine.X),
                "state": str(session.path.name),
                "range": problem.output_range,
                "tour": self.tour,
                "knots": engine.max_knots,
            },
            "columns": engine.columns(sheet),
            "how": sheet.how,
            "undo": log.position > 0,
            "redo": log.position + 1 < len(log.sheets),
            "versions": list(log.versions),
            "frontier": _frontier(log.frontier, sheet),
            "record": record(session)[::-1],
            "answers": self.judging.answers(),
            "minutes": minutes(session, self._facts()),
            "job": self.job,
            "trouble": self.trouble,
            "has_scores": problem.scores is not None,
            "exports": [name for name in FILES if (self.folder / name).is_file()],
            "folder": str(self.folder),
            "commands": commands(self.tools, session.table["target"], str(self.folder)),
        }

    def _shown(self, result: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if result is None else {name: value for name, value in result.items() if name != "model"}

    def _facts(self) -> dict[str, str]:
        """Figures of the present weights, for the minutes."""
        result = self.result
        if result is None or result["event"] != self.session.last_change or not result["figures"]:
            return {}
        figures = result["figures"]
        first, second = figures["titles"]
        found = {}
        for row in figures["rows"]:
            said = [f"{first} {row['loss']:.4g}{_error(row['loss_se'])}"]
            if row["second"] is not None:
                said.append(f"{second} {row['second']:.3f}{_error(row['second_se'])}")
            found[f"{row['title']}, {figures['n']:,} people held out"] = ", ".join(said)
        found["mean distance of two people"] = f"{result['mean_distance']:.3g}"
        found["what this costs"] = figures["caveat"]
        if result["bound_share"] is not None:
            found["pairs that are bound (distance below 1)"] = f"{result['bound_share']:.1%}"
        return found

    # -- changes --------------------------------------------------------------------------------------------------

    def act(self, given: dict[str, Any]) -> dict[str, Any]:
        """Record an event from a page."""
        kind = given.pop("kind", None)
        if kind not in _FROM_PAGE:
            raise InvalidInputError(f"kind must be one of {', '.join(_FROM_PAGE)}; got {str(kind)[:40]!r}.")
        return self._act(str(kind), given)

    def _act(self, kind: str, given: dict[str, Any]) -> dict[str, Any]:
        seen = given.get("seen")
        seen = seen if isinstance(seen, int) and 0 <= seen <= self.session.last else None
        locked = self.session.sheet.locked
        data = {key: given[key] for key in _DATA if key in given}
        event = self.session.act(kind, given.get("name", ""), seen=seen, browser=str(given.get("browser", "")), **data)
        self._changed(event)
        locks = self.session.sheet.locked != locked
        if locks or kind in ("answer", "withdraw"):
            self._judge()
        if locks:
            self._measure_references()
        others = self.session.overrode(event, seen)
        return {"last": self.session.last, "overrode": [f"{each['name']} (no. {each['n']})" for each in others]}

    def _changed(self, event: Event) -> None:
        self.trouble.pop("job", None)
        if self.session.last_change == event["n"]:
            self._evaluate()
        self.browsers.tell(self._state())

    def scale(self, given: dict[str, Any]) -> dict[str, Any]:
        """Multiply all weights; those of categories and blanks are capped at 1."""
        by = given.pop("by", None)
        if isinstance(by, bool) or not isinstance(by, (int, float)) or not 0.01 <= by <= 100:
            raise InvalidInputError(f"The factor must be a number between 0.01 and 100; got {str(by)[:40]}.")
        scaled = self.session.sheet.metric.scaled(float(by))
        return self._act("weights", given | {"set": _all(scaled), "what": f"multiplied all weights by {by:g}"})

    def round(self, given: dict[str, Any]) -> dict[str, Any]:
        """Put all weights into round numbers, never looser."""
        rounded = self.session.sheet.metric.rounded()
        return self._act("weights", given | {"set": _all(rounded), "what": "put all weights into round numbers"})

    def start(self, given: dict[str, Any]) -> dict[str, Any]:
        """Replace the weights: by designed, revealed or judged ones, a version, a point of the frontier, or a file."""
        source, log, engine = str(given.pop("from", None)), self.session.log, self.engine
        at_once: dict[str, Callable[[], dict[str, Any]]] = {
            "version": lambda: starts.from_version(log, str(given.get("title"))),
            "point": lambda: starts.from_point(log, given.get("point")),
            "file": lambda: starts.from_text(engine, given.get("text"), str(given.get("title") or "a file")),
            "zero": lambda: {"set": engine.empty_sheet().weights, "how": "Set to 0: nothing may matter yet."},
        }
        if source in at_once:
            return self._act("start", given | at_once[source]())
        _check_name(given)
        if source == "designed":
            return self._run("Designing metrics from strict to loose", lambda: self._design(given))
        if source == "revealed":
            return self._run("Reading the metric of a model", lambda: self._starting(given, self._reveal()))
        if source in ("judged", "near", "strict"):
            learn = partial(starts.from_answers, engine, self.judging, source)
            return self._run("Learning from the answers", lambda: self._starting(given, learn()))
        raise InvalidInputError("from must be designed, revealed, judged, near, strict, version, point, file or zero.")

    def _starting(self, given: dict[str, Any], found: dict[str, Any]) -> Callable[[], object]:
        return partial(self._act, "start", {**given, **found})

    def _reveal(self) -> dict[str, Any]:
        metric, how = self.tools.reveal(self.engine.problem)
        return {"set": self.engine.weights_from(metric), "how": how}

    def _design(self, given: dict[str, Any]) -> Callable[[], None]:
        found = self.engine.design(self.session.sheet.locked)

        def finish() -> None:
            self._act("frontier", {**given, "reason": "", **found})
            best = next(k for k, point in enumerate(found["points"]) if point["best"])
            self._act("start", {**given, **starts.from_point(self.session.log, best)})

        return finish

    # -- questions ------------------------------------------------------------------------------------------------

    def question(self, given: dict[str, Any]) -> dict[str, Any]:
        """The next question to a person."""
        name = str(given.get("name") or "").strip()
        if not name:
            raise InvalidInputError("Enter your name first: answers are kept by name.")
        return {"question": self.judging.question(name, compare=bool(given.get("compare")))}

    def pair(self, given: dict[str, Any]) -> dict[str, Any]:
        """Two people as a question."""
        return {"question": self.judging.pair(given.get("a"), given.get("b"))}

    def person(self, given: dict[str, Any]) -> dict[str, Any]:
        """The values of a person."""
        return {"values": person(self.engine, given.get("label"))}

    def compare(self, given: dict[str, Any]) -> dict[str, Any]:
        """Two people, under the present weights."""
        sheet, result = self.session.sheet, self.result
        fresh = result is not None and result["event"] == self.session.last_change
        model = result["model"] if fresh and result is not None else self.engine.fit(self.engine.bound(sheet))
        return as_json(compare(self.engine, sheet, model, given.get("a"), given.get("b")))

    def side_by_side(self, given: dict[str, Any]) -> dict[str, Any]:
        """Weights and figures of two versions; "" is the present."""
        found = []
        for title in (given.get("one"), given.get("other")):
            if title and title not in self.session.log.versions:
                raise InvalidInputError(f"There is no version {str(title)[:80]!r}.")
            sheet = self.session.log.versions[str(title)] if title else self.session.sheet
            result = self._measured(sheet)
            row = next((r for r in (result["figures"] or {"rows": []})["rows"] if r["title"] == GUARANTEED), None)
            found.append(
                {
                    "title": title or "now",
                    "weights": {**sheet.weights["numeric"], **sheet.weights["categorical"]},
                    "locked": list(sheet.locked),
                    "figures": row,
                    "titles": (result["figures"] or {}).get("titles"),
                    "mean_distance": result["mean_distance"],
                    "bound_share": result["bound_share"],
                    "today": result["today"],
                }
            )
        return as_json({"versions": found})

    def _measured(self, sheet: Sheet) -> dict[str, Any]:
        key = _key(sheet)
        found = self.results.get(key)
        if found is None or not found["done"]:
            emitted: list[dict[str, Any]] = []
            self.engine.evaluate(sheet, emitted.append)
            found = emitted[-1]
            self._keep(key, found)
        return found

    def _keep(self, key: str, result: dict[str, Any]) -> None:
        self.results[key] = result
        while len(self.results) > _MAX_KEPT:
            self.results.popitem(last=False)

    # -- live figures ---------------------------------------------------------------------------------------------

    def _work(self, queue: Queue) -> None:
        while not self._closing:
            work = queue.get()
            try:
                work()
            except Exception as error:
                self.trouble["live"] = _one_line(error)
                self.browsers.tell({"trouble": self.trouble})

    def _evaluate(self) -> None:
        """Measure the present weights; the newest request wins."""
        request = self._wanted = object()
        sheet, change = self.session.sheet, self.session.last_change

        def is_wanted() -> bool:
            return not self._closing and self._wanted is request

        def emit(result: dict[str, Any]) -> None:
            if not is_wanted():
                return
            self.result = as_json(result) | {"event": change}
            self._keep(_key(sheet), self.result)
            self.trouble.pop("live", None)
            self.browsers.tell({"result": self._shown(self.result), "trouble": self.trouble})
            if result["done"]:
                self.browsers.tell({"minutes": minutes(self.session, self._facts())})

        self._live.put(lambda: self.engine.evaluate(sheet, emit, is_wanted) if is_wanted() else None)

    # -- long jobs ------------------------------------------------------------------------------------------------

    def _refuse_if_busy(self) -> None:
        if self.job is not None:
            raise InvalidInputError(f"Still busy: {self.job['title']}. Wait for it to end.")

    def _run(self, title: str, work: Callable[[], Callable[[], object]], writes: Sequence[str] = ()) -> dict[str, Any]:
        """Run a job in a thread of its own; what it returns is done in the loop's thread."""
        self._refuse_if_busy()
        self.job = {"title": title, "writes": list(writes)}
        self.trouble.pop("job", None)
        self.browsers.tell({"job": self.job, "trouble": self.trouble})

        def finish(done: Callable[[], object] | None) -> None:
            self.job = None
            try:
                if done is not None:
                    done()
            except Exception as error:
                self.trouble["job"] = _one_line(error)
            self.browsers.tell(self._state())

        def in_thread() -> None:
            done = None
            try:
                done = work()
            except Exception as error:
                self.trouble["job"] = _one_line(error)
            self.browsers.call(finish, done)

        _in_thread(in_thread)
        return {"started": title}

    def _measure_references(self) -> None:
        locked = self.session.sheet.locked
        if self.engine.known_references(locked):
            self._evaluate()
            return

        def work() -> None:
            if locked == self.session.sheet.locked:
                self.engine.references(locked)
                self.results.clear()
                self._evaluate()

        self._later.put(work)

    def _judge(self) -> None:
        """Work out what the answers leave; until then nothing is said of it. The newest request wins."""
        request = self._judgement = object()
        self.judged = None
        self.browsers.tell({"judged": None})

        def work() -> None:
            found = as_json(self.judging.summary()) if self._judgement is request else None
            if self._judgement is request:
                self.judged = found
                self.browsers.tell({"judged": found})

        self._later.put(work)

    def export(self, given: dict[str, Any]) -> dict[str, Any]:
        """Write all files: the texts at once, then the model, and last the report, while work goes on."""
        _check_name(given)
        self._refuse_if_busy()
        problem, folder, with_report = self.engine.problem, self.folder, bool(given.get("report", True))
        texts = write_texts(self.session, problem, folder, self._facts(), self.tools.origin(list(problem.X.columns)))
        self.browsers.tell(self._state())

        def note(files: list[str]) -> None:
            self._act("exported", {**given, "folder": str(folder), "files": sorted(files, key=FILES.index)})

        def work() -> Callable[[], None]:
            model, X, y = self.tools.train(folder / "metric.toml")
            write_model(model, folder)

            def report() -> Callable[[], None]:
                write_report(model, X, y, problem, folder)
                given.pop("reason", None)  # it is in the record already
                return lambda: note(list(REPORT))

            def finish() -> None:
                note([*texts, *MODEL])
                if with_report:
                    self._run("Writing report.html", report, REPORT)

            return finish

        return self._run("Writing model.skops", work, [*MODEL, *(REPORT if with_report else ())])

    def exported_file(self, name: str) -> Path | None:
        """An exported file; None for any other name."""
        path = self.folder / name
        return path if name in FILES and path.is_file() else None


_DATA = (
    *("reason", "set", "what", "how", "column", "unit", "title", "rows", "of", "text"),
    *("points", "locked", "loss_name", "n_people", "n_folds", "folder", "files"),
)


def _error(size: float | None) -> str:
    """A standard error, which one fold does not have."""
    return "" if size is None else f" ± {size:.2g}"


def _in_thread(work: Callable[..., None], *args: Any) -> None:
    """Start a daemon: Ctrl-C does not wait for a fit."""
    threading.Thread(target=work, args=args, name="workbench", daemon=True).start()


def _check_name(given: dict[str, Any]) -> None:
    if not str(given.get("name") or "").strip():
        raise InvalidInputError("Enter your name: the record names who decided what.")


def _all(metric: Any) -> dict[str, dict[str, float]]:
    return {section: dict(getattr(metric, section)) for section in SECTIONS}


def _key(sheet: Sheet) -> str:
    return json.dumps([sheet.weights, sheet.units, sorted(sheet.locked)], sort_keys=True)


def _frontier(event: Event | None, sheet: Sheet) -> dict[str, Any] | None:
    """The designed metrics without their weights, and whether they were designed with other locks."""
    if event is None:
        return None
    points = [{key: value for key, value in point.items() if key != "set"} for point in event["points"]]
    stale = sorted(event["locked"]) != sorted(sheet.locked)
    return {"points": points, "loss_name": event["loss_name"], "locked": event["locked"], "stale": stale}


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())[:400]
    return text if isinstance(error, (LikewiseError, ValueError, OSError)) else f"{type(error).__name__}: {text}"
