"""The tree in CONTRIBUTING.md is the tree of the source."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "likewise"
WORD = re.compile(r"[\w.]+/?")


def tree():
    return re.search(r"```\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text("utf-8"), re.DOTALL)[1]


def modules():
    """Modules of the package, but for `__init__` and the private ones of `datasets`."""
    found = {path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")}
    return {path for path in found if not path.name.startswith("__") and not str(path).startswith("datasets/_")}


def named(text):
    """Modules that the tree names: an indented line continues the package above it."""
    found, package = set(), ""
    for line in text.splitlines():
        head = WORD.match(line)
        package = head[0] if head and head[0].endswith("/") else package if line.startswith(" ") else ""
        for word in WORD.findall(re.sub(r"\(.*?\)", "", line[len(package) :])):
            if word.endswith(".py"):
                found.add(Path(word))
            elif package and (SOURCE / package / f"{word}.py").is_file():
                found.add(Path(package) / f"{word}.py")
    return found


def test_every_module_is_in_the_tree():
    assert sorted(modules() - named(tree())) == []


def test_every_module_of_the_tree_exists():
    assert sorted(named(tree()) - modules()) == []
    for line in tree().splitlines():
        for listed in re.split(r" {3,}", line)[-1].split(" · ")[1:]:  # what stands between dots is a module or a file
            word = re.sub(r" \(.*| {2,}.*", "", listed).strip()
            assert list(SOURCE.rglob(f"{word.removesuffix('.py').strip('/')}*")), word


def test_control_a_missing_and_a_stale_module_are_noticed():
    text = tree().replace(" · box_tree", "").replace("base.py ", "bases.py ")
    assert Path("pairs/box_tree.py") in modules() - named(text)
    assert Path("bases.py") in named(text) - modules()
