from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core import tokens
from finecomb.core.errors import FinecombError
from finecomb.corpora.generation.lengths import LengthRule

SENTENCE = "The old ferry left the small harbour at noon again."  # 11 words with its full stop


def test_a_text_ends_with_the_first_sentence_that_reaches_the_least() -> None:
    text = " ".join([SENTENCE] * 12)
    cut = LengthRule().cut_to_length(text, is_whole=True)
    assert (cut.words, cut.text) == (88, " ".join([SENTENCE] * 8))


def test_the_last_sentence_of_a_text_that_goes_on_has_no_end() -> None:
    rule = LengthRule(least=22, most=40)
    assert rule.cut_to_length(f"{SENTENCE} {SENTENCE}", is_whole=True).words == 22
    assert rule.cut_to_length(f"{SENTENCE} {SENTENCE}", is_whole=False).why == "cut off within a sentence"
    assert not rule.can_stop_generating(f"{SENTENCE} {SENTENCE}")
    assert rule.can_stop_generating(f"{SENTENCE} {SENTENCE} And")


def test_short_and_endless_texts_are_refused_with_the_reason() -> None:
    rule = LengthRule()
    assert rule.cut_to_length(SENTENCE, is_whole=True).why == "fewer than 80 words"
    assert rule.cut_to_length("word " * 150, is_whole=False).why == "no sentence ends within 80-145 words"
    assert rule.cut_to_length("word " * 150 + "end. Next", is_whole=False).why == "no sentence ends within 80-145 words"
    assert rule.can_stop_generating("word " * 150)
    assert rule.cut_to_length("", is_whole=True).why == "fewer than 80 words"


def test_words_are_ours_and_not_blanks() -> None:
    assert LengthRule(least=6, most=9).cut_to_length("It isn't 3.5 km.", is_whole=True).words == 9


def test_at_least_100_words_and_then_the_next_sentence_end() -> None:
    cut = LengthRule.parse("100-").cut_to_length(" ".join([SENTENCE] * 30), is_whole=True)
    assert cut.words == 110
    assert cut.text.endswith("again.")


@pytest.mark.parametrize("text", ["80", "145-80", "a-b", "0-10", "-"])
def test_a_rule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(FinecombError, match="expected MIN-MAX"):
        LengthRule.parse(text)


@given(
    st.lists(st.sampled_from(["Yes. ", "no ", "Dr. Ng ", "\n\n", "a, b. ", "“Why?” "]), max_size=60), st.integers(1, 30)
)
def test_what_is_cut_is_a_beginning_within_the_rule(parts: list[str], least: int) -> None:
    text = "".join(parts)
    rule = LengthRule(least=least, most=least + 15)
    for is_whole in (True, False):
        cut = rule.cut_to_length(text, is_whole)
        assert bool(cut.text) != bool(cut.why)
        if cut.text:
            assert text.strip().startswith(cut.text)
            assert least <= len(tokens.word_offsets(cut.text)) == cut.words <= least + 15
    if rule.can_stop_generating(text):  # more words change nothing
        assert rule.cut_to_length(text + "more words. And more", False) == rule.cut_to_length(text, False)
