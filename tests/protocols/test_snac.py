"""The SNaC protocol: its types and families, its work part by part, its stories and its test."""

from __future__ import annotations

import pytest

from finecomb.core.practice import Example, Exercise
from finecomb.core.qualification import QualificationGrade, grade_qualification
from finecomb.core.records import Mark
from finecomb.core.sentences import sentence_offsets
from finecomb.protocols import load_shipped

SNAC = load_shipped("snac")
assert SNAC.qualification is not None
TESTS = SNAC.qualification.parts[0].exercises


def found(exercise: Exercise, count: int) -> list[Mark]:
    """Marks that are exactly the first `count` solutions."""
    pairs = list(zip(exercise.solutions, exercise.solution_spans(), strict=True))[:count]
    return [
        Mark(id=f"{exercise.name}-{index}", spans=(span,), quotes=(solution.quote,), label=solution.label)
        for index, (solution, span) in enumerate(pairs)
    ]


def graded(*counts: int) -> QualificationGrade:
    """The grade of somebody who found that many errors in each summary."""
    return grade_qualification(
        SNAC, {exercise.name: found(exercise, count) for exercise, count in zip(TESTS, counts, strict=True)}
    )


def examples() -> list[Example]:
    return [*SNAC.examples, *(example for label in SNAC.labels for example in label.examples)]


@pytest.mark.parametrize(
    ("group", "names"), [("coherence", ["char", "scene", "ref", "incon"]), ("language", ["coref", "gram", "rep"])]
)
def test_the_families_are_those_of_the_paper(group: str, names: list[str]) -> None:
    assert [label.name for label in SNAC.labels if label.group == group] == names


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("CharE", "char"),
        ("SceneE", "scene"),
        ("RefE", "ref"),
        ("InconE", "incon"),
        ("CorefE", "coref"),
        ("GramE", "gram"),
        ("RepE", "rep"),
        ("New character w/o Introduction", "char"),
        ("Missing reference to entity/event", "ref"),
        ("Ungrammatical/Nonsensical", "gram"),
    ],
)
def test_the_spellings_of_the_paper_are_understood(spelling: str, name: str) -> None:
    assert SNAC.resolve_label(spelling).name == name


def test_contradictions_and_repetitions_name_the_earlier_words() -> None:
    assert {label.name for label in SNAC.labels if label.antecedent == "required"} == {"incon", "rep"}
    assert {label.antecedent for label in SNAC.labels} == {"none", "required"}


def test_only_a_change_of_scene_takes_whole_sentences() -> None:
    assert [label.name for label in SNAC.labels if label.snap == "sentence"] == ["scene"]


def test_work_goes_part_by_part_with_the_story_so_far_above() -> None:
    work = SNAC.work
    assert (work.unit, work.sentences, work.annotators, work.context) == ("segment", 3, 3, "above")


def test_a_comment_is_welcome_and_not_required() -> None:
    assert [(question.name, question.required) for question in SNAC.questions] == [("comment", False)]


def test_the_key_that_picks_the_earlier_words_is_left_free() -> None:
    keys = [label.key for label in SNAC.labels]
    assert "a" not in keys
    assert len(set(keys)) == len({label.flag for label in SNAC.labels}) == 7


@pytest.mark.parametrize("name", [label.name for label in SNAC.labels])
def test_every_type_has_two_errors_and_a_text_without_one(name: str) -> None:
    shown = SNAC.resolve_label(name).examples
    assert sum(bool(example.marks) for example in shown) >= 2
    assert any(not example.marks and example.why.startswith("No error.") for example in shown)
    assert {mark.label for example in shown for mark in example.marks} == {name}


def test_known_contradictions_and_repetitions_say_what_came_before() -> None:
    marks = [mark for example in examples() for mark in example.marks]
    marks += [solution for exercise in SNAC.exercises() for solution in exercise.solutions]
    for mark in marks:
        assert bool(mark.antecedent) == (mark.label in ("incon", "rep")), mark.quote


def test_the_earlier_words_are_earlier() -> None:
    for exercise in SNAC.exercises():
        for solution, span in zip(exercise.solutions, exercise.solution_spans(), strict=True):
            assert not solution.antecedent or exercise.text.index(solution.antecedent) < span.start


def test_known_changes_of_scene_are_whole_sentences() -> None:
    for exercise in SNAC.exercises():
        whole = sentence_offsets(exercise.text).tolist()
        for solution, span in zip(exercise.solutions, exercise.solution_spans(), strict=True):
            assert solution.label != "scene" or [span.start, span.end] in whole


@pytest.mark.parametrize("exercise", SNAC.exercises(), ids=lambda exercise: str(exercise.name))
def test_parts_cover_the_story_and_no_error_crosses_them(exercise: Exercise) -> None:
    parts = exercise.to_document("x").segments
    assert " ".join(exercise.text[part.start : part.end] for part in parts) == " ".join(exercise.text.split())
    for span in exercise.solution_spans():
        assert any(part.start <= span.start and span.end <= part.end for part in parts)


@pytest.mark.parametrize("exercise", SNAC.exercises(), ids=lambda exercise: str(exercise.name))
def test_parts_have_at_most_three_sentences(exercise: Exercise) -> None:
    for part in exercise.to_document("x").segments:
        assert len(sentence_offsets(exercise.text[part.start : part.end])) <= 3


@pytest.mark.parametrize("exercise", TESTS, ids=lambda exercise: str(exercise.name))
def test_each_summary_has_every_type_with_a_reason(exercise: Exercise) -> None:
    assert {solution.label for solution in exercise.solutions} == {label.name for label in SNAC.labels}
    assert all(solution.why for solution in exercise.solutions)


def test_feedback_is_written_for_each_mark() -> None:
    assert SNAC.qualification is not None
    assert SNAC.qualification.feedback == "written"


def test_who_finds_everything_gets_all_points() -> None:
    result = graded(8, 8)
    assert (result.score, result.of, result.precision, result.passed) == (100, 100, 1, True)


def test_a_blank_test_is_not_passed() -> None:
    result = graded(0, 0)
    assert result.score == pytest.approx(0)
    assert not result.passed


@pytest.mark.parametrize(
    ("counts", "passed"), [((first, 8 - first), True) for first in range(9)] + [((4, 3), False), ((0, 7), False)]
)
def test_half_of_the_errors_are_enough(counts: tuple[int, int], passed: bool) -> None:
    result = graded(*counts)
    assert result.score == pytest.approx(50 * sum(counts) / 8)
    assert result.passed is passed


def test_a_famous_person_is_no_error() -> None:
    gym = next(exercise for exercise in TESTS if "Muhammad Ali" in exercise.text)
    assert not any("Ali" in solution.quote for solution in gym.solutions)
    assert "Muhammad Ali" in gym.feedback
