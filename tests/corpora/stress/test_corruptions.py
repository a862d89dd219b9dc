from __future__ import annotations

import numpy as np
import pytest

from finecomb.core.records import Document
from finecomb.corpora.stress.corruptions import CORRUPTIONS, CorruptionMaterial, split_sentences

TEXT = "Yesterday Ann Lee met Bob in Rome. She was 30 and he was not old. They had 4 plans. Then Bob left her."
OTHER = "A storm came from the sea. It broke the dam. Nobody was hurt."
DOCUMENTS = (Document(id="1", text=TEXT), Document(id="2", text=OTHER))


def damaged(name: str, text: str = TEXT, seed: int = 0) -> str | None:
    document = Document(id="1", text=text)
    return CORRUPTIONS[name].damaged(
        document, CorruptionMaterial.from_documents([document, DOCUMENTS[1]]), np.random.default_rng(seed)
    )


def test_shuffled_texts_have_the_same_sentences_in_another_order() -> None:
    for seed in range(20):
        text = damaged("shuffled", seed=seed)
        assert text is not None
        assert text != TEXT
        assert sorted(split_sentences(text)) == sorted(split_sentences(TEXT))


def test_half_of_the_sentences_come_twice() -> None:
    text = damaged("repeated")
    assert text is not None
    assert sorted(text.count(sentence) for sentence in split_sentences(TEXT)) == [1, 1, 2, 2]


def test_names_keep_their_counts_and_bigrams_are_those_of_the_study() -> None:
    text = damaged("names-bigrams")
    assert text is not None
    assert text.startswith("Ann Lee Bob Rome Bob ")
    assert text.count("Bob") > TEXT.count("Bob")  # bigrams with names come on top


def test_names_stand_in_each_others_places() -> None:
    assert damaged("swapped-names", "So Ann saw Bob. Then Ann left.") == "So Bob saw Ann. Then Bob left."


def test_sentences_are_turned_into_their_contrary() -> None:
    assert damaged("negated", "It was late.") == "It was not late."
    assert damaged("negated", "It was not late.") == "It was late."


def test_numbers_change_and_keep_their_shape() -> None:
    for seed in range(20):
        text = damaged("numbers", "In 1999 it cost 1,250.50 euros.", seed)
        assert text is not None
        words = text.split()
        assert words[1] != "1999"
        assert words[1][0] != "0"
        assert [len(part) for part in words[4].replace(".", ",").split(",")] == [1, 3, 2]


def test_a_sentence_in_the_middle_goes() -> None:
    text = damaged("dropped-sentence")
    assert text is not None
    assert len(split_sentences(text)) == 3
    assert (split_sentences(text)[0], split_sentences(text)[-1]) == (
        split_sentences(TEXT)[0],
        split_sentences(TEXT)[-1],
    )


def test_the_second_half_comes_from_another_text() -> None:
    text = damaged("switched-topic")
    assert text is not None
    assert split_sentences(text) == [*split_sentences(TEXT)[:2], *split_sentences(OTHER)[1:]]


def test_pronouns_become_somebody_elses() -> None:
    assert damaged("pronouns", "She saw him. His dog is theirs.") == "He saw her. Her dog is theirs."


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("text", ["", "one", "A. B.", "123", "Is it?", "\n\n"])
def test_what_cannot_be_damaged_is_left_alone_and_nothing_fails(name: str, text: str) -> None:
    result = damaged(name, text)
    assert result is None or isinstance(result, str)


@pytest.mark.parametrize("name", ["shuffled", "names-bigrams", "swapped-names", "negated", "numbers", "pronouns"])
def test_nothing_to_damage_gives_nothing(name: str) -> None:
    assert damaged(name, "nothing") is None
