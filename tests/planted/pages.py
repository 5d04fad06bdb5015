"""The results of planting, kept, and the section of `docs/trust.md` that is filled from them."""

import json
import re
from pathlib import Path

from planting import ROOT, read_list

RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "trust.md"
_PLACE = re.compile(r"(<!-- begin: planted -->\n).*?(<!-- end -->)", re.DOTALL)


def read_results():
    """The last outcome of each bug and control, by name."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def write(verdicts):
    """Keep these results beside those of other bugs on the list, and fill the page."""
    known = {bug.name for part in ("bug", "control") for bug in read_list(part)}
    new = {v.bug.name: {"outcome": v.outcome, "by": v.by, "seconds": round(v.seconds, 1)} for v in verdicts}
    results = {name: result for name, result in {**read_results(), **new}.items() if name in known}
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


def fill(page, results):
    """The page, with what stands between the marks replaced by the results."""
    return _PLACE.sub(lambda match: f"{match[1]}{_section(results)}\n{match[2]}", page)


def _section(results):
    bugs, controls, equivalent = (read_list(part) for part in ("bug", "control", "equivalent"))
    outcomes = [results.get(bug.name, {"outcome": "not tried yet", "by": "", "seconds": 0}) for bug in bugs]
    tried = sum(bug.name in results for bug in bugs)
    caught = sum(outcome["outcome"] == "caught" for outcome in outcomes)
    survived = sum(results.get(bug.name, {}).get("outcome") == "survived" for bug in controls)
    rest = f" {len(bugs) - tried} of the list are still to be tried." if tried < len(bugs) else ""
    lines = [
        f"**{caught} of {tried}** planted bugs were caught.{rest} {survived} of {len(controls)} controls, changes that "
        "change nothing, were reported as such.",
        "",
        "| in | planted | caught by |",
        "|---|---|---|",
    ]
    for bug, outcome in zip(bugs, outcomes, strict=True):
        by = f"`{outcome['by']}`" if outcome["outcome"] == "caught" else f"**{outcome['outcome']}**"
        lines.append(f"| `{bug.file}` | {bug.name} | {by} |")
    lines += ["", "Tried and taken off the list, since they change nothing that is promised:", ""]
    lines += [f"- {bug.name} (`{bug.file}`): {bug.breaks}" for bug in equivalent]
    return "\n".join(lines)
