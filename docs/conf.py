"""How Sphinx makes the site from these pages: `make docs`. Nothing is fetched: no fonts, no analytics."""

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

NAVIGATION = Path(__file__).parent / "navigation.yml"


def sections(entries: list[dict[str, Any]], above: str = "") -> list[tuple[str, list[tuple[str, str]]]]:
    """The sections of the navigation in order, each with its pages as (title, file); what is nested names both."""
    result: list[tuple[str, list[tuple[str, str]]]] = []
    pages: list[tuple[str, str]] = []
    for entry in entries:
        ((title, target),) = entry.items()
        if isinstance(target, str):
            pages.append((title, target))
        else:
            result += sections(target, f"{above}: {title}" if above else title)
    return ([(above, pages)] if pages else []) + result


def navigation() -> str:
    """The tables of contents as MyST has them, for the end of the first page."""
    entries = yaml.safe_load(NAVIGATION.read_text(encoding="utf-8"))["nav"]
    blocks = []
    for caption, pages in sections(entries):
        lines = [f"{title} <{file.removesuffix('.md')}>" for title, file in pages if file != "index.md"]
        if lines:
            options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
            blocks.append("\n".join(["```{toctree}", *options, "", *lines, "```"]))
    return "\n\n".join(blocks)


def prepared(app: Any, name: str, source: list[str]) -> None:
    """Put the tables of contents below the first page; Pygments knows no CSV, so such blocks are plain text."""
    source[0] = source[0].replace("\n```csv", "\n```text")
    if name == "index":
        source[0] += f"\n\n{navigation()}\n"


REPAIRS = {
    'class="caption" role="heading"': 'class="caption" role="heading" aria-level="2"',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    '<div class="table-wrapper': '<div tabindex="0" role="group" aria-label="Table" class="table-wrapper',
    '<div id="search-results">': '<h1>Search</h1><div id="search-results">',
}
"""What the theme leaves out for screen readers and keyboards, and what stands there instead."""


def repaired(app: Any, error: Exception | None) -> None:
    """Repair the pages that were written, so that axe-core finds nothing grave in them."""
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
    """Tell Sphinx."""
    app.connect("source-read", prepared)
    app.connect("autodoc-process-docstring", convert_docstring)
    app.connect("build-finished", repaired)
