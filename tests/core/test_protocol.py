from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.errors import ProtocolError
from finecomb.core.practice import Example, Exercise, Solution, locate_nth_quote
from finecomb.core.protocol import Label, Protocol, Weight
from finecomb.core.protocol_yaml import format_yaml, parse_protocol, parse_yaml
from finecomb.core.question import Question
from finecomb.core.records import Mark, Settings
from finecomb.core.span import Span
from finecomb.core.spelling import fold_spelling
from finecomb.protocols import load_shipped, names

HEAD = "name: p\nversion: '1'\ntitle: P\nsummary: For tests.\n"


def refused(text: str) -> list[str]:
    """The lines of the message with which a protocol is refused."""
    with pytest.raises(ProtocolError) as caught:
        parse_protocol(text, "p.yaml")
    return str(caught.value).splitlines()


def protocol(**more: Any) -> Protocol:
    """Through YAML, as an author would write it."""
    return parse_protocol(HEAD + yaml.safe_dump(more, sort_keys=False), "p.yaml")


# --- strictness ---


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lables: []", "p.yaml:5: lables: unknown key; did you mean 'labels'?"),
        ("labels:\n- name: a\n  question: []", "p.yaml:7: labels[0].question: unknown key; did you mean 'questions'?"),
        ("labels:\n- title: A", "p.yaml:6: labels[0].name: missing"),
        ("labels: 3", "p.yaml:5: labels: expected a valid tuple, found 3"),
        ("title: Again", "p.yaml:5: key 'title' occurs twice"),
        ("labels:\n- {name: a, title: x, title: y}", "p.yaml:6: key 'title' occurs twice"),
        ("labels: [", "p.yaml:6: did not find expected node content"),
        ("mode: x", "mode 'x' is not defined"),
        ("labels:\n- name: Red", "p.yaml:6: labels[0].name: a name can contain only lower-case letters"),
        ("labels:\n- name: a\n- name: a", "label 'a' occurs twice"),
        ("groups: [{name: g}, {name: g}]", "group 'g' occurs twice"),
        ("labels: [{name: a, flag: A}, {name: b, flag: A}]", "flag 'A' occurs twice"),
        ("labels: [{name: a, key: x}, {name: b, key: x}]", "key 'x' occurs twice"),
        ("labels: [{name: a, key: x}, {name: b, key: X}]", "key 'x' occurs twice"),
        ("labels: [{name: a, key: '['}]", "label 'a' has the key '[', which resizes a mark; use another key"),
        (
            "labels: [{name: a, key: A}, {name: b, antecedent: optional}]",
            "label 'a' has the key 'A', which selects an antecedent; use another key",
        ),
        ("labels: [{name: a, flag: LONG}]", "labels[0].flag: "),
        ("groups: [{name: one}]\nlabels: [{name: a, group: onne}]", "not defined; did you mean 'one'?"),
        ("labels: [{name: a, aliases: [B]}, {name: b}]", "label or alias 'b' occurs twice"),
        ("labels: [{name: a, aliases: [X y]}, {name: b, aliases: [x_Y]}]", "label or alias 'x-y' occurs twice"),
        ("labels: [{name: a-b}, {name: a_b}]", "label or alias 'a-b' occurs twice"),
        ("labels: [{name: a, antecedent: maybe}]", "labels[0].antecedent: expected 'none', 'optional' or 'required'"),
        ("questions: [{name: How, ask: x}]", "questions[0].name: a question's name can"),
        ("questions: [{name: a, ask: x}, {name: a, ask: y}]", "question 'a' occurs twice"),
        ("questions: [{name: a, ask: x}]\nlabels: [{name: l, questions: [{name: a, ask: y}]}]", "question 'a' occurs"),
        ("questions: [{name: a, ask: x, scale: nominal}]", "scale 'nominal' requires at least two options"),
        ("questions: [{name: a, ask: x, options: [1, 2]}]", "scale 'text' does not take options"),
        ("questions: [{name: a, ask: x, scale: ordinal, options: [1, 1]}]", "option '1' occurs twice"),
        ("questions: [{name: a, ask: x, scale: ordinal, options: [1, '1']}]", "option '1' occurs twice"),
        ("questions: [{name: a, ask: x, scale: several, options: [1, 2]}]", "'several' requires options that are text"),
        ("questions: [{name: a, ask: x, scale: size}]", "questions[0].scale: expected 'nominal', 'ordinal'"),
        ("questions: [{name: a, ask: x, scale: number, low: 2, high: 1}]", "low must be at most high, found 2 and 1"),
        ("questions: [{name: a, ask: x, low: 2}]", "scale 'text' takes neither low nor high"),
        ("questions: [{name: a, ask: x, when: {question: b, among: [1]}}]", "'a' depends on 'b', which is not asked"),
        ("questions: [{name: a, ask: x, when: {question: b, among: []}}]", "questions[0].when.among: "),
        (
            (
                "unit_questions:\n- {name: a, ask: x, scale: yes-no}\n"
                "- {name: b, ask: y, when: {question: a, among: ['yes']}}"
            ),
            "depends on answer 'yes', which 'a' does not offer",
        ),
        (
            (
                "survey:\n- {name: a, ask: x, scale: nominal, options: [u, v]}\n"
                "- {name: b, ask: y, when: {question: a, among: [w]}}"
            ),
            "survey: question 'b' depends on answer 'w', which 'a' does not offer",
        ),
        ("guidelines: [{name: g, say: x, quote: '(', action: split}]", "'(' is not a valid regular expression"),
        ("guidelines: [{name: g, say: x, quote: 'a{99999999999}', action: split}]", "not a valid regular expression"),
        ("guidelines: [{name: g, say: x, quote: a, action: relabel}]", "action 'relabel' requires a label in 'to'"),
        ("guidelines: [{name: g, say: x, quote: (a), action: split}]", "requires at least two groups in 'quote'"),
        ("guidelines: [{name: g, say: x, quote: a, action: relabel, to: z}]", "label 'z' is used but not defined"),
        ("guidelines: [{name: g, say: x, quote: (a)(b), labels: [z], action: split}]", "label 'z' is used but not"),
        ("labels: [{name: a}]\nweights: [{labels: [aa], weight: 1}]", "label 'aa' is used but not defined"),
        ("labels: [{name: a}]\nweights: [{labels: [b/*], weight: 1}]", "label 'b/*' is used but not defined"),
        ("weights: [{labels: ['*'], weight: 1}]", "weights[0].labels[0]: a name can"),
        ("examples: [{text: abc, marks: [{quote: x}]}]", "quote 'x' is not in the text"),
        ("examples: [{text: abc, marks: [{quote: b, nth: 2}]}]", "quote 'b' is not in the text 2 times"),
        ("examples: [{text: abc, marks: [{quote: b, part: prompt}]}]", "quote 'b' is not in the prompt"),
        ("examples: [{text: abc, marks: [{}]}]", "requires either `quote` or, for an omission, `before`"),
        ("examples: [{text: abc, marks: [{quote: b, antecedent: z}]}]", "'z' is neither in the text nor in a context"),
        ("examples: [{text: abc, marks: [{quote: b, label: z}]}]", "label 'z' is used but not defined"),
        ("examples: [{text: abc, answers: {rate: 1}}]", "unknown question 'rate' in answers"),
        ("examples: [{text: abc, data: {day: 2026-01-31}}]", "examples[0].data"),
        (
            "training: {exercises: [{name: e, text: ab, segments: [b, a]}]}",
            "segments must be distinct and in text order",
        ),
        (
            "training: {exercises: [{name: e, text: ab, segments: [a], units: [{}, {}]}]}",
            "answers for 2 segments, but the text has 1",
        ),
        ("training: {exercises: [{name: e, text: a}, {name: e, text: b}]}", "exercise 'e' occurs twice"),
        ("qualification: {parts: [], pass_at: 1}", "qualification.parts: "),
        ("qualification: {parts: [{name: a, points: 1}], pass_at: 1}", "requires either exercises or choices"),
        (
            "qualification: {pass_at: 1, parts: [{name: a, points: 1, exercises: [{name: e, text: x}]}]}",
            "exercise 'e' has no solutions",
        ),
        (
            (
                "qualification: {pass_at: 9, parts: [{name: a, points: 1, choices: "
                "[{name: c, text: x, ask: y, options: [u, v], answer: u}]}]}"
            ),
            "pass_at must be at most 1 (the sum of all points), found 9",
        ),
        (
            (
                "qualification: {pass_at: 1, parts: [{name: a, points: 1, choices: "
                "[{name: c, text: x, ask: y, options: [u, v], answer: w}]}]}"
            ),
            "answer 'w' is not one of the options",
        ),
    ],
)
def test_a_slip_is_one_line_with_its_place_and_the_way_out(text: str, message: str) -> None:
    lines = refused(HEAD + text)
    assert len(lines) == 1, lines
    assert lines[0].startswith("p.yaml:")
    assert message in lines[0]


