"""What a selection widens to: whether a span keeps to the words or sentences that its label asks for."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import regex

from finecomb.core.protocol import Snap
from finecomb.core.sentences import sentences
from finecomb.core.span import Offsets, Span

_WORD_CHARACTER = regex.compile(
    r"""[[\p{L}\p{M}\p{Nd}]--[\p{Han}\p{Hiragana}\p{Katakana}ーｰ\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}
    \p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}\p{Ahom}]]""",
    regex.VERSION1 | regex.VERBOSE,
)
"""Characters that every rule for words keeps together; in scripts without spaces, rules differ."""


def part_sentences(text: str, parts: Sequence[tuple[int, int]] = ()) -> Offsets:
    """The sentences of a text that is read part by part, (n, 2): none reaches from one part into the next.

    >>> part_sentences("One. Two and three.", [(0, 8), (9, 19)]).tolist()
    [[0, 4], [5, 8], [9, 19]]
    """
    pieces = [sentences(text[start:end]) + start for start, end in parts or [(0, len(text))]]
    return np.concatenate(pieces) if pieces else np.empty((0, 2), dtype=np.int64)


def snapping_problem(span: Span, text: str, snap: Snap, bounds: Offsets) -> str:
    """Why a span is not as wide as its label asks for, where `bounds` are the sentences; empty when it is.

    An omission, which covers no character, may lie anywhere.
    """
    if not len(span) or snap == "character":
        return ""
    if snap == "sentence":
        return "" if span.start in bounds[:, 0] and span.end in bounds[:, 1] else "goes with whole sentences"
    return "goes with whole words" if _cuts_word(text, span.start) or _cuts_word(text, span.end) else ""


def _cuts_word(text: str, at: int) -> bool:
    """Whether an offset lies inside a word."""
    return 0 < at < len(text) and _is_word_character(text[at - 1]) and _is_word_character(text[at])


@functools.lru_cache(maxsize=4096)
def _is_word_character(character: str) -> bool:
    return _WORD_CHARACTER.match(character) is not None
