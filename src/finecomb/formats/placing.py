"""Finding words that were copied by hand: as they stand, in another spelling, or nearly."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from finecomb.core.tokens import words
from finecomb.formats.source import occurrences

_SAME = str.maketrans({"‘": "'", "’": "'", "`": "'", "“": "''", "”": "''", '"': "''", "–": "-", "—": "-", "‑": "-"})
_NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_NUMBER = re.compile(rf"\b({'|'.join(_NUMBERS)})\b")
NEAR = 0.8
"""How alike two strings must be (difflib's ratio) to count as the same words with a slip."""

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Folded:
    """A text without white space, case and kinds of quotes, and where each of its characters came from."""

    text: str
    origins: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Folded:
        """Fold `text`; "he 's" and "He’s" become the same."""
        pairs = [(each, at) for at, character in enumerate(text) for each in _folded(character)]
        return cls("".join(each for each, _ in pairs), tuple(at for _, at in pairs))

    def places(self, words: str) -> list[Range]:
        """Where the folded `words` stand, as ranges of the original text; never half of a character."""
        wanted = "".join(map(_folded, words))
        found = [(at, at + len(wanted)) for at in occurrences(wanted, self.text)]
        whole = [(first, last) for first, last in found if self._edge(first) and self._edge(last)]
        return [(self.origins[first], self.origins[last - 1] + 1) for first, last in whole]

    def _edge(self, at: int) -> bool:
        """Whether a character of the original begins or ends there: a double quote folds to two."""
        return at in (0, len(self.origins)) or self.origins[at - 1] != self.origins[at]


def _folded(character: str) -> str:
    return "" if character.isspace() else character.translate(_SAME).lower()


def likeness(one: str, other: str) -> float:
    """0 for nothing in common, 1 for the same but for case, quotes, and numbers in words or in digits."""
    return difflib.SequenceMatcher(None, _plain(one), _plain(other), autojunk=False).ratio()


def _plain(text: str) -> str:
    text = " ".join(text.translate(_SAME).lower().split())
    return _NUMBER.sub(lambda found: str(_NUMBERS.index(found[0])), text)


def _digits(text: str) -> list[str]:
    return re.findall(r"\d+", _plain(text))


def whole_words(text: str, places: list[Range]) -> list[Range]:
    """Those that do not begin or end inside a word or number; all when there are none."""
    whole = [(start, end) for start, end in places if not (_joined(text, start) or _joined(text, end))]
    return whole or places


def _joined(text: str, at: int) -> bool:
    return 0 < at < len(text) and text[at - 1].isalnum() and text[at].isalnum()


def exact(quote: str, text: str) -> list[Range]:
    """Where `quote` stands in `text` as it is, whole words first; else where it does in another spelling."""
    places = [(at, at + len(quote)) for at in occurrences(quote, text)] or Folded.of(text).places(quote)
    return whole_words(text, places)


def nearest(quote: str, text: str, least: float = NEAR) -> Range | None:
    """The words of `text` most like `quote`, with the same numbers; None when none are like enough."""
    best, place = least, None
    numbers = _digits(quote)
    for start, end in _windows(text, len(words(quote))):
        found = likeness(quote, text[start:end]) if _digits(text[start:end]) == numbers else 0
        if found > best or (found == best and place is None):
            best, place = found, (start, end)
    return place


def _windows(text: str, size: int) -> Iterator[Range]:
    """Runs of about `size` words."""
    offsets = [(int(start), int(end)) for start, end in words(text)]
    for first in range(len(offsets)):
        for last in range(first + max(0, size - 3), min(first + size + 3, len(offsets))):
            yield offsets[first][0], offsets[last][1]
