"""Folded texts: one form for the many spellings of the same words, with the way back to the original offsets."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

Range = tuple[int, int]
"""Start and end of words in a text, as code points."""

_SAME_CHARACTERS = str.maketrans(
    dict.fromkeys("‘’‚‛`´′ʼ", "'") | dict.fromkeys('“”„‟"«»″', "''") | dict.fromkeys("–—‑‐−―", "-") | {"\u00ad": ""}
)
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_NUMBER = re.compile(rf"\b({'|'.join(_NUMBERS)})\b")


def occurrences(quote: str, text: str, start: int = 0, end: int | None = None) -> list[int]:
    """Where `quote` begins in `text[start:end]`, overlapping occurrences included; none for an empty quote."""
    starts: list[int] = []
    at = text.find(quote, start, end) if quote else -1
    while at >= 0:
        starts.append(at)
        at = text.find(quote, at + 1, end)
    return starts


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A text without white space, case, accents' encodings and kinds of quotes, and where its characters came from."""

    text: str
    origins: tuple[int, ...]

    @classmethod
    def from_text(cls, text: str) -> FoldedText:
        """The folded form of `text`; "he 's" and "He’s" become the same."""
        pieces = [_FOLDING_TABLE[character] for character in text]
        origins = [at for at, piece in enumerate(pieces) for _ in piece]
        return cls("".join(pieces), tuple(origins))

    def find_ranges(self, words: str) -> list[Range]:
        """Where the folded `words` stand, as ranges of the original text; never half of a character."""
        wanted = fold_text(words)
        ranges = [(at, at + len(wanted)) for at in occurrences(wanted, self.text)]
        whole = [(first, last) for first, last in ranges if self._is_edge(first) and self._is_edge(last)]
        return [(self.origins[first], self.origins[last - 1] + 1) for first, last in whole]

    def _is_edge(self, at: int) -> bool:
        """Whether a character of the original begins or ends there: a double quote folds to two."""
        if at in (0, len(self.origins)):
            return True
        return self.origins[at - 1] != self.origins[at] and not unicodedata.combining(self.text[at])


class _FoldingTable(dict[str, str]):
    """Folded characters by character, filled as they are met."""

    def __missing__(self, character: str) -> str:
        return self.setdefault(character, _fold_character(character))


_FOLDING_TABLE = _FoldingTable()


def _fold_character(character: str) -> str:
    """One character in its folded form; nothing for white space."""
    if character.isascii():
        return "" if character.isspace() else character.translate(_SAME_CHARACTERS).lower()
    plain = unicodedata.normalize("NFKD", character.translate(_SAME_CHARACTERS)).casefold()
    return "".join(letter for letter in plain if not letter.isspace())


def fold_text(text: str) -> str:
    """The folded form of `text` as a string.

    >>> fold_text("He ’s  “IN”")
    "he's''in''"
    """
    return "".join([_FOLDING_TABLE[character] for character in text])


def likeness(one: str, other: str) -> float:
    """0 for nothing in common, 1 for the same but for case, quotes, and numbers in words or in digits."""
    return difflib.SequenceMatcher(None, normalise_text(one), normalise_text(other), autojunk=False).ratio()


def normalise_text(text: str) -> str:
    """A text in lower case with single blanks, plain quotes and dashes, and small numbers as digits."""
    text = " ".join(text.translate(_SAME_CHARACTERS).lower().split())
    return _NUMBER.sub(lambda number: str(_NUMBERS.index(number[0])), text)


def find_numbers(text: str) -> list[str]:
    """The numbers in a text, those in words too as far as twelve."""
    return re.findall(r"\d+", normalise_text(text))


def keep_whole_words(text: str, places: Iterable[Range]) -> list[Range]:
    """Those that do not begin or end inside a word or number; all when there are none."""
    places = list(places)
    whole = [(start, end) for start, end in places if not (_is_inside_word(text, start) or _is_inside_word(text, end))]
    return whole or places


def _is_inside_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()
