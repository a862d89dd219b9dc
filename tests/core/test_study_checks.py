from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError, Problem, StudyError, diff_excerpt
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_yaml import format_yaml
from finecomb.core.records import Annotation, Annotator, Document, Mark, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import (
    ProblemLevel,
    _mark_protocol_problems,
    check_items,
    check_study,
    protocol_problems,
    span_problem,
)
from finecomb.formats import read
from finecomb.protocols import load_shipped
from tests.strategies import studies

PROTOCOL = Protocol.model_validate(
    {
        "name": "p",
        "version": "1",
        "title": "P",
        "summary": "For tests.",
        "labels": [
            {"name": "red", "antecedent": "optional"},
            {"name": "blue"},
            {"name": "redundant", "antecedent": "required"},
        ],
        "questions": [
            {"name": "severity", "ask": "?", "scale": "ordinal", "options": [1, 2, 3]},
            {"name": "explanation", "ask": "?", "when": {"question": "severity", "among": [3]}},
        ],
        "document_questions": [
            {"name": "kinds", "ask": "?", "scale": "several", "options": ["a", "b"], "required": False},
            {"name": "why", "ask": "?", "when": {"question": "kinds", "among": ["b"]}},
        ],
        "unit_questions": [{"name": "fine", "ask": "?", "scale": "yes-no"}],
        "training": {"exercises": [{"name": "try", "text": "one two"}]},
    }
)
TEXT = "The cat sat on the mat. The cat ran."
DOCUMENT = {"id": "doc", "text": TEXT, "context": {"prompt": "A cat"}}
MARK: dict[str, Any] = {"id": "m1", "spans": [[4, 7]], "quotes": ["cat"], "label": "red", "answers": {"severity": 1}}
ANNOTATION: dict[str, Any] = {"id": "a1", "document": "doc", "annotator": "ann", "protocol": "p@1"}


def study(*annotations: dict[str, Any], documents: tuple[dict[str, Any], ...] = (DOCUMENT,)) -> list[StudyItem]:
    return [
        Settings(protocols=(PROTOCOL.id,)),
        PROTOCOL,
        *(Document.model_validate(each) for each in documents),
        Annotator(id="ann", kind="human"),
        *(Annotation.model_validate(each) for each in annotations),
    ]


def marked(**changes: Any) -> dict[str, Any]:
    """An annotation with one sound mark, but for the changes."""
    return ANNOTATION | {"marks": [MARK | changes]}


def problems(*annotations: dict[str, Any]) -> list[Problem]:
    return check_study(Study.from_items(study(*annotations)))


def test_a_sound_study_has_no_problems() -> None:
    assert problems(marked(), ANNOTATION | {"id": "a2", "round": 1}) == []


@given(studies())
def test_studies_that_are_sound_by_construction_have_no_errors(items: list[StudyItem]) -> None:
    assert [problem for problem in check_study(Study.from_items(items)) if problem.level == "error"] == []
    assert list(check_items(items)) == items


