"""Sphinx settings of the documentation site (`make docs`). The site loads nothing from other hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from sphinx.ext.napoleon.docstring import NumpyDocstring

project = "Finecomb"
html_title = "Finecomb"
html_theme = "furo"
html_static_path = ["assets"]
html_css_files = ["grey.css"]
html_favicon = "assets/comb.svg"
html_theme_options = {"light_logo": "comb.svg", "dark_logo": "comb.svg", "sidebar_hide_name": False}
html_show_sphinx = False
html_copy_source = False

extensions = ["myst_parser", "sphinx.ext.autodoc"]
autodoc_typehints = "none"  # docstrings name the types
autodoc_member_order = "bysource"
default_role = "literal"
add_module_names = False
toc_object_entries = False
exclude_patterns = ["assets"]
myst_heading_anchors = 4
pygments_style = "bw"  # in Finecomb a colour means a judgement
pygments_dark_style = "bw"

NAVIGATION = yaml.safe_load((Path(__file__).parent / "navigation.yml").read_text(encoding="utf-8"))

Pages = list[tuple[str, str]]
"""Titles and files."""


def sections(entries: list[dict[str, Any]], above: str = "") -> list[tuple[str, Pages]]:
    """Return the sections of the navigation with their pages. A group becomes a section named "Section: group"."""
    result: list[tuple[str, Pages]] = []
    pages: Pages = []
    for entry in entries:
        ((title, target),) = entry.items()
        if isinstance(target, list):
            result += sections(target, f"{above}: {title.lower() if above else title}" if above else title)
        else:
            pages.append((title, target if isinstance(target, str) else next(iter(target))))
    return ([(above, pages)] if pages else []) + result


def subpages(entries: list[dict[str, Any]]) -> dict[str, Pages]:
    """Return the pages that stand below another page in the navigation, by the file of that page."""
    found: dict[str, Pages] = {}
    for entry in entries:
        ((_, target),) = entry.items()
        if isinstance(target, list):
            found |= subpages(target)
        elif isinstance(target, dict):
            found |= {file: [next(iter(child.items())) for child in children] for file, children in target.items()}
    return found


def toctree(pages: Pages, caption: str = "") -> str:
    """Return a hidden table of contents, which the theme shows in the sidebar."""
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    lines = [f"{title} <{'/' + file.removesuffix('.md')}>" for title, file in pages]
    return "\n".join(["```{toctree}", *options, "", *lines, "```"])


def index_entries(file: str) -> str:
    """Return the index entries of a page. Search ranks main entries (`!`) above words of a title."""
    phrases = [phrase for phrase, page in NAVIGATION["search"].items() if page == file]
    return "".join(f"```{{index}} ! single: {phrase}\n```\n\n" for phrase in phrases)


def prepare_page(app: Any, name: str, source: list[str]) -> None:
    """Add navigation and index entries to a page. Pygments has no CSV lexer, so such blocks become plain text."""
    page = source[0].replace("\n```csv", "\n```text")
    contents = [toctree(pages, caption) for caption, pages in sections(NAVIGATION["nav"])] if name == "index" else []
    below = subpages(NAVIGATION["nav"]).get(f"{name}.md", [])
    contents += [toctree(below)] if below else []
    source[0] = "\n\n".join([index_entries(f"{name}.md") + page, *contents]) + "\n"


REPAIRS = {
    'class="caption" role="heading"': 'class="caption" role="heading" aria-level="2"',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    '<div class="table-wrapper': '<div tabindex="0" role="group" aria-label="Table" class="table-wrapper',
    '<div id="search-results">': '<h1>Search</h1><div id="search-results">',
}
"""HTML of the theme and its replacement, with attributes that screen readers and keyboards need."""


def repair_pages(app: Any, error: Exception | None) -> None:
    """Add missing accessibility attributes to the pages, so that axe-core reports no serious problem."""
    for file in Path(app.outdir).rglob("*.html"):
        page = before = file.read_text(encoding="utf-8")
        for plain, repair in REPAIRS.items():
            page = page if repair in page else page.replace(plain, repair)
        if page != before:
            file.write_text(page, encoding="utf-8")


def convert_docstring(app: Any, what: Any, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Convert a NumPy docstring to reStructuredText. Fields are left alone: Napoleon reads a colon there as a type."""
    if what not in ("attribute", "property", "data"):
        lines[:] = NumpyDocstring(list(lines), what=what, name=name, obj=obj, options=options).lines()


def setup(app: Any) -> None:
    """Register the hooks with Sphinx."""
    app.connect("source-read", prepare_page)
    app.connect("autodoc-process-docstring", convert_docstring)
    app.connect("build-finished", repair_pages)
