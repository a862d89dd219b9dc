"""Snapping: checks that a span consists of complete words or sentences, as its label requires."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import regex

from finecomb.core.protocol import Snap
from finecomb.core.sentences import sentence_offsets
from finecomb.core.span import Offsets, Span

_WORD_CHARACTER = regex.compile(
    r"""[[\p{L}\p{M}\p{Nd}]--[\p{Han}\p{Hiragana}\p{Katakana}ーｰ\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}
    \p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}\p{Ahom}]]""",
    regex.VERSION1 | regex.VERBOSE,
)
"""Pattern of characters that every tokenizer keeps in one word; rules differ for scripts without spaces."""


def sentence_offsets_within_parts(text: str, parts: Sequence[tuple[int, int]] = ()) -> Offsets:
    """Return the sentence offsets of a text that is split into parts, (n, 2); no sentence crosses a part boundary.

    >>> sentence_offsets_within_parts("One. Two and three.", [(0, 8), (9, 19)]).tolist()
    [[0, 4], [5, 8], [9, 19]]
    """
    pieces = [sentence_offsets(text[start:end]) + start for start, end in parts or [(0, len(text))]]
    return np.concatenate(pieces) if pieces else np.empty((0, 2), dtype=np.int64)


def snapping_problem(span: Span, text: str, snap: Snap, bounds: Offsets) -> str:
    """Return how a span violates the `snap` of its label, or an empty string; `bounds` are the sentences.

    An omission, which covers no character, is valid anywhere.
    """
    if not len(span) or snap == "character":
        return ""
    if snap == "sentence":
        return "" if span.start in bounds[:, 0] and span.end in bounds[:, 1] else "must cover complete sentences"
    return "must cover complete words" if _is_inside_word(text, span.start) or _is_inside_word(text, span.end) else ""


def _is_inside_word(text: str, at: int) -> bool:
    """Return True if an offset is inside a word."""
    return 0 < at < len(text) and _is_word_character(text[at - 1]) and _is_word_character(text[at])


@functools.lru_cache(maxsize=4096)
def _is_word_character(character: str) -> bool:
    return _WORD_CHARACTER.match(character) is not None
