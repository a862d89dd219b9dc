"""Conversion between UTF-16 offsets, which JavaScript uses, and code points; used by all importers and exporters."""

from __future__ import annotations

import bisect
import itertools


class Utf16Offsets:
    """Positions in a text in UTF-16 units, as JavaScript counts, and in code points."""

    def __init__(self, text: str) -> None:
        widths = (2 if ord(character) > 0xFFFF else 1 for character in text)
        self._starts = list(itertools.accumulate(widths, initial=0))

    def to_code_point(self, units: int) -> int | None:
        """Convert an offset in UTF-16 units to code points; None if it is inside a surrogate pair or outside the text.

        >>> Utf16Offsets("a😀b").to_code_point(3), Utf16Offsets("a😀b").to_code_point(2)
        (2, None)
        """
        index = bisect.bisect_left(self._starts, units)
        return index if index < len(self._starts) and self._starts[index] == units else None

    def to_utf16(self, code_points: int) -> int:
        """Convert an offset in code points to UTF-16 units."""
        return self._starts[code_points]
