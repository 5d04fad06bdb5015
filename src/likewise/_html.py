"""Results in a notebook: small pieces of HTML.

Nothing is random, every text is escaped, and colours are those of the page, so that it reads well on light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_LINE = "1px solid rgba(128,128,128,.35)"
_CELL = "padding:.25em .7em;border:none;white-space:nowrap;background:none;color:inherit"


def panel(title: str, *parts: str) -> str:
    """A heading with parts under it."""
    return (
        f'<div style="max-width:60em;border-left:3px solid #4a8fc7;padding:.1em 0 .1em 1em;line-height:1.45">'
        f'<div style="font-weight:600;font-size:1.1em;margin:.2em 0">{escape(title)}</div>{"".join(parts)}</div>'
    )


def words(text: str, *, quiet: bool = False) -> str:
    """Paragraphs, one for each line."""
    style = "margin:.4em 0" + (";opacity:.75;font-size:.92em" if quiet else "")
    return "".join(f'<p style="{style}">{escape(line)}</p>' for line in text.splitlines())


def folded(summary: str, text: str) -> str:
    """Words that are shown when somebody asks for them."""
    return f'<details style="margin:.4em 0"><summary>{escape(summary)}</summary>{words(text, quiet=True)}</details>'


def grid(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, left: int | Sequence[int] = 1, strong: str | None = None
) -> str:
    """A table: the first `left` columns (or those that it names) to the left, the others to the right.

    A cell is text. The row whose first cell is `strong` stands out.
    """
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
