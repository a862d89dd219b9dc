"""Benchmark tables in the documentation, between `<!-- measured: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def write_table(page: str, name: str, table: str, conditions: str = "") -> None:
    """Replace a table in a documentation page, with a line on when and where it was measured."""
    table = f"{conditions}\n\n{table}" if conditions else table
    print(table, flush=True)
    path = DOCS / page
    start, end = f"<!-- measured: {name} -->", "<!-- end -->"
    text = path.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{path} has no markers for the table {name!r}; add {start} and {end}")
    path.write_text(pattern.sub(lambda _: f"{start}\n{table}\n{end}", text), encoding="utf-8")
