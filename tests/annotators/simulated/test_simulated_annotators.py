from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from finecomb.annotators.simulated import SimulatedAnnotator, make_crowd, plant_errors, simulate_annotations
from finecomb.annotators.simulated.simulated_annotators import _random_answers
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import TEXT_PART, Span, token_range
from finecomb.core.study import Study
from finecomb.core.study_checks import check_study
from finecomb.core.tokens import word_offsets
from finecomb.engine.seeds import seeded_generator
from finecomb.protocols import load_shipped, names

PROTOCOL = Protocol.model_validate(
    {
        "name": "p",
        "version": "1",
        "title": "P",
        "summary": "",
        "labels": [{"name": name} for name in ("red", "green", "blue")],
        "questions": [{"name": "severity", "ask": "?", "scale": "ordinal", "options": [1, 2, 3]}],
    }
)
LENGTH = 60  # tokens per text
FIRST, LAST = 20, 30  # the tokens of the one true error in each text
TEXTS = 1500


def text(tokens: int = LENGTH) -> str:
    return " ".join(["word"] * tokens)


def true(document: str, first: int = FIRST, last: int = LAST) -> Annotation:
    span = Span(5 * first, 5 * last - 1)
    mark = Mark(
        id=f"{document}-true", spans=(span,), quotes=(span.extract(text()),), label="red", answers={"severity": 2}
    )
    return Annotation(id=f"{document}-truth", document=document, annotator="truth", protocol="p@1", marks=(mark,))


DOCUMENTS = [Document(id=f"d{number}", text=text()) for number in range(TEXTS)]
TRUTH = {document.id: true(document.id) for document in DOCUMENTS}
PERSON = SimulatedAnnotator("p", recall=0.6, precision=0.75, jitter=0.8, confusion=0.2)


@functools.cache
def marks() -> tuple[tuple[Mark, ...], ...]:
    """Return the marks of one annotator in many texts."""
    return tuple(each.marks for each in simulate_annotations(DOCUMENTS, TRUTH, [PERSON], PROTOCOL, seed=1))


def found() -> list[Mark]:
    return [mark for own in marks() for mark in own if mark.made_from]


def near(share: float, expected: float, count: int) -> bool:
    """Return whether a share is within four standard errors of its expectation."""
    return abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / count)


def test_recall_is_recovered() -> None:
    assert near(len(found()) / TEXTS, PERSON.recall, TEXTS)


def test_precision_is_recovered() -> None:
    total = sum(map(len, marks()))
    assert near(len(found()) / total, PERSON.precision, total)


def test_confusion_is_recovered_and_spreads_over_the_other_labels() -> None:
    labels = [mark.label for mark in found()]
    wrong = [label for label in labels if label != "red"]
    assert near(len(wrong) / len(labels), PERSON.confusion, len(labels))
    assert near(wrong.count("green") / len(wrong), 0.5, len(wrong))


def rounded_variance(jitter: float) -> float:
    """Return the variance of a normal variable rounded to integers, from its definition."""

    def below(edge: float) -> float:
        return 0.5 * (1 + math.erf(edge / jitter / math.sqrt(2)))

    return sum(step**2 * (below(step + 0.5) - below(step - 0.5)) for step in range(-40, 41))


@pytest.mark.parametrize("jitter", [0.3, 0.8, 2.0])
def test_jitter_is_recovered_at_both_edges(jitter: float) -> None:
    person = SimulatedAnnotator("p", recall=1, precision=1, jitter=jitter, confusion=0)
    made = [each.marks[0].spans[0] for each in simulate_annotations(DOCUMENTS[:1200], TRUTH, [person], PROTOCOL)]
    moves = np.array([(span.start / 5 - FIRST, (span.end + 1) / 5 - LAST) for span in made])
    expected = rounded_variance(jitter)
    for edge in moves.T:
        fourth = float((edge**4).mean())
        error = math.sqrt((fourth - expected**2) / len(edge))
        assert abs(edge.mean()) < 4 * math.sqrt(expected / len(edge))
        assert abs((edge**2).mean() - expected) < 4 * error
    assert abs(np.corrcoef(moves.T)[0, 1]) < 4 / math.sqrt(len(moves))


def test_what_is_invented_lies_where_nothing_is_wrong() -> None:
    invented = [mark for own in marks() for mark in own if not mark.made_from]
    assert invented
    for mark in invented:
        first, last = token_range(mark.spans[0], word_offsets(text()))
        assert last <= FIRST or first >= LAST
        assert mark.answers["severity"] in (1, 2, 3)


