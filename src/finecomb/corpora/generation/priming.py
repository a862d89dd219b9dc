"""Priming: texts by people before the prompt (the few shots of Clark et al. 2021), and copies of them found out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import LCSseq

from finecomb.core import tokens
from finecomb.core.records import Document

DELIMITER = "<|endoftext|>"
"""What stands between texts; most models of the GPT kind end a text with it."""
MAX_OVERLAP = 0.8
"""A text that shares more than this with a priming text is a copy (Clark et al. 2021, section 2.2.1)."""
PROMPT, HEADLINE = "prompt", "headline"


def document_prompt(document: Document) -> str:
    """What a model goes on from: headline and prompt of a document, or its text where it has no prompt."""
    if PROMPT not in document.context:
        return document.text.strip()
    parts = [document.context.get(HEADLINE, ""), document.context[PROMPT]]
    return "\n".join(part.strip() for part in parts if part.strip())


def text_with_prompt(document: Document) -> str:
    """A text by people with its prompt before it, as it would be printed."""
    return (
        f"{document_prompt(document)} {document.text.strip()}" if PROMPT in document.context else document.text.strip()
    )


@dataclass(frozen=True, slots=True)
class Priming:
    """Texts by people that every prompt is shown after, the same for all."""

    documents: tuple[Document, ...] = ()
    delimiter: str = DELIMITER

    def full_prompt(self, document: Document) -> str:
        """The whole prompt for a model that goes on with texts."""
        shots = (f"{text_with_prompt(shot)}\n{self.delimiter}\n" for shot in self.other_documents(document))
        return "".join(shots) + document_prompt(document)

    def other_documents(self, document: Document) -> Iterable[Document]:
        """The priming texts but for the document itself."""
        return (shot for shot in self.documents if shot.id != document.id)

    def largest_overlap(self, text: str) -> float:
        """The largest share of a text's words that it has in common with one priming text."""
        return largest_overlap(text, [text_with_prompt(shot) for shot in self.documents])

    def is_copy(self, text: str, most: float = MAX_OVERLAP) -> bool:
        """Whether a text is a copy of a priming text."""
        return bool(self.documents) and self.largest_overlap(text) > most


def largest_overlap(text: str, others: Sequence[str]) -> float:
    """The share of a text's words that stand in the same order in one of the others, the largest; 0 without words.

    The longest common subsequence of words, in lower case, over the number of words of the text.

    >>> largest_overlap("The cat sat down.", ["Then the cat sat."])
    0.8
    """
    words = _lowercase_words(text)
    if not words:
        return 0.0
    return max((LCSseq.similarity(words, _lowercase_words(other)) / len(words) for other in others), default=0.0)


def _lowercase_words(text: str) -> list[str]:
    return [text[start:end].lower() for start, end in tokens.words(text)]
