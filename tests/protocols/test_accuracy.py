"""The accuracy protocol: its types, its checkable guidelines, its invented games and its test."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest

from finecomb.core.practice import Exercise
from finecomb.core.protocol import Guideline
from finecomb.core.qualification import QualificationGrade, grade_qualification
from finecomb.core.records import Mark
from finecomb.protocols import load_shipped

ACCURACY = load_shipped("accuracy")
assert ACCURACY.qualification is not None
TEST = ACCURACY.qualification.parts[0].exercises[0]


def guideline(name: str) -> Guideline:
    return next(each for each in ACCURACY.guidelines if each.name == name)


def found(exercise: Exercise, count: int) -> list[Mark]:
    """Marks that are exactly the first `count` solutions."""
    pairs = list(zip(exercise.solutions, exercise.solution_spans(), strict=True))[:count]
    return [
        Mark(id=f"m{index}", spans=(span,), quotes=(solution.quote,), label=solution.label)
        for index, (solution, span) in enumerate(pairs)
    ]


def graded(marks: list[Mark]) -> QualificationGrade:
    return grade_qualification(ACCURACY, {TEST.name: marks})


def test_the_types_are_those_of_the_paper_in_its_order() -> None:
    assert [label.name for label in ACCURACY.labels] == ["number", "name", "word", "context", "not-checkable", "other"]


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("NUMBER", "number"),
        ("Incorrect number", "number"),
        ("incorrect named entity", "name"),
        ("Incorrect word", "word"),
        ("context error", "context"),
        ("NOT_CHECKABLE", "not-checkable"),
        ("not check", "not-checkable"),
        ("Other", "other"),
    ],
)
def test_the_spellings_of_papers_and_files_are_understood(spelling: str, name: str) -> None:
    assert ACCURACY.resolve_label(spelling).name == name


def test_a_mark_may_have_no_type_and_no_correction() -> None:
    assert ACCURACY.unlabelled
    assert {question.name: question.required for question in ACCURACY.questions} == {
        "correction": False,
        "comment": False,
    }


def test_every_type_has_an_example_and_its_own_key_and_flag() -> None:
    assert all(label.examples and label.gloss and label.rules for label in ACCURACY.labels)
    assert len({label.key for label in ACCURACY.labels}) == len({label.flag for label in ACCURACY.labels}) == 6


@pytest.mark.parametrize(
    "quote", ["Monday", "on Tuesday", "On Wednesday", "thursday", "Friday night", "Sat.", "Thurs.", "Sunday afternoon"]
)
def test_a_weekday_is_recognised(quote: str) -> None:
    assert re.fullmatch(guideline("weekday-is-name").quote, quote)


@pytest.mark.parametrize(
    "quote", ["sat", "Sat", "Sun", "March", "day", "Monday's", "weekday", "Friday 14 November", "Mon"]
)
def test_what_is_not_a_weekday_alone_is_not_taken_for_one(quote: str) -> None:
    assert not re.fullmatch(guideline("weekday-is-name").quote, quote)


def test_a_weekday_of_any_other_type_becomes_a_name() -> None:
    rule = guideline("weekday-is-name")
    assert (rule.action, rule.to) == ("relabel", "name")
    assert {*rule.labels, "name"} == {label.name for label in ACCURACY.labels}
    assert rule.say == "The guide calls a weekday a Name."


@pytest.mark.parametrize(
    ("quote", "numbers"),
    [
        ("30-20", ("30", "20")),
        ("30 - 20", ("30", "20")),
        ("118–9", ("118", "9")),
        ("5 — 2", ("5", "2")),
        ("(3 - 2)", ("3", "2")),
        ("48.5-44", ("48.5", "44")),
    ],
)
def test_two_numbers_in_one_mark_are_split(quote: str, numbers: tuple[str, str]) -> None:
    match = re.fullmatch(guideline("two-numbers").quote, quote)
    assert match is not None
    assert match.groups() == numbers


@pytest.mark.parametrize(
    "quote", ["30", "-20", "twenty-one", "2023-24", "50-40-90", "7-for-15", "3-pointers", "1,200", "30-"]
)
def test_one_number_is_not_split(quote: str) -> None:
    assert not re.fullmatch(guideline("two-numbers").quote, quote)


def test_only_numbers_are_split_and_the_hint_asks() -> None:
    rule = guideline("two-numbers")
    assert (rule.action, rule.labels) == ("split", ("number",))
    assert rule.say.startswith("Two numbers?")


@pytest.mark.parametrize("rule", ACCURACY.guidelines, ids=lambda rule: str(rule.name))
def test_a_browser_can_read_the_expression(rule: Guideline) -> None:
    assert not re.search(r"\\[a-zA-Z]", rule.quote), "classes such as \\d take in other characters in JavaScript"
    unescaped = re.sub(r"\\.", "", rule.quote)
    assert not re.search(r"\(\?(?!:)", unescaped), "only plain and non-capturing groups mean the same in JavaScript"


def test_determiners_and_final_punctuation_are_no_difference_of_opinion() -> None:
    assert ACCURACY.trim.leading == ("a", "an", "the")
    assert set(ACCURACY.trim.trailing) == set(".,;:!?")


def test_errors_are_those_of_the_real_world_unless_the_study_says_otherwise() -> None:
    assert ACCURACY.mode == "real-world"
    assert [mode.name for mode in ACCURACY.modes] == ["real-world", "in-the-data"]


def test_three_people_read_each_text_beside_its_data() -> None:
    assert (ACCURACY.work.annotators, ACCURACY.work.data, ACCURACY.work.context) == (3, True, "beside")


def test_the_survey_asks_what_the_paper_asked() -> None:
    assert [question.name for question in ACCURACY.survey] == ["gender", "age", "watch", "play"]


def test_who_finds_everything_gets_all_points() -> None:
    result = graded(found(TEST, 13))
    assert (result.score, result.of, result.precision, result.passed) == (100, 100, 1, True)


def test_a_blank_test_is_not_passed() -> None:
    result = graded([])
    assert result.score == pytest.approx(0)
    assert not result.passed


@pytest.mark.parametrize(("count", "passed"), [(9, False), (10, True)])
def test_seventy_percent_of_the_errors_are_enough(count: int, passed: bool) -> None:
    result = graded(found(TEST, count))
    assert result.score == pytest.approx(100 * count / 13)
    assert result.passed is passed


def test_false_alarms_are_shown_but_cost_nothing() -> None:
    start = TEST.text.index("Dario Venn")
    extra = Mark.model_validate({"id": "x", "spans": [[start, start + 10]], "quotes": ["Dario Venn"], "label": "name"})
    result = graded([*found(TEST, 13), extra])
    assert result.passed
    assert result.precision == pytest.approx(13 / 14)


def test_the_test_covers_every_type_but_the_last_resort() -> None:
    assert {solution.label for solution in TEST.solutions} == {"number", "name", "word", "context", "not-checkable"}


ADDITIVE = [
    "points",
    "shots_made",
    "shots",
    "threes_made",
    "threes",
    "free_throws_made",
    "free_throws",
    "rebounds",
    "assists",
]


@pytest.mark.parametrize("column", ADDITIVE)
def test_the_players_of_the_invented_game_add_up_to_their_team(column: str) -> None:
    data = cast(dict[str, list[dict[str, Any]]], TEST.data)
    for team in data["teams"]:
        players = [each for each in data["players"] if team["team"].endswith(each["team"])]
        assert sum(each[column] for each in players) == team[column]


def test_points_follow_from_shots_and_from_quarters() -> None:
    data = cast(dict[str, list[dict[str, Any]]], TEST.data)
    for row in [*data["teams"], *data["players"]]:
        assert row["points"] == 2 * row["shots_made"] + row["threes_made"] + row["free_throws_made"]
    for team in data["teams"]:
        assert sum(team[quarter] for quarter in ("q1", "q2", "q3", "q4")) == team["points"]


def test_no_solution_is_one_that_a_guideline_would_change() -> None:
    for exercise in ACCURACY.exercises():
        for solution in exercise.solutions:
            for rule in ACCURACY.guidelines:
                assert solution.label not in rule.labels or not re.fullmatch(rule.quote, solution.quote)
