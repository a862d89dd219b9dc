"""Offset conventions of other programs, recognised by comparing the text at the offsets with the quotes.

Finecomb counts Unicode code points from 0, with the end exclusive. JavaScript counts UTF-16 units, some programs count
bytes or tokens, count from 1, or include the end.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from finecomb.core.errors import ParameterError, param
from finecomb.formats.utf16 import Utf16Offsets

OffsetUnit = Literal["code-points", "utf-16", "bytes", "tokens"]
Range = tuple[int, int]

MIN_FITTING_SHARE = 0.9
"""Below this share of fitting quotes, the user must select a convention."""
_MAX_TOKEN_MARKS = 500
"""Marks on which token offsets are tried, since tokens have to be found in the text."""
_PLAIN_VARIANTS = tuple(itertools.product((0, 1), (False, True)))
_MIN_BOUNDARY_MARKS = 20
_MIN_BOUNDARY_LEAD = 0.3


@dataclass(frozen=True, slots=True)
class OffsetConvention:
    """How a file counts: the unit, the number of the first character, and whether the end is included."""

    unit: OffsetUnit = "code-points"
    first: Literal[0, 1] = 0
    inclusive: bool = False

    def __str__(self) -> str:
        """Return the convention in words: `code points from 0, end exclusive`."""
        unit = {"code-points": "code points", "utf-16": "UTF-16 units"}.get(self.unit, self.unit)
        return f"{unit} from {self.first}, end {'inclusive' if self.inclusive else 'exclusive'}"

    @property
    def option(self) -> str:
        """Value of the option `offsets` that selects the convention."""
        return f"{self.unit},from-{self.first},{'inclusive' if self.inclusive else 'exclusive'}"


DEFAULT_CONVENTION = OffsetConvention()
_UNITS: tuple[OffsetUnit, ...] = ("code-points", "utf-16", "bytes", "tokens")
CONVENTIONS = tuple(
    OffsetConvention(unit, first, inclusive)  # type: ignore[arg-type]
    for first, inclusive, unit in itertools.product((0, 1), (False, True), _UNITS)
)
"""All conventions, the more common ones first; among those that fit equally well, the first is used."""


def parse_convention(text: str) -> OffsetConvention:
    """Parse the option `offsets`: a unit, `from-0` or `from-1`, and `inclusive` or `exclusive`, comma-separated.

    >>> parse_convention("utf-16,inclusive")
    OffsetConvention(unit='utf-16', first=0, inclusive=True)
    """
    unit: OffsetUnit = "code-points"
    first: Literal[0, 1] = 0
    inclusive = False
    for word in re.split(r"[,\s]+", text.strip().lower()):
        match word:
            case "code-points" | "utf-16" | "bytes" | "tokens":
                unit = word
            case "characters" | "exclusive" | "from-0" | "":
                pass
            case "from-1":
                first = 1
            case "inclusive":
                inclusive = True
            case _:
                words = (*_UNITS, "from-0", "from-1", "inclusive", "exclusive")
                raise ParameterError(f"{param('offsets')}: unknown word {word!r}", parameter="offsets", choices=words)
    return OffsetConvention(unit, first, inclusive)


class TextOffsets:
    """Offsets of one text in all units, each computed on first use."""

    __slots__ = ("_bytes", "_tokens", "_utf16", "is_ascii", "text", "tokens")

    def __init__(self, text: str, tokens: Sequence[Any] | None = None) -> None:
        self.text, self.tokens, self.is_ascii = text, tokens, text.isascii()
        self._utf16: Utf16Offsets | None = None
        self._bytes: dict[int, int] | None = None
        self._tokens: list[Range] | None = None

    def locate(self, start: int, end: int, convention: OffsetConvention) -> Range | None:
        """Convert offsets to a range of code points; None if they are not within the text."""
        start -= convention.first
        end -= convention.first
        if convention.unit == "tokens":
            ranges = self._token_ranges()
            last = end if convention.inclusive else end - 1
            return (ranges[start][0], ranges[last][1]) if 0 <= start <= last < len(ranges) else None
        end += convention.inclusive
        if not self.is_ascii and convention.unit != "code-points":
            first, last_ = self._to_code_point(start, convention), self._to_code_point(end, convention)
            if last_ is None and convention.inclusive:
                last_ = self._to_code_point(end + 1, convention)  # the included unit is half of a surrogate pair
            if first is None or last_ is None:
                return None
            start, end = first, last_
        return (start, end) if 0 <= start <= end <= len(self.text) else None

    def _to_code_point(self, offset: int, convention: OffsetConvention) -> int | None:
        if convention.unit == "utf-16":
            if self._utf16 is None:
                self._utf16 = Utf16Offsets(self.text)
            return self._utf16.to_code_point(offset) if offset >= 0 else None
        if self._bytes is None:
            ends = itertools.accumulate((len(character.encode()) for character in self.text), initial=0)
            self._bytes = {position: index for index, position in enumerate(ends)}
        return self._bytes.get(offset)

    def _token_ranges(self) -> list[Range]:
        """Return the range of each token: those of the file, found one after the other, or words between spaces."""
        if self._tokens is None:
            self._tokens, at = [], 0
            for token in self.tokens if self.tokens is not None else self.text.split():
                word = str(token.get("text", "")) if isinstance(token, dict) else str(token)
                position = self.text.find(word, at)
                if position < 0:
                    break
                at = position + len(word)
                self._tokens.append((position, at))
        return self._tokens


class OffsetSurvey:
    """Number of quotes that each convention fits, over all marks of a file."""

    def __init__(self) -> None:
        self.quoted = self.unquoted = self.outside = 0
        self.fits = dict.fromkeys(CONVENTIONS, 0)
        self.plain_fits = [0] * len(_PLAIN_VARIANTS)
        self.on_boundary = {convention: 0 for convention in CONVENTIONS if convention.unit == "code-points"}

    def add(self, start: int, end: int | None, quote: str | None, offsets: TextOffsets) -> None:
        """Count the conventions that fit one mark; without an end, that of the quote is used."""
        text = offsets.text
        if quote is None:
            if end is None:
                return
            self.unquoted += 1
            self.outside += not 0 <= start <= end <= len(text)
            for convention in self.on_boundary:
                place = offsets.locate(start, end, convention)
                self.on_boundary[convention] += place is not None and _is_on_word_boundaries(text, place)
            return
        self.quoted += 1
        if end is not None and offsets.is_ascii:  # characters, UTF-16 units and bytes are the same
            self.plain_fits = [
                count + (text[start - first : end - first + inclusive] == quote if start >= first else False)
                for count, (first, inclusive) in zip(self.plain_fits, _PLAIN_VARIANTS, strict=True)
            ]
            if self.quoted > _MAX_TOKEN_MARKS:
                return
        for convention in CONVENTIONS:
            if convention.unit == "tokens" and self.quoted > _MAX_TOKEN_MARKS:
                continue
            if end is None:
                self.fits[convention] += starts_at_quote(offsets, start, quote, convention)
            elif offsets.is_ascii and convention.unit != "tokens":
                continue
            elif (place := offsets.locate(start, end, convention)) is not None:
                self.fits[convention] += text[place[0] : place[1]] == quote

    def _total_fits(self) -> dict[OffsetConvention, int]:
        """Return the number of fitting quotes of each convention; tokens are tried on the first marks only."""
        plain = dict(zip(_PLAIN_VARIANTS, self.plain_fits, strict=True))
        return {
            convention: count + (plain[convention.first, convention.inclusive] if convention.unit != "tokens" else 0)
            if convention.unit != "tokens" or self.quoted <= _MAX_TOKEN_MARKS
            else round(count * self.quoted / _MAX_TOKEN_MARKS)
            for convention, count in self.fits.items()
        }

    def choose(self, name: str) -> tuple[OffsetConvention, str]:
        """Return the convention that fits most quotes, and a description with its share; an error if none fits."""
        if self.quoted:
            fits = self._total_fits()
            best = max(CONVENTIONS, key=lambda convention: fits[convention])  # the first of the best
            share = fits[best] / self.quoted
            words = f"{best}: {share:.1%} of {self.quoted:,} quotes fit"
            if share < MIN_FITTING_SHARE:
                second = sorted(CONVENTIONS, key=lambda convention: -fits[convention])[:3]
                listed = ", ".join(f"{each.option} {fits[each] / self.quoted:.1%}" for each in second)
                raise ParameterError(
                    f"{name}: no offset convention fits {MIN_FITTING_SHARE:.0%} of the {self.quoted:,} quotes "
                    f"({listed}); select one with {param('offsets')}, or pass {param('offsets', 'quotes')} to use "
                    "only the quotes",
                    parameter="offsets",
                )
            return best, words
        if not self.unquoted:
            return DEFAULT_CONVENTION, ""
        usual = self.on_boundary[DEFAULT_CONVENTION] / self.unquoted
        other = max(self.on_boundary, key=lambda convention: self.on_boundary[convention])
        lead = self.on_boundary[other] / self.unquoted - usual
        if self.unquoted >= _MIN_BOUNDARY_MARKS and lead >= _MIN_BOUNDARY_LEAD:
            raise ParameterError(
                f"{name}: the marks have no quotes, and {usual:.0%} of {self.unquoted:,} begin and end at words if "
                f"offsets are {DEFAULT_CONVENTION}, but {usual + lead:.0%} if they are {other}; select with "
                f"{param('offsets', DEFAULT_CONVENTION.option)} or {param('offsets', other.option)}",
                parameter="offsets",
            )
        return DEFAULT_CONVENTION, f"{DEFAULT_CONVENTION} (assumed; the marks have no quotes to check)"


def starts_at_quote(offsets: TextOffsets, start: int, quote: str, convention: OffsetConvention) -> bool:
    """Return True if the text has the quote at a start in this convention."""
    place = offsets.locate(start, start, OffsetConvention(convention.unit, convention.first))
    if convention.inclusive or place is None or convention.unit == "tokens":
        return False
    return offsets.text.startswith(quote, place[0])


def _is_on_word_boundaries(text: str, place: Range) -> bool:
    start, end = place
    if start >= end:
        return False
    begins = (start == 0 or not text[start - 1].isalnum()) and not text[start].isspace()
    return begins and (end == len(text) or not text[end].isalnum()) and not text[end - 1].isspace()
