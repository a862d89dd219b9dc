from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import pytest

from finecomb.core.practice import Example, Exercise
from finecomb.core.protocol import Condition, Protocol
from finecomb.core.protocol_yaml import format_yaml, parse_protocol
from finecomb.core.question import Question
from finecomb.core.records import Answers
from finecomb.protocols import load_shipped, names

RATING_PROTOCOLS = ["audit", "comments", "likert", "preference", "sections", "turing"]
RECRUITING = ["likert", "preference", "sections", "turing"]

# Clark et al. 2021, Table 4.
TABLE_4 = {
    "Form": ["grammar", "level-of-detail", "genre"],
    "Content": ["repetition", "factuality", "consistency", "common-sense", "coherence"],
    "Machine capabilities": ["writer-intent-and-expression"],
    "Null": ["miscellaneous", "null-vague"],
}

# Deng et al. 2022, Table 18: every kind of section printed there.
TABLE_18 = {
    "introduction",
    "case report",
    "material and method",
    "statistical analysis",
    "result",
    "result and discussion",
    "discussion",
    "conclusion",
}


def question(protocol: str, name: str) -> Question:
    asked = load_shipped(protocol)
    return next(each for each in (*asked.document_questions, *asked.unit_questions) if each.name == name)


def condition(name: str) -> Condition:
    return next(each for each in load_shipped("turing").conditions if each.name == name)


def answer_problems(answers: Answers, questions: Iterable[Question]) -> list[str]:
    by_name = {each.name: each for each in questions}
    return [problem for name, answer in answers.items() if (problem := by_name[name].answer_problem(answer))]


def asked_after(question: Question, answers: Answers) -> bool:
    return question.when is None or answers.get(question.when.question) in question.when.among


def examples_of(protocol: Protocol) -> list[Example]:
    conditions = [(*each.examples, *itertools.chain(*each.pairs)) for each in protocol.conditions]
    return [*protocol.examples, *itertools.chain(*conditions)]


EXERCISES = [pytest.param(each, id=each.name) for each in load_shipped("sections").exercises()]


@pytest.mark.parametrize("name", RATING_PROTOCOLS)
def test_every_rating_protocol_is_shipped_whole(name: str) -> None:
    protocol = load_shipped(name)
    assert name in names()
    assert protocol.id == (f"{name}@2" if name == "turing" else f"{name}@1")
    assert all([protocol.source, protocol.summary, protocol.instructions, protocol.rules, protocol.thanks])
    assert examples_of(protocol)
    assert bool(protocol.consent) == (name in RECRUITING)


@pytest.mark.parametrize("name", RATING_PROTOCOLS)
def test_a_rating_protocol_written_as_yaml_reads_back_equal(name: str) -> None:
    assert parse_protocol(format_yaml(load_shipped(name)), name) == load_shipped(name)


@pytest.mark.parametrize("name", RATING_PROTOCOLS)
def test_ratings_need_neither_labels_nor_a_qualification(name: str) -> None:
    protocol = load_shipped(name)
    assert protocol.labels == ()
    assert protocol.questions == ()
    assert protocol.qualification is None


@pytest.mark.parametrize(
    ("name", "unit", "annotators"),
    [
        ("audit", "mark", 2),
        ("comments", "annotation", 2),
        ("likert", "document", 3),
        ("preference", "pair", 3),
        ("sections", "segment", 5),
        ("turing", "document", 7),
    ],
)
def test_work_comes_in_the_right_unit_for_enough_annotators(name: str, unit: str, annotators: int) -> None:
    work = load_shipped(name).work
    assert (work.unit, work.annotators) == (unit, annotators)


@pytest.mark.parametrize("name", RATING_PROTOCOLS)
def test_every_example_is_answered_completely_and_explained(name: str) -> None:
    protocol = load_shipped(name)
    for example in examples_of(protocol):
        required = {each.name for each in protocol.document_questions if each.required and each.when is None}
        assert required <= set(example.answers)
        assert example.why


