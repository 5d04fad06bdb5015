"""How plots look. Matplotlib is imported when one is drawn."""

from __future__ import annotations

from typing import Any

from likewise._optional import need

# Colours that stay apart for colour-blind readers, and in grey.
BLUE, ORANGE, RED, GREY, INK = "#2f6fa7", "#d98a2b", "#c0392b", "#8a8f98", "#2b2f36"


def axes(ax: Any, size: tuple[float, float]) -> Any:
    """`ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    return need("matplotlib.pyplot", "A plot").subplots(figsize=size, layout="constrained")[1]


def patch(colour: str, label: str) -> Any:
    """A legend entry of one colour."""
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)


def tidy(ax: Any) -> None:
    """Hide the top and right spines, and mute the others."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)
    ax.tick_params(colors=INK, labelsize=9)
