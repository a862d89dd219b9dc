"""Long texts are sent in chunks, and each error is counted once."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import finecomb as fc
from finecomb.annotators.llm.chunks import join_chunk_marks, split_into_chunks
from finecomb.annotators.llm.run_reports import many_calls_warning
from finecomb.annotators.llm.runs import annotate, plan_run
from finecomb.core.errors import ParameterError
from finecomb.core.records import ChunkSize, Document, Mark, ModelSettings, Segment
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.protocols import load
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer, extract_text
from tests.annotators.llm.test_runs import MARK, marked

SENTENCES = [f"Sentence {number} has six words here." for number in range(40)]
TEXT = " ".join(SENTENCES)


@settings(deadline=None)
@given(st.text("ab .!?\n東", max_size=120), st.integers(1, 12), st.integers(0, 6))
def test_chunks_cover_the_text_and_keep_their_limits(text: str, words: int, overlap: int) -> None:
    size = ChunkSize(words=words, overlap=min(overlap, words // 2))
    chunks = split_into_chunks(text, size)
    covered = {at for chunk in chunks for at in range(chunk.start, chunk.end)}
    assert {at for at, character in enumerate(text) if not character.isspace()} <= covered
    assert all(one.start < two.start and one.end < two.end for one, two in itertools.pairwise(chunks))
    for chunk in chunks:
        assert len(re.findall(r"東|[ab]+", text[chunk.start : chunk.end])) <= words
    for one, two in itertools.pairwise(chunks):
        assert len(re.findall(r"東|[ab]+", text[two.start : one.end])) <= size.overlap


def test_chunks_end_at_sentence_borders() -> None:
    chunks = split_into_chunks(TEXT, ChunkSize(words=62, overlap=13))
    assert len(chunks) == 5
    for chunk in chunks:
        assert re.fullmatch(r"(Sentence \d+ has six words here\. ?)+", TEXT[chunk.start : chunk.end])
    assert TEXT[chunks[1].start : chunks[0].end] == " ".join(SENTENCES[8:10])


def mark(id: str, start: int, end: int, label: str = "redundant") -> Mark:
    return Mark(id=id, spans=(Span(start, end),), quotes=("x" * (end - start),), label=label)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([mark("a", 40, 50)], [mark("b", 40, 50)], [("a", 40, 50)]),
        ([mark("a", 40, 60)], [mark("b", 45, 70)], [("a", 40, 70)]),
        ([mark("a", 50, 60)], [mark("b", 60, 70)], [("a", 50, 70)]),
        ([mark("a", 41, 44)], [mark("b", 50, 55)], [("a", 41, 44), ("b", 50, 55)]),
        ([mark("a", 58, 60, "incoherent")], [mark("b", 55, 60)], [("b", 55, 60)]),
        ([mark("a", 41, 44)], [mark("b", 41, 44, "incoherent")], [("a", 41, 44)]),
        (
            [mark("a", 40, 50), mark("b", 42, 50, "incoherent")],
            [mark("c", 40, 50), mark("d", 42, 50, "incoherent")],
            [("a", 40, 50), ("b", 42, 50)],
        ),
    ],
)
def test_an_error_in_two_chunks_is_one_mark(first: list[Mark], second: list[Mark], expected: list[Any]) -> None:
    text = "x" * 100
    chunks = [Segment(start=0, end=60), Segment(start=40, end=100)]
    joined = join_chunk_marks([first, second], chunks, text)
    assert [(one.id, one.spans[0].start, one.spans[-1].end) for one in joined] == expected
    assert all(one.quotes == (text[one.spans[0].start : one.spans[-1].end],) for one in joined)


def test_a_long_text_is_annotated_in_chunks_and_nothing_is_counted_twice() -> None:
    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        found = [sentence for sentence in SENTENCES[::4] if sentence in extract_text(body)]
        return ScriptedAnswer(marked(*({**MARK, "quote": one, "before": "", "after": ""} for one in found)))

    study = Study.from_items([load("scarecrow"), Document(id="long", text=TEXT), Document(id="short", text="Short.")])
    with ScriptedServer(script) as server:
        given_ = ModelSettings(model="m", base_url=server.url, chunk=ChunkSize(words=62, overlap=13))
        result = annotate(study, given_)
    assert len(server.requests) == 6
    assert max(len(extract_text(request)) for request in server.requests) < len(TEXT) / 3
    long, short = result.annotations
    assert [one.quotes[0] for one in long.marks] == SENTENCES[::4]
    assert all(TEXT[one.spans[0].start : one.spans[0].end] == one.quotes[0] for one in long.marks)
    assert (long.units, short.marks, result.states) == ((), (), {"marked": 1, "no errors": 1})


@pytest.mark.parametrize(
    ("options", "protocol", "message"),
    [
        ({"chunk": "800"}, "scarecrow", "expected words=N or words=N,overlap=N"),
        ({"chunk": "words=10,overlap=6"}, "scarecrow", "overlap must be at most half of words"),
        ({"chunk": "words=50", "by_segment": True}, "scarecrow", "cannot be used together"),
        ({"chunk": "words=50"}, "snac", "works by segment"),
        ({"chunk": "words=50"}, "likert", "cannot be used: protocol"),
    ],
)
def test_chunks_that_do_not_apply_are_refused(options: dict[str, Any], protocol: str, message: str) -> None:
    texts = [{"id": "a", "text": TEXT}]
    with pytest.raises(ParameterError, match=message) as caught:
        fc.annotate(texts, "m", protocol=protocol, base_url="http://localhost:1/v1", dry_run=True, **options)
    assert caught.value.parameter == "chunk"


def test_a_thousand_calls_by_segment_are_announced_first() -> None:
    parts = tuple(Segment(start=2 * number, end=2 * number + 1) for number in range(1200))
    study = Study.from_items([load("scarecrow"), Document(id="a", text="a " * 1200, segments=parts)])
    given_ = ModelSettings(model="m", base_url="http://localhost:1/v1", by_segment=True)
    assert many_calls_warning(plan_run(study, given_)).startswith("1,200 calls for 1 text, because")
    few = Study.from_items([load("scarecrow"), Document(id="a", text="One sentence. Another one.")])
    assert many_calls_warning(plan_run(few, given_)) == ""
