"""Location of quotes in a text: exact, in another spelling, elided or approximate, with doubtful cases flagged.

Annotators and models that report an error by quoting it rarely give offsets, and the offsets are often wrong. A quote
is located in three steps:

1. *Candidates*: exact matches; if there are none, matches in another spelling (case, spaces, quotation marks, dashes,
   Unicode forms); then, if the quote contains "...", ranges from its first to its last words; then the words most
   similar to it by word alignment.
2. *Selection*: all quotes of a reply are located together. Each candidate is scored by its context. Quotes are
   expected in text order, and equal quotes at different positions.
3. *Doubt*: a quote with two equally good candidates is not located. Neither is a quote that changes the claim: a
   number or its sign or unit, a negation, a name, or a word to its opposite. Any other word that was replaced or added,
   and an omitted number, negation or name, is flagged.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rapidfuzz import fuzz

from finecomb.core.quote_changes import (
    Changes,
    describe_aligned_changes,
    describe_cut_edges,
    describe_elision,
    describe_respelling,
)
from finecomb.core.text_folding import (
    FoldedText,
    Range,
    find_numbers,
    find_occurrences,
    fold_text,
    keep_whole_word_ranges,
    text_similarity,
)
from finecomb.core.tokens import word_offsets
from finecomb.core.word_alignment import Costs, WordList, find_near_alignments

PlacementMethod = Literal["exact", "spelling", "elided", "near", ""]
"""Method by which a quote was located; empty if it was not."""

MIN_LIKENESS = 0.8
"""Minimum similarity (difflib's ratio) of two strings that count as the same words with a typing error."""
_MAX_CANDIDATES = 64  # limit for quotes such as "the"; the context then selects the right occurrence
_MAX_GAP = 1200  # maximum number of characters that "..." can stand for
_DISORDER_PENALTY = 0.2
_SAME_SPAN_PENALTY = 0.6
_INSIDE_WORD_PENALTY = 0.1
_TIE_MARGIN = 0.005
_MIN_CONTEXT_FIT, _MIN_SHORT_QUOTE_FIT, _MIN_NUMBER_FIT, _SHORT_QUOTE_LENGTH = (
    0.34,
    0.85,
    0.95,
    12,
)  # A short quote such as "2" needs more support from its context.
_ELLIPSIS = re.compile(r"\s*(?:\[\s*(?:\.\.\.|…)\s*\]|\(\s*(?:\.\.\.|…)\s*\)|\.{3,}|…)\s*")
_WRAPPING_QUOTES = "\"'“”‘’«»`"


@dataclass(frozen=True, slots=True)
class Quote:
    """Words copied from a text, with some context before and after them."""

    text: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """Location of a quote in its text, with the method and any doubts."""

    span: Range | None
    """Start and end; None if the quote was not located."""
    method: PlacementMethod = ""
    """Method by which the quote was located."""
    flags: tuple[str, ...] = ()
    """Doubts about the location, such as omitted words or a different context."""
    why: str = ""
    """Reason why the quote was not located."""
    nearest: Range | None = None
    """Closest candidate, for a quote that was not located."""

    @property
    def is_certain(self) -> bool:
        """True if there are no doubts about the location."""
        return self.span is not None and not self.flags


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A possible location of a quote."""

    span: Range
    method: PlacementMethod
    score: float
    """Score: 1 for the exact words in the same context, less for any other candidate."""
    fit: float | None
    """Similarity of the context, 0 to 1; None if the quote has no context."""
    flags: tuple[str, ...] = ()
    changed: str = ""
    """Number, negation or name that the quote changed; such a candidate is never selected."""


def place_quotes(quotes: Sequence[Quote], text: str, ordered: bool = True) -> list[Placement]:
    """Locate all quotes of one reply; if `ordered`, they are expected in text order.

    >>> [placement.span for placement in place_quotes([Quote("two"), Quote("two")], "one two and two")]
    [(4, 7), (12, 15)]
    >>> place_quotes([Quote("two")], "one two and two")[0].why
    'occurs 2 times in the text, and it is unclear which one is meant'
    """
    index = TextIndex(text)
    candidates = [index.find_candidates(quote) for quote in quotes]
    open_ = [number for number, options in enumerate(candidates) if any(not candidate.changed for candidate in options)]
    chosen = _choose_candidates(
        [[candidate for candidate in candidates[number] if not candidate.changed] for number in open_], ordered
    )
    picks = dict(zip(open_, chosen, strict=True))
    return [_build_placement(quote, candidates[number], picks.get(number)) for number, quote in enumerate(quotes)]


def _build_placement(quote: Quote, candidates: Sequence[_Candidate], pick: _Candidate | None) -> Placement:
    if pick is not None:
        min_fit = _MIN_CONTEXT_FIT
        if len(fold_text(quote.text)) <= _SHORT_QUOTE_LENGTH:
            min_fit = _MIN_NUMBER_FIT if find_numbers(quote.text) else _MIN_SHORT_QUOTE_FIT
        has_other_context = pick.fit is not None and pick.fit < min_fit
        return Placement(pick.span, pick.method, pick.flags + (("the context differs",) if has_other_context else ()))
    if not quote.text.strip():
        return Placement(None, why="the quote is empty")
    if not candidates:
        return Placement(None, why="is not in the text")
    best = max(candidates, key=lambda candidate: candidate.score)
    if best.changed:
        return Placement(None, why=best.changed, nearest=best.span)
    why = f"occurs {len(candidates)} times in the text, and it is unclear which one is meant"
    return Placement(None, why=why, nearest=best.span)


# --- candidate selection -----------------------------------------------------------------------------------------


def _choose_candidates(candidates: Sequence[Sequence[_Candidate]], ordered: bool) -> list[_Candidate | None]:
    """Return the best candidate for each quote when all quotes are located together; None if there is a tie."""
    if not candidates:
        return []
    scores = [np.array([candidate.score for candidate in options]) for options in candidates]
    # Score of each candidate of a quote being followed by each candidate of the next quote
    steps: list[Costs] = []
    for current, following in itertools.pairwise(candidates):
        first = np.array([candidate.span for candidate in current])[:, None]
        second = np.array([candidate.span for candidate in following])[None]
        disorder = (second[..., 0] < first[..., 0]) * ordered
        steps.append(-_SAME_SPAN_PENALTY * (first == second).all(axis=2) - _DISORDER_PENALTY * disorder)
    forward = _best_path_scores(scores, steps)
    backward = _best_path_scores(scores[::-1], [step.T for step in steps[::-1]])[::-1]
    chosen: list[_Candidate | None] = []
    for options, ahead, behind, score in zip(candidates, forward, backward, scores, strict=True):
        totals = ahead + behind - score
        best = int(totals.argmax())
        others = np.delete(totals, best)
        is_tied = len(others) and others.max() > totals[best] - _TIE_MARGIN
        chosen.append(None if is_tied else options[best])
    return chosen


def _best_path_scores(scores: Sequence[Costs], steps: Sequence[Costs]) -> list[Costs]:
    """Return the best total score of a path that ends in each candidate."""
    sums = [scores[0]]
    for score, step in zip(scores[1:], steps, strict=True):
        sums.append(score + (sums[-1][:, None] + step).max(axis=0))
    return sums


# --- candidate search --------------------------------------------------------------------------------------------


class TextIndex:
    """A text in the forms used to search for quotes; each form is computed on first use."""

    def __init__(self, text: str) -> None:
        self.text = text

    @functools.cached_property
    def folded_text(self) -> FoldedText:
        """Text in a form that ignores case, spaces and types of quotation marks."""
        return FoldedText.from_text(self.text)

    @functools.cached_property
    def tokens(self) -> WordList:
        """Words of the text."""
        return WordList.from_text(self.text)

    def find_candidates(self, quote: Quote) -> list[_Candidate]:
        """Return the candidates of a quote from the first of the four methods that finds any."""
        rated: list[_Candidate] = []
        for method, ranges in self._searches(quote.text):
            if ranges:
                whole_word_ranges = set(keep_whole_word_ranges(self.text, ranges))
                for span in ranges:
                    fit = self._context_fit(span, quote)
                    penalty = 0 if span in whole_word_ranges else _INSIDE_WORD_PENALTY
                    changed, flags = self._describe_changes(span, method, quote)
                    rated.append(_Candidate(span, method, 0.5 + 0.5 * (fit or 0) - penalty, fit, flags, changed))
                return sorted(rated, key=lambda candidate: -candidate.score)[:_MAX_CANDIDATES]
        # An approximate quote is found by aligning words: each word of the quote is kept, changed or absent,
        # and words of the text may be omitted.
        wanted = WordList.from_text(quote.text)
        if not wanted.plain or not self.tokens.plain or len(wanted.plain) > 400:
            return []
        for alignment in find_near_alignments(wanted, self.tokens):
            span = (self.tokens.offsets[alignment.first][0], self.tokens.offsets[alignment.last][1])
            fit = self._context_fit(span, quote)
            cut, cut_flags = describe_cut_edges(self.text, span, quote.before, quote.after)
            changed, flags = describe_aligned_changes(alignment, wanted, self.tokens)
            changed, flags = changed or cut, flags + cut_flags
            rated.append(_Candidate(span, "near", 0.5 * (1 - alignment.cost) + 0.5 * (fit or 0), fit, flags, changed))
        return sorted(rated, key=lambda candidate: -candidate.score)

    def _describe_changes(self, span: Range, method: PlacementMethod, quote: Quote) -> Changes:
        """Describe how the quote differs from the words at a location that was found without alignment."""
        if method == "elided":
            return describe_elision(_split_at_ellipses(quote.text), self.text, span)
        changed, flags = describe_cut_edges(self.text, span, quote.before, quote.after)
        if method == "spelling":
            other, more = describe_respelling(quote.text, self.text[slice(*span)])
            changed, flags = changed or other, flags + more
        return changed, flags

    def _searches(self, quote: str) -> Iterator[tuple[PlacementMethod, list[Range]]]:
        if not quote.strip():
            return
        for words_ in dict.fromkeys((quote, quote.strip())):
            yield "exact", [(start, start + len(words_)) for start in find_occurrences(words_, self.text)]
        yield "spelling", self.folded_text.find_ranges(quote)
        yield "spelling", self.folded_text.find_ranges(quote.strip().strip(_WRAPPING_QUOTES))
        yield "elided", self._find_elided(quote)

    def _find_elided(self, quote: str) -> list[Range]:
        """Find ranges for a quote with "...": from each match of its start to the nearest match of its end."""
        pieces = _split_at_ellipses(quote)
        if not pieces or not _ELLIPSIS.search(quote):
            return []
        places = [keep_whole_word_ranges(self.text, self.folded_text.find_ranges(piece)) for piece in pieces]
        by_end: dict[int, Range] = {}
        for start, end in places[0]:
            for ranges in places[1:]:
                # The nearest match of each further piece; -1 if it is too far away
                end = min((span[1] for span in ranges if 0 <= end <= span[0] <= end + _MAX_GAP), default=-1)
            if end >= 0:
                by_end[end] = max(by_end.get(end, (start, end)), (start, end))
        return sorted(by_end.values())

    def _context_fit(self, span: Range, quote: Quote) -> float | None:
        """Return the similarity of a location's context to that of the quote; None if the quote has no context."""
        before, after = fold_text(quote.before), fold_text(quote.after)
        if not before and not after:
            return None
        ahead = fold_text(self.text[max(0, span[0] - 2 * len(quote.before) - 8) : span[0]])
        ahead = ahead[max(0, len(ahead) - len(before)) :]
        behind = fold_text(self.text[span[1] : span[1] + 2 * len(quote.after) + 8])[: len(after)]
        share = _common_prefix_length(before[::-1], ahead[::-1]) + _common_prefix_length(after, behind)
        alike = (
            len(before) * _chance_corrected_similarity(before, ahead)
            + len(after) * _chance_corrected_similarity(after, behind)
        ) / (len(before) + len(after))
        return max(share / (len(before) + len(after)), alike)


def _split_at_ellipses(quote: str) -> list[str]:
    return [piece for piece in _ELLIPSIS.split(quote) if fold_text(piece)]


def _common_prefix_length(one: str, other: str) -> int:
    """Return the number of characters that two strings share from the start."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _chance_corrected_similarity(one: str, other: str) -> float:
    """Return a similarity that is 0 for unrelated texts and 1 for equal texts."""
    return max(0.0, fuzz.ratio(one, other) / 50 - 1)


# --- search for a single quote -----------------------------------------------------------------------------------


def find_exact_or_respelled(quote: str, text: str) -> list[Range]:
    """Return the ranges of exact matches, whole words first; if there are none, of matches in another spelling."""
    places = [(start, start + len(quote)) for start in find_occurrences(quote, text)] or FoldedText.from_text(
        text
    ).find_ranges(quote)
    return keep_whole_word_ranges(text, places)


def find_at_offsets_or_unique(quote: str, start: int, end: int, text: str) -> Range | None:
    """Return `(start, end)` if the quote is there, otherwise its only occurrence, otherwise None.

    >>> text = "one two three"
    >>> find_at_offsets_or_unique("two", 4, 7, text), find_at_offsets_or_unique("two", 5, 8, text)
    ((4, 7), (4, 7))
    """
    if 0 <= start <= end <= len(text) and text[start:end] == quote:
        return start, end
    starts = find_occurrences(quote, text)
    return (starts[0], starts[0] + len(quote)) if len(starts) == 1 else None


def find_nth_occurrence(
    quote: str, text: str, number: int = 0, start: int = 0, end: int | None = None
) -> tuple[Range | None, int]:
    """Return the range of occurrence `number` (from 0) of a quote in `text[start:end]`, and the number of occurrences.

    The last occurrence is returned if there are fewer, None if there are none.

    >>> text = "one two and two"
    >>> [find_nth_occurrence("two", text, number) for number in (1, 5)], find_nth_occurrence("three", text)
    ([((12, 15), 2), ((12, 15), 2)], (None, 0))
    """
    starts = find_occurrences(quote, text, start, end)
    if not starts:
        return None, 0
    at = starts[min(number, len(starts) - 1)]
    return (at, at + len(quote)), len(starts)


def find_closest_occurrence(quote: str, text: str, at: int) -> Range | None:
    """Return the occurrence of a quote that begins closest to `at`; None if there is none.

    >>> text = "one two and two"
    >>> find_closest_occurrence("two", text, 11), find_closest_occurrence("three", text, 0)
    ((12, 15), None)
    """
    starts = find_occurrences(quote, text)
    start = min(starts, key=lambda place: abs(place - at), default=None)
    return None if start is None else (start, start + len(quote))


def find_preceding_occurrence(quote: str, text: str, mark: Range | None) -> Range | None:
    """Return the last occurrence of a quote before a mark, otherwise the first occurrence that is not the mark itself.

    If the mark is the only occurrence, return the mark itself. Return None if the quote does not occur.

    >>> find_preceding_occurrence("Ann", "Ann met Ann and Ann", (16, 19))
    (8, 11)
    >>> find_preceding_occurrence("Ann", "Ann met Bob", (0, 3))
    (0, 3)
    """
    places = [(start, start + len(quote)) for start in find_occurrences(quote, text)]
    before = [place for place in places if mark and place[1] <= mark[0]]
    elsewhere = [place for place in places if place != mark]
    return before[-1] if before else next(iter(elsewhere or places), None)


def find_most_similar_words(quote: str, text: str, min_likeness: float = MIN_LIKENESS) -> Range | None:
    """Return the range of `text` most similar to `quote`; None if none with the same numbers is similar enough."""
    best, place = min_likeness, None
    numbers = find_numbers(quote)
    offsets, size = word_offsets(text), len(word_offsets(quote))
    for first in range(len(offsets)):
        for last in range(first + max(0, size - 3), min(first + size + 3, len(offsets))):
            start, end = int(offsets[first][0]), int(offsets[last][1])
            alike = text_similarity(quote, text[start:end]) if find_numbers(text[start:end]) == numbers else 0
            if alike > best or (alike == best and place is None):
                best, place = alike, (start, end)
    return place
