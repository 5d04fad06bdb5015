"""Examples become pages with what they print and draw, and the picture of the first page is what its code draws."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = """# %% [markdown]
# # A title
#
# What it is. More of it.

# %%
import matplotlib.pyplot as plt

print(6 * 7)
_ = plt.plot([1, 2])

# %%
import pandas as pd

pd.DataFrame({"a": [1 / ZERO]})
"""


def module(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def gallery(tmp_path, monkeypatch):
    found = module("gallery")
    monkeypatch.setattr(found, "PAGES", tmp_path)
    return found


def test_a_page_has_the_code_what_it_prints_its_table_and_its_figure(gallery, tmp_path):
    script = tmp_path / "some.py"
    script.write_text(SCRIPT.replace("ZERO", "4"))
    gallery.renew(script)
    page = (tmp_path / "some.md").read_text()
    assert page.startswith("# A title\n\nWhat it is. More of it.\n\n```python\nimport matplotlib")
    assert "```text\n42\n```\n\n![Figure 1 of this example](some-1.png)" in page
    assert "<td>0.25</td>" in page
    assert (tmp_path / "some-1.png").stat().st_size > 1000
    card = gallery.card(script)
    assert "### [A title](generated/some.md)\nWhat it is.\n" in card
    written = (tmp_path / "some.md").stat().st_mtime_ns
    gallery.renew(script)  # nothing has changed
    assert (tmp_path / "some.md").stat().st_mtime_ns == written


def test_control_an_example_that_fails_ends_the_build(gallery, tmp_path):
    script = tmp_path / "some.py"
    script.write_text(SCRIPT.replace("ZERO", "0"))
    with pytest.raises(RuntimeError, match=r"some.py of the gallery ended in an error:[\s\S]*ZeroDivisionError"):
        gallery.renew(script)


def test_every_script_is_in_the_gallery(gallery):
    assert sorted(gallery.scripts()) == sorted((ROOT / "examples" / "gallery").glob("*.py"))
    listed = (ROOT / "docs" / "gallery" / "index.md").read_text()
    assert all(f"generated/{script.stem}\n" in listed for script in gallery.scripts())


def test_pictures_that_pages_save_stand_beside_them():
    draw = module("draw")
    saved = {
        (ROOT / "docs" / page).parent / name
        for page in draw.PAGES
        for name in re.findall(r'savefig\("(.*?)"', (ROOT / "docs" / page).read_text(encoding="utf-8"))
    }
    assert len(saved) == 6
    assert [place.name for place in saved if not place.is_file()] == []


def test_the_picture_of_the_first_page_is_what_its_code_draws(tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.image import imread

    draw = module("draw")
    figure = draw.pairs()
    before, after = (ax.get_title(loc="left").splitlines()[1] for ax in figure.axes)
    assert before.split(" of ")[1] == after.split(" of ")[1]
    assert (before.startswith("0 of"), after.startswith("0 of")) == (False, True)
    draw.save(figure, tmp_path / "pairs.png")
    drawn, kept = (imread(place)[..., :3] for place in (tmp_path / "pairs.png", ROOT / "docs" / "pairs.png"))
    assert drawn.shape == kept.shape
    assert np.abs(drawn - kept).mean() < 0.02  # dots and letters may move a little with other versions
    assert np.abs(drawn - drawn[:, ::-1]).mean() > 0.02  # another picture is noticed
