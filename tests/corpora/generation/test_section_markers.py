from __future__ import annotations

import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document, Segment
from finecomb.corpora.generation.section_markers import add_section_markers, parse_section_markers

ARTICLE = Document(
    id="a",
    text="We ask.\n\nWe did.\nTwice.\n\nWe saw.",
    segments=(
        Segment(start=0, end=7, title="Introduction"),
        Segment(start=9, end=23, title="Methods"),
        Segment(start=25, end=32, title="Results"),
    ),
)


def texts_of(document: Document) -> list[tuple[str, str]]:
    return [(segment.title, document.text[segment.start : segment.end]) for segment in document.segments]


def test_sections_come_back_as_they_were() -> None:
    marked = add_section_markers(ARTICLE, "with-titles")
    assert marked.startswith("<|section|> Introduction\nWe ask.\n<|section|> Methods\n")
    back = parse_section_markers(Document(id="b", text=marked))
    assert texts_of(back) == texts_of(ARTICLE)
    assert back.text == ARTICLE.text
    assert "<|" not in back.text
    assert "Methods" not in back.text  # titles leave the text


def test_without_titles_the_sections_stay_and_the_titles_go() -> None:
    back = parse_section_markers(Document(id="b", text=add_section_markers(ARTICLE, "without-titles")))
    assert texts_of(back) == [("", text) for _, text in texts_of(ARTICLE)]


def test_what_a_model_leaves_undone_is_read_as_it_is() -> None:
    back = parse_section_markers(
        Document(id="b", text="Before. <|section|> Methods\nWe did.\n<|section|> Empty\n<|section|>")
    )
    assert texts_of(back) == [("", "Before."), ("Methods", "We did.")]
    assert texts_of(parse_section_markers(Document(id="b", text="Plain."))) == [("", "Plain.")]
    assert parse_section_markers(Document(id="b", text="")).segments == ()


def test_a_text_without_sections_cannot_be_marked() -> None:
    with pytest.raises(FinecombError, match="has no sections"):
        add_section_markers(Document(id="x", text="Plain."), "with-titles")