@pytest.mark.parametrize("edge", [(0, 1), (LENGTH - 1, LENGTH), (0, LENGTH)])
def test_a_moved_mark_keeps_a_word_of_the_true_one_and_stays_in_the_text(edge: tuple[int, int]) -> None:
    person = SimulatedAnnotator("p", recall=1, precision=1, jitter=9, confusion=0)
    documents = DOCUMENTS[:150]
    truth = {document.id: true(document.id, *edge) for document in documents}
    place = truth["d0"].marks[0].spans[0]
    for each in simulate_annotations(documents, truth, [person], PROTOCOL):
        assert each.marks[0].spans[0].overlap_length(place)
        assert each.marks[0].quotes == (each.marks[0].spans[0].extract(text()),)


def test_a_perfect_annotator_gives_back_the_truth() -> None:
    person = SimulatedAnnotator("p", recall=1, precision=1, jitter=0, confusion=0)
    for each in simulate_annotations(DOCUMENTS[:20], TRUTH, [person], PROTOCOL):
        (mark,), (known,) = each.marks, TRUTH[each.document].marks
        assert (mark.spans, mark.quotes, mark.label, mark.answers) == (
            known.spans,
            known.quotes,
            known.label,
            known.answers,
        )
        assert mark.made_from == (known.id,)


def test_who_notices_nothing_still_hands_in() -> None:
    blind = SimulatedAnnotator("p", recall=0)
    made = list(simulate_annotations(DOCUMENTS[:20], TRUTH, [blind], PROTOCOL))
    assert len(made) == 20
    assert not any(each.marks for each in made)


def test_a_text_without_known_errors_gets_no_marks() -> None:
    assert [each.marks for each in simulate_annotations(DOCUMENTS[:5], {}, [PERSON], PROTOCOL)] == [()] * 5


# --- order and seeds ---


def by_id(documents: Sequence[Document], people: Sequence[SimulatedAnnotator], seed: int = 0) -> dict[str, Annotation]:
    return {each.id: each for each in simulate_annotations(documents, TRUTH, people, PROTOCOL, seed)}


def test_the_order_of_documents_and_people_does_not_matter() -> None:
    documents, people = DOCUMENTS[:8], make_crowd(3, PERSON, 0.1, seed=0)
    whole = by_id(documents, people)
    assert by_id(documents[::-1], people[::-1]) == whole
    assert {id: each for one in people for id, each in by_id(documents[::2], [one]).items()} == {
        id: each for id, each in whole.items() if each.document in {document.id for document in documents[::2]}
    }


def test_seeds_decide() -> None:
    documents = DOCUMENTS[:8]
    assert by_id(documents, [PERSON], 1) == by_id(documents, [PERSON], 1)
    assert by_id(documents, [PERSON], 1) != by_id(documents, [PERSON], 2)


def test_generators_depend_on_every_part() -> None:
    drawn = {seeded_generator(*parts).random() for parts in [(0,), (1,), (0, "a"), ("0a",), ("a", 0), ("", "0", "a")]}
    assert len(drawn) == 6


def test_a_crowd_spreads_around_what_it_is_like_and_can_grow() -> None:
    people = make_crowd(400, PERSON, 0.1, seed=0)
    assert people[:10] == make_crowd(10, PERSON, 0.1, seed=0)
    assert len({person.id for person in people}) == 400
    recalls = np.array([person.recall for person in people])
    assert abs(recalls.mean() - PERSON.recall) < 4 * 0.1 / 20
    assert recalls.std() == pytest.approx(0.1, rel=0.2)
    assert {person.recall for person in make_crowd(5, PERSON, 0, seed=0)} == {PERSON.recall}


# --- planting ---


