"""The shipped Scarecrow protocol: labels, texts, and the 100 points of its qualification (Dou et al. 2022, B.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pytest

from finecomb.core.practice import Choice, Exercise, Qualification, Solution, locate_nth_quote
from finecomb.core.protocol_yaml import format_yaml, parse_protocol
from finecomb.core.qualification import grade_qualification
from finecomb.core.records import Answer, Mark
from finecomb.core.span import Span
from finecomb.protocols import load_shipped

SCARECROW = load_shipped("scarecrow")

LABELS = [  # name, title, group, flag, key; in the order shown
    ("grammar-usage", "Grammar and usage", "language", "GU", "g"),
    ("off-prompt", "Off-prompt", "language", "OP", "o"),
    ("redundant", "Redundant", "language", "RD", "r"),
    ("self-contradiction", "Self-contradiction", "language", "SC", "s"),
    ("incoherent", "Incoherent", "language", "IN", "i"),
    ("bad-math", "Bad math", "factual", "BM", "b"),
    ("encyclopedic", "Encyclopedic", "factual", "EN", "e"),
    ("commonsense", "Commonsense", "factual", "CS", "c"),
    ("needs-google", "Needs Google", "reader", "NG", "n"),
    ("technical-jargon", "Technical jargon", "reader", "TJ", "j"),
]
NAMES = [name for name, *_ in LABELS]
REFER_BACK = {"redundant", "self-contradiction"}


def qualification() -> Qualification:
    assert SCARECROW.qualification is not None
    return SCARECROW.qualification


FIRST, FIRST_QUIZ, SECOND, SECOND_QUIZ, TASK = qualification().parts
EXERCISES = (*FIRST.exercises, *SECOND.exercises)
CHOICES = (*FIRST_QUIZ.choices, *SECOND_QUIZ.choices)


def mark(exercise: Exercise, index: int, label: str | None = None) -> Mark:
    """The mark that finds solution `index`, with another label when one is given."""
    solution = exercise.solutions[index]
    return Mark(
        id=f"{exercise.name}-{index}",
        spans=(exercise.solution_spans()[index],),
        quotes=(solution.quote,),
        label=label or solution.label,
    )


def marks(exercise: Exercise, count: int | None = None) -> list[Mark]:
    """Marks that find the first `count` solutions, or all."""
    return [mark(exercise, index) for index in range(len(exercise.solutions))[:count]]


def answers(found: int = 7, without: Collection[str] = ()) -> dict[str, Sequence[Mark] | Answer]:
    """A perfect qualification but for `found` of the task's seven errors and the items left blank."""
    given: dict[str, Sequence[Mark] | Answer] = {each.name: marks(each) for each in EXERCISES}
    given |= {choice.name: choice.answer for choice in CHOICES}
    given |= {each.name: marks(each, found) for each in TASK.exercises}
    return {name: answer for name, answer in given.items() if name not in without}


def written() -> Iterator[tuple[str, Solution]]:
    """Every text in which something is marked, with each of its marks."""
    for example in (*SCARECROW.examples, *(each for label in SCARECROW.labels for each in label.examples)):
        yield from ((example.text, each) for each in example.marks)
    for exercise in SCARECROW.exercises():
        yield from ((exercise.text, each) for each in exercise.solutions)


# Labels and questions


def test_labels_come_in_the_order_of_their_slots() -> None:
    shown = [(each.name, each.title, each.group, each.flag, each.key) for each in SCARECROW.labels]
    assert shown == LABELS


def test_groups_are_language_then_factual_then_reader() -> None:
    assert [group.name for group in SCARECROW.groups] == ["language", "factual", "reader"]


def test_keys_are_all_different_and_leave_a_for_the_antecedent() -> None:
    keys = {label.key for label in SCARECROW.labels}
    assert len(keys) == 10
    assert "a" not in keys


@pytest.mark.parametrize("name", NAMES)
def test_every_label_is_explained_and_shown_by_two_examples_of_its_own(name: str) -> None:
    label = SCARECROW.resolve_label(name)
    own = [example for example in label.examples if example.marks]
    assert label.gloss
    assert label.rules
    assert len(own) >= 2
    assert {each.label for example in own for each in example.marks} == {name}


