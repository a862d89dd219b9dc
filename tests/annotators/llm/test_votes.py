"""Samples of a model vote on marks."""

from __future__ import annotations

from typing import Any

import pytest

import finecomb as fc
from finecomb.annotators.llm.votes import vote_on_marks
from finecomb.core.errors import ParameterError
from finecomb.core.records import Mark
from finecomb.core.span import Span
from finecomb.core.study_checks import check_study
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer
from tests.annotators.llm.test_runs import AT, MARK, TEXTS, marked, study_of

TEXT = "one two three four five six seven eight"


def mark(id: str, words: str, label: str = "redundant") -> Mark:
    start = TEXT.index(words)
    return Mark(id=id, spans=(Span(start, start + len(words)),), quotes=(words,), label=label)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([["two three"], ["two three"], []], [("two three", 2)]),
        ([["two three"], ["three four"], ["two three four"]], [("two three four", 3)]),
        ([["two"], ["seven"], []], []),
        ([["two", "seven"], ["two", "seven"], ["two"]], [("two", 3), ("seven", 2)]),
        ([["two", "two"], [], []], []),
        ([[], [], []], []),
    ],
)
def test_a_mark_needs_the_votes_of_half_of_the_samples(samples: list[list[str]], expected: list[Any]) -> None:
    marks = [[mark(f"{number}/{word}", word) for word in words] for number, words in enumerate(samples)]
    voted = vote_on_marks(marks, TEXT, 0.5, "v")
    assert [(one.quotes[0], one.votes) for one in voted] == expected
    assert all(one.confidence == (one.votes or 0) / 3 and len(one.made_from) == one.votes for one in voted)
    assert all(TEXT[one.spans[0].start : one.spans[0].end] == one.quotes[0] for one in voted)


def test_another_label_is_another_error() -> None:
    assert vote_on_marks([[mark("a", "two")], [mark("b", "two", "incoherent")]], TEXT, 0.6, "v") == []


def test_samples_become_one_more_annotator_with_confidence() -> None:
    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        return ScriptedAnswer("no JSON" if body["seed"] == 3 else marked(MARK) if body["seed"] < 2 else marked())

    with ScriptedServer(script) as server:
        result = fc.annotate(study_of(TEXTS[:1]), "m", base_url=server.url, samples=4, vote=0.5)
    work = {annotation.annotator: annotation for annotation in result.study.iter_annotations()}
    assert sorted(work) == ["m#1", "m#2", "m#3", "m#4", "m#vote"]
    (voted,) = work["m#vote"].marks
    assert (voted.spans, voted.votes) == ((Span(*AT),), 2)
    assert voted.confidence == pytest.approx(2 / 3)
    assert work["m#vote"].made_from == tuple(work[f"m#{number}"].id for number in (1, 2, 3))
    assert list(check_study(result.study)) == []
    assert "1 mark by votes, as annotator m#vote" in result.notes


def test_several_models_vote_as_a_jury() -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(marked(MARK))) as server:
        study = fc.annotate(study_of(TEXTS[:1]), "first", base_url=server.url).study
        result = fc.annotate(study, "second", base_url=server.url, vote=0.6, jury="first")
    work = {annotation.annotator: annotation for annotation in result.study.iter_annotations()}
    voted = work["second+first#vote"]
    assert [(mark.votes, mark.confidence) for mark in voted.marks] == [(2, 1.0)]
    assert set(voted.made_from) == {work["first"].id, work["second"].id}
    assert list(check_study(result.study)) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vote": 0.5}, "vote requires samples of at least 2, or jury"),
        ({"vote": 0.5, "jury": "nobody"}, "the study has no model or detector 'nobody'"),
        ({"jury": "nobody"}, "jury requires vote"),
        ({"vote": 0.5, "samples": 2, "protocol": "likert"}, "requires a protocol with marks"),
        ({"vote": 1.5, "samples": 2}, "vote"),
    ],
)
def test_a_vote_that_is_not_possible_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fc.annotate(study_of(), "m", base_url="http://localhost:1/v1", **options)