@pytest.mark.parametrize("name", RATING_PROTOCOLS)
def test_every_answer_in_an_example_can_be_given(name: str) -> None:
    questions = load_shipped(name).document_questions
    for example in examples_of(load_shipped(name)):
        assert answer_problems(example.answers, questions) == []
        given = [each for each in questions if each.name in example.answers]
        assert all(asked_after(each, example.answers) for each in given)


@pytest.mark.parametrize("name", RATING_PROTOCOLS)
def test_every_answer_to_choose_has_a_title_and_is_shown_in_an_example(name: str) -> None:
    protocol = load_shipped(name)
    shown = [answer for example in examples_of(protocol) for answer in example.answers.values()]
    shown += [answer for exercise in protocol.exercises() for unit in exercise.units for answer in unit.values()]
    given = {each for answer in shown for each in (answer if isinstance(answer, tuple) else [answer])}
    for each in (*protocol.document_questions, *protocol.unit_questions):
        assert all(option.title for option in each.options)
        if each.required and each.name not in ("rating", "section"):
            assert set(each.values) <= given


@pytest.mark.parametrize("name", RATING_PROTOCOLS)
def test_people_are_spoken_to_plainly(name: str) -> None:
    protocol = load_shipped(name)
    questions = (*protocol.document_questions, *protocol.unit_questions)
    said = [protocol.consent, protocol.instructions, protocol.thanks, *protocol.rules]
    said += [each.instructions for each in protocol.conditions]
    said += [words for each in questions for words in (each.ask, each.help)]
    said += [protocol.training.intro] if protocol.training else []
    assert re.findall(r"!|\b(?:please|oops|invalid|submit)\b", " ".join(said), re.IGNORECASE) == []


@pytest.mark.parametrize(
    ("name", "optional"),
    [
        ("audit", {"reason", "cannot_judge"}),
        ("comments", {"comment", "cannot_judge"}),
        ("likert", {"reason", "cannot_judge"}),
        ("preference", {"reasons", "comment", "cannot_judge"}),
        ("sections", {"reason"}),
        ("turing", set()),
    ],
)
def test_only_reasons_and_remarks_are_optional(name: str, optional: set[str]) -> None:
    assert {each.name for each in load_shipped(name).document_questions if not each.required} == optional


@pytest.mark.parametrize(
    ("protocol", "name", "values"),
    [
        ("turing", "rating", (1, 2, 3, 4)),
        ("likert", "coherence", (1, 2, 3, 4, 5)),
        ("audit", "verdict", ("legitimate", "not-legitimate", "artefact")),
        ("preference", "prefer", ("a", "b", "neither")),
    ],
)
def test_the_main_question_offers_these_answers_in_this_order(
    protocol: str, name: str, values: tuple[int | str, ...]
) -> None:
    assert question(protocol, name).values == values


@pytest.mark.parametrize(
    ("protocol", "name", "scale"),
    [
        ("turing", "rating", "ordinal"),
        ("likert", "coherence", "ordinal"),
        ("comments", "codes", "several"),
        ("sections", "section", "nominal"),
        ("sections", "coherent", "yes-no"),
        ("audit", "verdict", "nominal"),
        ("preference", "prefer", "nominal"),
        ("preference", "reasons", "several"),
    ],
)
def test_each_question_has_the_scale_that_its_statistics_need(protocol: str, name: str, scale: str) -> None:
    assert question(protocol, name).scale == scale