@pytest.mark.parametrize("name", NAMES)
def test_only_redundant_and_self_contradiction_ask_for_earlier_words(name: str) -> None:
    assert SCARECROW.resolve_label(name).antecedent == ("required" if name in REFER_BACK else "none")


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Grammar_Usage", "grammar-usage"),
        ("Grammar / Usage", "grammar-usage"),
        ("Grammar and Usage", "grammar-usage"),
        ("Off-prompt", "off-prompt"),
        ("Off_Prompt", "off-prompt"),
        ("Redundancy", "redundant"),
        ("Self-contradiction", "self-contradiction"),
        ("Self_contradiction", "self-contradiction"),
        ("Incoherent", "incoherent"),
        ("Bad_Math", "bad-math"),
        ("ENCYCLOPEDIC", "encyclopedic"),
        ("Common sense", "commonsense"),
        ("Needs_Google", "needs-google"),
        ("Technical_Jargon", "technical-jargon"),
    ],
)
def test_labels_are_known_under_the_spellings_of_releases(spelling: str, name: str) -> None:
    assert SCARECROW.resolve_label(spelling).name == name


def test_every_mark_is_snapped_to_words_and_asks_severity_and_explanation() -> None:
    severity, explanation = SCARECROW.questions
    assert {label.snap for label in SCARECROW.labels} == {"word"}
    assert (severity.name, severity.scale, severity.required) == ("severity", "ordinal", True)
    assert severity.values == (1, 2, 3)
    assert all(option.title and option.gloss for option in severity.options)
    assert (explanation.name, explanation.scale, explanation.required) == ("explanation", "text", True)


def test_a_text_may_be_declared_impossible_to_judge() -> None:
    (question,) = SCARECROW.document_questions
    assert (question.name, question.scale, question.required) == ("cannot_judge", "text", False)


def test_ten_people_read_each_whole_text_below_its_prompt() -> None:
    work = SCARECROW.work
    assert (work.unit, work.annotators, work.context) == ("document", 10, "above")


def test_the_protocol_reads_back_from_what_it_writes() -> None:
    assert parse_protocol(format_yaml(SCARECROW), "scarecrow.yaml") == SCARECROW


# Texts


def test_every_marked_quote_occurs_once_in_its_text_and_covers_whole_words() -> None:
    for text, solution in written():
        span = locate_nth_quote(solution.quote, text)
        around = text[max(0, span.start - 1) : span.start] + text[span.end : span.end + 1]
        assert text.count(solution.quote) == 1, solution.quote
        assert not any(character.isalnum() for character in around), solution.quote


def test_every_mark_gives_its_reason() -> None:
    assert [solution.quote for _, solution in written() if not solution.why] == []


def test_earlier_words_are_given_where_asked_and_come_before_the_mark() -> None:
    for text, solution in written():
        assert bool(solution.antecedent) == (solution.label in REFER_BACK), solution.quote
        if solution.antecedent:
            assert locate_nth_quote(solution.antecedent, text).end <= locate_nth_quote(solution.quote, text).start, (
                solution.quote
            )


def test_one_of_two_whole_texts_has_no_errors() -> None:
    assert sorted(bool(example.marks) for example in SCARECROW.examples) == [False, True]
    assert all(example.why and 80 <= len(example.text.split()) <= 145 for example in SCARECROW.examples)


def test_no_text_is_used_twice() -> None:
    examples = [*SCARECROW.examples, *(each for label in SCARECROW.labels for each in label.examples)]
    texts = [example.text for example in examples]
    texts += [exercise.text for exercise in SCARECROW.exercises()]
    texts += [choice.text for choice in CHOICES]
    assert len(set(texts)) == len(texts)


# The qualification


def test_the_qualification_has_exercises_quizzes_and_a_text_of_50_30_and_20_points_in_the_papers_order() -> None:
    assert [part.max_points for part in qualification().parts] == [25, 15, 25, 15, 20]
    assert [part.teach for part in qualification().parts] == [True, False, True, False, False]
    assert [exercise.label for exercise in FIRST.exercises] == NAMES[:5]
    assert (qualification().max_points, qualification().pass_at, qualification().attempts) == (100, 90, 1)