def test_a_version_may_be_a_bare_whole_number() -> None:
    assert parse_protocol("name: p\nversion: 2\ntitle: P\nsummary: s\n", "p.yaml").id == "p@2"


def test_all_slips_are_told_at_once() -> None:
    assert refused("nam: p\nversion: 1.5\ntitle: P\n") == [
        "p.yaml:1: name: missing",
        "p.yaml:2: version: expected a valid string, found 1.5",
        "p.yaml:1: summary: missing",
        "p.yaml:1: nam: unknown key; did you mean 'name'?",
    ]


@pytest.mark.parametrize("name", ["a/b", "../x", "a/../../x", "A", "", "-a", "a b"])
def test_the_name_of_a_protocol_can_be_the_name_of_a_file(name: str) -> None:
    assert "name: a " in refused(HEAD.replace("name: p", f"name: '{name}'"))[0]


@pytest.mark.parametrize("version", ["'../1'", "'a b'", "''", "'-1'"])
def test_the_version_of_a_protocol_can_be_part_of_the_name_of_a_file(version: str) -> None:
    assert "version" in refused(HEAD.replace("'1'", version))[0]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "just words", "3", "null", "--- a\n--- b"),
        *("a: !!bool maybe", "a: !!int ''", "a: !!timestamp now", "a: !!float x", "!!python/object:os.system {}"),
        *("a: &x [*x]", "a: *nowhere", "? [a]\n: b", "<<: 3", "1: 2", "a: \x07", "a: \ud800", "[" * 5000),
        *("version: 0x" + "f" * 5000, "name: 2026-13-45", "name: .nan", "name: !!binary aa==", "\tname: x"),
        *("name: {a: b}: c", "labels: {0: {name: a}}", "work: {unit: 5, sentences: -1}", "trim: null"),
    ],
)
def test_what_is_no_protocol_is_refused_by_the_users_mistake_only(text: str) -> None:
    assert all(line.startswith("p.yaml:") for line in refused(text))


