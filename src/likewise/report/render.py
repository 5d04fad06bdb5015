"""From a report's data to one HTML file: a pure function, the same bytes for the same input."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from likewise import __version__
from likewise._optional import need
from likewise._validation import counted
from likewise.report import text as words
from likewise.report.data import ReportData
from likewise.report.view import for_browser, prepare

if TYPE_CHECKING:
    from jinja2 import Environment

SCRIPTS = ("metric.js", "weights.js", "compare.js")


def render(data: ReportData) -> str:
    """Render a report as one self-contained HTML page.

    No network, no clock, no random ids. Text from the data is escaped wherever it appears; the page's own
    content security policy forbids every connection and every script but its own.

    Parameters
    ----------
    data : ReportData

    Returns
    -------
    str
        Write it with ``encoding="utf-8"`` and ``newline=""``.

    Examples
    --------
    >>> import pandas as pd
    >>> from likewise import TableMetric
    >>> from likewise.report import ReportData
    >>> metric = TableMetric({"<b>": 0.01})
    >>> people = metric.encode_rows(pd.DataFrame({"<b>": [30, 41]}))
    >>> page = render(ReportData("Loans", "approved", metric, people))
    >>> "<b>" in page, "&lt;b&gt;" in page
    (False, True)
    """
    environment = _environment()
    from jinja2.utils import htmlsafe_json_dumps
    from markupsafe import Markup  # comes with jinja2

    view = prepare(data)
    style, script = _asset("style.css"), _script()
    return environment.get_template("page.html").render(
        data=data,
        view=view,
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        embedded=htmlsafe_json_dumps(for_browser(data, view), allow_nan=False, separators=(",", ":")),
        words=words,
        version=__version__,
    )


@cache  # templates are compiled once
def _environment() -> Environment:
    jinja2 = need("jinja2", "A report")
    from markupsafe import Markup, escape

    environment: Environment = jinja2.Environment(
        loader=jinja2.PackageLoader("likewise.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"inf": float("inf"), "counted": counted}
    environment.filters["soft"] = lambda name: escape(name).replace("_", Markup("_<wbr>"))
    return environment


def _asset(name: str) -> str:
    return (files("likewise.report") / "templates" / name).read_text(encoding="utf-8")


def _script() -> str:
    return '"use strict";\n' + "\n".join(_asset(name) for name in SCRIPTS)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
