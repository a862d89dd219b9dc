from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core import frames
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.records import (
    AlternativeMark,
    Annotation,
    Annotator,
    Antecedents,
    Document,
    Exclusion,
    Mark,
    Note,
    QualificationRecord,
    Settings,
    Unit,
)
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem, merge_work
from tests.strategies import PROTOCOL, studies

NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
# Making studies is the slow part, so each property sees fewer of them.
fewer = settings(max_examples=settings().max_examples // 3)
SET_ASIDE = Exclusion(by="us", when=NOON, reason="asleep")

# Every field of every record filled.
FULL: list[StudyItem] = [
    Settings(title="Full", protocols=(PROTOCOL.id,), annotators=2, strata=("model",), price=1.5, fees=0.2, seed=7),
    PROTOCOL,
    Document(
        id="doc",
        text="One two three 😀 four.",
        context={"prompt": "Count"},
        references=("One.", ""),
        data={"a": [1, None, 1.0, True]},
        meta={"model": "m", "top_p": 0.9, "x": None},
    ),
    Annotator(
        id="ann",
        kind="human",
        condition="trained",
        survey={"age": 40, "langs": ("en", "de")},
        qualification=QualificationRecord(protocol=PROTOCOL.id, score=93.5, passed=True),
        platform="here",
        excluded=SET_ASIDE,
        meta={"x": 1},
    ),
    Annotation(
        id="a1",
        document="doc",
        annotator="ann",
        protocol=PROTOCOL.id,
        round=2,
        about="m1",
        phase="training",
        status="excluded",
        marks=(
            Mark(
                id="m1",
                spans=(Span(0, 3), Span(8, 13)),
                quotes=("One", "three"),
                label="red",
                answers={"severity": 2, "sure": True, "explanation": "Why?"},
                antecedents=Antecedents(spans=(Span(0, 5, "prompt"),), quotes=("Count",)),
                confidence=0.25,
                votes=2,
                label_votes={"red": 1, "no type": 1},
                item="i",
                made_from=("m0",),
                alternatives=((AlternativeMark(spans=(Span(0, 7),), quotes=("One two",), label=None),), ()),
                basis="record",
                meta={"row": 3},
            ),
            Mark(
                id="m2",
                spans=(),
                quotes=("lost", "too"),
                label=None,
                unlocated="not found",
                antecedents=Antecedents(spans=(), quotes=("gone",), unlocated="not found"),
            ),
            Mark(id="m3", spans=(Span(4, 4),), quotes=("",), label="blue"),
        ),
        units=(
            Unit(start=0, end=3, answers={"verdict": "yes"}, scores={"red": 0.5}, seconds=1.5),
            Unit(start=4, end=9),
        ),
        answers={"rating": 2.0},
        made_from=("a0",),
        readers=3,
        excluded=SET_ASIDE,
        started=NOON,
        submitted=NOON,
        seconds=10.5,
        active_seconds=9.25,
        meta={"raw": "reply"},
    ),
]


@fewer
@given(studies())
def test_records_go_into_frames_and_come_back(items: list[StudyItem]) -> None:
    assert list(Study.from_items(items).items()) == items


def test_every_field_survives_the_frames() -> None:
    assert list(Study.from_items(FULL).items()) == FULL


@fewer
@given(studies(), st.randoms())
def test_records_may_come_in_any_order(items: list[StudyItem], rng: random.Random) -> None:
    shuffled = items.copy()
    rng.shuffle(shuffled)
    again = list(Study.from_items(shuffled).items())
    assert sorted(map(repr, again)) == sorted(map(repr, items))


@pytest.mark.parametrize("name", frames.COLUMNS_BY_FRAME)
def test_frames_have_the_documented_columns_also_when_empty(name: str) -> None:
    wanted = frames.polars_schema(frames.COLUMNS_BY_FRAME[name])
    for study in (Study.from_items([]), Study.from_items(FULL)):
        assert dict(getattr(study, name).schema) == {
            key: pl.Series([], dtype=kind).dtype for key, kind in wanted.items()
        }


def test_an_empty_study_can_be_asked_anything() -> None:
    empty = Study.from_items([])
    assert list(empty.items()) == [Settings()]
    assert empty.submitted_work() == empty
    assert len(empty.spans) == len(empty.answers) == 0
    assert repr(empty) == "Study('': 0 documents, 0 annotations, 0 marks; no protocol)"
    assert "No documents yet" in empty._repr_html_()


def test_notes_are_kept_beside_the_records() -> None:
    study = Study.from_items([*FULL, Note(text="3 quotes were not found")])
    assert study.notes == ("3 quotes were not found",)


# --- equality ---


@fewer
@given(studies())
def test_studies_of_the_same_records_are_equal_wherever_they_come_from(items: list[StudyItem]) -> None:
    assert Study.from_items(items, origin="here") == Study.from_items(items, origin="there")


def test_studies_with_another_answer_are_not_equal() -> None:
    other = [
        item.model_copy(update={"answers": {"rating": 3.0}}) if isinstance(item, Annotation) else item for item in FULL
    ]
    assert Study.from_items(other) != Study.from_items(FULL)
    assert Study.from_items(FULL) != "a study"


def test_a_study_cannot_be_a_key() -> None:
    with pytest.raises(TypeError):
        hash(Study.from_items(FULL))


# --- choosing ---

PEOPLE = [
    Annotator(id="p1", kind="human"),
    Annotator(id="p2", kind="human", excluded=Exclusion(by="us", reason="asleep")),
]


def annotation(id: str, annotator: str = "p1", **more: Any) -> Annotation:
    number = int(id[1:])
    mark = Mark(id=f"m-{id}", spans=(Span(0, 1),), quotes=("x",), label="red")
    unit = Unit(start=0, end=1)
    return Annotation(
        id=id,
        document="d",
        annotator=annotator,
        protocol=PROTOCOL.id,
        round=number,
        marks=(mark,),
        units=(unit,),
        **more,
    )


MIXED = Study.from_items(
    [
        PROTOCOL,
        Document(id="d", text="x"),
        *PEOPLE,
        annotation("a1"),
        annotation("a2", status="draft"),
        annotation("a3", status="excluded"),
        annotation("a4", phase="training"),
        annotation("a5", phase="qualification"),
        annotation("a6", excluded=Exclusion(by="us", reason="copied")),
        annotation("a7", annotator="p2"),
        annotation("a8"),
    ]
)


def test_work_is_what_was_submitted_and_not_set_aside() -> None:
    work = MIXED.submitted_work()
    assert work.annotations["id"].to_list() == ["a1", "a8"]
    assert work.marks["id"].to_list() == ["m-a1", "m-a8"]
    assert work.units["annotation"].to_list() == ["a1", "a8"]
    assert work.submitted_work() == work


def test_documents_and_annotators_stay_when_annotations_go() -> None:
    nothing = MIXED.filter_annotations(pl.lit(False))
    assert (len(nothing.annotations), len(nothing.marks), len(nothing.units)) == (0, 0, 0)
    assert (len(nothing.documents), len(nothing.annotators)) == (1, 2)


def test_what_was_computed_of_the_whole_is_not_kept_by_its_part() -> None:
    assert len(MIXED.spans) == 8
    assert len(MIXED.submitted_work().spans) == 2
    assert MIXED.submitted_work().spans["mark"].to_list() == ["m-a1", "m-a8"]


@fewer
@given(studies())
def test_only_keeps_the_marks_and_units_of_the_annotations_kept(items: list[StudyItem]) -> None:
    one = Study.from_items(items).filter_annotations(pl.col("annotator") == "ann-0")
    wanted = [item for item in items if not isinstance(item, Annotation) or item.annotator == "ann-0"]
    assert list(one.items()) == wanted


# --- finding ---


def test_a_document_is_found_by_its_id() -> None:
    study = Study.from_items(FULL)
    assert study.document("doc") == FULL[2]
    with pytest.raises(FinecombError, match="unknown document ID 'dok'; did you mean 'doc'"):
        study.document("dok")


def test_annotations_of_a_document_have_their_marks() -> None:
    study = Study.from_items(FULL)
    assert study.annotations_on("doc") == [FULL[4]]
    assert study.annotations_on("other") == []


def other(name: str, version: str) -> Protocol:
    return Protocol(name=name, version=version, title="", summary="")


@pytest.mark.parametrize(
    ("protocols", "name", "found"),
    [
        ([other("p", "1")], "", "p@1"),
        ([other("p", "1")], "p", "p@1"),
        ([other("p", "1"), other("q", "1")], "q", "q@1"),
        ([other("p", "1"), other("p", "2")], "p@2", "p@2"),
    ],
)
def test_a_protocol_is_found_by_name_with_or_without_version(protocols: list[Protocol], name: str, found: str) -> None:
    assert Study.from_items(protocols).protocol(name).id == found


@pytest.mark.parametrize(
    ("protocols", "name", "message"),
    [
        ([], "", "the study has no protocol"),
        ([other("snac", "1")], "snak", "the study has no protocol 'snak'; did you mean 'snac@1'?"),
        ([other("p", "1"), other("q", "1")], "", r"2 protocols \(p@1, q@1\); select one with protocol"),
        ([other("p", "1"), other("p", "2")], "p", r"2 versions of protocol 'p' \(p@1, p@2\)"),
    ],
)
def test_a_protocol_that_cannot_be_told_is_an_error(protocols: list[Protocol], name: str, message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        Study.from_items(protocols).protocol(name)


# --- long frames ---


def test_the_spans_frame_has_a_row_per_located_span() -> None:
    spans = Study.from_items(FULL).spans
    assert spans.columns == "mark annotation document annotator protocol label part start end".split()
    assert spans.select("mark", "label", "part", "start", "end").rows() == [
        ("m1", "red", "text", 0, 3),
        ("m1", "red", "text", 8, 13),
        ("m3", "blue", "text", 4, 4),
    ]


@fewer
@given(studies())
def test_the_spans_frame_equals_a_loop_over_records(items: list[StudyItem]) -> None:
    expected = [
        (mark.id, each.id, each.document, each.annotator, each.protocol, mark.label, span.part, span.start, span.end)
        for each in items
        if isinstance(each, Annotation)
        for mark in each.marks
        for span in mark.spans
    ]
    assert Study.from_items(items).spans.rows() == expected


def test_the_answers_frame_has_a_row_per_answer_and_choice() -> None:
    several = Annotation(
        id="a2", document="doc", annotator="ann", protocol=PROTOCOL.id, answers={"kinds": ("a", "b"), "none": ()}
    )
    answers = Study.from_items([*FULL, several]).answers
    assert answers.columns == "of id annotation document annotator label question number text".split()
    assert answers.select("of", "id", "annotation", "label", "question", "number", "text").rows() == [
        ("annotation", "a1", "a1", None, "rating", 2.0, None),
        ("annotation", "a2", "a2", None, "kinds", None, "a"),
        ("annotation", "a2", "a2", None, "kinds", None, "b"),
        ("mark", "m1", "a1", "red", "severity", 2.0, None),
        ("mark", "m1", "a1", "red", "sure", 1.0, None),
        ("mark", "m1", "a1", "red", "explanation", None, "Why?"),
        ("unit", "a1:0-3", "a1", None, "verdict", None, "yes"),
    ]


def test_an_entry_of_meta_can_be_picked() -> None:
    documents = [
        Document(id="1", text="", meta={"model": "gpt2", "top_p": 0.9}),
        Document(id="2", text="", meta={"model": None}),
        Document(id="3", text=""),
    ]
    frame = Study.from_items(documents).documents
    assert frame.select(frames.meta_entry("model")).to_series().to_list() == ["gpt2", None, None]
    assert frame.select(frames.meta_entry("top_p")).to_series().to_list() == ["0.9", None, None]


def _merged(replace: bool) -> Study:
    other = PROTOCOL.model_copy(update={"name": "other"})
    own: list[StudyItem] = [
        PROTOCOL,
        Document(id="d", text="Some words."),
        Annotator(id="p", kind="human"),
        Annotator(id="m", kind="llm", meta={"model": "old"}),
        Annotation(id="m/d", document="d", annotator="m", protocol=PROTOCOL.id, status="excluded"),
        Annotation(id="p/d", document="d", annotator="p", protocol=PROTOCOL.id),
    ]
    new: list[StudyItem] = [
        other,
        Annotator(id="m", kind="llm", meta={"model": "new"}),
        Annotator(id="n", kind="llm"),
        Annotation(id="m/d", document="d", annotator="m", protocol=PROTOCOL.id),
        Annotation(id="n/d", document="d", annotator="n", protocol=other.id),
    ]
    return Study.from_items(merge_work(Study.from_items(own), new, replace=replace))


def test_the_work_of_another_run_takes_the_place_of_the_first() -> None:
    study = _merged(replace=True)
    assert [(work.id, work.status) for work in study.iter_annotations()] == [
        ("m/d", "submitted"),
        ("p/d", "submitted"),
        ("n/d", "submitted"),
    ]
    assert [(person.id, person.meta.get("model")) for person in study.iter_annotators()] == [
        ("p", None),
        ("m", "new"),
        ("n", None),
    ]
    assert study.settings.protocols == tuple(study.protocols)
    assert len(study.protocols) == 2


def test_the_work_of_others_is_added_and_replaces_nothing() -> None:
    study = _merged(replace=False)
    assert [work.id for work in study.iter_annotations()] == ["m/d", "p/d", "m/d", "n/d"]
    assert [(person.id, person.meta.get("model")) for person in study.iter_annotators()][1] == ("m", "old")
