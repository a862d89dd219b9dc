"""Priming with human texts before the prompt (few-shot, Clark et al. 2021), and detection of copied texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import LCSseq

from finecomb.core import tokens
from finecomb.core.records import Document

DELIMITER = "<|endoftext|>"
"""Separator between texts; most GPT-style models end a text with it."""
MAX_OVERLAP = 0.8
"""Word overlap above which a text counts as a copy of a priming text (Clark et al. 2021, section 2.2.1)."""
PROMPT, HEADLINE = "prompt", "headline"


def document_prompt(document: Document) -> str:
    """Return the prompt of a document: its headline and prompt, or its text if it has no prompt."""
    if PROMPT not in document.context:
        return document.text.strip()
    parts = [document.context.get(HEADLINE, ""), document.context[PROMPT]]
    return "\n".join(part.strip() for part in parts if part.strip())


def text_with_prompt(document: Document) -> str:
    """Return a human text preceded by its prompt."""
    return (
        f"{document_prompt(document)} {document.text.strip()}" if PROMPT in document.context else document.text.strip()
    )


@dataclass(frozen=True, slots=True)
class Priming:
    """Human texts that precede every prompt."""

    documents: tuple[Document, ...] = ()
    delimiter: str = DELIMITER

    def full_prompt(self, document: Document) -> str:
        """Return the complete prompt for a completion model: priming texts, delimiters and prompt."""
        shots = (f"{text_with_prompt(shot)}\n{self.delimiter}\n" for shot in self.other_documents(document))
        return "".join(shots) + document_prompt(document)

    def other_documents(self, document: Document) -> Iterable[Document]:
        """Return the priming texts except the document itself."""
        return (shot for shot in self.documents if shot.id != document.id)

    def largest_word_overlap(self, text: str) -> float:
        """Return the largest share of the text's words that occur, in order, in one priming text."""
        return largest_word_overlap(text, [text_with_prompt(shot) for shot in self.documents])

    def is_copy(self, text: str, most: float = MAX_OVERLAP) -> bool:
        """Check whether a text is a copy of a priming text."""
        return bool(self.documents) and self.largest_word_overlap(text) > most


def largest_word_overlap(text: str, others: Sequence[str]) -> float:
    """Return the largest share of the text's words that occur in the same order in one of `others`; 0 without words.

    Computed as the longest common subsequence of lower-case words, divided by the number of words in the text.

    >>> largest_word_overlap("The cat sat down.", ["Then the cat sat."])
    0.8
    """
    words = _lowercase_words(text)
    if not words:
        return 0.0
    return max((LCSseq.similarity(words, _lowercase_words(other)) / len(words) for other in others), default=0.0)


def _lowercase_words(text: str) -> list[str]:
    return [text[start:end].lower() for start, end in tokens.word_offsets(text)]
