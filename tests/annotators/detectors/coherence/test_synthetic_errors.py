"""Tests of synthetic errors: removal, replacement and balance of the classes."""

from __future__ import annotations

import numpy as np
import pytest

from finecomb.annotators.detectors.coherence.narrative import build_narrative
from finecomb.annotators.detectors.coherence.synthetic_errors import (
    SyntheticExample,
    build_example_narrative,
    build_synthetic_examples,
    coreference_removal_examples,
    next_sentence_replacement_examples,
)
from finecomb.core.records import Document

TEXT = build_narrative(
    Document(
        id="t", text="Anna met Mr. Brown. It rained all day. She thanked him. The boat left. They smiled. It ended."
    )
)


def test_the_first_mention_is_taken_from_the_context_of_the_second() -> None:
    examples = list(coreference_removal_examples(TEXT))
    assert SyntheticExample((0, 1), 2, coherent=True) in examples
    assert SyntheticExample((1,), 2, coherent=False) in examples


def test_a_later_sentence_stands_in_place_of_the_next() -> None:
    for example in next_sentence_replacement_examples(TEXT, np.random.default_rng(0)):
        after = example.context[-1] + 1
        assert example.sentence == after if example.coherent else example.sentence > after


@pytest.mark.parametrize("negatives", ["coreference", "next-sentence"])
def test_half_of_the_examples_are_coherent(negatives: str) -> None:
    examples = build_synthetic_examples([TEXT], negatives, np.random.default_rng(0))  # type: ignore[arg-type]
    assert np.mean([not example.coherent for _, example in examples]) == 0.5


def test_an_example_is_a_text_that_ends_with_its_sentence() -> None:
    text = build_example_narrative(TEXT, SyntheticExample((0, 1), 3, coherent=False))
    assert text.text == "Anna met Mr. Brown. It rained all day. The boat left."
    assert [bool(sentence.spans) for sentence in text.sentences] == [False, False, True]
    assert text.sentence_text(2) == "The boat left."


def test_texts_that_are_too_short_give_no_example() -> None:
    short = build_narrative(Document(id="s", text="One. Two."))
    assert list(next_sentence_replacement_examples(short, np.random.default_rng(0))) == []
    assert list(coreference_removal_examples(short)) == []
