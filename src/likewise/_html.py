"""HTML for notebooks: deterministic, escaped, and in the colours of the page, light or dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_LINE = "1px solid rgba(128,128,128,.35)"
_CELL = "padding:.25em .7em;border:none;white-space:nowrap;background:none;color:inherit"


def panel(title: str, *parts: str) -> str:
    """A heading with content below it."""
    return (
        f'<div style="max-width:60em;border-left:3px solid #4a8fc7;padding:.1em 0 .1em 1em;line-height:1.45">'
        f'<div style="font-weight:600;font-size:1.1em;margin:.2em 0">{escape(title)}</div>{"".join(parts)}</div>'
    )


def words(text: str, *, quiet: bool = False) -> str:
    """One paragraph per line."""
    style = "margin:.4em 0" + (";opacity:.75;font-size:.92em" if quiet else "")
    return "".join(f'<p style="{style}">{escape(line)}</p>' for line in text.splitlines())


def folded(summary: str, text: str) -> str:
    """Text that opens on a click."""
    return f'<details style="margin:.4em 0"><summary>{escape(summary)}</summary>{words(text, quiet=True)}</details>'


def grid(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int | Sequence[int] = 1, strong: str | None = None
) -> str:
    """A table; `left` columns (a number or positions) are left-aligned; the row that starts with `strong` is bold."""
    lefts = range(left) if isinstance(left, int) else left

    def cell(tag: str, i: int, text: str, style: str = "") -> str:
        side = "left" if i in lefts else "right"
        wrap = ";white-space:normal" if i in lefts and i else ""
        return f'<{tag} style="{_CELL};text-align:{side}{wrap}{style}">{escape(text)}</{tag}>'

    top = "".join(cell("th", i, name, f";border-bottom:{_LINE};font-weight:600") for i, name in enumerate(head))
    lines = "".join(
        '<tr style="background:none">'
        + "".join(cell("td", i, text, ";font-weight:600" if row[0] == strong else "") for i, text in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return (
        '<table style="border-collapse:collapse;margin:.5em 0;font-variant-numeric:tabular-nums;border:none">'
        f"<thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>"
    )
