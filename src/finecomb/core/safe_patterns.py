"""Regular expressions that a protocol brings along: run with a time limit, since some take for ever on some texts."""

from __future__ import annotations

import functools
from typing import Any

import regex

from finecomb.core.errors import FinecombError, shorten

MAX_SECONDS = 0.5
"""The longest that one expression may take on one quote."""


class SlowPatternError(FinecombError):
    """A regular expression that takes too long."""


@functools.lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern)


def full_match(pattern: str, text: str, seconds: float = MAX_SECONDS) -> regex.Match[str] | None:
    """The match of a whole text, or None; raises `SlowPatternError` when it takes longer than `seconds`.

    >>> full_match("(a+)+b", "aab").span(1)
    (0, 2)
    """
    compiled: Any = _compile_pattern(pattern)
    try:
        match: regex.Match[str] | None = compiled.fullmatch(text, timeout=seconds)
    except TimeoutError:
        words = f"{shorten(pattern, 60)!r} takes longer than {seconds:g} s on {shorten(text, 40)!r}"
        raise SlowPatternError(f"the expression {words}; write it without nested repetitions") from None
    return match
