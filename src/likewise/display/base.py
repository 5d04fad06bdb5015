"""The base of displays, and how plots look. Matplotlib is imported when one is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, Self, TypeVar

from likewise._optional import need
from likewise.exceptions import InvalidTypeError

Result = TypeVar("Result")

# Colours that stay apart for colour-blind readers, and in grey.
BLUE, ORANGE, RED, GREY, INK = "#2f6fa7", "#d98a2b", "#c0392b", "#8a8f98", "#2b2f36"


def label(ax: Any, text: str, point: tuple[Any, Any], offset: tuple[float, float], **style: Any) -> None:
    """Text at an offset from a point, in points."""
    ax.annotate(text, point, xytext=offset, textcoords="offset points", **{"fontsize": 9, **style})


def legend(ax: Any, **style: Any) -> None:
    """A legend above the axes, on the left."""
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "frameon": False, "fontsize": 9}
    ax.legend(**{**place, **style})


def patch(colour: str, words: str) -> Any:
    """A legend entry of one colour."""
    from matplotlib.patches import Patch

    return Patch(color=colour, label=words)


class Display(ABC):
    """A plot; subclasses draw it."""

    ax_: Any
    figure_: Any

    def plot(self, *, ax: Any = None) -> Self:
        """Draw on `ax`, or on a new figure."""
        if ax is None:
            subplots = need("matplotlib.pyplot", "A plot").subplots
            ax = subplots(figsize=self._figure_size(), layout="constrained")[1]
        self._draw(ax)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            ax.spines[side].set_color(GREY)
        ax.tick_params(colors=INK, labelsize=9)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _figure_size(self) -> tuple[float, float]:
        return 6.8, 4.2

    @abstractmethod
    def _draw(self, ax: Any) -> None: ...


class ResultDisplay(Display, Generic[Result]):
    """A plot of the result of one function."""

    def __init__(self, result: Result) -> None:
        self.result = result

    @classmethod
    def _from_result(cls, result: Any, kind: type[Result], function: str, ax: Any) -> Self:
        if not isinstance(result, kind):
            raise InvalidTypeError(f"result must be what {function} returned; got {type(result).__name__}.")
        return cls(result).plot(ax=ax)
