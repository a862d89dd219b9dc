"""Tests of grading an attempt, and of the annotator's record afterwards."""

from __future__ import annotations

from datetime import UTC, datetime

import finecomb as fc
from finecomb.collection import grading, onboarding
from finecomb.core.practice import Choice
from finecomb.core.records import Annotation, Annotator, Exclusion

PROTOCOL = fc.protocol("scarecrow")
WHEN = datetime(2024, 5, 1, tzinfo=UTC)
ITEMS = {
    id: item for id, item in onboarding.practice_items_by_document(PROTOCOL).items() if item.phase == "qualification"
}
CHOICES = {id: item.given for id, item in ITEMS.items() if isinstance(item.given, Choice)}


def make_choice_answer(id: str, choice: Choice, right: bool, excluded: bool = False) -> Annotation:
    wrong = next(option.value for option in choice.options if option.value != choice.answer)
    aside = Exclusion(by="ann", when=WHEN, reason="by mistake") if excluded else None
    fields = {"document": id, "annotator": "a", "protocol": PROTOCOL.id, "phase": "qualification", "excluded": aside}
    return Annotation(id=f"a/{id}", answers={"answer": choice.answer if right else wrong}, **fields)


def test_right_answers_score_and_what_was_set_aside_is_blank() -> None:
    right = {id: make_choice_answer(id, choice, right=True) for id, choice in CHOICES.items()}
    first = next(iter(CHOICES))
    aside = right | {first: make_choice_answer(first, CHOICES[first], right=True, excluded=True)}
    wrong = right | {first: make_choice_answer(first, CHOICES[first], right=False)}
    scores = [grading.grade_attempt(PROTOCOL, attempt).score for attempt in (right, aside, wrong, {})]
    assert scores[0] > scores[1] == scores[2] > scores[3] == 0


def test_an_attempt_is_complete_when_every_item_is_settled() -> None:
    attempt = {
        id: Annotation(id=id, document=id, annotator="a", protocol=PROTOCOL.id, phase="qualification") for id in ITEMS
    }
    assert grading.is_attempt_complete(PROTOCOL, attempt)
    first = next(iter(ITEMS))
    draft = attempt[first].model_copy(update={"status": "draft"})
    assert not grading.is_attempt_complete(PROTOCOL, attempt | {first: draft})
    assert not grading.is_attempt_complete(PROTOCOL, {id: each for id, each in attempt.items() if id != first})
    aside = draft.model_copy(update={"excluded": Exclusion(by="ann", when=WHEN, reason="again")})
    assert grading.is_attempt_complete(PROTOCOL, attempt | {first: aside})


def test_the_best_attempt_counts_and_a_repeated_one_replaces_itself() -> None:
    person = Annotator(id="a", kind="human")
    right = {id: make_choice_answer(id, choice, right=True) for id, choice in CHOICES.items()}
    good, bad = grading.grade_attempt(PROTOCOL, right), grading.grade_attempt(PROTOCOL, {})
    for grade, round in ((bad, 0), (good, 1), (bad, 1), (good, 1)):
        person = grading.with_graded_attempt(PROTOCOL, person, grade, round, WHEN)
    result = onboarding.find_qualification_record(PROTOCOL, person)
    assert result is not None
    assert [attempt.round for attempt in result.attempts] == [0, 1]
    assert (result.score, result.passed) == (good.score, good.passed)


def test_results_under_other_protocols_stay() -> None:
    other = PROTOCOL.model_copy(update={"version": "3"})
    person = Annotator(id="a", kind="human", meta={"batch": 7})
    grade = grading.grade_attempt(PROTOCOL, {})
    person = grading.with_graded_attempt(PROTOCOL, person, grade, 0, WHEN)
    person = grading.with_graded_attempt(other, person, grade, 0, WHEN)
    assert onboarding.find_qualification_record(PROTOCOL, person) is not None
    assert onboarding.find_qualification_record(other, person) == person.qualification
    assert person.meta["batch"] == 7
