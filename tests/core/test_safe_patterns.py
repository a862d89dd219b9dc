"""A protocol's own regular expression cannot take for ever."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb import protocols
from finecomb.core.errors import ProtocolError
from finecomb.core.protocol_yaml import parse_protocol
from finecomb.core.safe_patterns import SlowPatternError, full_match_with_timeout

SLOW = r"(?:x|x)+[yz]"


def test_a_slow_expression_is_ended() -> None:
    before = time.perf_counter()
    with pytest.raises(SlowPatternError, match=r"takes longer than 0.1 s"):
        full_match_with_timeout(SLOW, "x" * 40, seconds=0.1)
    assert time.perf_counter() - before < 5


@given(st.text("ab c1", max_size=8))
def test_it_matches_as_re_does(text: str) -> None:
    pattern = r"(a+)( ?)(b|c1)*"
    ours, theirs = full_match_with_timeout(pattern, text), re.fullmatch(pattern, text)
    assert (ours and ours.span(1)) == (theirs and theirs.span(1))


def test_a_protocol_too_slow_for_its_own_examples_is_refused() -> None:
    text = f"""
name: slow
version: "1"
title: Slow
summary: Slow.
labels: [{{name: wrong}}, {{name: other}}]
guidelines: [{{name: rule, say: Look., quote: '{SLOW}', action: relabel, to: other}}]
examples: [{{text: {"x" * 40}, marks: [{{quote: {"x" * 40}, label: wrong}}]}}]
"""
    with pytest.raises(ProtocolError, match=r"guideline 'rule'.*takes longer than"):
        parse_protocol(text, "slow.yaml")
    assert parse_protocol(text.replace(SLOW, "x+y"), "quick.yaml").guidelines


@pytest.mark.parametrize("name", protocols.names())
def test_shipped_protocols_are_quick(name: str) -> None:
    assert protocols.load(name).name
