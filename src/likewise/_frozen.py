"""Frozen dataclasses that are serialised by their fields alone."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Frozen:
    """Base of frozen dataclasses whose cached properties are not serialised."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
