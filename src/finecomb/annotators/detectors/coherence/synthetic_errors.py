"""Synthetic incoherent examples, created by damaging the context of a sentence (SNaC, section 5.1, Figure 6).

Coreference removal deletes the sentence of a person's first mention from the context of the second mention.
Next-sentence replacement uses a later sentence of the text in place of the next one. Each damaged example has a
coherent counterpart, so both classes are equally frequent (appendix C.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from finecomb.annotators.coreference.resolver import resolve_coreference
from finecomb.annotators.detectors.coherence.narrative import MarkedSpan, Narrative, NarrativeSentence

NegativeKind = Literal["coreference", "next-sentence"]
DAMAGED_LABEL = "damaged"
"""The label of a damaged example."""


@dataclass(frozen=True, slots=True)
class SyntheticExample:
    """A context and the following sentence, as sentence indices of a text."""

    context: tuple[int, ...]
    sentence: int
    coherent: bool


def coreference_removal_examples(text: Narrative) -> Iterator[SyntheticExample]:
    """Yield the sentence of each person's second mention, with and without the first mention in its context."""
    starts = np.array([sentence.start for sentence in text.sentences])
    for chain in resolve_coreference(text.text):
        places = sorted({int(np.searchsorted(starts, start, side="right")) - 1 for start, _ in chain})
        if len(places) < 2 or places[0] < 0:
            continue
        first, second = places[:2]
        before = tuple(range(second))
        yield SyntheticExample(before, second, True)
        yield SyntheticExample(tuple(index for index in before if index != first), second, False)


def next_sentence_replacement_examples(text: Narrative, rng: np.random.Generator) -> Iterator[SyntheticExample]:
    """Yield two continuations of each sentence except the last two: the next sentence, and a random later one."""
    count = len(text.sentences)
    for index in range(count - 2):
        context = tuple(range(index + 1))
        yield SyntheticExample(context, index + 1, True)
        yield SyntheticExample(context, int(rng.integers(index + 2, count)), False)


def build_synthetic_examples(
    texts: Iterable[Narrative], negatives: NegativeKind, rng: np.random.Generator
) -> list[tuple[Narrative, SyntheticExample]]:
    """Build the examples of all texts, each with its source text."""
    return [
        (text, example)
        for text in texts
        for example in (
            coreference_removal_examples(text)
            if negatives == "coreference"
            else next_sentence_replacement_examples(text, rng)
        )
    ]


def build_example_narrative(text: Narrative, example: SyntheticExample, max_context: int = 12) -> Narrative:
    """Build a short text that ends with the example's sentence, after at most `max_context` sentences of context.

    Only the last sentence is an example. It is marked as `damaged` if it is incoherent.
    """
    pieces: list[str] = []
    rows: list[NarrativeSentence] = []
    offset = 0
    places = [*example.context[-max_context:], example.sentence]
    for number, place in enumerate(places):
        words = text.sentence_text(place)
        opens = not number or text.sentences[place].opens
        rows.append(NarrativeSentence(offset, offset + len(words), text.sentences[place].segment, opens))
        pieces.append(words)
        offset += len(words) + 1
    if not example.coherent:
        last = rows[-1]
        rows[-1] = replace(last, spans=(MarkedSpan(last.start, last.end, DAMAGED_LABEL),))
    return Narrative(f"{text.id}/{example.sentence}", " ".join(pieces), tuple(rows), text.group)