@given(st.text(max_size=60) | st.text("abn:{}[]&*!|>-?#%@'\"\\ \n\t0.~=,<", max_size=60))
def test_any_text_is_a_protocol_or_the_users_mistake(text: str) -> None:
    with contextlib.suppress(ProtocolError):
        parse_protocol(text, "p.yaml")


FIELDS = sorted(
    {name for kind in (Protocol, Label, Question, Example, Exercise, Solution) for name in kind.model_fields}
)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.dates() | st.text(max_size=5) | st.binary(max_size=3)
)
yaml_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(sorted(Protocol.model_fields)), yaml_values, max_size=6))
def test_any_yaml_is_a_protocol_or_the_users_mistake(value: dict[str, Any]) -> None:
    whole = {"name": "p", "version": "1", "title": "P", "summary": "S"} | value
    with contextlib.suppress(ProtocolError):
        parse_protocol(yaml.safe_dump(whole), "p.yaml")


def test_other_records_are_read_from_yaml_too() -> None:
    assert parse_yaml(Settings, "title: T\nannotators: 3", "study.yaml") == Settings(title="T", annotators=3)
    with pytest.raises(ProtocolError, match=re.escape("study.yaml:1: titel: unknown key; did you mean 'title'?")):
        parse_yaml(Settings, "titel: T", "study.yaml")


# --- there and back ---


@pytest.mark.parametrize("name", names())
def test_a_shipped_protocol_comes_back_from_its_yaml(name: str) -> None:
    assert parse_protocol(format_yaml(load_shipped(name)), name) == load_shipped(name)