def test_there_is_one_exercise_for_each_label_with_one_solution() -> None:
    assert [exercise.label for exercise in EXERCISES] == NAMES
    assert all([each.label for each in exercise.solutions] == [exercise.label] for exercise in EXERCISES)


@pytest.mark.parametrize(("quiz", "names"), [(slice(0, 5), NAMES[:5]), (slice(5, 10), NAMES[5:])])
def test_each_label_quiz_offers_its_labels_and_asks_for_each_once(quiz: slice, names: list[str]) -> None:
    asked = CHOICES[quiz]
    offered = [(name, title) for name, title, *_ in LABELS if name in names]
    assert sorted(str(choice.answer) for choice in asked) == sorted(names)
    assert all([(option.value, option.title) for option in choice.options] == offered for choice in asked)
    assert all(choice.text.count(choice.quote) == 1 and choice.feedback for choice in asked)


def test_the_task_is_a_paragraph_with_a_prompt_and_seven_errors_of_several_kinds() -> None:
    (task,) = TASK.exercises
    assert task.context["prompt"].count(".") == 1
    assert 80 <= len(task.text.split()) <= 145
    assert len(task.solutions) == 7
    assert len({solution.label for solution in task.solutions}) >= 5


def test_perfect_work_earns_100_points() -> None:
    result = grade_qualification(SCARECROW, answers())
    assert (result.score, result.of, result.passed, result.precision) == (100, 100, True, 1)


def test_blank_work_earns_nothing_in_any_part() -> None:
    result = grade_qualification(SCARECROW, {})
    assert set(result.parts.values()) == {0}
    assert not result.passed


@pytest.mark.parametrize(
    ("found", "task", "score"),
    [(7, 20, 100), (6, 20, 100), (5, 20, 100), (4, 16, 96), (3, 12, 92), (2, 8, 88), (1, 4, 84), (0, 0, 80)],
)
def test_five_of_seven_errors_earn_the_whole_task_and_each_fewer_costs_four(
    found: int, task: float, score: float
) -> None:
    result = grade_qualification(SCARECROW, answers(found))
    assert (result.parts["task"], result.score) == (task, score)


@pytest.mark.parametrize(
    ("found", "without", "score", "passed"),
    [
        (7, ["exercise-1", "exercise-2"], 90, True),
        (7, ["exercise-1", "choice-1", "choice-2"], 89, False),
        (7, ["choice-1", "choice-2", "choice-3"], 91, True),
        (7, ["choice-1", "choice-2", "choice-3", "choice-4"], 88, False),
        (3, [], 92, True),
        (2, [], 88, False),
    ],
)
def test_ninety_points_are_enough(found: int, without: list[str], score: float, passed: bool) -> None:
    result = grade_qualification(SCARECROW, answers(found, without))
    assert (result.score, result.passed) == (score, passed)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_the_right_place_with_the_wrong_label_does_not_count(exercise: Exercise) -> None:
    wrong = NAMES[NAMES.index(str(exercise.label)) - 1]
    result = grade_qualification(SCARECROW, answers() | {exercise.name: [mark(exercise, 0, wrong)]})
    item = next(item for item in result.items if item.name == exercise.name)
    assert (result.score, item.points, item.missed, item.extra) == (95, 0, (0,), (f"{exercise.name}-0",))


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.name)
def test_a_wrong_choice_costs_three_points(choice: Choice) -> None:
    wrong = next(option.value for option in choice.options if option.value != choice.answer)
    assert grade_qualification(SCARECROW, answers() | {choice.name: wrong}).score == 97


def test_one_mark_over_the_whole_text_finds_only_one_of_two_errors_of_its_kind() -> None:
    (task,) = TASK.exercises
    assert [solution.label for solution in task.solutions].count("grammar-usage") == 2
    whole = Mark(id="whole", spans=(Span(0, len(task.text)),), quotes=(task.text,), label="grammar-usage")
    (item,) = [item for item in grade_qualification(SCARECROW, {task.name: [whole]}).items if item.name == task.name]
    assert (len(item.found), len(item.missed), item.points) == (1, 6, 4)