@pytest.mark.parametrize(
    ("annotation", "level", "message"),
    [
        (marked(label="redundent"), "error", "label 'redundent' is not in protocol p@1; did you mean 'redundant'?"),
        (marked(label="Red"), "error", "label 'Red' is not in protocol p@1; did you mean 'red'?"),
        (marked(label=None), "warning", "mark 'm1': has no label, which protocol p@1 requires"),
        (
            marked(spans=[[5, 8]]),
            "error",
            "mark 'm1': quote 'cat' differs from the text at [5, 8), which is 'at '; the nearest match is at [4, 7)",
        ),
        (marked(spans=[[20, 23]]), "error", "'at.'; the nearest match is at [28, 31)"),
        (marked(quotes=["dog"]), "error", "at [4, 7), which is 'cat'; the quote does not occur in it"),
        (marked(spans=[[35, 38]]), "error", "span [35, 38) ends after the text, which has 36 characters; the nearest"),
        (marked(spans=[["prompt", 0, 3]]), "error", "quote 'cat' differs from the prompt at [0, 3), which is 'A c'; "),
        (marked(spans=[["promt", 0, 3]]), "error", "span on 'promt', which document 'doc' does not have; did you mean"),
        (marked(spans=[[4, 4]]), "error", "quote 'cat' differs from the text at [4, 4), which is ''"),
        (
            marked(antecedents={"spans": [[0, 3]], "quotes": ["Teh"]}),
            "error",
            "quote 'Teh' differs from the text at [0, 3), which is 'The'",
        ),
        (
            marked(alternatives=[[{"spans": [[0, 3]], "quotes": ["Teh"], "label": "red"}]]),
            "error",
            "quote 'Teh' differs from the text at [0, 3), which is 'The'",
        ),
        (
            marked(alternatives=[[{"spans": [[0, 3]], "quotes": ["The"], "label": "rde"}]]),
            "error",
            "label 'rde' of an alternative is not in protocol p@1; did you mean 'red'?",
        ),
        (marked(label="blue", antecedents={"spans": [[0, 3]], "quotes": ["The"]}), "warning", "ask for with 'blue'"),
        (marked(label="redundant"), "warning", "has no antecedent, which protocol p@1 requires for 'redundant'"),
        (marked(votes=4) | {"readers": 3}, "warning", "mark 'm1': has 4 votes, but only 3 annotators were pooled"),
        (marked(answers={}), "warning", "mark 'm1': answer to 'severity'"),
        (marked(answers={"severity": 3}), "warning", "mark 'm1': answer to 'explanation'"),
        (marked(answers={"severity": 4}), "error", "answer 4 to 'severity': expected one of 1, 2, 3"),
        (marked(answers={"severity": 1, "sevrity": 1}), "warning", "answers 'sevrity', which is not asked; did"),
        (ANNOTATION | {"answers": {"kinds": ["a", "c"]}}, "error", "'c' is not one of a, b"),
        (ANNOTATION | {"answers": {"kinds": ["a", "b"]}}, "warning", "answer to 'why'"),
        (ANNOTATION | {"answers": {"rating": 1}}, "warning", "answers 'rating', which is not asked"),
        (ANNOTATION | {"units": [{"start": 0, "end": 99}]}, "error", "unit [0, 99) is not within the text"),
        (
            ANNOTATION | {"units": [{"start": 0, "end": 9, "answers": {"fine": "yes"}}]},
            "error",
            "unit [0, 9): answer 'yes' to 'fine': expected true or false",
        ),
        (ANNOTATION | {"units": [{"start": 0, "end": 9, "scores": {"rde": 1}}]}, "warning", "score for 'rde'"),
        (ANNOTATION | {"status": "excluded"}, "warning", "is excluded without a reason"),
        (
            ANNOTATION | {"document": "dok"},
            "error",
            "names document 'dok', which is not in the study; did you mean 'doc'",
        ),
        (ANNOTATION | {"annotator": "nan"}, "error", "names annotator 'nan', which is not in the study; did you mean"),
        (
            ANNOTATION | {"protocol": "p@2"},
            "error",
            "names protocol 'p@2', which is not in the study; did you mean 'p@1'?",
        ),
        (ANNOTATION | {"document": "p@1/try"}, "error", "names document 'p@1/try', which is not in the study"),
        (
            ANNOTATION | {"about": "nobody"},
            "error",
            "`about` names 'nobody', which is neither an annotation nor a mark of the study",
        ),
    ],
)
def test_each_problem_is_one_clear_message(annotation: dict[str, Any], level: str, message: str) -> None:
    (problem,) = problems(annotation)
    assert problem.level == level
    assert message in problem.message
    assert (problem.kind, problem.id, problem.row) == ("annotation", "a1", 0)
    assert "\n" not in str(problem)


