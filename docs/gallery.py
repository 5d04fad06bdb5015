"""The gallery: scripts of examples/gallery, run when the site is built, as pages with what they print and draw.

A script has cells, as editors and Jupytext read them: `# %% [markdown]` begins text in comments, `# %%` code. What a
cell prints, the value of its last line and its figures stand below it. `python docs/gallery.py SCRIPT DIRECTORY` runs
one script and writes its page.
"""

import ast
import contextlib
import hashlib
import io
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCRIPTS = HERE.parent / "examples" / "gallery"
PAGES = HERE / "gallery" / "generated"
LIVE = HERE / "live"  # what goes into the site as it is
_CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
_ORDER = (
    "first_scorecard",
    "vendor_boosting",
    "committee_judgements",
    "several_classes",
    "regression",
    "sql_and_onnx",
    "million_on_dask",
    "paper_figure",
)


def cells(source: str) -> list[tuple[bool, str]]:
    """Whether each cell is text, and what it holds."""
    _, *parts = _CELL.split(source)
    return [
        (kind.strip() == "[markdown]", text.strip("\n")) for kind, text in zip(parts[::2], parts[1::2], strict=True)
    ]


def write_page(script: Path, place: Path) -> None:
    """Run a script cell by cell, and write its page and its figures into `place`."""
    import matplotlib as mpl
    import pandas as pd

    mpl.use("Agg")
    pd.set_option("display.max_colwidth", None)
    names: dict[str, Any] = {"__name__": "__main__"}
    page, n_figures = [], 0
    for is_text, text in cells(script.read_text(encoding="utf-8")):
        if is_text:
            page.append(re.sub(r"^# ?", "", text, flags=re.MULTILINE))
            continue
        page.append(f"```python\n{text.strip()}\n```")
        page += run(text, names)
        for figure in figures():
            n_figures += 1
            name = f"{script.stem}-{n_figures}.png"
            figure.savefig(place / name, dpi=110)
            page.append(f"![Figure {n_figures} of this example]({name})")
    (place / f"{script.stem}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")


def run(code: str, names: dict[str, Any]) -> list[str]:
    """What a cell prints, and the value of its last line."""
    body, printed, value = ast.parse(code).body, io.StringIO(), None
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    shown = [f"```text\n{printed.getvalue().rstrip()}\n```"] if printed.getvalue() else []
    if hasattr(value, "_repr_html_"):
        table = re.sub(r"<style.*?</style>", "", value._repr_html_(), flags=re.DOTALL)
        shown.append(re.sub(r"\n\s*", "\n", f'<div class="cell-output">{table}</div>').replace("\n\n", "\n"))
    return shown


def figures() -> list[Any]:
    """Figures that are open, which are closed."""
    import matplotlib.pyplot as plt

    found = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    return found


def version_of(script: Path) -> str:
    """A digest of all that a page depends on in this repository."""
    sources = [script, Path(__file__), *sorted((HERE.parent / "src").rglob("*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def renew(script: Path) -> None:
    """Run a script in a process of its own, unless its page is of this very code."""
    stamp, version = PAGES / f"{script.stem}.version", version_of(script)
    if stamp.exists() and stamp.read_text() == version:
        return
    done = subprocess.run([sys.executable, __file__, script, PAGES], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{script.name} of the gallery ended in an error:\n{done.stderr}")
    stamp.write_text(version)


def write_report() -> None:
    """Run `likewise demo`, and keep its report for the first page, unless there is the one of this very code."""
    stamp, version = LIVE / ".version", version_of(Path(__file__))
    if stamp.exists() and stamp.read_text() == version:
        return
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "likewise", "demo", "--out", place]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
        if done.returncode:
            raise RuntimeError(f"likewise demo ended in an error:\n{done.stderr}")
        shutil.copy(Path(place, "report.html"), LIVE / "demo-report.html")
    stamp.write_text(version)


def build() -> None:
    """Write the report and all pages that are not up to date, two at a time, and the cards that lead to the pages."""
    PAGES.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        report = pool.submit(write_report)
        list(pool.map(renew, scripts()))
        report.result()
    (PAGES / "cards.md").write_text("\n\n".join(card(script) for script in scripts()), encoding="utf-8")


def scripts() -> list[Path]:
    """The scripts, in the order of the gallery."""
    return [SCRIPTS / f"{name}.py" for name in _ORDER]


def card(script: Path) -> str:
    """Title, last figure and first sentence of an example."""
    *_, picture = sorted(PAGES.glob(f"{script.stem}-*.png"))
    title, words = (PAGES / f"{script.stem}.md").read_text(encoding="utf-8").split("\n\n")[:2]
    title, sentence = title.removeprefix("# "), re.split(r"(?<=[.?])\s", words.replace("\n", " "))[0]
    return (
        f":::{{container}} card-box\n[![{title}](generated/{picture.name})](generated/{script.stem}.md)\n\n"
        f"### [{title}](generated/{script.stem}.md)\n{sentence}\n:::"
    )


if __name__ == "__main__":
    write_page(Path(sys.argv[1]), Path(sys.argv[2]))