@pytest.mark.parametrize("name", names())
def test_a_shipped_protocol_comes_back_from_its_json(name: str) -> None:
    assert Protocol.model_validate_json(load_shipped(name).to_json()) == load_shipped(name)


@pytest.mark.parametrize(
    "value", ["yes", "no", "1", "1.5", "null", "~", "2026-01-31", "a: b", "#", " x ", "é\u2028😀", "=", ""]
)
def test_text_that_yaml_would_take_for_something_else_comes_back(value: str) -> None:
    made = Protocol(name="p", version="1", title=value, summary=value, meta={"x": value})
    assert parse_protocol(format_yaml(made), "p.yaml") == made


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12))
def test_any_text_in_a_protocol_comes_back_from_yaml(value: str) -> None:
    made = Protocol(name="p", version="1", title=value, summary="", meta={"x": [value]})
    assert parse_protocol(format_yaml(made), "p.yaml") == made


# --- answers ---

NUMBER = Question(name="n", ask="?", scale="number")


def question(scale: str, options: tuple[Any, ...] = (), **more: Any) -> Question:
    return Question.model_validate({"name": "q", "ask": "?", "scale": scale, "options": options} | more)


@pytest.mark.parametrize(
    ("asked", "answer", "problem"),
    [
        (question("text"), "fine", ""),
        (question("text"), "", ""),
        (question("text"), 3, "expected text"),
        (question("rewrite"), "fine", ""),
        (question("rewrite"), True, "expected text"),
        (question("yes-no"), False, ""),
        (question("yes-no"), 0, "expected true or false"),
        (question("yes-no"), "yes", "expected true or false"),
        (question("number"), 3, ""),
        (question("number"), -0.5, ""),
        (question("number"), True, "expected a number"),
        (question("number"), "3", "expected a number"),
        (question("number", low=0), -1, "expected a number of at least 0"),
        (question("number", high=5), 5.5, "expected a number of at most 5"),
        (question("number", low=1, high=5), 6, "expected a number from 1 to 5"),
        (question("number", low=1, high=5), 1, ""),
        (question("number", low=1, high=5), 5, ""),
        (question("ordinal", (1, 2, 3)), 2, ""),
        (question("ordinal", (1, 2, 3)), 4, "expected one of 1, 2, 3"),
        (question("ordinal", (1, 2, 3)), "2", "expected one of 1, 2, 3"),
        (question("ordinal", (1, 2, 3)), True, "expected one of 1, 2, 3"),
        (question("nominal", ("a", "b")), "a", ""),
        (question("nominal", ("a", "b")), "c", "expected one of a, b"),
        (question("nominal", ("a", "b")), ("a",), "expected one of a, b"),
        (question("several", ("a", "b")), ("a", "b"), ""),
        (question("several", ("a", "b")), (), ""),
        (question("several", ("a", "b")), "a", "expected a list of a, b"),
        (question("several", ("a", "b")), ("a", "c"), "'c' is not one of a, b"),
    ],
)
def test_what_is_wrong_with_an_answer(asked: Question, answer: Any, problem: str) -> None:
    found = asked.answer_problem(answer)
    assert bool(found) == bool(problem)
    assert found == (found and f"answer {answer!r} to 'q': {problem}")


def test_a_bare_option_is_its_value() -> None:
    assert question("ordinal", (1, {"value": 2, "title": "Two"})).values == (1, 2)


# --- labels ---

LABELS = protocol(
    labels=[
        {"name": "accuracy/omission", "aliases": ["Left out"], "questions": [{"name": "what", "ask": "What?"}]},
        {"name": "accuracy/addition"},
        {"name": "not-checkable"},
    ],
    questions=[{"name": "severity", "ask": "How bad?", "scale": "ordinal", "options": ["minor", "major"]}],
    weights=[
        {"labels": ["accuracy/omission"], "severity": ["major"], "weight": 25},
        {"labels": ["accuracy/*"], "weight": 5},
        {"severity": ["minor"], "weight": 0.5},
    ],
)


@pytest.mark.parametrize("spelling", ["not-checkable", "Not checkable", "NOT_CHECKABLE", "  not \t checkable "])
def test_a_label_is_found_however_it_is_spelled(spelling: str) -> None:
    assert LABELS.resolve_label(spelling).name == "not-checkable"


