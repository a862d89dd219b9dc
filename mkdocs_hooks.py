"""What MkDocs needs to know about our pages."""

from __future__ import annotations


def on_page_markdown(markdown: str, **_: object) -> str:
    """Hide `no-run`, which tells tests/test_docs.py not to run a block and which no renderer knows."""
    return markdown.replace("```console no-run\n", "```console\n")
