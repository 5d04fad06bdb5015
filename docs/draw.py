"""Draw the pictures of pages: `python docs/draw.py` writes that of the first page, and all that pages save."""

import doctest
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from sklearn.model_selection import train_test_split

from likewise import AdditiveClassifier, AuditDisplay, TableMetric, audit
from likewise.datasets import load_mortgages
from likewise.inspection.baselines import unconstrained_model

DOCS = Path(__file__).parent
PAGES = ["howto/from_nothing.md", "howto/vendor.md", "tutorial/mortgages.md"]
PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PROTECTED = ["race", "sex", "married", "older_than_median"]


def pairs() -> Any:
    """Difference of scores against distance of people whom the models have not seen, without and with the guarantee."""
    import matplotlib.pyplot as plt

    bunch = load_mortgages()
    columns = ["income", "obligations", "loan_to_price", "consumer_credit", "bankruptcy", *PROTECTED]
    X = bunch.data[columns].dropna()
    X_train, X_new, y_train, _ = train_test_split(X, bunch.target[X.index], test_size=0.4, random_state=0)
    metric = TableMetric(
        {"income": 0.001, "obligations": 0.01, "loan_to_price": 0.25},
        {"consumer_credit": 0.2, "bankruptcy": 0.3} | dict.fromkeys(PROTECTED, 0),
    )
    models = {
        "Without the guarantee": unconstrained_model(X_train, protected=PROTECTED),
        "With the guarantee": AdditiveClassifier(metric),
    }
    figure, both = plt.subplots(1, 2, figsize=(10, 4.6), sharex=True, sharey=True, layout="constrained")
    for ax, (words, model) in zip(both, models.items(), strict=True):
        found = audit(model.fit(X_train, y_train), X_new, metric)
        AuditDisplay.from_audit(found, ax=ax)
        ax.set_title(f"{words}\n{ax.get_title(loc='left')}", loc="left", fontsize=11, pad=24)
        ax.label_outer()
        ax.set(xlim=(0, 0.8), ylim=(0, 0.8))
    return figure


def save(figure: Any, place: Path) -> None:
    """Write a figure in 64 colours, a third of the bytes; rare ones, as those of few dots, stay."""
    from PIL import Image

    with tempfile.TemporaryDirectory() as drawn:
        whole = Path(drawn, "whole.png")
        figure.savefig(whole, dpi=120)
        with Image.open(whole) as picture:
            picture.convert("RGB").quantize(64, Image.Quantize.MAXCOVERAGE).save(place, optimize=True)


def draw_page(page: Path) -> list[str]:
    """Run the Python blocks of a page in an empty directory, and keep the pictures they save beside the page."""
    names: dict[str, Any] = {}
    back = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            for block in re.findall(
                r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
            ):
                exec(doctest.script_from_examples(block) if block.startswith(">>>") else block, names)
        finally:
            os.chdir(back)
        found = sorted(Path(place).glob("*.png"))
        for picture in found:
            shutil.copy(picture, page.parent)
    return [picture.name for picture in found]


def main() -> None:
    """Write the pictures of the pages named, or all."""
    import matplotlib as mpl

    mpl.use("Agg")
    for name in sys.argv[1:] or ["index.md", *PAGES]:
        if name == "index.md":
            save(pairs(), DOCS / "pairs.png")
        else:
            print(name, *draw_page(DOCS / name))


if __name__ == "__main__":
    main()
