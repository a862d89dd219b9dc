"""Quotes that change the claim of a text are refused or flagged; quotes that keep it are placed without doubt."""

from __future__ import annotations

import pytest

from finecomb.core.quotes import Quote, place_quotes

REFUSED, FLAGGED, CERTAIN = "refused", "flagged", "certain"


def outcome(quote: str, text: str, before: str = "", after: str = "") -> str:
    placement = place_quotes([Quote(quote, before, after)], text)[0]
    return CERTAIN if placement.is_certain else FLAGGED if placement.span else REFUSED


@pytest.mark.parametrize(
    ("quote", "text", "expected"),
    [
        ("5.22", "The gap was -5.22 points.", REFUSED),
        ("-5.22", "The gap was 5.22 points.", REFUSED),
        ("5", "A loss of -$5 in May", REFUSED),
        ("$5", "A loss of -$5 in May", REFUSED),
        ("40 degrees", "It was minus 40 degrees.", REFUSED),
        ("98", "They won 104-98 at home.", CERTAIN),
        ("19", "the COVID-19 wave", CERTAIN),
        ("−5.22", "The gap was -5.22 points.", CERTAIN),
        ("22", "The gap was 5.22 points.", REFUSED),
        ("1", "It cost 1,022 euros.", REFUSED),
        ("2", "Pages 1,2,3 are missing.", CERTAIN),
        ("105 cells", "about 10⁵ cells", REFUSED),
        ("near - 30 miles out", "near -30 miles out", REFUSED),
        ("very near – 30 miles out of town", "very near – -30 miles out of town", REFUSED),
        ("CO2 levels", "high CO₂ levels", CERTAIN),
    ],
)
def test_a_number_keeps_its_sign_and_digits(quote: str, text: str, expected: str) -> None:
    assert outcome(quote, text) == expected


@pytest.mark.parametrize(
    ("quote", "text", "expected"),
    [
        ("a wind of 28 km/h at night", "There was a wind of 28 m/s at night.", REFUSED),
        ("grew by 5% in the last year", "It grew by 5‰ in the last year.", REFUSED),
        ("a plant of 5 mW in the valley", "a plant of 5 MW in the valley", FLAGGED),
        ("A PLANT OF 5 MW IN", "a plant of 5 mW in the valley", CERTAIN),
        ("sold for €40 at the fair", "It sold for $40 at the fair.", REFUSED),
        ("grew by 5 percent in the last year", "It grew by 5% in the last year.", CERTAIN),
    ],
)
def test_a_number_keeps_its_unit(quote: str, text: str, expected: str) -> None:
    assert outcome(quote, text) == expected


@pytest.mark.parametrize(
    ("quote", "text", "expected"),
    [
        ("a letter by J. Smith in spring", "It was a letter by J. Moreno in spring.", REFUSED),
        ("Smith opened the old bridge again", "Moreno opened the old bridge again.", FLAGGED),
        ("happy", "They were unhappy.", REFUSED),
        ("existent plans", "non-existent plans", REFUSED),
        ("They can", "They can't swim", REFUSED),
        ("they do", "they don't swim", REFUSED),
        ("care", "a careless answer", REFUSED),
        ("able", "a table", FLAGGED),
        ("notable to swim", "He was not able to swim.", FLAGGED),
        ("the talks were legal and short", "All the talks were illegal and short.", REFUSED),
        ("he was able ... swim", "Then he was able not to swim", FLAGGED),
        ("the captain was seen by three friends", "the captain was seen by three cousins", FLAGGED),
        ("the adopted plan of the town council", "the adapted plan of the town council", FLAGGED),
        ("the plan was allegedly made in spring", "the plan was made in spring", FLAGGED),
        ("the plan was made in spring", "the plan was only made in spring", FLAGGED),
        ("stay away from his that", "stay away from his house", FLAGGED),
        ("the goverment plan of the spring", "the government plan of the spring", CERTAIN),
        ("a colorful flag on the roof", "a colourful flag on the roof", CERTAIN),
        ("the cafe on the corner of the square", "the café on the corner of the square", CERTAIN),
        ("the plan was made in a spring", "the plan was made in the spring", CERTAIN),
        ("東京", "彼は東京に住む", CERTAIN),
    ],
)
def test_names_negations_and_other_words_are_kept(quote: str, text: str, expected: str) -> None:
    assert outcome(quote, text) == expected


def test_a_quote_that_was_cut_on_purpose_is_placed() -> None:
    assert outcome("5.22", "The gap was -5.22 points.", before="The gap was -", after="points.") == CERTAIN
    assert outcome("happy", "They were unhappy.", before="They were un") == CERTAIN


def test_the_unchanged_claim_is_found_next_to_the_changed_one() -> None:
    text = "The first gap was -5.22 and the second was 5.22 points."
    assert place_quotes([Quote("5.22")], text)[0].span == (43, 47)
