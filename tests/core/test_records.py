from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from finecomb.core.records import (
    AlternativeMark,
    Annotation,
    Annotator,
    Antecedents,
    Attempt,
    Document,
    Exclusion,
    Mark,
    QualificationRecord,
    Record,
    Segment,
    Settings,
    Unit,
    field_descriptions,
    iter_quoted_spans,
)
from finecomb.core.span import Span
from finecomb.core.study import StudyItem
from tests.strategies import studies

DOCUMENT: dict[str, Any] = {"id": "d", "text": "one two"}
MARK: dict[str, Any] = {"id": "m", "spans": [[0, 3]], "quotes": ["one"], "label": "red"}
ANNOTATION: dict[str, Any] = {"id": "a", "document": "d", "annotator": "p", "protocol": "test@1"}
ANNOTATOR: dict[str, Any] = {"id": "p", "kind": "human"}
EXCLUSION: dict[str, Any] = {"by": "us", "reason": "asleep"}

LEAST: list[tuple[type[Record], dict[str, Any]]] = [
    (Document, DOCUMENT),
    (Mark, MARK),
    (Annotation, ANNOTATION),
    (Annotator, ANNOTATOR),
    (Exclusion, EXCLUSION),
    (Segment, {"start": 0, "end": 1}),
    (Unit, {"start": 0, "end": 1}),
    (Antecedents, {"spans": [[0, 1]], "quotes": ["o"]}),
    (AlternativeMark, {"spans": [[0, 1]], "quotes": ["o"], "label": None}),
    (Attempt, {"round": 0, "score": 1.0}),
    (QualificationRecord, {"protocol": "test@1", "score": 1.0, "passed": True}),
    (Settings, {}),
]
each_record = pytest.mark.parametrize(("kind", "least"), LEAST, ids=[kind.__name__ for kind, _ in LEAST])

