from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import finecomb as fc
from finecomb.core.protocol import Trim
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.gold.mark_normalisation import NormalisedView, normalise_marks, trim_span
from finecomb.statistics.selection.view import view

TRIM = Trim(leading=("a", "an", "the"), trailing=".,;:!?")


@pytest.mark.parametrize(
    ("quote", "left"),
    [
        ("the Boston Celtics", "Boston Celtics"),
        ("The Boston Celtics.", "Boston Celtics"),
        ("the a dog", "dog"),
        ("Theatre", "Theatre"),
        ("the", "the"),
        ("30 .", "30"),
        ("...", "..."),
        ("on the road", "on the road"),
        ("anchor", "anchor"),
    ],
)
def test_determiners_before_and_punctuation_after_are_no_part_of_an_error(quote: str, left: str) -> None:
    assert trim_span(Span(0, len(quote)), quote, TRIM).extract(quote) == left


@given(st.text("the a.,b", min_size=1, max_size=14), st.data())
def test_what_is_trimmed_lies_inside_and_stays_as_it_is(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    span = Span(start, data.draw(st.integers(start, len(text))))
    once = trim_span(span, text, TRIM)
    assert span.start <= once.start <= once.end <= span.end
    assert trim_span(once, text, TRIM) == once


def accuracy(text: str, *given: tuple[str, str | None, dict[str, str]]) -> NormalisedView:
    """Build the marks of one annotator, by their words, under the accuracy protocol."""
    marks = []
    for at, (quote, label, answers) in enumerate(given):
        start = text.index(quote)
        spans = (Span(start, start + len(quote)),)
        marks.append(Mark(id=f"m{at}", spans=spans, quotes=(quote,), label=label, answers=answers))
    read = Annotation(id="a", document="d", annotator="p", protocol="accuracy@2", marks=tuple(marks))
    who = Annotator(id="p", kind="human")
    return normalise_marks(view(Study.from_items([fc.protocol("accuracy"), Document(id="d", text=text), who, read])))


def words(found: NormalisedView) -> list[tuple[str, str | None]]:
    return [(" ".join(row["quotes"]), row["label"]) for row in found.view.study.marks.iter_rows(named=True)]


def test_a_weekday_is_a_name() -> None:
    found = accuracy("They won on Monday.", ("Monday", "word", {}))
    assert words(found) == [("Monday", "name")]
    assert found.changes[0][3:] == ("weekday-is-name", "Monday (word)", "Monday (name)")


def test_two_numbers_become_two_marks_each_with_its_correction() -> None:
    found = accuracy("Boston won 30-20.", ("30-20", "number", {"correction": "28-25", "comment": "both"}))
    assert words(found) == [("30", "number"), ("20", "number")]
    assert [row["answers"] for row in found.view.study.marks.iter_rows(named=True)] == [
        '{"correction":"28","comment":"both"}',
        '{"correction":"25","comment":"both"}',
    ]
    assert found.origins == {"m0.1": "m0", "m0.2": "m0"}
    assert found.changes[0][3:] == ("two-numbers", "30-20", "30 + 20")


def test_a_season_stays_whole_and_other_labels_are_left_alone() -> None:
    text = "In 2023-24 they lost 30-20."
    assert words(accuracy(text, ("2023-24", "number", {}))) == [("2023-24", "number")]
    assert words(accuracy(text, ("30-20", "word", {}))) == [("30-20", "word")]


def test_without_guidelines_only_sizes_change() -> None:
    ready = accuracy("They won on the Monday.", ("the Monday", "word", {}))
    assert [change.rule for change in ready.changes] == ["trim", "weekday-is-name"]
