from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl

import finecomb as fc
from finecomb.reporting.figures.alignment_figure import alignment_chart

DOCS = Path(__file__).parents[3] / "docs"
PICTURE = DOCS / "pictures" / "alignment.svg"


def pictured() -> tuple[str, pl.DataFrame]:
    """Return the text and rows of the first example in the documentation of gamma."""
    page = (DOCS / "statistics" / "gamma.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert example
    names: dict[str, Any] = {}
    exec("\n".join(re.findall(r"^(?:>>>|\.\.\.) ?(.*)$", example[1], re.MULTILINE)), names)
    return names["text"], names["rows"]


def test_the_picture_in_the_docs_is_made_from_its_example() -> None:
    text, rows = pictured()
    assert PICTURE.read_text(encoding="utf-8") == alignment_chart(text, rows, fc.protocol("scarecrow")).to_svg(
        heading=False
    )


def test_every_mark_is_drawn_with_its_cluster_and_joined_to_its_kin() -> None:
    text, rows = pictured()
    root = ElementTree.fromstring(alignment_chart(text, rows).to_svg(heading=False))
    names = [each.tag.rpartition("}")[2] for each in root.iter()]
    assert names.count("rect") == 1 + len(rows)
    assert names.count("polyline") == (rows.group_by("cluster").len()["len"] > 1).sum()
    assert text in [each.text for each in root.iter()]


def test_marks_without_a_place_are_not_drawn_and_texts_are_escaped() -> None:
    rows = pictured()[1].with_columns(start=pl.lit(None, pl.Int64), end=pl.lit(None, pl.Int64))
    root = ElementTree.fromstring(alignment_chart("a < b & c", rows).to_svg())
    assert "a < b & c" in [each.text for each in root.iter()]


if __name__ == "__main__":
    text, rows = pictured()
    alignment_chart(text, rows, fc.protocol("scarecrow")).save(PICTURE, heading=False)