@pytest.mark.parametrize(
    ("protocol", "name", "answer", "fits"),
    [
        ("turing", "rating", 4, True),
        ("turing", "rating", 0, False),
        ("turing", "rating", 5, False),
        ("turing", "rating", "4", False),
        ("turing", "rating", True, False),
        ("turing", "why", "The boiler sneezed.", True),
        ("turing", "change", 3, False),
        ("comments", "codes", ("grammar", "null-vague"), True),
        ("comments", "codes", ("form",), False),
        ("comments", "codes", "grammar", False),
        ("sections", "section", "case-report", True),
        ("sections", "section", "case report", False),
        ("sections", "coherent", False, True),
        ("sections", "coherent", "no", False),
        ("likert", "coherence", 3, True),
        ("likert", "coherence", 3.5, False),
        ("audit", "verdict", "artefact", True),
        ("audit", "verdict", "artifact", False),
        ("preference", "prefer", "neither", True),
        ("preference", "prefer", "A", False),
        ("preference", "reasons", (), True),
        ("preference", "reasons", ("accurate", "fluent"), True),
        ("preference", "reasons", ("longer",), False),
    ],
)
def test_an_answer_is_taken_when_it_is_offered_and_refused_otherwise(
    protocol: str, name: str, answer: str | int | bool | tuple[str, ...], fits: bool
) -> None:
    assert (question(protocol, name).answer_problem(answer) == "") == fits


@pytest.mark.parametrize(
    ("protocol", "answers", "follow_ups"),
    [
        ("turing", {"rating": 1}, {"why"}),
        ("turing", {"rating": 2}, {"change"}),
        ("turing", {"rating": 3}, {"change"}),
        ("turing", {"rating": 4}, {"change"}),
        ("turing", {}, set()),
        ("sections", {"coherent": True}, set()),
        ("sections", {"coherent": False}, {"reason"}),
        ("preference", {"prefer": "a"}, {"reasons"}),
        ("preference", {"prefer": "b"}, {"reasons"}),
        ("preference", {"prefer": "neither"}, set()),
    ],
)
def test_a_follow_up_is_asked_after_certain_answers_only(protocol: str, answers: Answers, follow_ups: set[str]) -> None:
    waiting = [each for each in load_shipped(protocol).document_questions if each.when is not None]
    assert {each.name for each in waiting if asked_after(each, answers)} == follow_ups


def test_turing_gives_a_person_five_texts_once_and_without_their_context() -> None:
    work = load_shipped("turing").work
    assert (work.texts, work.once, work.context) == (5, True, "hidden")


@pytest.mark.parametrize(
    ("name", "examples", "pairs"), [("none", 0, 0), ("instructions", 0, 0), ("examples", 9, 0), ("comparison", 0, 9)]
)
def test_turing_has_four_conditions_each_with_its_own_training(name: str, examples: int, pairs: int) -> None:
    assert [each.name for each in load_shipped("turing").conditions] == [
        "none",
        "instructions",
        "examples",
        "comparison",
    ]
    assert (len(condition(name).examples), len(condition(name).pairs)) == (examples, pairs)
    assert condition(name).instructions


def test_turing_never_filters_by_training() -> None:
    protocol = load_shipped("turing")
    assert protocol.training is None
    assert protocol.qualification is None


def test_turing_examples_show_a_person_and_a_machine_in_each_domain() -> None:
    ratings: dict[str, list[object]] = {}
    for example in condition("examples").examples:
        ratings.setdefault(example.only["domain"][0], []).append(example.answers["rating"])
    assert {domain: len(given) for domain, given in ratings.items()} == {"stories": 3, "news": 3, "recipes": 3}
    assert all(set(given) == {1, 4} for given in ratings.values())


def test_each_turing_pair_has_a_person_and_a_machine_that_begin_alike() -> None:
    for pair in condition("comparison").pairs:
        assert sorted(str(example.answers["rating"]) for example in pair) == ["1", "4"]
        left, right = (re.split(r"(?<=\.) |\n", example.text)[0] for example in pair)
        assert left == right


@pytest.mark.parametrize("first", [0, 3, 6])
def test_the_machine_is_not_always_on_the_same_side_of_a_turing_pair(first: int) -> None:
    assert {pair[0].answers["rating"] for pair in condition("comparison").pairs[first : first + 3]} == {1, 4}


def test_each_turing_pair_reuses_one_text_of_the_examples() -> None:
    known = {example.text for example in condition("examples").examples}
    assert [len(known & {example.text for example in pair}) for pair in condition("comparison").pairs] == [1] * 9


def test_turing_practice_texts_are_as_long_as_those_of_the_paper() -> None:
    for example in examples_of(load_shipped("turing")):
        assert 100 <= len(example.text.split()) <= 150


