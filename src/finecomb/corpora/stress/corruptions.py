"""Corruptions: ways to damage a text that a reader would notice at once. A row of `CORRUPTIONS` each.

The first three are those of SNaC's Table 7. Every one of them is a function of a document, its neighbours in the study
and a generator of random numbers, and gives the damaged text, or None where there is nothing to damage.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import regex

from finecomb.core import tokens
from finecomb.core.records import Document
from finecomb.core.sentences import sentences

TOP_BIGRAM_COUNT = 200

NAME_PATTERN = regex.compile(r"\b\p{Lu}[\p{Ll}’'-]+(?:\s+(?:of|the|de|van|von)?\s*\p{Lu}[\p{Ll}’'-]+)*")
NUMBER_PATTERN = regex.compile(r"\b\d+(?:,\d{3})*(?:\.\d+)?\b")
AUXILIARY_PATTERN = regex.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|should|must|may|might)\b(?!\s+not\b|n['’]t)"
)
NEGATION_PATTERN = regex.compile(r"\b(is|are|was|were|has|have|had|could|would|should|must|may|might)\s+not\b")
PRONOUN_SWAPS = {
    "he": "she", "she": "he", "him": "her", "his": "her", "hers": "his", "her": "him",
    "himself": "herself", "herself": "himself", "they": "it", "them": "it", "it": "they", "its": "their",
    "their": "its",
    "we": "you", "us": "you", "our": "your", "you": "we", "your": "our",
}  # fmt: skip
PRONOUN_PATTERN = regex.compile(r"\b(" + "|".join(PRONOUN_SWAPS) + r")\b", regex.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What a corruption borrows from the other texts of a study."""

    documents: tuple[Document, ...]
    bigrams: tuple[str, ...]
    """The most frequent pairs of neighbouring words in all candidate texts."""

    @classmethod
    def from_documents(cls, documents: Sequence[Document]) -> Neighbours:
        """The texts of a study and their top bigrams."""
        pairs = Counter(pair for document in documents for pair in itertools.pairwise(_words(document.text)))
        return cls(tuple(documents), tuple(" ".join(pair) for pair, _ in pairs.most_common(TOP_BIGRAM_COUNT)))


class Corruption(NamedTuple):
    """A way to damage a text, by name."""

    name: str
    what: str
    damaged: Callable[[Document, Neighbours, np.random.Generator], str | None]


def split_sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [text[start:end] for start, end in sentences(text)]


def shuffle_sentences(document: Document, neighbours: Neighbours, rng: np.random.Generator) -> str | None:
    """The same sentences in another order."""
    parts = split_sentences(document.text)
    order = rng.permutation(len(parts))
    if len(set(parts)) < 2:
        return None
    while all(parts[place] == part for place, part in zip(order, parts, strict=True)):
        order = rng.permutation(len(parts))
    return " ".join(parts[place] for place in order)


