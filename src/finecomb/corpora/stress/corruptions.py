"""Corruptions of texts that people notice; each is a row of `CORRUPTIONS`.

The first three are those in SNaC's Table 7. Each is a function of a document, material from the other texts and a
random generator. It returns the corrupted text, or None if the corruption does not apply.
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
from finecomb.core.sentences import sentence_offsets

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
class CorruptionMaterial:
    """Material that corruptions borrow from the other texts of a study."""

    documents: tuple[Document, ...]
    bigrams: tuple[str, ...]
    """Most frequent bigrams of all candidate texts."""

    @classmethod
    def from_documents(cls, documents: Sequence[Document]) -> CorruptionMaterial:
        """Collect the texts of a study and their most frequent bigrams."""
        pairs = Counter(
            pair
            for document in documents
            for pair in itertools.pairwise(
                [
                    document.text[start:end]
                    for start, end in tokens.word_offsets(document.text)
                    if document.text[start:end].isalnum()
                ]
            )
        )
        return cls(tuple(documents), tuple(" ".join(pair) for pair, _ in pairs.most_common(TOP_BIGRAM_COUNT)))


class Corruption(NamedTuple):
    """Named way to corrupt a text."""

    name: str
    what: str
    damaged: Callable[[Document, CorruptionMaterial, np.random.Generator], str | None]


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [text[start:end] for start, end in sentence_offsets(text)]


def shuffle_sentences(document: Document, neighbours: CorruptionMaterial, rng: np.random.Generator) -> str | None:
    """Shuffle the sentences of a text."""
    parts = split_sentences(document.text)
    order = rng.permutation(len(parts))
    if len(set(parts)) < 2:
        return None
    while all(parts[position] == part for position, part in zip(order, parts, strict=True)):
        order = rng.permutation(len(parts))
    return " ".join(parts[position] for position in order)


def repeat_sentences(document: Document, neighbours: CorruptionMaterial, rng: np.random.Generator) -> str | None:
    """Repeat half of the sentences, each directly after itself."""
    parts = split_sentences(document.text)
    if not parts:
        return None
    repeated = set(rng.choice(len(parts), size=max(1, len(parts) // 2), replace=False).tolist())
    return " ".join(f"{part} {part}" if position in repeated else part for position, part in enumerate(parts))


def keep_names_and_bigrams(document: Document, neighbours: CorruptionMaterial, rng: np.random.Generator) -> str | None:
    """Replace a text with all occurrences of its names, followed by the most frequent bigrams of the study."""
    names = [document.text[start:end] for start, end in name_spans(document.text)]
    return " ".join([*names, *neighbours.bigrams]) if names else None


def swap_names(document: Document, neighbours: CorruptionMaterial, rng: np.random.Generator) -> str | None:
    """Replace each name throughout the text with the next name in it."""
    spans = name_spans(document.text)
    names = list(dict.fromkeys(document.text[start:end] for start, end in spans))
    if len(names) < 2:
        return None
    replacements = dict(zip(names, [*names[1:], names[0]], strict=True))
    return _replace_spans(
        document.text, [((start, end), replacements[document.text[start:end]]) for start, end in spans]
    )


def negate_sentences(document: Document, neighbours: CorruptionMaterial, rng: np.random.Generator) -> str | None:
    """Negate half of the sentences that contain an auxiliary verb."""
    parts = split_sentences(document.text)
    candidates = [
        position
        for position, part in enumerate(parts)
        if NEGATION_PATTERN.search(part) or AUXILIARY_PATTERN.search(part)
    ]
    if not candidates:
        return None
    negated = set(rng.choice(candidates, size=-(-len(candidates) // 2), replace=False).tolist())
    for position in negated:
        if NEGATION_PATTERN.search(parts[position]):
            parts[position] = NEGATION_PATTERN.sub(r"\1", parts[position], count=1)
        else:
            parts[position] = AUXILIARY_PATTERN.sub(r"\1 not", parts[position], count=1)
    return " ".join(parts)


def change_numbers(document: Document, neighbours: CorruptionMaterial, rng: np.random.Generator) -> str | None:
    """Replace each number written in digits with another number that has as many digits."""
    matches = list(NUMBER_PATTERN.finditer(document.text))
    if not matches:
        return None
    replacements: list[tuple[tuple[int, int], str]] = []
    for match in matches:
        number = match[0]
        while number == match[0]:  # as many digits, the same punctuation and no leading zero
            digits = [
                str(rng.integers(0 if position else 1, 10)) if sign.isdigit() else sign
                for position, sign in enumerate(match[0])
            ]
            number = "".join(digits)
        replacements.append((match.span(), number))
    return _replace_spans(document.text, replacements)


def drop_sentence(document: Document, neighbours: CorruptionMaterial, rng: np.random.Generator) -> str | None:
    """Remove one sentence that is neither the first nor the last."""
    parts = split_sentences(document.text)
    if len(parts) < 3:
        return None
    dropped = int(rng.integers(1, len(parts) - 1))
    return " ".join(parts[:dropped] + parts[dropped + 1 :])


def switch_topic(document: Document, neighbours: CorruptionMaterial, rng: np.random.Generator) -> str | None:
    """Replace the second half of a text with that of another text."""
    parts = split_sentences(document.text)
    donors = [
        other for other in neighbours.documents if other.id != document.id and len(split_sentences(other.text)) > 1
    ]
    if len(parts) < 2 or not donors:
        return None
    donor_sentences = split_sentences(donors[int(rng.integers(len(donors)))].text)
    return " ".join([*parts[: len(parts) // 2], *donor_sentences[len(donor_sentences) // 2 :]])


def swap_pronouns(document: Document, neighbours: CorruptionMaterial, rng: np.random.Generator) -> str | None:
    """Replace each pronoun with one of another person, gender or number."""
    matches = list(PRONOUN_PATTERN.finditer(document.text))
    return (
        _replace_spans(document.text, [(match.span(), _swap_pronoun(match[0])) for match in matches])
        if matches
        else None
    )


CORRUPTIONS: Mapping[str, Corruption] = {
    row.name: row
    for row in (
        Corruption("shuffled", "sentences in random order", shuffle_sentences),
        Corruption("repeated", "half of the sentences repeated", repeat_sentences),
        Corruption("names-bigrams", "only names and the most frequent bigrams of the study", keep_names_and_bigrams),
        Corruption("swapped-names", "each name replaced by the next", swap_names),
        Corruption("negated", "half of the sentences negated", negate_sentences),
        Corruption("numbers", "numbers replaced by others of the same length", change_numbers),
        Corruption("dropped-sentence", "one sentence in the middle removed", drop_sentence),
        Corruption("switched-topic", "second half replaced by that of another text", switch_topic),
        Corruption("pronouns", "each pronoun replaced by another", swap_pronouns),
    )
}
"""Corruptions by name, in the order of the tables."""


def name_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of names: capitalised words, except those capitalised only at the start of a sentence.

    >>> text = "Then Ann Lee met Bob. Ann Lee left. Then Bob came."
    >>> [text[start:end] for start, end in name_spans(text)]
    ['Ann Lee', 'Bob', 'Ann Lee', 'Bob']
    """
    starts = {int(start) for start, _ in sentence_offsets(text)}
    spans = [match.span() for match in NAME_PATTERN.finditer(text)]
    inside = {
        word[0]
        for start, end in spans
        for word in regex.finditer(r"\S+", text, pos=start, endpos=end)
        if word.start() not in starts
    }
    names: list[tuple[int, int]] = []
    for start, end in spans:
        first, *others = regex.finditer(r"\S+", text, pos=start, endpos=end)
        if start not in starts or first[0] in inside:
            names.append((start, end))
        elif others:  # the first word is capitalised only because it begins a sentence
            names.append((others[0].start(), end))
    return names


def _replace_spans(text: str, replacements: Sequence[tuple[tuple[int, int], str]]) -> str:
    """Return the text with the given spans replaced; spans must be in text order."""
    parts, last = [], 0
    for (start, end), words in replacements:
        parts += [text[last:start], words]
        last = end
    return "".join([*parts, text[last:]])


def _swap_pronoun(word: str) -> str:
    other = PRONOUN_SWAPS[word.lower()]
    return other.capitalize() if word[0].isupper() else other
