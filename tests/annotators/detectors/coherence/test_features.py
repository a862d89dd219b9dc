"""Tests of the sentence features: their values, and that none depends on later sentences."""

from __future__ import annotations

from finecomb.annotators.detectors.coherence.features import (
    extract_sentence_facts,
    feature_matrix,
    last_sentence_features,
    sentence_features,
)
from tests.annotators.detectors.coherence.example_parses import DIED, EMIL, GARDEN, NORA, SISTER, make_parsed_story


def test_a_person_is_new_and_bare_only_once() -> None:
    rows = sentence_features(*make_parsed_story(NORA, EMIL, GARDEN))
    assert [row["persons.bare"] for row in rows] == [1, 1, 0]
    assert [row["names.age.max"] for row in rows] == [0, 0, 2]


def test_a_described_person_is_not_bare() -> None:
    assert sentence_features(*make_parsed_story(SISTER))[0]["persons.bare"] == 0
    assert sentence_features(*make_parsed_story(SISTER))[0]["persons.described"] == 1


def test_a_definite_noun_supposes_something_only_at_its_first_mention() -> None:
    rows = sentence_features(*make_parsed_story(EMIL, EMIL))
    assert [row["nouns.definite.new"] for row in rows] == [1, 0]
    assert [row["events.again"] for row in rows] == [0, 1]


def test_the_dead_do_not_act() -> None:
    rows = sentence_features(*make_parsed_story(NORA, DIED, GARDEN))
    assert [row["dead.acts"] for row in rows] == [0, 0, 1]


def test_an_attribute_that_comes_again_and_another_one() -> None:
    other = SISTER.replace("nurse", "pilot")
    rows = sentence_features(*make_parsed_story(SISTER, SISTER, other))
    assert [row["attributes.again"] for row in rows] == [0, 1, 0]
    assert [row["attributes.other"] for row in rows] == [0, 0, 1]


def test_nothing_that_follows_changes_a_sentence() -> None:
    whole = sentence_features(*make_parsed_story(NORA, EMIL, GARDEN, DIED))
    for count in range(1, 4):
        assert sentence_features(*make_parsed_story(*(NORA, EMIL, GARDEN, DIED)[:count])) == whole[:count]


def test_the_last_sentence_alone_has_the_same_numbers() -> None:
    text, parses = make_parsed_story(NORA, EMIL, GARDEN)
    assert (
        last_sentence_features(text, [extract_sentence_facts(parse) for parse in parses])
        == sentence_features(text, parses)[-1]
    )


def test_a_matrix_has_the_columns_asked_for() -> None:
    assert feature_matrix([{"a": 1.0}, {"b": 2.0}], ["b", "a"]).tolist() == [[0, 1], [2, 0]]
    assert feature_matrix([], ["a"]).shape == (0, 1)
