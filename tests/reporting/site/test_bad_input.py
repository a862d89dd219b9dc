"""Reports of tiny and unusual studies: sections give a reason instead of an empty chart or a traceback."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from finecomb.core.records import Annotation, Annotator, AnnotatorKind, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.protocols import load
from finecomb.reporting.figures.figure_model import TableFigure
from finecomb.reporting.site.report_content import build_report_source
from finecomb.reporting.site.report_folder import write_report

SCARECROW = load("scarecrow")
HEBREW = "מילים ישנות וחדשות"
WORDS = "Some old words and new words"


def study(
    texts: Mapping[str, tuple[str, str]],
    readers: Sequence[str],
    marked: Sequence[str] = (),
    kind: AnnotatorKind = "human",
) -> Study:
    """Build a study of texts by ID as (system, words); every annotator marks the first letters of some."""
    documents = [
        Document(id=id, text=text, meta={"model": system} if system else {}) for id, (system, text) in texts.items()
    ]
    work = [
        Annotation(
            id=f"{document.id}/{reader}", document=document.id, annotator=reader, protocol=SCARECROW.id,
            marks=_marks(document, reader) if document.id in marked else (),
        )
        for document in documents
        for reader in readers
    ]  # fmt: skip
    return Study.from_items([SCARECROW, *documents, *(Annotator(id=id, kind=kind) for id in readers), *work])


def _marks(document: Document, reader: str) -> tuple[Mark, ...]:
    """One mark without severity or explanation."""
    mark = Mark(id=f"{document.id}/{reader}/m", spans=(Span(0, 4),), quotes=(document.text[:4],), label="redundant")
    return (mark,)


TWO = {"a1": ("a", WORDS), "a2": ("a", WORDS * 2), "b1": ("b", WORDS), "b2": ("b", WORDS)}
STUDIES = {
    "one annotator": study(TWO, ["r"], ["a1", "a2"]),
    "one document": study({"d": ("a", WORDS)}, ["r", "s", "t"], ["d"]),
    "no severity, labels never used": study(TWO, ["r", "s"], ["a1", "b1"]),
    "nothing marked": study(TWO, ["r", "s"]),
    "no words": study({"d": ("a", ""), "e": ("b", ""), "f": ("b", " \n")}, ["r", "s"]),
    "right to left": study({"d": ("a", HEBREW), "e": ("b", HEBREW)}, ["r", "s"], ["d"]),
    "markup in a text": study({"d": ("a", "</script><svg onload=x>"), "e": ("b", WORDS)}, ["r", "s"], ["d"]),
    "machines only": study(TWO, ["m"], ["a1"], "llm"),
    "some texts without a system": study({**TWO, "n": ("", WORDS)}, ["r", "s"], ["n", "a1"]),
    "only human text": study({"h": ("human", WORDS), "i": ("human", WORDS)}, ["r", "s"], ["h"]),
}


NO_PEOPLE = "the judges cannot be scored, because no person has annotated the texts; pass gold with --against"


@pytest.mark.parametrize("name", STUDIES)
def test_a_report_is_written_and_nothing_in_it_is_empty(name: str, tmp_path: Path) -> None:
    content = write_report(build_report_source(STUDIES[name], name, draws=30), tmp_path / "report", "today")
    page = (tmp_path / "report/index.html").read_text()
    words = re.sub(r"<[^>]*>", " ", page)
    assert not re.search(r"\b(nan|inf|none, at most nan)\b", words, re.IGNORECASE), name
    assert [note.rpartition(": ")[2] for note in content.notes] == ([NO_PEOPLE] if name == "machines only" else [])
    for figure in content.figures:
        if not figure.empty and not isinstance(figure, TableFigure):
            drawn = figure.to_svg()
            assert "<circle" in drawn or "<rect x" in drawn or ">none" in drawn, (name, figure.id)
        assert "nan" not in (tmp_path / f"report/tables/{figure.id}.csv").read_text().lower()
    for file in (tmp_path / "report").rglob("*.html"):
        assert "<svg onload" not in file.read_text()
