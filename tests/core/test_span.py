from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from finecomb.core.errors import FinecombError, SpanError
from finecomb.core.span import (
    Offsets,
    Span,
    covered_length,
    covered_token_mask,
    merge_spans,
    most_overlapping_index,
    split_at_edges,
    token_range,
)

LENGTH = 24
WIRE = TypeAdapter(Span)


@st.composite
def spans(draw: st.DrawFn, parts: tuple[str, ...] = ("text",)) -> Span:
    start, end = sorted([draw(st.integers(0, LENGTH)), draw(st.integers(0, LENGTH))])
    return Span(start, end, draw(st.sampled_from(parts)))


@st.composite
def token_offsets(draw: st.DrawFn) -> Offsets:
    """Tokens that are sorted and disjoint, some of them touching."""
    edges = sorted(draw(st.sets(st.integers(0, LENGTH), max_size=10)))
    pairs = [pair for pair in itertools.pairwise(edges) if draw(st.booleans())]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


TWO_PARTS = spans(("text", "prompt"))


def positions(span: Span) -> set[tuple[str, int]]:
    """The slow definition of a span: the code points it covers."""
    return {(span.part, at) for at in range(span.start, span.end)}


def all_positions(own: list[Span]) -> set[tuple[str, int]]:
    return set().union(*(positions(span) for span in own))


# --- birth ---


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (4, 3), (-2, -1), (0, -1)])
def test_a_span_that_cannot_be_is_refused(start: int, end: int) -> None:
    with pytest.raises(SpanError, match=r"must satisfy 0 <= start <= end"):
        Span(start, end)


def test_a_span_error_is_both_the_users_mistake_and_a_value_error() -> None:
    assert issubclass(SpanError, FinecombError)
    assert issubclass(SpanError, ValueError)


def test_an_omission_is_true_though_its_length_is_zero() -> None:
    assert len(Span(3, 3)) == 0
    assert Span(3, 3)


def test_a_span_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Span(0, 1).start = 2  # type: ignore[misc]


def test_the_words_of_a_span_are_counted_in_code_points() -> None:
    assert Span(1, 3).extract("a😀é") == "😀é"


def test_the_words_of_a_span_beyond_the_end_are_refused() -> None:
    with pytest.raises(SpanError, match="ends after the prompt, which has 3 characters"):
        Span(1, 4, "prompt").extract("abc")


# --- on the wire ---


@given(TWO_PARTS)
def test_a_span_comes_back_from_the_wire(span: Span) -> None:
    assert Span.from_wire(span.to_wire()) == span
    assert WIRE.validate_json(WIRE.dump_json(span)) == span


@pytest.mark.parametrize(
    ("span", "wire"), [(Span(0, 4), [0, 4]), (Span(2, 2), [2, 2]), (Span(0, 4, "prompt"), ["prompt", 0, 4])]
)
def test_the_text_is_not_named_on_the_wire_and_other_parts_are(span: Span, wire: list[int | str]) -> None:
    assert span.to_wire() == wire


def test_the_text_may_be_named_on_the_wire() -> None:
    assert Span.from_wire(["text", 0, 4]) == Span(0, 4)


@pytest.mark.parametrize(
    "value",
    [None, 3, "0-4", [], [1], [1, 2, 3], [1, 2, 3, 4], ["a", "b"], [0, True], [0.0, 1], [None, 1, 2], ["0", "1"], {}],
    ids=repr,
)
def test_anything_else_on_the_wire_is_refused(value: Any) -> None:
    with pytest.raises(SpanError, match=r"a span must be \[start, end\] or \[part, start, end\]"):
        Span.from_wire(value)
    with pytest.raises(ValidationError):
        WIRE.validate_python(value)


def test_a_backward_span_on_the_wire_is_refused_with_its_own_message() -> None:
    with pytest.raises(SpanError, match=r"\[4, 2\) must satisfy"):
        Span.from_wire([4, 2])


def test_the_json_schema_says_both_forms() -> None:
    assert [len(form["prefixItems"]) for form in WIRE.json_schema()["anyOf"]] == [2, 3]


# --- arithmetic against sets of positions ---


@given(TWO_PARTS, TWO_PARTS)
def test_overlap_counts_common_positions(one: Span, other: Span) -> None:
    assert one.overlap_length(other) == len(positions(one) & positions(other)) == other.overlap_length(one)


@given(TWO_PARTS, TWO_PARTS)
def test_spans_with_words_meet_where_they_share_a_position(one: Span, other: Span) -> None:
    if len(one) and len(other):
        assert one.intersects(other) == bool(positions(one) & positions(other))


@given(TWO_PARTS, TWO_PARTS)
def test_meeting_is_mutual_and_every_span_meets_itself(one: Span, other: Span) -> None:
    assert one.intersects(other) == other.intersects(one)
    assert one.intersects(one)


@given(spans(), st.integers(0, LENGTH))
def test_an_omission_meets_what_it_lies_in_or_touches(span: Span, at: int) -> None:
    assert Span(at, at).intersects(span) == (at in range(span.start, span.end + 1))
    assert not Span(at, at, "prompt").intersects(span)