def repeat_sentences(document: Document, neighbours: Neighbours, rng: np.random.Generator) -> str | None:
    """Half of the sentences said twice, each right after itself."""
    parts = split_sentences(document.text)
    if not parts:
        return None
    twice = set(rng.choice(len(parts), size=max(1, len(parts) // 2), replace=False).tolist())
    return " ".join(f"{part} {part}" if place in twice else part for place, part in enumerate(parts))


def keep_names_and_bigrams(document: Document, neighbours: Neighbours, rng: np.random.Generator) -> str | None:
    """Every name as often as it occurs, then the commonest word pairs of the study: no sentence at all."""
    names = [document.text[start:end] for start, end in name_spans(document.text)]
    return " ".join([*names, *neighbours.bigrams]) if names else None


def swap_names(document: Document, neighbours: Neighbours, rng: np.random.Generator) -> str | None:
    """Each name in place of the next one, throughout."""
    places = name_spans(document.text)
    names = list(dict.fromkeys(document.text[start:end] for start, end in places))
    if len(names) < 2:
        return None
    others = dict(zip(names, [*names[1:], names[0]], strict=True))
    return _replace_spans(document.text, [((start, end), others[document.text[start:end]]) for start, end in places])


def negate_sentences(document: Document, neighbours: Neighbours, rng: np.random.Generator) -> str | None:
    """Half of the sentences that can be are turned into their contrary."""
    parts = split_sentences(document.text)
    places = [
        place for place, part in enumerate(parts) if NEGATION_PATTERN.search(part) or AUXILIARY_PATTERN.search(part)
    ]
    if not places:
        return None
    turned = set(rng.choice(places, size=-(-len(places) // 2), replace=False).tolist())
    return " ".join(_negate_sentence(part) if place in turned else part for place, part in enumerate(parts))


def change_numbers(document: Document, neighbours: Neighbours, rng: np.random.Generator) -> str | None:
    """Another number of as many digits wherever one stands in digits."""
    matches = list(NUMBER_PATTERN.finditer(document.text))
    if not matches:
        return None
    return _replace_spans(document.text, [(match.span(), _random_number_like(match[0], rng)) for match in matches])


def drop_sentence(document: Document, neighbours: Neighbours, rng: np.random.Generator) -> str | None:
    """One sentence that is neither the first nor the last is gone."""
    parts = split_sentences(document.text)
    if len(parts) < 3:
        return None
    gone = int(rng.integers(1, len(parts) - 1))
    return " ".join(parts[:gone] + parts[gone + 1 :])


def switch_topic(document: Document, neighbours: Neighbours, rng: np.random.Generator) -> str | None:
    """The second half is that of another text."""
    parts = split_sentences(document.text)
    others = [
        other for other in neighbours.documents if other.id != document.id and len(split_sentences(other.text)) > 1
    ]
    if len(parts) < 2 or not others:
        return None
    strange = split_sentences(others[int(rng.integers(len(others)))].text)
    return " ".join([*parts[: len(parts) // 2], *strange[len(strange) // 2 :]])


def swap_pronouns(document: Document, neighbours: Neighbours, rng: np.random.Generator) -> str | None:
    """Every pronoun is that of somebody else."""
    matches = list(PRONOUN_PATTERN.finditer(document.text))
    return (
        _replace_spans(document.text, [(match.span(), _swap_pronoun(match[0])) for match in matches])
        if matches
        else None
    )


CORRUPTIONS: Mapping[str, Corruption] = {
    row.name: row
    for row in (
        Corruption("shuffled", "the same sentences in another order", shuffle_sentences),
        Corruption("repeated", "half of the sentences said twice", repeat_sentences),
        Corruption("names-bigrams", "only names and the commonest word pairs of the study", keep_names_and_bigrams),
        Corruption("swapped-names", "each name in place of the next", swap_names),
        Corruption("negated", "half of the sentences turned into their contrary", negate_sentences),
        Corruption("numbers", "other numbers of as many digits", change_numbers),
        Corruption("dropped-sentence", "one sentence in the middle is gone", drop_sentence),
        Corruption("switched-topic", "the second half is that of another text", switch_topic),
        Corruption("pronouns", "every pronoun is that of somebody else", swap_pronouns),
    )
}
"""In the order in which tables show them."""


def name_spans(text: str) -> list[tuple[int, int]]:
    """Where names stand: capitalised words; the first of a sentence only if it is capitalised elsewhere too.

    >>> text = "Then Ann Lee met Bob. Ann Lee left. Then Bob came."
    >>> [text[start:end] for start, end in name_spans(text)]
    ['Ann Lee', 'Bob', 'Ann Lee', 'Bob']
    """
    starts = {int(start) for start, _ in sentences(text)}
    places = [match.span() for match in NAME_PATTERN.finditer(text)]
    inside = {
        word[0]
        for start, end in places
        for word in regex.finditer(r"\S+", text, pos=start, endpos=end)
        if word.start() not in starts
    }
    return [place for start, end in places if (place := _trim_sentence_opener(text, start, end, starts, inside))]


def _trim_sentence_opener(
    text: str, start: int, end: int, starts: set[int], inside: set[str]
) -> tuple[int, int] | None:
    """A name without the word that only opens its sentence; None where nothing is left."""
    first, *others = regex.finditer(r"\S+", text, pos=start, endpos=end)
    if start not in starts or first[0] in inside:
        return start, end
    return (others[0].start(), end) if others else None


def _words(text: str) -> list[str]:
    return [text[start:end] for start, end in tokens.words(text) if text[start:end].isalnum()]


def _replace_spans(text: str, replacements: Sequence[tuple[tuple[int, int], str]]) -> str:
    """The text with other words at these places, which are in text order."""
    parts, last = [], 0
    for (start, end), words in replacements:
        parts += [text[last:start], words]
        last = end
    return "".join([*parts, text[last:]])


def _negate_sentence(sentence: str) -> str:
    """Without its `not`, or with one after its first auxiliary verb.

    >>> _negate_sentence("It was late."), _negate_sentence("It was not late.")
    ('It was not late.', 'It was late.')
    """
    if NEGATION_PATTERN.search(sentence):
        return NEGATION_PATTERN.sub(r"\1", sentence, count=1)
    return AUXILIARY_PATTERN.sub(r"\1 not", sentence, count=1)


def _random_number_like(number: str, rng: np.random.Generator) -> str:
    """As many digits, another value, no leading zero where there was none."""
    while True:
        digits = [
            str(rng.integers(0 if place else 1, 10)) if sign.isdigit() else sign for place, sign in enumerate(number)
        ]
        if "".join(digits) != number:
            return "".join(digits)


def _swap_pronoun(word: str) -> str:
    other = PRONOUN_SWAPS[word.lower()]
    return other.capitalize() if word[0].isupper() else other
