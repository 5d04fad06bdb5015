"""The site builds without a warning, every link leads somewhere, and every public name is in it."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import likewise
from likewise.cli.main import main

pytest.importorskip("sphinx")
pytest.importorskip("myst_parser")
pytest.importorskip("pydata_sphinx_theme")

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if "generated" not in path.parts]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-d",
        place / "doctrees",
        DOCS,
        place / "html",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert (done.returncode, done.stderr) == (0, "")
    return place / "html"


class Page(HTMLParser):
    """Links, anchors, and whatever a browser would fetch."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors, self.fetched = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif given.get("src"):
            self.fetched.append(given["src"])
        elif tag == "link" and given.get("rel") not in ("canonical", None):
            self.fetched.append(given["href"])


@cache
def page(path):
    return Page(path.read_text(encoding="utf-8"))


def broken(path, root):
    """Links and files of a page that lead nowhere inside the site."""
    for link in page(path).links + page(path).fetched:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        known = target.is_relative_to(root.resolve()) and target.is_file()
        anchored = known and parts.fragment and target.suffix == ".html"
        if not known or (anchored and unquote(parts.fragment) not in page(target).anchors):
            yield link


def test_every_link_and_anchor_leads_somewhere(site):
    pages = [path for path in site.rglob("*.html") if "_static" not in path.parts]  # templates of the theme
    assert len(pages) > 60
    assert {str(path.relative_to(site)): list(broken(path, site)) for path in pages if any(broken(path, site))} == {}


def test_control_broken_links_are_noticed(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html">x</a> <a href="#gone">y</a> <a id="here" href="#here">z</a>')
    assert list(broken(tmp_path / "a.html", tmp_path)) == ["b.html", "#gone"]


def test_nothing_is_fetched_from_elsewhere(site):
    for path in site.rglob("*.html"):
        assert [source for source in page(path).fetched if urlsplit(source).netloc] == [], path.name


def test_examples_were_run_and_the_first_page_has_a_report_and_pictures(site):
    for script in (DOCS.parent / "examples" / "gallery").glob("*.py"):
        shown = page(site / "gallery" / "generated" / f"{script.stem}.html").fetched
        assert any(f"{script.stem}-1.png" in source for source in shown), script.name
    first = page(site / "index.html").fetched
    assert {"demo-report.html"} < set(first)
    assert any(re.search(r"pairs\d*\.png", source) for source in first)
    assert any("workbench.webp" in source for source in first)
    assert (site / "demo-report.html").stat().st_size > 100_000


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("first model", "gallery/generated/first_scorecard"),
        ("reproduce the paper", "reproduce"),
        ("cluster", "howto/cluster"),
    ],
)
def test_search_finds_what_people_look_for(site, words, first):
    """Sphinx ranks by the share of a title that the words take; the page is the one with the largest."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").rstrip().removesuffix(")"))
    share = {
        name: len(words) / len(title)
        for name, title in zip(index["docnames"], index["titles"], strict=True)
        if words in title.lower()
    }
    assert max(share, key=share.get) == first


def test_every_public_name_is_in_the_reference(site):
    anchors = set().union(*(page(path).anchors for path in (site / "reference").rglob("*.html")))
    assert [name for name in likewise.__all__ if f"likewise.{name}" not in anchors] == []


def test_every_command_is_in_the_reference(site):
    text = (site / "reference" / "generated" / "commands.html").read_text(encoding="utf-8")
    assert [name for name in main.commands if f"likewise {name}" not in text] == []


def blocks(language):
    for path in PAGES:
        for text in re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
            yield pytest.param(text, id=str(path.relative_to(DOCS)))


@pytest.mark.parametrize("block", list(blocks("sh")))
def test_commands_that_are_not_run_have_options_that_exist(block):
    commands = [shlex.split(line, comments=True) for line in block.splitlines() if line.startswith("likewise ")]
    assert commands
    for _, name, *words in commands:
        main.commands[name].make_context(name, words)  # raises if an option is wrong


def test_control_an_option_that_does_not_exist_is_noticed():
    with pytest.raises(Exception, match="--no-such"):
        main.commands["audit"].make_context("audit", ["people.csv", "--no-such"])


@pytest.mark.parametrize("block", list(blocks("toml")))
def test_metric_files_on_pages_are_valid(block):
    assert tomllib.loads(block)


@pytest.mark.parametrize("block", list(blocks("yaml")))
def test_workflows_are_valid_yaml(block):
    assert pytest.importorskip("yaml").safe_load(block)["jobs"]


def test_every_block_has_a_language_that_is_checked():
    known = {"python", "console", "sh", "yaml", "toml", "text"}
    for path in PAGES:
        fences = re.findall(r"^```(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        opened = {fence for fence in fences[::2] if not fence.startswith("{")}
        assert opened <= known, path.name