@given(st.lists(TWO_PARTS, max_size=6))
def test_a_union_covers_the_same_positions_with_the_fewest_spans(own: list[Span]) -> None:
    merged = merge_spans(own)
    assert all_positions(list(merged)) == all_positions(own)
    for one, other in itertools.pairwise(merged):
        assert (one.part, one.end) < (other.part, other.start)
    assert merge_spans(merged) == merged


@given(st.lists(TWO_PARTS, max_size=6))
def test_a_union_keeps_an_omission_unless_a_span_lies_around_or_beside_it(own: list[Span]) -> None:
    kept = {span for span in merge_spans(own) if not len(span)}
    alone = {span for span in own if not len(span) and not any(len(each) and each.intersects(span) for each in own)}
    assert kept == alone


@given(st.lists(TWO_PARTS, max_size=6))
def test_covered_counts_each_position_once(own: list[Span]) -> None:
    assert covered_length(own) == len(all_positions(own))


# --- tokens ---


def tokens_of(span: Span, offsets: Offsets) -> list[int]:
    """The slow definition: the tokens that share a position with the span."""
    own = {at for _, at in positions(span)}
    return [index for index, (start, end) in enumerate(offsets.tolist()) if own & set(range(start, end))]


@given(spans(), token_offsets())
def test_a_token_range_is_the_tokens_that_share_a_character(span: Span, offsets: Offsets) -> None:
    assert list(range(*token_range(span, offsets))) == tokens_of(span, offsets)


@given(st.lists(spans(), max_size=4), token_offsets())
def test_touched_tokens_are_those_of_any_span(own: list[Span], offsets: Offsets) -> None:
    expected = {index for span in own for index in tokens_of(span, offsets)}
    assert set(np.flatnonzero(covered_token_mask(own, offsets)).tolist()) == expected


@given(spans(), token_offsets())
def test_home_is_where_most_characters_are_and_the_earlier_on_a_tie(span: Span, offsets: Offsets) -> None:
    if len(span):
        own = {at for _, at in positions(span)}
        shares = [len(own & set(range(start, end))) for start, end in offsets.tolist()]
        expected = shares.index(max(shares)) if any(shares) else -1
    else:
        inside = [index for index, (start, end) in enumerate(offsets.tolist()) if start <= span.start <= end]
        expected = inside[0] if inside else -1
    assert most_overlapping_index(span, offsets) == expected


@pytest.mark.parametrize(
    ("span", "expected"),
    [(Span(4, 4), 0), (Span(6, 6), 1), (Span(5, 5), 0), (Span(11, 11), -1), (Span(0, 0), -1), (Span(4, 7), 1)],
)
def test_an_omission_between_two_pieces_belongs_to_the_earlier(span: Span, expected: int) -> None:
    assert most_overlapping_index(span, np.array([[1, 5], [5, 9]])) == expected


def test_without_tokens_nothing_is_touched() -> None:
    none = np.empty((0, 2), dtype=np.int64)
    assert token_range(Span(0, 4), none) == (0, 0)
    assert most_overlapping_index(Span(0, 4), none) == most_overlapping_index(Span(0, 0), none) == -1
    assert covered_token_mask([Span(0, 4)], none).shape == (0,)


# --- pieces ---

OWNERS = st.lists(st.lists(TWO_PARTS, max_size=3), max_size=4)


@given(OWNERS)
def test_pieces_cover_the_text_exactly_once_and_in_order(own: list[list[Span]]) -> None:
    found = split_at_edges(LENGTH, own)
    assert [at for piece in found for at in range(piece.start, piece.end)] == list(range(LENGTH))
    assert [piece.start for piece in found] == sorted(piece.start for piece in found)


@given(OWNERS, st.sampled_from(["text", "prompt"]))
def test_the_owners_of_a_piece_are_those_who_cover_each_of_its_positions(own: list[list[Span]], part: str) -> None:
    for piece in split_at_edges(LENGTH, own, part):
        for at in range(piece.start, piece.end):
            owners = [index for index, each in enumerate(own) if (part, at) in all_positions(each)]
            assert list(piece.owners) == owners


@given(OWNERS)
def test_omissions_become_empty_pieces_at_their_place(own: list[list[Span]]) -> None:
    gaps = {
        (span.start, owner)
        for owner, each in enumerate(own)
        for span in merge_spans(each)
        if span.part == "text" and not len(span)
    }
    empty = [piece for piece in split_at_edges(LENGTH, own) if piece.start == piece.end]
    assert {(piece.start, owner) for piece in empty for owner in piece.owners} == gaps
    assert len({piece.start for piece in empty}) == len(empty)


@given(OWNERS)
def test_neighbouring_pieces_differ_at_an_edge_of_somebody(own: list[list[Span]]) -> None:
    edges = {at for each in own for span in each if span.part == "text" for at in (span.start, span.end)}
    assert {piece.start for piece in split_at_edges(LENGTH, own)} <= edges | {0}


def test_an_empty_text_has_no_pieces_but_an_omission_in_it() -> None:
    assert split_at_edges(0, []) == []
    assert [(piece.start, piece.end, piece.owners) for piece in split_at_edges(0, [[Span(0, 0)]])] == [(0, 0, (0,))]