def test_a_label_is_found_by_its_alias() -> None:
    assert LABELS.resolve_label("LEFT-OUT").name == "accuracy/omission"


def test_an_unknown_label_is_named_with_the_nearest() -> None:
    with pytest.raises(
        ProtocolError, match="label 'not-chekable' is not in protocol p@1; did you mean 'not-checkable'"
    ):
        LABELS.resolve_label("not-chekable")


def test_only_the_exact_name_of_a_label_counts_in_marks() -> None:
    assert LABELS.has_label("not-checkable")
    assert not LABELS.has_label("Not checkable")
    assert not LABELS.has_label("left-out")


@given(st.text(max_size=12))
def test_folding_twice_is_folding_once(spelling: str) -> None:
    assert fold_spelling(fold_spelling(spelling)) == fold_spelling(spelling)


def test_the_questions_of_a_label_follow_those_of_every_mark() -> None:
    assert [each.name for each in LABELS.questions_for_label("accuracy/omission")] == ["severity", "what"]
    assert [each.name for each in LABELS.questions_for_label("not-checkable")] == ["severity"]
    assert [each.name for each in LABELS.questions_for_label(None)] == ["severity"]


@pytest.mark.parametrize(
    ("label", "severity", "weight"),
    [
        ("accuracy/omission", "major", 25),
        ("accuracy/omission", "minor", 5),
        ("accuracy/omission", None, 5),
        ("accuracy/addition", "major", 5),
        ("not-checkable", "minor", 0.5),
        ("not-checkable", "major", None),
        ("not-checkable", None, None),
        (None, "minor", 0.5),
        (None, "major", None),
    ],
)
def test_the_first_weight_that_fits_is_taken(label: str | None, severity: str | None, weight: float | None) -> None:
    answers = {} if severity is None else {"severity": severity}
    mark = Mark(id="m", spans=(Span(0, 1),), quotes=("x",), label=label, answers=answers)
    assert LABELS.mark_weight(mark) == weight


def test_a_weight_may_be_for_a_family_of_labels() -> None:
    assert Weight(weight=1, labels=("accuracy/*",)).labels == ("accuracy/*",)


def test_the_title_of_a_label_is_made_from_its_name() -> None:
    assert Label(name="not-checkable").display_title == "Not checkable"
    assert Label(name="not-checkable", title="Cannot be checked").display_title == "Cannot be checked"


# --- texts of the protocol ---


@pytest.mark.parametrize(
    ("quote", "nth", "expected"),
    [("an", 1, Span(1, 3)), ("an", 2, Span(3, 5)), ("ana", 2, Span(3, 6)), ("banana", 1, Span(0, 6))],
)
def test_a_quote_is_located_by_its_occurrence(quote: str, nth: int, expected: Span) -> None:
    assert locate_nth_quote(quote, "banana", nth) == expected


def test_an_omission_stands_before_its_words() -> None:
    assert Solution(before="two").locate("one two", {}) == Span(4, 4)
    assert Solution(quote="p", part="prompt").locate("text", {"prompt": "a p"}) == Span(2, 3, "prompt")


def test_an_exercise_becomes_a_document_with_its_segments() -> None:
    exercise = Exercise(name="e", text="One here. Two there. ", segments=("One", "Two"), data={"a": 1})
    document = exercise.to_document("p@1/e")
    assert [document.text[each.start : each.end] for each in document.segments] == ["One here.", "Two there."]
    assert document.data == {"a": 1}


def test_practice_texts_have_ids_below_that_of_the_protocol() -> None:
    scarecrow = load_shipped("scarecrow")
    assert all(
        id.startswith("scarecrow@2/") and id == document.id for id, document in scarecrow.practice_documents.items()
    )
    assert len(scarecrow.practice_documents) == len(set(scarecrow.practice_documents)) >= len(scarecrow.exercises()) > 0


@pytest.mark.parametrize(
    ("name", "message"), [("scarcrow", "did you mean 'scarecrow'"), ("snac@9", "has no version 9; use 1 or 2")]
)
def test_an_unknown_shipped_protocol_is_named_with_the_nearest(name: str, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        load_shipped(name)
