"""Which code a long run was about: what was found with other code says nothing of this one."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def code_of(*places):
    """A short name for the text of all Python files below some places of the project; another if one changes."""
    files = sorted(file for place in places for file in _below(ROOT / place))
    texts = [f"{file.relative_to(ROOT)}\n{file.read_text(encoding='utf-8')}" for file in files]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def _below(place):
    return [place] if place.is_file() else place.rglob("*.py")
