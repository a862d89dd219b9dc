from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from benchmarks import quotes as benchmark
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.quotes import (
    Placement,
    Quote,
    find_at_offsets_or_unique,
    place_quotes,
)
from finecomb.core.text_folding import find_occurrences, fold_text
from finecomb.core.word_alignment import WordList, find_near_alignments
from tests.strategies import MULTILINE_ALPHABET, texts

STORY = (
    "The ferry left at 7:45 with 12 cars. Mr. Okafor did not wave, because he was cold. “We’ll see,” said the captain. "
    "At noon the ferry left again with two cars and a bus, and the captain said nothing. Mr. Okafor waved."
)


def one(quote: str, before: str = "", after: str = "", text: str = STORY) -> Placement:
    return place_quotes([Quote(quote, before, after)], text)[0]


def words_of(placement: Placement, text: str = STORY) -> str | None:
    return text[slice(*placement.span)] if placement.span else None


@pytest.mark.parametrize(
    ("quote", "method", "words"),
    [
        ("with 12 cars", "exact", "with 12 cars"),
        (" with 12 cars ", "exact", " with 12 cars"[1:]),
        ('"We\'ll see," said', "spelling", "“We’ll see,” said"),
        ("THE  FERRY LEFT AT", "spelling", "The ferry left at"),
        ('"because he was cold"', "spelling", "because he was cold"),
        ("said the ... with two", "elided", "said the captain. At noon the ferry left again with two"),
        ("two cars … the captain", "elided", "two cars and a bus, and the captain"),
        ("... because he was", "elided", "because he was"),
        ("at noon the ferry again with", "near", "At noon the ferry left again with"),
        ("the captian said nothing", "near", "the captain said nothing"),
        ("because he was so cold", "near", "because he was cold"),
    ],
)
def test_a_quote_is_placed_and_says_how(quote: str, method: str, words: str) -> None:
    placement = one(quote)
    assert (placement.method, words_of(placement), placement.flags) == (method, words, ())


@pytest.mark.parametrize(
    "quote",
    [
        "The ferry left at 7:46 with 12 cars",
        "The ferry left at 7:45 with 13 cars",
        "again with three cars and a bus",
        "Mr. Smith did not wave, because he was cold",
        "Mr. Okafor did wave, because he was not cold",
        "the captain never said nothing",
    ],
)
def test_another_number_negation_or_name_is_never_placed(quote: str) -> None:
    placement = one(quote)
    assert placement.span is None
    assert "the quote has" in placement.why
    assert placement.nearest is not None


@pytest.mark.parametrize(
    ("quote", "flag"),
    [
        ("The ferry left at 7:45 with cars", "the quote omits '12'"),
        ("Mr. Okafor did wave, because", "the quote omits 'not'"),
        ("Mr. Okafr did not wave", "the quote has 'Okafr' where the text has 'Okafor'"),
    ],
)
def test_a_number_negation_or_name_left_out_or_misspelt_is_flagged(quote: str, flag: str) -> None:
    placement = one(quote)
    assert placement.flags == (flag,)
    assert not placement.is_certain


@pytest.mark.parametrize(("quote", "why"), [("a yellow submarine", "is not in the text"), ("  ", "the quote is empty")])
def test_what_is_not_there_has_no_place(quote: str, why: str) -> None:
    assert one(quote) == Placement(None, why=why)


def test_a_repeated_quote_without_a_hint_is_ambiguous() -> None:
    assert one("the captain").why == "occurs 2 times in the text, and it is unclear which one is meant"


def test_the_words_around_a_repeated_quote_tell_which_is_meant() -> None:
    first, second = find_occurrences("the captain", STORY)
    assert one("the captain", before="” said").span == (first, first + 11)
    assert one("the captain", after="said noting.").span == (second, second + 11)


def test_a_quote_from_elsewhere_is_flagged_by_the_words_around_it() -> None:
    assert one("12", before="the ferry left again with", after="cars and a bus").flags
    assert not one("12", before="left at 7:45 with", after="cars. Mr.").flags


def test_quotes_of_a_reply_help_each_other_by_their_order() -> None:
    first, second = find_occurrences("the captain", STORY)
    between = place_quotes([Quote("At noon"), Quote("the captain"), Quote("waved.")], STORY)[1]
    before = place_quotes([Quote("We’ll see"), Quote("the captain"), Quote("At noon")], STORY)[1]
    assert between.span == (second, second + 11)
    assert before.span == (first, first + 11)
    assert place_quotes([Quote("At noon"), Quote("the captain")], STORY, ordered=False)[1].span is None