def test_the_codes_are_those_of_table_4_by_group() -> None:
    groups: dict[str, list[object]] = {}
    for option in question("comments", "codes").options:
        groups.setdefault(option.group, []).append(option.value)
    assert groups == TABLE_4
    assert [len(values) for values in groups.values()] == [3, 5, 1, 2]


def test_the_codes_left_out_of_shares_are_those_of_the_group_null() -> None:
    assert load_shipped("comments").meta["left_out"] == TABLE_4["Null"]


@pytest.mark.parametrize(("protocol", "name"), [("comments", "codes"), ("sections", "section"), ("audit", "verdict")])
def test_no_spelling_names_two_options(protocol: str, name: str) -> None:
    spellings = [str(each) for option in question(protocol, name).options for each in (option.value, *option.aliases)]
    assert len(spellings) == len(set(spellings))


def test_a_vague_explanation_has_no_other_code() -> None:
    coded = [example.answers["codes"] for example in load_shipped("comments").examples]
    assert all(codes == ("null-vague",) for codes in coded if isinstance(codes, tuple) and "null-vague" in codes)


def test_the_kinds_of_section_are_those_of_table_18_and_two_for_the_rest() -> None:
    kinds = [str(value) for value in question("sections", "section").values]
    assert set(kinds) == {kind.replace(" ", "-") for kind in TABLE_18} | {"other", "unclear"}


def test_sections_are_verified_in_training() -> None:
    assert load_shipped("sections").work.verify
    assert len(load_shipped("sections").exercises()) >= 3


def test_training_shows_every_printed_kind_of_section() -> None:
    shown = {str(unit["section"]) for exercise in load_shipped("sections").exercises() for unit in exercise.units}
    assert shown == {kind.replace(" ", "-") for kind in TABLE_18}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("foot-bath", ["introduction", "material-and-method", "result", "discussion", "conclusion"]),
        ("beekeeper", ["introduction", "case-report", "discussion"]),
        (
            "stair-climbing",
            ["introduction", "material-and-method", "statistical-analysis", "result", "discussion", "conclusion"],
        ),
        ("elder-leaves", ["introduction", "material-and-method", "result-and-discussion", "conclusion"]),
    ],
)
def test_an_exercise_is_an_article_in_a_usual_order(name: str, kinds: list[str]) -> None:
    exercise = next(each for each in load_shipped("sections").exercises() if each.name == name)
    assert [unit["section"] for unit in exercise.units] == kinds
    assert len(exercise.to_document(name).segments) == len(kinds)
    assert exercise.answers == {"coherent": True}
    assert exercise.feedback


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_segments_of_an_exercise_are_its_paragraphs(exercise: Exercise) -> None:
    document = exercise.to_document(f"sections@1/{exercise.name}")
    assert [document.text[each.start : each.end] for each in document.segments] == document.text.split("\n")


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_solution_of_an_exercise_can_be_given(exercise: Exercise) -> None:
    protocol = load_shipped("sections")
    assert answer_problems(exercise.answers, protocol.document_questions) == []
    assert [answer_problems(unit, protocol.unit_questions) for unit in exercise.units] == [[]] * len(exercise.segments)


def test_likert_shows_one_text_for_each_point() -> None:
    assert [example.answers["coherence"] for example in load_shipped("likert").examples] == [5, 4, 3, 2, 1]


def test_every_audited_example_has_one_mark_on_words_of_its_text() -> None:
    for example in load_shipped("audit").examples:
        (mark,) = example.marks
        span = mark.locate(example.text, example.context)
        assert example.text[span.start : span.end] == mark.quote


def test_artefacts_are_left_out_of_the_estimate() -> None:
    assert load_shipped("audit").meta["left_out"] == ["artefact"]


def test_a_pair_to_compare_has_its_texts_as_contexts_and_no_text_of_its_own() -> None:
    for example in load_shipped("preference").examples:
        assert example.text == ""
        assert {"a", "b"} <= set(example.context)
