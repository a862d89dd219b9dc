"""Incoherent examples made from coherent texts (SNaC, section 5.1, Figure 6): a sentence in a context that was damaged.

By coreference removal, the sentence that first mentions somebody is taken out of the context of the second mention. By
next-sentence replacement, a later sentence of the same text stands where the next one belongs. Each example of either
kind comes with its coherent twin, so that both are equally many (appendix C.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from finecomb.annotators.coreference.resolver import resolve_coreference
from finecomb.annotators.detectors.coherence.narrative import MarkedSpan, Narrative, NarrativeSentence

NegativeKind = Literal["coreference", "next-sentence"]
DAMAGED = "damaged"
"""The label that a made-up incoherent sentence carries."""


@dataclass(frozen=True, slots=True)
class SyntheticExample:
    """A context and the sentence after it, as places of sentences in a text."""

    context: tuple[int, ...]
    sentence: int
    coherent: bool


def coreference_removals(text: Narrative) -> Iterator[SyntheticExample]:
    """For every person mentioned in two sentences: the second without the first, and with it."""
    starts = np.array([sentence.start for sentence in text.sentences])
    for chain in resolve_coreference(text.text):
        places = sorted({int(np.searchsorted(starts, start, side="right")) - 1 for start, _ in chain})
        if len(places) < 2 or places[0] < 0:
            continue
        first, second = places[:2]
        before = tuple(range(second))
        yield SyntheticExample(before, second, True)
        yield SyntheticExample(tuple(at for at in before if at != first), second, False)


def next_sentence_replacements(text: Narrative, rng: np.random.Generator) -> Iterator[SyntheticExample]:
    """For every sentence but the last two: what follows it, and a later sentence in place of that."""
    count = len(text.sentences)
    for at in range(count - 2):
        context = tuple(range(at + 1))
        yield SyntheticExample(context, at + 1, True)
        yield SyntheticExample(context, int(rng.integers(at + 2, count)), False)


def synthetic_examples(
    texts: Iterable[Narrative], negatives: NegativeKind, rng: np.random.Generator
) -> list[tuple[Narrative, SyntheticExample]]:
    """The examples of all texts with the text that each is from."""
    return [
        (text, example)
        for text in texts
        for example in (
            coreference_removals(text) if negatives == "coreference" else next_sentence_replacements(text, rng)
        )
    ]


def example_text(text: Narrative, example: SyntheticExample, max_context: int = 12) -> Narrative:
    """A short text that ends with the example's sentence, after at most so many sentences of its context.

    Only the last sentence is an example; it is marked as `damaged` where it is one.
    """
    pieces: list[str] = []
    rows: list[NarrativeSentence] = []
    at = 0
    places = [*example.context[-max_context:], example.sentence]
    for number, place in enumerate(places):
        words = text.sentence_text(place)
        opens = not number or text.sentences[place].opens
        rows.append(NarrativeSentence(at, at + len(words), text.sentences[place].segment, opens))
        pieces.append(words)
        at += len(words) + 1
    if not example.coherent:
        last = rows[-1]
        rows[-1] = replace(last, spans=(MarkedSpan(last.start, last.end, DAMAGED),))
    return Narrative(f"{text.id}/{example.sentence}", " ".join(pieces), tuple(rows), text.group)