def test_the_same_quote_twice_goes_to_two_places() -> None:
    first, second = find_occurrences("the captain", STORY)
    spans = [placement.span for placement in place_quotes([Quote("the captain")] * 2, STORY)]
    assert spans == [(first, first + 11), (second, second + 11)]


def test_a_quote_at_its_offsets_needs_no_search() -> None:
    assert find_at_offsets_or_unique("o", 4, 5, "o no o") is None
    assert find_at_offsets_or_unique("o", 5, 6, "o no o") == (5, 6)


def test_composed_and_decomposed_letters_are_the_same() -> None:
    text = "Cafe\u0301 and cafe"
    assert one("Café", text=text).span == (0, 5)
    assert one("caf", text="cafe\u0301 caf").span == (6, 9)


WORDS = st.sampled_from("red blue green big small cat dog ran sat on the a".split())


def slow_cost(quote: list[str], text: list[str]) -> float:
    """The least cost of laying a quote over any stretch of a text, by trying every stretch and every alignment."""

    def cost(one: tuple[str, ...], other: tuple[str, ...]) -> float:
        if not one or not other:
            return 1.1 * len(one) + 0.7 * len(other)
        alike = 0.0 if one[0] == other[0] else None
        change = costs[one[0], other[0]] if alike is None else alike
        return min(change + cost(one[1:], other[1:]), 1.1 + cost(one[1:], other), 0.7 + cost(one, other[1:]))

    from rapidfuzz.distance import OSA

    pairs = itertools.product(quote, text)
    alike = {(a, b): OSA.normalized_similarity(a, b) for a, b in pairs}
    costs = {pair: 1.1 - value if value >= 0.5 else 1.2 for pair, value in alike.items()}
    stretches = [text[a:b] for a in range(len(text) + 1) for b in range(a, len(text) + 1)]
    return min(cost(tuple(quote), tuple(each)) for each in stretches)


@settings(max_examples=40, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=4), st.lists(WORDS, min_size=1, max_size=5))
def test_the_best_alignment_costs_what_its_definition_says(quote: list[str], text: list[str]) -> None:
    alignments = find_near_alignments(
        WordList.from_text(" ".join(quote)), WordList.from_text(" ".join(text)), max_share=1.0
    )
    if alignments:
        assert alignments[0].cost == pytest.approx(slow_cost(quote, text) / len(quote), abs=1e-6)


@settings(deadline=None)
@given(texts(MULTILINE_ALPHABET, 1), texts(MULTILINE_ALPHABET), texts(MULTILINE_ALPHABET))
def test_words_of_the_text_are_always_found_there(quote: str, before: str, after: str) -> None:
    placement = one(quote, before, after, before + quote + after)
    if placement.span is not None:
        assert fold_text((before + quote + after)[slice(*placement.span)]) == fold_text(quote)
    else:
        assert not quote.strip() or "times in the text" in placement.why


@pytest.mark.parametrize(("row", "bar"), [(name, bar) for name, (_, bar) in benchmark.QUOTE_CHANGES.items() if bar])
def test_real_quotes_are_placed(row: str, bar: float, real_spans: list[benchmark.SourceSpan]) -> None:
    drawn = benchmark.draw_cases(row, real_spans, 300)
    assert len(drawn) == 300
    assert sum(benchmark.is_correct(case, benchmark.place_with_finecomb(case)) for case in drawn) / 300 >= bar


def test_no_altered_digit_is_placed_unflagged(real_spans: list[benchmark.SourceSpan]) -> None:
    drawn = benchmark.draw_cases("a digit altered", real_spans, 300)
    assert [case for case in drawn if not benchmark.is_correct(case, benchmark.place_with_finecomb(case))] == []


@pytest.mark.parametrize("kind", benchmark.CLAIM_KINDS)
def test_no_changed_claim_is_placed_unflagged(kind: str) -> None:
    drawn = benchmark.draw_changed_claims(kind, benchmark.own_texts(), 300)
    assert [case for case in drawn if benchmark.place_with_finecomb(case).is_certain] == []


@pytest.mark.parametrize("kind", benchmark.FAITHFUL_KINDS)
def test_faithful_quotes_are_placed(kind: str) -> None:
    drawn = benchmark.draw_faithful_quotes(kind, benchmark.own_texts(), 300)
    assert sum(benchmark.is_correct(case, benchmark.place_with_finecomb(case)) for case in drawn) >= 298


@pytest.fixture(scope="module")
def real_spans(data: Path) -> list[benchmark.SourceSpan]:
    return benchmark.read_source_spans(data)
