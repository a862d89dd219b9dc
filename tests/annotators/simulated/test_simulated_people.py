from __future__ import annotations

import pytest

from finecomb import protocols
from finecomb.annotators.simulated.simulated_people import (
    CrowdTraits,
    SimulatedPerson,
    build_ground_truth,
    make_simulated_person,
    simulate_response,
)
from finecomb.collection.screening import copied_word_flags, passage_ngrams, split_normalised_words
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document

TURING = protocols.load("turing")
LIKERT = protocols.load("likert")
TEXT = "The ferry left the pier at nine with two passengers, a goat and a letter for the mayor of the next town."


def text(number: int, model: str) -> Document:
    return Document(id=f"{model}-{number}", text=TEXT, meta={"model": model, "domain": "news"})


def right_share(traits: CrowdTraits, condition: str, who: SimulatedPerson) -> float:
    documents = [text(number, model) for number in range(400) for model in ("human", "gpt3")]
    right = 0
    for document in documents:
        truth = build_ground_truth(document, TURING, [], None, 0)
        rating = simulate_response(who, traits, condition, document, TURING, truth).answers["rating"]
        right += (rating in (3, 4)) == (document.meta["model"] != "human")
    return right / len(documents)


def test_people_are_right_as_often_as_their_condition_says() -> None:
    traits = CrowdTraits(skill={"": 0.5, "examples": 0.8})
    who = SimulatedPerson(1, "careful", None, 0)
    assert right_share(traits, "examples", who) == pytest.approx(0.8, abs=0.05)
    assert right_share(traits, "none", who) == pytest.approx(0.5, abs=0.06)


def test_careless_people_are_right_by_chance() -> None:
    assert right_share(CrowdTraits(skill={"": 0.9}), "", SimulatedPerson(1, "careless", None, 0)) == pytest.approx(
        0.5, abs=0.06
    )


def test_a_bias_goes_to_the_highest_answer() -> None:
    document = text(1, "human")
    truth = build_ground_truth(document, TURING, [], None, 0)
    ratings = [
        simulate_response(
            SimulatedPerson(n, "careless", None, 0), CrowdTraits(bias=1), "", document, TURING, truth
        ).answers["rating"]
        for n in range(20)
    ]
    assert set(ratings) == {4}


def test_copiers_write_words_of_the_text() -> None:
    document = text(1, "human")
    truth = build_ground_truth(document, TURING, [], None, 0)
    answers = simulate_response(
        SimulatedPerson(1, "copies", None, 0), CrowdTraits(), "", document, TURING, truth
    ).answers
    reason = str(answers.get("why") or answers["change"])
    assert all(copied_word_flags(split_normalised_words(reason), passage_ngrams(TEXT)))


def test_shares_of_habits_and_leavers_are_those_asked_for() -> None:
    traits = CrowdTraits(copies=0.15, careless=0.05, leaves=0.1)
    crowd = [make_simulated_person(number, traits, 5, 3) for number in range(4000)]
    assert sum(one.habit == "copies" for one in crowd) / 4000 == pytest.approx(0.15, abs=0.02)
    assert sum(one.habit == "careless" for one in crowd) / 4000 == pytest.approx(0.05, abs=0.015)
    assert sum(one.leaves_after is not None for one in crowd) / 4000 == pytest.approx(0.1, abs=0.02)
    assert crowd[7] == make_simulated_person(7, traits, 5, 3)


@pytest.mark.parametrize("name", ["turing", "likert", "sections", "preference", "scarecrow", "accuracy", "mqm"])
def test_every_required_question_is_answered_acceptably(name: str) -> None:
    protocol = protocols.load(name)
    document = Document(id="d", text=TEXT, context={"a": TEXT, "b": TEXT}, meta={"model": "gpt3"})
    truth = build_ground_truth(document, protocol, ["0-9"], None, 0)
    for number in range(5):
        reading = simulate_response(
            SimulatedPerson(number, "careful", None, 0), CrowdTraits(), "", document, protocol, truth
        )
        for questions, answers in (
            (protocol.document_questions, reading.answers),
            (protocol.unit_questions, reading.units["0-9"]),
        ):
            asked = {question.name: question for question in questions}
            assert not [problem for key, answer in answers.items() if (problem := asked[key].answer_problem(answer))]
            assert all(one.name in answers for one in questions if one.required and one.when is None)


def test_a_share_outside_of_its_range_is_refused() -> None:
    with pytest.raises(FinecombError, match="from 0 to 1"):
        CrowdTraits(leaves=1.5)
    with pytest.raises(FinecombError, match="must add up to at most 1"):
        CrowdTraits(copies=0.7, careless=0.7)
