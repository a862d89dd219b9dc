"""Matching of the regular expressions in protocols, with a time limit because some take exponential time."""

from __future__ import annotations

import functools
from typing import Any

import regex

from finecomb.core.errors import FinecombError, shorten

MAX_SECONDS = 0.5
"""Maximum time for one expression on one quote, in seconds."""


class SlowPatternError(FinecombError):
    """A regular expression that exceeds its time limit."""


@functools.lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern)


def full_match_with_timeout(pattern: str, text: str, seconds: float = MAX_SECONDS) -> regex.Match[str] | None:
    """Match an entire text, or return None; raise `SlowPatternError` if matching takes longer than `seconds`.

    >>> full_match_with_timeout("(a+)+b", "aab").span(1)
    (0, 2)
    """
    compiled: Any = _compile_pattern(pattern)
    try:
        match: regex.Match[str] | None = compiled.fullmatch(text, timeout=seconds)
    except TimeoutError:
        words = f"{shorten(pattern, 60)!r} takes longer than {seconds:g} s on {shorten(text, 40)!r}"
        raise SlowPatternError(f"the expression {words}; write it without nested repetitions") from None
    return match