@pytest.mark.parametrize(
    "annotation",
    [
        marked(label=None, label_votes={"red": 1, "blue": 1}),
        marked(label="redundant") | {"status": "draft"},
        marked(answers={}) | {"status": "draft"},
        marked(answers={"cannot_judge": True}),
        marked(votes=3) | {"readers": 3},
        marked(spans=[], unlocated="not found", quotes=["dog"]),
        marked(spans=[[4, 4]], quotes=[""]),
        marked(spans=[["prompt", 2, 5]]),
        ANNOTATION | {"answers": {"score": 0.5}},
        ANNOTATION | {"answers": {"kinds": ["a"]}},
        ANNOTATION | {"document": "p@1/try", "phase": "training"},
        ANNOTATION | {"about": "a1"},
        ANNOTATION | {"units": [{"start": 0, "end": len(TEXT)}]},
        ANNOTATION | {"status": "excluded", "excluded": {"by": "us", "reason": "asleep"}},
    ],
)
def test_what_is_allowed_is_no_problem(annotation: dict[str, Any]) -> None:
    assert problems(annotation) == []


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (ANNOTATION | {"round": 1}, "duplicate annotation ID 'a1'"),
        (ANNOTATION | {"id": "a2"}, "has the same document, annotator, protocol, round and about as 'a1'"),
        (marked() | {"id": "a2", "round": 1}, "duplicate mark ID 'm1'"),
    ],
)
def test_what_is_there_twice_is_told_once_and_of_the_second(second: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        list(check_items(study(marked(), second)))
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.row == 1


def test_what_is_about_something_may_come_before_it() -> None:
    assert problems(ANNOTATION | {"id": "a2", "about": "m1"}, marked()) == []


def test_an_empty_quote_is_not_looked_for() -> None:
    problem = span_problem(Span(4, 7), "", Document.model_validate(DOCUMENT))
    assert problem == "quote '' differs from the text at [4, 7), which is 'cat'"


def test_documents_and_annotators_are_there_once() -> None:
    person = Annotator(id="ann", kind="human")
    twice = Study.from_items([*study(documents=(DOCUMENT, DOCUMENT)), person])
    assert [(each.kind, each.row, each.message) for each in check_study(twice)] == [
        ("document", 1, "duplicate document ID 'doc'; IDs must be unique"),
        ("annotator", 1, "duplicate annotator ID 'ann'; IDs must be unique"),
    ]


def test_settings_name_what_is_there() -> None:
    settings = Settings(protocols=("p@2",), attention_checks=("dok",))
    found = check_study(Study.from_items([*study(), settings]))
    assert [str(each) for each in found] == [
        "settings: names protocol 'p@2', which is not in the study; did you mean 'p@1'?",
        "settings: attention check 'dok' is not a document in the study; did you mean 'doc'?",
    ]


def test_a_study_of_shipped_exercises_is_sound() -> None:
    scarecrow = load_shipped("scarecrow")
    assert scarecrow.qualification is not None
    choices = {choice.name: choice for part in scarecrow.qualification.parts for choice in part.choices}
    right = {f"{scarecrow.id}/{name}": {"answer": choice.answer} for name, choice in choices.items()}
    done = [
        Annotation(
            id=id, document=id, annotator="ann", protocol=scarecrow.id, phase="qualification", answers=right.get(id, {})
        )
        for id in scarecrow.practice_documents
    ]
    people: list[StudyItem] = [scarecrow, Annotator(id="ann", kind="human")]
    assert check_study(Study.from_items([*people, *done])) == []
    wrong = done[-1].model_copy(update={"document": min(right), "answers": {"answer": "no such kind"}})
    (problem,) = check_study(Study.from_items([*people, wrong]))
    assert "to 'answer': expected one of" in str(problem)


def test_all_errors_are_raised_together_after_the_last_record() -> None:
    items = study(marked(label="x"), ANNOTATION | {"id": "a2", "document": "y"})
    passed: list[StudyItem] = []
    with pytest.raises(StudyError) as caught:
        passed.extend(check_items(items))
    assert len(caught.value.problems) == 2
    assert "label 'x'" in str(caught.value)


def test_a_long_list_of_errors_is_cut() -> None:
    error = StudyError([Problem(f"problem {number}") for number in range(30)])
    assert str(error) == "problem 0 (and 29 more like this; `finecomb check --all` lists them)"
    assert len(error.problems) == 30
    different = StudyError([Problem("x" * number) for number in range(1, 31)])
    assert str(different).splitlines()[-1] == "... and 10 more kinds of problems; `finecomb check` lists all of them"


# --- the two strings of a wrong quote ---


@pytest.mark.parametrize(
    ("quote", "found", "shown"),
    [
        ("a b", "a  b", ("'a b'", "'a  b'")),
        ("a b", "a\nb", ("'a b'", r"'a\nb'")),
        ("a b", "a\u00a0b", ("'a b'", r"'a\xa0b'")),
        ("é", "e\u0301", (r"'\xe9'", r"'e\u0301'")),
        ("x", "", ("'x'", "''")),
    ],
)
def test_two_strings_that_differ_look_different(quote: str, found: str, shown: tuple[str, str]) -> None:
    assert diff_excerpt(quote, found) == shown


def test_a_difference_late_in_a_long_quote_is_shown() -> None:
    long = "word " * 100
    said, there = diff_excerpt(long + "one", long + "two")
    assert said.startswith("...")
    assert said.endswith("one'")
    assert there.endswith("two'")
    assert len(said) < 80


@given(studies(most=1))
def test_a_moved_span_is_told_with_the_nearest_place_of_its_quote(items: list[StudyItem]) -> None:
    document = next(item for item in items if isinstance(item, Document))
    text = document.text
    for start in range(min(6, len(text))):
        quote = text[start : start + 2]
        for at in range(len(text) - len(quote) + 1):
            message = span_problem(Span(at, at + len(quote)), quote, document)
            places = [place for place in range(len(text)) if text.startswith(quote, place)]
            if at in places:
                assert message == ""
            else:
                nearest = min(places, key=lambda place: (abs(place - at), place))
                assert f"nearest match is at [{nearest}, {nearest + len(quote)})" in message


# --- through a folder ---


def folder(place: Path, annotations: str | bytes, documents: str | bytes | None = None) -> Path:
    """A study's folder written by hand."""
    (place / "protocols").mkdir()
    (place / "protocols" / "p@1.yaml").write_text(format_yaml(PROTOCOL), encoding="utf-8")
    (place / "study.yaml").write_text("title: By hand\nprotocols: [p@1]\n", encoding="utf-8")
    written = {
        "documents.jsonl": documents if documents is not None else json.dumps(DOCUMENT) + "\n",
        "annotators.jsonl": '{"id": "ann", "kind": "human"}\n',
        "annotations.jsonl": annotations,
    }
    for name, text in written.items():
        (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return place


def lines(*values: dict[str, Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def refused(place: Path) -> list[str]:
    with pytest.raises(FinecombError) as caught:
        read(place)
    return str(caught.value).replace(f"{place}/", "").splitlines()


def test_a_sound_folder_is_read(tmp_path: Path) -> None:
    assert len(read(folder(tmp_path, lines(marked()))).marks) == 1


def test_a_problem_is_told_with_its_file_and_line(tmp_path: Path) -> None:
    text = "\n\n" + lines(ANNOTATION) + "  \n" + lines(marked(label="redundent") | {"id": "a2", "round": 1})
    assert refused(folder(tmp_path, text)) == [
        "annotations.jsonl:5: mark 'm1': label 'redundent' is not in protocol p@1; did you mean 'redundant'?"
    ]


def test_a_problem_after_crlf_and_a_byte_order_mark_is_told_with_its_line(tmp_path: Path) -> None:
    text = "\ufeff" + lines(ANNOTATION, marked(spans=[[5, 8]]) | {"id": "a2", "round": 1}).replace("\n", "\r\n")
    (message,) = refused(folder(tmp_path, text))
    assert message.startswith("annotations.jsonl:2: mark 'm1': quote 'cat' differs from the text at [5, 8), which")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": "a1"\n', "annotations.jsonl:1: invalid JSON: EOF while parsing"),
        ("[]\n", "annotations.jsonl:1: "),
        ("nonsense\n", "annotations.jsonl:1: invalid JSON: "),
        (lines(ANNOTATION) + '{"id": NaN}\n', "annotations.jsonl:2: "),
        (lines(ANNOTATION | {"mraks": []}), "annotations.jsonl:1: mraks: unknown key; did you mean 'marks'?"),
        (lines({"id": "a1", "annotator": "ann", "protocol": "p@1"}), "annotations.jsonl:1: document: missing"),
        (lines(ANNOTATION | {"marks": [MARK | {"labl": 1}]}), "annotations.jsonl:1: marks[0].labl: unknown key"),
        (lines(marked(quotes=[])), "annotations.jsonl:1: marks[0]: has 1 spans but 0 quotes"),
        (lines(marked(spans=[[7, 4]])), "annotations.jsonl:1: marks[0].spans[0]: span [7, 4) must satisfy"),
        (b'{"id": "\xff"}\n', "annotations.jsonl:1: byte 0xff is not UTF-8"),
        ('{"id": "a\\ud800"}\n', "annotations.jsonl:1: invalid JSON: "),
        (lines(ANNOTATION | {"id": "a\0"}), "annotations.jsonl:1: id: contains a NUL character at position 1"),
        ("{" * 100_000 + "\n", "annotations.jsonl:1: invalid JSON: "),
        ('{"id": "a1", "meta": ' + "[" * 5000 + "]" * 5000 + "}\n", "annotations.jsonl:1: invalid JSON: "),
    ],
)
def test_a_broken_line_is_told_with_its_number(tmp_path: Path, text: str | bytes, message: str) -> None:
    assert refused(folder(tmp_path, text))[0].startswith(message)


def test_a_broken_document_is_told_with_its_number(tmp_path: Path) -> None:
    broken = lines(DOCUMENT, {"id": "d2", "text": "ab", "segments": [{"start": 0, "end": 3}]})
    assert refused(folder(tmp_path, "", broken)) == [
        "documents.jsonl:2: segments end at 3, but the text has 2 characters"
    ]


def test_every_broken_line_is_told(tmp_path: Path) -> None:
    assert [line.split(": ")[0] for line in refused(folder(tmp_path, "x\n" + lines(ANNOTATION) + "\ny\n"))] == [
        "annotations.jsonl:1",
        "annotations.jsonl:4",
    ]


def test_an_empty_study_is_read(tmp_path: Path) -> None:
    empty = read(folder(tmp_path, "", ""))
    assert (len(empty.documents), len(empty.annotations), len(empty.marks)) == (0, 0, 0)
    assert check_study(empty) == []


def test_a_folder_with_nothing_but_settings_is_read(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text("")
    assert check_study(read(tmp_path)) == []


def test_settings_are_told_with_their_file(tmp_path: Path) -> None:
    folder(tmp_path, "")
    (tmp_path / "study.yaml").write_text("protocols: [q@1]\n")
    assert refused(tmp_path)[0].startswith("study.yaml: names protocol 'q@1', which is not in the study")


def test_a_document_of_ten_megabytes_is_read_and_checked(tmp_path: Path) -> None:
    text = "The cat sat. " * 800_000 + "End."
    at = len(text) - 4
    mark = marked(spans=[[at, at + 4]], quotes=["End."]) | {"id": "a2"}
    large = read(folder(tmp_path, lines(mark), lines({"id": "doc", "text": text})))
    assert check_study(large) == []


@pytest.mark.parametrize(
    ("text", "span", "quote"),
    [
        ("a😀b😀c", (1, 4), "😀b😀"),
        ("👩\u200d👧 ok", (0, 3), "👩\u200d👧"),
        ("שלום עולם", (5, 9), "עולם"),
        ("اَلْكِتَابُ", (0, 11), "اَلْكِتَابُ"),
        ("line\r\nline", (4, 6), "\r\n"),
        ("a\u2028b\u0085c", (1, 4), "\u2028b\u0085"),
    ],
)
@pytest.mark.parametrize("escaped", [True, False])
def test_offsets_count_code_points_in_every_script(
    tmp_path: Path, text: str, span: tuple[int, int], quote: str, escaped: bool
) -> None:
    mark = marked(spans=[span], quotes=[quote])
    written = json.dumps(mark, ensure_ascii=escaped) + "\n"
    document = json.dumps({"id": "doc", "text": text}, ensure_ascii=escaped) + "\n"
    made = read(folder(tmp_path, written, document))
    assert check_study(made) == []
    assert made.marks["quotes"].to_list() == [[quote]]


def test_many_wrong_names_are_all_told() -> None:
    documents = [Document(id=f"document-{number}", text="x") for number in range(2000)]
    people = [Annotator(id="ann", kind="human")]
    wrong = [
        Annotation(id=f"a{number}", document=f"dokument-{number}", annotator="ann", protocol="p@1")
        for number in range(2000)
    ]
    assert len(check_study(Study.from_items([PROTOCOL, *documents, *people, *wrong]))) == 2000


def test_a_mark_is_checked_against_the_text_it_names() -> None:
    mark = Mark(id="m", spans=(Span(0, 3, "prompt"),), quotes=("abc",), label=None)
    document = Document(id="d", text="xyz", context={"prompt": "abc"})
    assert span_problem(mark.spans[0], mark.quotes[0], document) == ""


UNLIKE_ANSWERS = [1, 2, 9, True, 1.0, 0.0, -0.0, "1", "a"]
"""Answers of which some are equal and yet not the same."""


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "label": st.sampled_from(["red", "blue", "redundant", "redundent", None]),
                "answers": st.dictionaries(
                    st.sampled_from(["severity", "explanation", "mood"]), st.sampled_from(UNLIKE_ANSWERS)
                ),
            },
            optional={
                "votes": st.just(2),
                "antecedents": st.just({"spans": [[0, 3]], "quotes": ["The"]}),
                "alternatives": st.just([[{"spans": [[4, 7]], "quotes": ["cat"], "label": "rod"}]]),
            },
        ),
        max_size=8,
    ),
    st.sampled_from(["submitted", "draft"]),
)
def test_marks_that_are_alike_have_the_problems_that_each_has_by_itself(
    marks: list[dict[str, Any]], status: str
) -> None:
    annotations = [
        ANNOTATION
        | {"id": f"a{number}", "round": number, "status": status, "marks": [MARK | mark | {"id": f"m{number}"}]}
        for number, mark in enumerate(marks)
    ]
    items = study(*annotations)
    alone = [
        (level, message)
        for item in items
        if isinstance(item, Annotation)
        for level, message in protocol_problems(item, PROTOCOL)
    ]
    together = check_study(Study.from_items(items))
    assert [(problem.level, problem.message) for problem in together] == alone
    errors = [problem for problem in together if problem.level == "error"]
    with pytest.raises(StudyError) if errors else nullcontext() as caught:
        list(check_items(items))
    assert not errors or list(caught.value.problems) == errors  # type: ignore[union-attr]


def test_marks_that_are_alike_are_checked_against_their_protocol_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked_marks: list[str] = []

    def watched(mark: Mark, annotation: Annotation, protocol: Protocol) -> Iterator[tuple[ProblemLevel, str]]:
        checked_marks.append(mark.id)
        return _mark_protocol_problems(mark, annotation, protocol)

    monkeypatch.setattr("finecomb.core.study_checks._mark_protocol_problems", watched)
    many = [MARK | {"id": f"m{number}", "answers": {"severity": 1 + number % 2}} for number in range(10)]
    assert problems(ANNOTATION | {"marks": many}) == []
    assert checked_marks == ["m0", "m1"]
