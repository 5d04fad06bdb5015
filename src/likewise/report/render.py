"""From a report's data to one HTML file: a pure function, the same bytes for the same input."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from likewise import __version__
from likewise._optional import need
from likewise._validation import counted
from likewise.report import text as words
from likewise.report.data import ReportData
from likewise.report.view import for_browser, prepare

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

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
        embedded=embedded_json(for_browser(data, view)),
        words=words,
        version=__version__,
    )


def embedded_json(item: Any) -> Markup:
    """JSON that cannot end or confuse the script element it stands in.

    Examples
    --------
    >>> print(embedded_json("</script><!--"))
    "\\u003c/script\\u003e\\u003c!--"
    """
    from markupsafe import Markup

    text = json.dumps(item, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


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
