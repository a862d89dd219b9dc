"""Sentences that come again: word for word, nearly so, or a long run of the same words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from finecomb.annotators.detectors.rules.rule_finding import RuleFinding
from finecomb.core.records import Document
from finecomb.core.sentences import sentences
from finecomb.core.tokens import words

MIN_WORDS = 5
"""A shorter sentence may well come twice ("She smiled.")."""
MIN_SIMILARITY = 0.8
"""Share of the words of both sentences, each counted once, from which on they say the same."""
MIN_RUN_WORDS = 8
"""So many words in a row are no chance."""


@dataclass(frozen=True, slots=True)
class FoldedSentence:
    """A sentence as a list of lower-case words without signs, and where each word is."""

    start: int
    end: int
    folded: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]


def fold_sentences(text: str) -> list[FoldedSentence]:
    """The sentences of a text, folded."""
    tokens = [(int(start), int(end)) for start, end in words(text)]
    result, at = [], 0
    for start, end in sentences(text).tolist():
        inside = []
        while at < len(tokens) and tokens[at][0] < end:
            inside.append(tokens[at])
            at += 1
        spelled = [(text[a:b].casefold(), (a, b)) for a, b in inside if text[a].isalnum()]
        result.append(
            FoldedSentence(start, end, tuple(word for word, _ in spelled), tuple(place for _, place in spelled))
        )
    return result


def find_repetitions(document: Document) -> Iterator[RuleFinding]:
    """Every sentence that says again what an earlier one said, and long runs of words that come twice."""
    parts = fold_sentences(document.text)
    earlier = EarlierSentences(Counter(word for sentence in parts for word in set(sentence.folded)))
    for sentence in parts:
        same = earlier.find_similar(sentence)
        if same:
            kind, first = same
            yield RuleFinding(sentence.start, sentence.end, "redundant", _REASONS[kind], (first.start, first.end))
        else:
            yield from earlier.find_repeated_runs(sentence)
        earlier.add(sentence)


_REASONS = {
    "exact": "This sentence stood in the text before, word for word.",
    "near": "An earlier sentence says the same in nearly the same words.",
    "run": "These words stood in the text before, in the same order.",
}


class EarlierSentences:
    """The sentences read so far, so indexed that one more is compared with few of them."""

    def __init__(self, frequency: Mapping[str, int]) -> None:
        """`frequency` says in how many sentences of the text each word is."""
        self.frequency = frequency
        self.exact: dict[tuple[str, ...], FoldedSentence] = {}
        self.with_word: dict[str, list[FoldedSentence]] = {}
        self.run_at: dict[tuple[str, ...], tuple[FoldedSentence, int]] = {}

    def add(self, sentence: FoldedSentence) -> None:
        """One more sentence that later ones may repeat."""
        if len(sentence.folded) >= MIN_WORDS:
            self.exact.setdefault(sentence.folded, sentence)
            for word in set(sentence.folded):
                self.with_word.setdefault(word, []).append(sentence)
        for at in range(len(sentence.folded) - MIN_RUN_WORDS + 1):
            self.run_at.setdefault(sentence.folded[at : at + MIN_RUN_WORDS], (sentence, at))

    def find_similar(self, sentence: FoldedSentence) -> tuple[str, FoldedSentence] | None:
        """The first sentence that said the same, and whether word for word (`exact`) or nearly so (`near`)."""
        if len(sentence.folded) < MIN_WORDS:
            return None
        if sentence.folded in self.exact:
            return "exact", self.exact[sentence.folded]
        near = [first for first in self._similar_candidates(set(sentence.folded)) if _is_similar(sentence, first)]
        return ("near", min(near, key=lambda first: first.start)) if near else None

    def _similar_candidates(self, own: set[str]) -> list[FoldedSentence]:
        """Sentences that have one of the rarest words: who shares four fifths of the words has at least one of them."""
        needed = math.ceil(MIN_SIMILARITY * len(own) - 1e-9)
        prefix = sorted(own, key=lambda word: (self.frequency[word], word))[: len(own) - needed + 1]
        candidates = {first.start: first for word in prefix for first in self.with_word.get(word, ())}
        return list(candidates.values())

    def find_repeated_runs(self, sentence: FoldedSentence) -> Iterator[RuleFinding]:
        """The longest runs of at least `RUN` words that an earlier sentence has too."""
        at = 0
        while at + MIN_RUN_WORDS <= len(sentence.folded):
            match = self.run_at.get(sentence.folded[at : at + MIN_RUN_WORDS])
            if match is None:
                at += 1
                continue
            size = _run_length(sentence, at, *match)
            first, begin = match
            start, end = sentence.offsets[at][0], sentence.offsets[at + size - 1][1]
            place = first.offsets[begin][0], first.offsets[begin + size - 1][1]
            yield RuleFinding(start, end, "redundant", _REASONS["run"], place)
            at += size


def _is_similar(sentence: FoldedSentence, first: FoldedSentence) -> bool:
    own, other = set(sentence.folded), set(first.folded)
    return len(own & other) >= MIN_SIMILARITY * len(own | other)


def _run_length(sentence: FoldedSentence, at: int, first: FoldedSentence, begin: int) -> int:
    size = MIN_RUN_WORDS
    while sentence.folded[at + size : at + size + 1] == first.folded[begin + size : begin + size + 1] != ():
        size += 1
    return size
