from __future__ import annotations

import pytest

from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, AnnotatorKind, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.selection.view import Filters, drop_marks, view

PROTOCOL = Protocol.model_validate(
    {
        "name": "small",
        "title": "Small",
        "summary": "For tests.",
        "version": "1",
        "labels": [{"name": "red"}, {"name": "blue"}, {"name": "green"}],
        "questions": [
            {"name": "severity", "ask": "How bad?", "scale": "ordinal", "options": [1, 2, 3], "required": False}
        ],
    }
)


def study(*kinds: AnnotatorKind) -> Study:
    """Build a study of one text with a red (severity 1) and a blue (severity 2) mark by one annotator of each kind."""
    readers = [Annotator(id=f"{kind}-{number}", kind=kind) for number, kind in enumerate(kinds)]
    annotations = [
        Annotation(
            id=reader.id,
            document="d",
            annotator=reader.id,
            protocol="small@1",
            marks=tuple(
                Mark(
                    id=f"{reader.id}-{label}",
                    spans=(Span(0, 2),),
                    quotes=("So",),
                    label=label,
                    answers={"severity": severity},
                )
                for label, severity in (("red", 1), ("blue", 2))
            ),
        )
        for reader in readers
    ]
    return Study.from_items([PROTOCOL, Document(id="d", text="So it is.", meta={"top_p": 0.9}), *readers, *annotations])


def kinds_read(whole: Study, filters: Filters | None = None) -> set[str]:
    return {id.partition("-")[0] for id in view(whole, filters).study.annotations["annotator"]}


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        (("human", "llm", "gold"), {"human"}),
        (("human", "pooled", "detector"), {"human", "pooled"}),
        (("llm", "gold"), {"llm"}),
        (("gold",), {"gold"}),
    ],
)
def test_people_are_read_and_others_where_there_are_no_people(
    present: tuple[AnnotatorKind, ...], expected: set[str]
) -> None:
    assert kinds_read(study(*present)) == expected


def test_who_is_left_out_is_said() -> None:
    assert "kind llm" in view(study("human", "llm")).notes[0]
    assert "no person" in view(study("llm", "gold")).notes[0]
    assert view(study("human", "gold")).notes == ()


def test_kinds_are_mixed_on_purpose_only() -> None:
    mixed = study("human", "llm", "gold")
    assert kinds_read(mixed, Filters(kinds=("human", "llm"))) == {"human", "llm"}
    assert kinds_read(mixed, Filters(where='kind in ("human", "llm")')) == {"human", "llm"}
    assert view(mixed, Filters(kinds=("human", "llm"))).notes == ()


@pytest.mark.parametrize(
    "where",
    [
        "annotator=human-1",
        ("annotator=human-1",),
        (("annotator", "human-1"),),
        ('annotator == "human-1"', "top_p >= 0.9"),
        'annotator == "human-1" and document.top_p == 0.9',
    ],
)
def test_one_condition_several_and_pairs_are_understood(where: str | tuple[str | tuple[str, str], ...]) -> None:
    assert list(view(study("human", "human"), Filters(where=where)).study.annotations["annotator"]) == ["human-1"]


def test_of_pairs_with_one_name_any_value_will_do() -> None:
    pairs = (("annotator", "human-0"), ("annotator", "human-2"))
    part = view(study("human", "human", "human"), Filters(where=pairs))
    assert list(part.study.annotations["annotator"]) == ["human-0", "human-2"]
    assert part.fields["where"] == "annotator=human-0+annotator=human-2"


def test_a_label_that_was_dropped_is_no_category_and_one_nobody_used_is() -> None:
    whole = study("human")
    assert view(whole).categories == ("red", "blue", "green")
    assert view(whole, Filters(drop=("red",))).categories == ("blue", "green")
    assert view(whole, Filters(drop=("red:1",))).categories == ("blue", "green")
    assert view(whole, Filters(drop=("blue:1",))).categories == ("red", "blue", "green")
    assert view(whole, Filters(where='label == "red"')).categories == ("red", "green")


def test_groups_come_in_the_order_of_numbers() -> None:
    documents = [Document(id=f"d{value}", text="So.", meta={"top_p": value}) for value in (0.4, 10, 2, 0.96)]
    annotations = [
        Annotation(id=text.id, document=text.id, annotator="ann", protocol="small@1", marks=()) for text in documents
    ]
    whole = Study.from_items([PROTOCOL, *documents, Annotator(id="ann", kind="human"), *annotations])
    assert [group["top_p"] for group, _ in view(whole).split_by_columns(["top_p"])] == ["0.4", "0.96", "2", "10"]


def test_marks_are_dropped_from_a_whole_study_too() -> None:
    whole = drop_marks(study("human", "gold"), ["red", "blue:2"])
    assert whole.marks.is_empty()
    assert len(whole.annotations) == 2
    with pytest.raises(Exception, match="gren"):
        drop_marks(study("human"), ["gren"])
