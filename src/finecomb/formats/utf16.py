"""UTF-16 offsets, as JavaScript counts, to code points and back: the one place where they are converted."""

from __future__ import annotations

import bisect
import itertools


class Utf16Offsets:
    """Positions in a text as JavaScript counts them, in UTF-16 units, and as we do, in code points."""

    def __init__(self, text: str) -> None:
        widths = (2 if ord(character) > 0xFFFF else 1 for character in text)
        self._starts = list(itertools.accumulate(widths, initial=0))

    def to_code_point(self, units: int) -> int | None:
        """The position of a unit; None within a surrogate pair and outside the text.

        >>> Utf16Offsets("a😀b").to_code_point(3), Utf16Offsets("a😀b").to_code_point(2)
        (2, None)
        """
        at = bisect.bisect_left(self._starts, units)
        return at if at < len(self._starts) and self._starts[at] == units else None

    def to_utf16(self, code_points: int) -> int:
        """The other way round."""
        return self._starts[code_points]
