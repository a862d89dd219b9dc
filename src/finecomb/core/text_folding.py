"""Folded texts: a normal form for different spellings of the same words, mapped to the original offsets."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

Range = tuple[int, int]
"""Start and end of words in a text, in code points."""

_CHARACTER_REPLACEMENTS = str.maketrans(
    dict.fromkeys("‘’‚‛`´′ʼ", "'") | dict.fromkeys('“”„‟"«»″', "''") | dict.fromkeys("–—‑‐−―", "-") | {"\u00ad": ""}
)
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_NUMBER_WORDS)})\b")


def find_occurrences(quote: str, text: str, start: int = 0, end: int | None = None) -> list[int]:
    """Return the start of every occurrence of `quote` in `text[start:end]`; occurrences may overlap."""
    starts: list[int] = []
    position = text.find(quote, start, end) if quote else -1
    while position >= 0:
        starts.append(position)
        position = text.find(quote, position + 1, end)
    return starts


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A text in a form that ignores white space, case, accents and types of quotes, mapped to the original offsets."""

    text: str
    origins: tuple[int, ...]

    @classmethod
    def from_text(cls, text: str) -> FoldedText:
        """Fold `text`; "he 's" and "He’s" become equal."""
        pieces = [_FOLDING_TABLE[character] for character in text]
        origins = [index for index, piece in enumerate(pieces) for _ in piece]
        return cls("".join(pieces), tuple(origins))

    def find_ranges(self, words: str) -> list[Range]:
        """Return the ranges of the original text whose folded form is `words`; original characters are never split."""
        wanted = fold_text(words)
        ranges = [(start, start + len(wanted)) for start in find_occurrences(wanted, self.text)]
        whole_characters = [
            (first, last) for first, last in ranges if self._is_character_edge(first) and self._is_character_edge(last)
        ]
        return [(self.origins[first], self.origins[last - 1] + 1) for first, last in whole_characters]

    def _is_character_edge(self, at: int) -> bool:
        """Return True if an original character begins or ends at a folded position; `“` folds to two characters."""
        if at in (0, len(self.origins)):
            return True
        return self.origins[at - 1] != self.origins[at] and not unicodedata.combining(self.text[at])


class _FoldingTable(dict[str, str]):
    """Folded form of each character, filled on first use."""

    def __missing__(self, character: str) -> str:
        plain = character.translate(_CHARACTER_REPLACEMENTS)
        plain = plain.lower() if character.isascii() else unicodedata.normalize("NFKD", plain).casefold()
        return self.setdefault(character, "".join(letter for letter in plain if not letter.isspace()))


_FOLDING_TABLE = _FoldingTable()


def fold_text(text: str) -> str:
    """Return the folded form of `text` as a string.

    >>> fold_text("He ’s  “IN”")
    "he's''in''"
    """
    return "".join([_FOLDING_TABLE[character] for character in text])


def text_similarity(one: str, other: str) -> float:
    """Return the similarity of two texts, 0 to 1; it ignores case, types of quotes, and `two` versus `2`."""
    return difflib.SequenceMatcher(None, normalise_text(one), normalise_text(other), autojunk=False).ratio()


def normalise_text(text: str) -> str:
    """Return a text in lower case with single spaces, plain quotes and dashes, and small numbers as digits."""
    text = " ".join(text.translate(_CHARACTER_REPLACEMENTS).lower().split())
    return _NUMBER_WORD.sub(lambda number: str(_NUMBER_WORDS.index(number[0])), text)


def find_numbers(text: str) -> list[str]:
    """Return the numbers in a text, including number words up to `twelve`."""
    return re.findall(r"\d+", normalise_text(text))


def keep_whole_word_ranges(text: str, places: Iterable[Range]) -> list[Range]:
    """Return the ranges that neither begin nor end inside a word or number; if there are none, return all ranges."""
    places = list(places)
    whole_words = [
        (start, end) for start, end in places if not (_is_inside_word(text, start) or _is_inside_word(text, end))
    ]
    return whole_words or places


def _is_inside_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()
