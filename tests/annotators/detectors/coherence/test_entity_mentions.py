"""Tests of names with their descriptions and of nouns with their determiners."""

from __future__ import annotations

from finecomb.annotators.detectors.coherence.entity_mentions import find_name_mentions, find_noun_mentions
from tests.annotators.detectors.coherence.example_parses import EMIL, GARDEN, NORA, SISTER, make_parsed_sentence


def test_a_name_alone_is_not_described() -> None:
    (name,) = find_name_mentions(make_parsed_sentence(NORA))
    assert name.words == {"nora"}
    assert [name.kind, name.role, name.described] == ["person", "S", False]


def test_an_apposition_describes() -> None:
    (name,) = find_name_mentions(make_parsed_sentence(SISTER))
    assert name.description == {"nurse"}
    assert name.described


def test_a_noun_before_the_name_and_an_owner_describe() -> None:
    line = "His/PRON/poss/1 sister/NOUN/compound/2 Jude/PROPN/nsubj/3/PERSON waits/VERB/ROOT/3"
    assert find_name_mentions(make_parsed_sentence(line))[0].description == {"sister"}


def test_what_comes_after_is_describes() -> None:
    line = "Nora/PROPN/nsubj/1/PERSON is/AUX/ROOT/1 a/DET/det/3 nurse/NOUN/attr/1"
    assert find_name_mentions(make_parsed_sentence(line))[0].description == {"nurse"}


def test_titles_are_no_part_of_a_name_and_places_are_no_persons() -> None:
    line = "Mr./PROPN/compound/1 Brown/PROPN/nsubj/2/PERSON waits/VERB/ROOT/2 in/ADP/prep/2 Oslo/PROPN/pobj/3/GPE"
    brown, oslo = find_name_mentions(make_parsed_sentence(line))
    assert brown.words == {"brown"}
    assert brown.start == 0
    assert (oslo.kind, oslo.role) == ("place", "X")


def test_whoever_acts_is_a_person_whatever_a_recogniser_says() -> None:
    (name,) = find_name_mentions(make_parsed_sentence("Brooke/PROPN/nsubj/1/GPE waits/VERB/ROOT/1"))
    assert (name.kind, name.typed) == ("person", False)


def test_days_and_numbers_are_no_names() -> None:
    assert find_name_mentions(make_parsed_sentence("Monday/PROPN/nsubj/1/DATE comes/VERB/ROOT/1")) == []


def test_nouns_know_their_determiner_and_whether_they_are_explained() -> None:
    (letter,) = find_noun_mentions(make_parsed_sentence(EMIL))
    assert (letter.lemma, letter.determiner, letter.role, letter.explained) == ("letter", "definite", "O", False)
    assert next(find_noun_mentions(make_parsed_sentence(GARDEN))).determiner == "indefinite"
    line = "the/DET/det/1 letter/NOUN/ROOT/1 of/ADP/prep/1 love/NOUN/pobj/2"
    assert next(find_noun_mentions(make_parsed_sentence(line))).explained
