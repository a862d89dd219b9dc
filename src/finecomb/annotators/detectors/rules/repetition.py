"""Repeated sentences: verbatim, nearly verbatim, or long runs of the same words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from finecomb.annotators.detectors.rules.rule_finding import RuleFinding
from finecomb.core.records import Document
from finecomb.core.sentences import sentence_offsets
from finecomb.core.tokens import word_offsets

MIN_SENTENCE_WORDS = 5
"""Minimum number of words in a repeated sentence. Shorter ones ("She smiled.") may recur without being an error."""
MIN_SIMILARITY = 0.8
"""Minimum Jaccard similarity of the words of two sentences to count as a repetition."""
MIN_RUN_WORDS = 8
"""Minimum number of consecutive words to count as a repetition."""


@dataclass(frozen=True, slots=True)
class FoldedSentence:
    """A sentence as lower-case words without punctuation, with the position of each word."""

    start: int
    end: int
    folded: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]


def fold_sentences(text: str) -> list[FoldedSentence]:
    """Split a text into sentences of lower-case words."""
    tokens = [(int(start), int(end)) for start, end in word_offsets(text)]
    result, index = [], 0
    for start, end in sentence_offsets(text).tolist():
        inside = []
        while index < len(tokens) and tokens[index][0] < end:
            inside.append(tokens[index])
            index += 1
        spelled = [(text[a:b].casefold(), (a, b)) for a, b in inside if text[a].isalnum()]
        result.append(
            FoldedSentence(start, end, tuple(word for word, _ in spelled), tuple(place for _, place in spelled))
        )
    return result


def find_repetitions(document: Document) -> Iterator[RuleFinding]:
    """Find sentences that repeat an earlier one, and long runs of words that occur twice."""
    parts = fold_sentences(document.text)
    earlier = EarlierSentences(Counter(word for sentence in parts for word in set(sentence.folded)))
    for sentence in parts:
        same = earlier.find_similar(sentence)
        if same:
            kind, first = same
            yield RuleFinding(sentence.start, sentence.end, "redundant", _REASONS[kind], (first.start, first.end))
        else:
            yield from earlier.find_repeated_runs(sentence)
        earlier.add_sentence(sentence)


_REASONS = {
    "exact": "This sentence repeats an earlier one word for word.",
    "near": "This sentence repeats an earlier one in nearly the same words.",
    "run": "These words occur in the same order earlier in the text.",
}


class EarlierSentences:
    """An index of earlier sentences, so that each new one is compared with only a few of them."""

    def __init__(self, frequency: Mapping[str, int]) -> None:
        """Create an empty index. `frequency` is the number of sentences with each word."""
        self.frequency = frequency
        self.exact: dict[tuple[str, ...], FoldedSentence] = {}
        self.with_word: dict[str, list[FoldedSentence]] = {}
        self.run_at: dict[tuple[str, ...], tuple[FoldedSentence, int]] = {}

    def add_sentence(self, sentence: FoldedSentence) -> None:
        """Add a sentence to the index."""
        if len(sentence.folded) >= MIN_SENTENCE_WORDS:
            self.exact.setdefault(sentence.folded, sentence)
            for word in set(sentence.folded):
                self.with_word.setdefault(word, []).append(sentence)
        for index in range(len(sentence.folded) - MIN_RUN_WORDS + 1):
            self.run_at.setdefault(sentence.folded[index : index + MIN_RUN_WORDS], (sentence, index))

    def find_similar(self, sentence: FoldedSentence) -> tuple[str, FoldedSentence] | None:
        """Return the first earlier sentence with the same (`exact`) or nearly the same words (`near`), or None."""
        if len(sentence.folded) < MIN_SENTENCE_WORDS:
            return None
        if sentence.folded in self.exact:
            return "exact", self.exact[sentence.folded]
        # Prefix filtering: a sentence with enough words in common must share at least one of the rarest words.
        words = set(sentence.folded)
        needed = math.ceil(MIN_SIMILARITY * len(words) - 1e-9)
        prefix = sorted(words, key=lambda word: (self.frequency[word], word))[: len(words) - needed + 1]
        candidates = {first.start: first for word in prefix for first in self.with_word.get(word, ())}
        for _, first in sorted(candidates.items()):
            first_words = set(first.folded)
            if len(words & first_words) >= MIN_SIMILARITY * len(words | first_words):
                return "near", first
        return None

    def find_repeated_runs(self, sentence: FoldedSentence) -> Iterator[RuleFinding]:
        """Yield the longest runs of at least `MIN_RUN_WORDS` words that an earlier sentence contains."""
        index = 0
        while index + MIN_RUN_WORDS <= len(sentence.folded):
            match = self.run_at.get(sentence.folded[index : index + MIN_RUN_WORDS])
            if match is None:
                index += 1
                continue
            first, begin = match
            size = MIN_RUN_WORDS
            while (
                sentence.folded[index + size : index + size + 1] == first.folded[begin + size : begin + size + 1] != ()
            ):
                size += 1
            start, end = sentence.offsets[index][0], sentence.offsets[index + size - 1][1]
            first_span = first.offsets[begin][0], first.offsets[begin + size - 1][1]
            yield RuleFinding(start, end, "redundant", _REASONS["run"], first_span)
            index += size