@pytest.mark.parametrize("rate", [0.5, 3, 8, 15])
@pytest.mark.parametrize("tokens", [30, 400])
def test_errors_are_planted_at_the_rate_asked_for(rate: float, tokens: int) -> None:
    """Errors once had a rate of 7.5 per 100 tokens instead of 10, because words inside errors were not counted."""
    texts = [Document(id=f"d{number}", text=text(tokens)) for number in range(24_000 // tokens)]
    counts = np.array([len(each.marks) for each in plant_errors(texts, PROTOCOL, rate, seed=3)])
    error = counts.std() / math.sqrt(len(counts))
    assert abs(counts.mean() - rate * tokens / 100) < 4 * error


def test_planted_errors_neither_overlap_nor_touch() -> None:
    for each in plant_errors(DOCUMENTS[:50], PROTOCOL, 20):
        ranges = [token_range(mark.spans[0], word_offsets(text())) for mark in each.marks]
        assert all(end < start for (_, end), (start, _) in itertools.pairwise(ranges))


def test_every_token_is_as_likely_to_be_wrong_as_any_other() -> None:
    covered = np.zeros(LENGTH)
    for each in plant_errors(DOCUMENTS[:800], PROTOCOL, 10):
        for mark in each.marks:
            first, last = token_range(mark.spans[0], word_offsets(text()))
            covered[first:last] += 1
    # The first few tokens are excluded, because errors that begin before the text could extend into them.
    middle = covered[10:] / 800
    assert abs(middle - middle.mean()).max() < 4.5 * math.sqrt(middle.mean() * (1 - middle.mean()) / 800)


@pytest.mark.parametrize("rate", [0, 0.0])
def test_a_rate_of_zero_plants_nothing(rate: float) -> None:
    assert [each.marks for each in plant_errors(DOCUMENTS[:5], PROTOCOL, rate)] == [()] * 5


def test_a_rate_beyond_what_fits_gives_as_many_as_fit() -> None:
    (one,) = plant_errors([Document(id="d", text=text(2000))], PROTOCOL, 500)
    assert len(one.marks) == pytest.approx(2000 * 3 / 13, rel=0.1)


def test_planting_does_not_depend_on_the_order_of_documents() -> None:
    forward = {each.id: each for each in plant_errors(DOCUMENTS[:9], PROTOCOL, 5)}
    assert {each.id: each for each in plant_errors(DOCUMENTS[8::-1], PROTOCOL, 5)} == forward


def test_texts_without_words_stay_without_errors() -> None:
    documents = [Document(id="blank", text=" \n"), Document(id="empty", text="")]
    truth = {each.document: each for each in plant_errors(documents, PROTOCOL, 20)}
    assert not any(each.marks for each in truth.values())
    assert not any(each.marks for each in simulate_annotations(documents, truth, [PERSON], PROTOCOL))


@pytest.mark.parametrize("name", [name for name in names() if load_shipped(name).labels])
def test_simulated_work_conforms_to_every_shipped_protocol(name: str) -> None:
    protocol = load_shipped(name)
    documents = DOCUMENTS[:6]
    truth = {each.document: each for each in plant_errors(documents, protocol, 12)}
    people = make_crowd(3, PERSON, 0.1, seed=0)
    gold = Annotator(id="truth", kind="gold")
    everybody = [gold, *(person.to_annotator() for person in people)]
    work = simulate_annotations(documents, truth, people, protocol)
    problems = check_study(Study.from_items([protocol, *documents, *everybody, *truth.values(), *work]))
    assert [str(problem) for problem in problems if problem.level == "error"] == []


# --- what cannot be ---


@pytest.mark.parametrize(
    "traits",
    [
        {"recall": -0.1},
        {"recall": 1.1},
        {"precision": 0},
        {"precision": 2},
        {"confusion": -1},
        {"jitter": -0.5},
        {"recall": math.nan},
    ],
    ids=str,
)
def test_an_annotator_that_cannot_be_is_refused(traits: dict[str, Any]) -> None:
    with pytest.raises(FinecombError, match="of a simulated annotator must be"):
        SimulatedAnnotator("p", **traits)


def test_what_cannot_be_planted_is_refused() -> None:
    bare = Protocol(name="bare", version="1", title="", summary="")
    with pytest.raises(FinecombError, match="has no labels"):
        list(plant_errors(DOCUMENTS[:1], bare, 5))
    with pytest.raises(FinecombError, match="at least 0"):
        list(plant_errors(DOCUMENTS[:1], PROTOCOL, -1))


def test_an_annotator_says_what_it_pretends_to_be() -> None:
    assert PERSON.to_annotator().meta == {
        "simulated": True,
        "recall": 0.6,
        "precision": 0.75,
        "jitter": 0.8,
        "confusion": 0.2,
    }


@pytest.mark.parametrize(
    "asked",
    [
        {"scale": "number"},
        {"scale": "number", "low": 5},
        {"scale": "number", "high": -5},
        {"scale": "number", "low": 2, "high": 3},
        {"scale": "yes-no"},
        {"scale": "text"},
        {"scale": "rewrite"},
        {"scale": "several", "options": ["a", "b"]},
        {"scale": "nominal", "options": [True, "x"]},
    ],
    ids=str,
)
def test_made_up_answers_can_be_given(asked: dict[str, Any]) -> None:
    """A number of at least 5 was once answered with one from 1 to 5."""
    question = Question.model_validate({"name": "q", "ask": "?"} | asked)
    answers = [_random_answers([question], np.random.default_rng(seed))["q"] for seed in range(20)]
    assert [question.answer_problem(answer) for answer in answers] == [""] * 20
    assert asked["scale"] != "number" or len(set(answers)) == 20


def test_marks_on_a_context_are_seen_where_they_are() -> None:
    document = Document(id="d", text=text(), context={"prompt": "one two three"})
    mark = Mark(id="m", spans=(Span(4, 7, "prompt"),), quotes=("two",), label="red")
    truth = {"d": TRUTH["d0"].model_copy(update={"marks": (mark,)})}
    person = SimulatedAnnotator("p", recall=1, precision=1, jitter=3, confusion=0)
    (one,) = simulate_annotations([document], truth, [person], PROTOCOL)
    assert one.marks[0].spans == mark.spans
    assert one.marks[0].spans[0].part != TEXT_PART