NUL, HALF = "contains a NUL character at position 1", "half of a surrogate pair at position 1"
ID = "an ID must have visible characters"
SPACE = "an ID must have visible characters and no white space around them"


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Document, DOCUMENT | {"text": "a\0b"}, NUL),
        (Document, DOCUMENT | {"text": "a\ud800"}, HALF),
        (Document, DOCUMENT | {"references": ["a\0"]}, NUL),
        (Document, DOCUMENT | {"context": {"prompt": "a\0"}}, NUL),
        (Document, DOCUMENT | {"context": {"text": "x"}}, "a context cannot be named 'text'"),
        (Document, DOCUMENT | {"context": {" a": "x"}}, SPACE),
        (Document, DOCUMENT | {"data": {"a": ["b\0"]}}, NUL),
        (Document, DOCUMENT | {"data": {"b\0": 1}}, NUL),
        (Document, DOCUMENT | {"meta": {"x": "a\0"}}, NUL),
        (Document, DOCUMENT | {"meta": {"a\0": 1}}, NUL),
        (Document, DOCUMENT | {"meta": {"a\ud800": 1}}, HALF),
        (Document, DOCUMENT | {"meta": {"x": [float("nan")]}}, "finite"),
        (Document, DOCUMENT | {"meta": {"x": float("inf")}}, "finite"),
        (Document, DOCUMENT | {"meta": {"x": object()}}, "JSON"),
        (Document, DOCUMENT | {"id": ""}, ID),
        (Document, DOCUMENT | {"id": " d"}, SPACE),
        (Document, DOCUMENT | {"id": "d\n"}, SPACE),
        (Document, DOCUMENT | {"id": "a\0"}, NUL),
        (Document, DOCUMENT | {"id": 7}, "valid string"),
        (Document, {"id": "d"}, "Field required"),
        (Document, DOCUMENT | {"segments": [{"start": 0, "end": 3}, {"start": 2, "end": 5}]}, "before the previous"),
        (Document, DOCUMENT | {"segments": [{"start": 4, "end": 5}, {"start": 0, "end": 3}]}, "before the previous"),
        (Document, DOCUMENT | {"segments": [{"start": 0, "end": 8}]}, "end at 8, but the text has 7"),
        (Document, DOCUMENT | {"segments": [{"start": 3, "end": 1}]}, "ends before it starts"),
        (Segment, {"start": -1, "end": 1}, "greater than or equal to 0"),
        (Mark, MARK | {"quotes": []}, "1 spans but 0 quotes"),
        (Mark, MARK | {"quotes": ["one", "two"]}, "1 spans but 2 quotes"),
        (Mark, MARK | {"spans": [], "quotes": []}, "give the reason in `unlocated`"),
        (Mark, MARK | {"unlocated": "lost"}, "has both spans and `unlocated`"),
        (Mark, MARK | {"spans": [[4, 5], [0, 3]], "quotes": ["t", "one"]}, "must be in text order"),
        (Mark, MARK | {"spans": [[3, 1]]}, "must satisfy 0 <= start <= end"),
        (Mark, MARK | {"spans": [["a\0", 0, 3]]}, NUL),
        (Mark, MARK | {"spans": [["a\ud800", 0, 3]]}, HALF),
        (Mark, MARK | {"label": "a\0"}, NUL),
        (Mark, MARK | {"answers": {"a\0": 1}}, NUL),
        (Mark, MARK | {"answers": {"why": "a\ud800"}}, HALF),
        (Mark, MARK | {"answers": {"why": float("nan")}}, "finite"),
        (Mark, MARK | {"answers": {"why": {"a": 1}}}, "valid string"),
        (Mark, MARK | {"answers": {"why": None}}, "valid string"),
        (Mark, MARK | {"votes": -1}, "greater than or equal to 0"),
        (Mark, MARK | {"label_votes": {"a\0": 1}}, NUL),
        (Mark, MARK | {"made_from": ["a\0"]}, NUL),
        (Mark, MARK | {"basis": "guess"}, "'record' or 'base-rate'"),
        (Mark, MARK | {"confidence": float("nan")}, "finite"),
        (Mark, MARK | {"antecedents": {"spans": [], "quotes": ["x"]}}, "give the reason in `unlocated`"),
        (Mark, MARK | {"antecedents": {"spans": [[0, 1]], "quotes": []}}, "1 spans but 0 quotes"),
        (Mark, MARK | {"alternatives": [[{"spans": [], "quotes": [], "label": None}]]}, "has no spans"),
        (Mark, {"id": "m", "spans": [[0, 3]], "quotes": ["one"]}, "Field required"),
        (Unit, {"start": 0, "end": 1, "scores": {"red": float("nan")}}, "finite"),
        (Unit, {"start": 0, "end": 1, "seconds": -1}, "greater than or equal to 0"),
        (Annotation, ANNOTATION | {"round": -1}, "greater than or equal to 0"),
        (Annotation, ANNOTATION | {"readers": 0}, "greater than or equal to 1"),
        (Annotation, ANNOTATION | {"status": "done"}, "'draft', 'submitted' or 'excluded'"),
        (Annotation, ANNOTATION | {"phase": "play"}, "'training', 'qualification' or 'work'"),
        (Annotation, ANNOTATION | {"started": "2026-01-31T09:30:00"}, "a time must have a time zone"),
        (Annotation, ANNOTATION | {"started": "2026-01-31"}, "a time must have a time zone"),
        (Annotation, ANNOTATION | {"started": "yesterday"}, "valid datetime"),
        (Annotation, ANNOTATION | {"started": "0001-01-01T00:00:00+23:00"}, "outside the years 1 to 9999"),
        (Annotation, ANNOTATION | {"seconds": float("inf")}, "finite"),
        (Annotation, ANNOTATION | {"about": " "}, ID),
        (Annotator, ANNOTATOR | {"kind": "robot"}, "'human', 'llm'"),
        (Annotator, ANNOTATOR | {"survey": {"a\0": 1}}, NUL),
        (Settings, {"annotators": 0}, "greater than or equal to 1"),
        (Settings, {"price": -1}, "greater than or equal to 0"),
        (Settings, {"quotas": {"a\0": 1}}, NUL),
    ],
)
def test_a_record_that_cannot_be_is_refused_with_its_reason(
    kind: type[Record], values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        kind.model_validate(values)
    assert message in str(caught.value)


@each_record
def test_unknown_keys_are_refused(kind: type[Record], least: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        kind.model_validate(least | {"colour": "blue"})


@each_record
def test_records_are_frozen(kind: type[Record], least: dict[str, Any]) -> None:
    made = kind.model_validate(least)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(made, next(iter(kind.model_fields)), None)


@each_record
def test_json_leaves_out_what_has_its_default_value(kind: type[Record], least: dict[str, Any]) -> None:
    made = kind.model_validate(least)
    assert set(made.model_dump(mode="json", exclude_defaults=True)) == set(least)
    assert "\n" not in made.to_json()


@each_record
def test_every_field_is_described(kind: type[Record], least: dict[str, Any]) -> None:
    assert set(field_descriptions(kind)) == set(kind.model_fields)


def test_defaults_are_not_shared_between_records() -> None:
    assert Document(id="a", text="").meta is not Document(id="b", text="").meta


@given(studies())
def test_every_record_comes_back_from_json(items: list[StudyItem]) -> None:
    for item in items:
        assert type(item).model_validate_json(item.to_json()) == item


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(json_values, st.datetimes(timezones=st.just(UTC)))
def test_data_meta_and_times_come_back_from_json(value: Any, when: datetime) -> None:
    document = Document(id="d", text="", data=value, meta={"x": value})
    again = Document.model_validate_json(document.to_json())
    assert again == document
    assert repr(again.data) == repr(document.data)  # 1, 1.0 and true are not the same answer
    exclusion = Exclusion(by="us", reason="x", when=when)
    assert Exclusion.model_validate_json(exclusion.to_json()) == exclusion


@pytest.mark.parametrize("answer", [True, False, 0, 1, 2, 1.0, 0.5, "", "1", "true", ("a", "b"), ()], ids=repr)
def test_an_answer_keeps_its_type(answer: Any) -> None:
    mark = Mark.model_validate(MARK | {"answers": {"x": answer}})
    again = Mark.model_validate_json(mark.to_json())
    assert repr(mark.answers["x"]) == repr(again.answers["x"]) == repr(answer)


def test_times_are_stored_in_utc() -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2)))
    exclusion = Exclusion(by="us", reason="x", when=noon)
    assert exclusion.when is not None
    assert exclusion.when.tzinfo is UTC
    assert '"2026-01-31T10:00:00Z"' in exclusion.to_json()


