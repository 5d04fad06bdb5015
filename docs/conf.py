"""How the site is built: `make docs`. Pages are Markdown, the reference comes from the docstrings."""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import click
from sphinx.application import Sphinx

import likewise
from likewise.cli.main import main

sys.path.insert(0, str(Path(__file__).parent))
import gallery

GENERATED = Path(__file__).parent / "reference" / "generated"

project = "likewise"
author = "The likewise developers"
release = version = likewise.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_templates", "gallery/generated/cards.md"]
templates_path = ["_templates"]

# A name in single backticks is a link where it is a public name, and code everywhere.
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_custom_sections = ["Covers / does not cover"]
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # types stand in the docstrings
autosummary_generate = True
# Names that differ by a capital only would be one file on some systems.
autosummary_filename_map = {
    f"likewise.{name}": f"likewise.{name}-function" for name in ("audit", "ceiling", "tradeoff")
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# A session of Python ends with an empty line in the source, which nobody needs to see.
highlight_options = {name: {"stripnl": True} for name in ("python", "pycon")}

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = f"likewise {release}"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_extra_path = ["live"]
gallery.LIVE.mkdir(exist_ok=True)
html_css_files = ["likewise.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": f"likewise {release}", "image_light": "_static/favicon.svg", "image_dark": "_static/favicon.svg"},
    "navbar_align": "left",
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_version_warning_banner": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "tutorial/*": []}  # one page has no section to show
copyright = "The likewise developers, BSD-3 licence"


def write_gallery(app: Sphinx) -> None:
    """Run the examples of the gallery, and the demo for its report."""
    gallery.build()


def write_commands(app: Sphinx) -> None:
    """Put what every command says about itself on one page."""
    GENERATED.mkdir(exist_ok=True)
    sections = [
        f"## likewise {name}\n\n```text\n{help_of(command, f'likewise {name}')}\n```"
        for name, command in main.commands.items()
    ]
    (GENERATED / "commands.md").write_text("# Command line\n\n" + "\n\n".join(sections) + "\n", encoding="utf-8")


def help_of(command: click.Command, name: str) -> str:
    """The text of `--help`."""
    with click.Context(command, info_name=name, max_content_width=100, terminal_width=100) as context:
        return command.get_help(context)


def skip_inherited(app: Sphinx, kind: str, name: str, item: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn documents itself."""
    return True if str(getattr(item, "__module__", "")).startswith("sklearn.") else None


def link_pages(app: Sphinx, kind: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Turn the pages that docstrings name into links."""
    lines[:] = [re.sub(r"(?<!`)`docs/(\w+)\.md`", r":doc:`\1 </\1>`", line) for line in lines]


def setup(app: Sphinx) -> None:
    """Join the steps above to those of Sphinx."""
    shutil.rmtree(GENERATED, ignore_errors=True)  # names that are gone must leave no page behind
    app.connect("builder-inited", write_commands)
    app.connect("builder-inited", write_gallery)
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", link_pages)
