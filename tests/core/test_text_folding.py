from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.quotes import find_exact_or_respelled, find_most_similar_words
from finecomb.core.text_folding import FoldedText, find_occurrences, text_similarity
from tests.strategies import MULTILINE_ALPHABET, texts

TEXT = "He 's had 12 points ,  and two of Mr. Poe ''s\u00a0double-doubles ."


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("two", ["two"]),
        ("2", ["2"]),  # only inside 12, but better there than nowhere
        ("o", ["o", "o", "o", "o", "o", "o"]),
        ("he's had", ["He 's had"]),
        ("Double‑Doubles", ["double-doubles"]),
        ('Poe"s', ["Poe ''s"]),
        ("three", []),
        ("", []),
    ],
)
def test_words_are_found_in_their_own_or_another_spelling(quote: str, found: list[str]) -> None:
    assert [TEXT[start:end] for start, end in find_exact_or_respelled(quote, TEXT)] == found


def test_whole_words_come_before_parts_of_words() -> None:
    assert find_exact_or_respelled("1", "21 to 1") == [(6, 7)]
    assert find_exact_or_respelled("is", "his is this") == [(4, 6)]


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("12 poinst", "12 points"),
        ("2 of Mr Poe", "two of Mr. Poe"),
        ("13 points", None),  # a slip of the pen never turns one number into another
        ("quite something else", None),
        ("", None),
    ],
)
def test_words_with_a_slip_are_found_by_likeness(quote: str, found: str | None) -> None:
    place = find_most_similar_words(quote, TEXT)
    assert (TEXT[slice(*place)] if place else None) == found


@given(texts(MULTILINE_ALPHABET), texts(MULTILINE_ALPHABET))
def test_what_is_found_is_the_same_but_for_the_spelling(text: str, quote: str) -> None:
    for start, end in find_exact_or_respelled(quote, text):
        assert FoldedText.from_text(text[start:end]).text == FoldedText.from_text(quote).text


@given(texts(MULTILINE_ALPHABET), texts(MULTILINE_ALPHABET, 1))
def test_what_stands_there_is_always_found(before: str, quote: str) -> None:
    assert find_exact_or_respelled(quote, before + quote)
    assert text_similarity(quote, quote) == 1


@given(st.text("ab", max_size=3), st.text("ab", max_size=12))
def test_occurrences_are_all_places_of_a_quote(quote: str, text: str) -> None:
    slow = [at for at in range(len(text)) if quote and text.startswith(quote, at)]
    assert find_occurrences(quote, text) == slow