def test_ids_may_have_white_space_inside() -> None:
    assert Document(id="a b", text="").id == "a b"


def test_a_mark_that_could_not_be_placed_keeps_its_quote_and_the_reason() -> None:
    mark = Mark(id="m", spans=(), quotes=("lost words",), label=None, unlocated="not in the text")
    assert list(iter_quoted_spans(mark)) == []


def test_the_key_of_an_annotation_has_five_parts() -> None:
    assert Annotation.model_validate(ANNOTATION | {"round": 2, "about": "m"}).unique_key == ("d", "p", "test@1", 2, "m")


def test_a_part_of_a_document_is_found_by_name() -> None:
    document = Document(id="d", text="one", context={"prompt": "two"})
    assert [document.part_text(name) for name in ("text", "prompt", "source")] == ["one", "two", None]


def test_the_parts_of_a_mark_are_its_spans_its_antecedents_and_its_alternatives() -> None:
    mark = Mark(
        id="m",
        spans=(Span(4, 7),),
        quotes=("two",),
        label=None,
        antecedents=Antecedents(spans=(Span(0, 3),), quotes=("one",)),
        alternatives=((AlternativeMark(spans=(Span(0, 7),), quotes=("one two",), label=None),),),
    )
    assert list(iter_quoted_spans(mark)) == [(Span(4, 7), "two"), (Span(0, 3), "one"), (Span(0, 7), "one two")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lease", 10**15),
        ("round", 10**30),
        ("price", 1e308),
        ("fees", 1e9),
        ("annotators", 10**9),
        ("pilot", 10**12),
        ("seed", 2**64),
        ("quotas", {"a": -1}),
        ("staff_rate", 1e300),
    ],
)
def test_settings_have_bounds(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name):
        Settings.model_validate({name: value})
