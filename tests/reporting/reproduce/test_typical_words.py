from __future__ import annotations

import math

import pytest

from finecomb.reporting.reproduce.typical_words import extract_terms, typical_words

TEXTS = {
    "redundant": ["Already said above.", "It was already said.", "The same thing is said twice."],
    "grammar": ["A comma is missing.", "The comma is wrong.", "The verb is missing."],
}


def test_typical_words_are_those_of_their_group() -> None:
    best = {group: [row.words for row in typical_words(TEXTS, top=2) if row.group == group] for group in TEXTS}
    assert best["redundant"][0] == "said"
    assert best["grammar"] == ["comma", "comma is"]


def test_log_odds_are_as_counted_by_hand() -> None:
    texts = {"a": ["red red blue"], "b": ["blue green green"]}
    vocabulary = {"red", "blue", "green", "red red", "red blue", "blue green", "green green"}
    row = next(row for row in typical_words(texts, top=9) if row.words == "red")
    alpha, size = len(vocabulary) * 2 / 10, 5
    first = (2 + alpha) / (size + len(vocabulary) - 2 - alpha)
    second = (0 + alpha) / (size + len(vocabulary) - 0 - alpha)
    assert row.log_odds == pytest.approx(math.log(first / second))
    assert row.score == pytest.approx(row.log_odds / math.sqrt(1 / (2 + alpha) + 1 / alpha))


def test_rare_words_and_common_words_alone_are_left_out() -> None:
    assert "the" not in extract_terms("The verb is missing.")
    assert all(row.occurrences >= 2 for row in typical_words(TEXTS))
    assert typical_words({}) == []
