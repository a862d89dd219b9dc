"""Quotes and their places in a text: exact, in another spelling, elided, or nearly the same, and never silently wrong.

Somebody who reports an error by quoting it rarely gives offsets, and when they do the offsets are often wrong. A quote
is placed in three steps:

1. *Candidates*: places with exactly these words; else with the same words in another spelling (case, blanks, quotation
   marks, dashes, Unicode forms); else, where the quote has "...", from its first to its last words; else the words that
   are most like it by an alignment of words.
2. *Choice*: all quotes of a reply are placed together. Each candidate is rated by how well the words before and after
   it fit; quotes are expected in the order of the text, and two equal quotes at different places.
3. *Doubt*: a quote with two candidates that are equally good stays without a place. So does one that has another
   number, negation or name than the text; where it only leaves such a word out, the placement is flagged.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from finecomb.core.text_folding import (
    FoldedText,
    Range,
    find_numbers,
    fold_text,
    keep_whole_words,
    likeness,
    normalise_text,
    occurrences,
)
from finecomb.core.tokens import words

PlacementMethod = Literal["exact", "spelling", "elided", "near", ""]
"""How a quote was placed; empty when it was not."""
Costs = NDArray[np.float64]

MIN_LIKENESS = 0.8
"""How alike two strings must be (difflib's ratio) to count as the same words with a slip."""
_MAX_CANDIDATES = 64  # of a quote such as "the"; enough for its context to find the right one
_MAX_GAP = 1200  # characters that "..." may stand for
_MAX_DIFFERENT_SHARE = 0.34  # of a quote's words that may differ
_PUNCTUATION_COST, _ABSENT_COST, _CHANGED_COST, _SKIPPED_COST = (
    0.15,
    1.1,
    1.2,
    0.7,
)  # costs in an alignment; a word has 1
_DISORDER_PENALTY = 0.2
_SAME_SPAN_PENALTY = 0.6
_INSIDE_WORD_PENALTY = 0.1
_TIE_MARGIN = 0.005
_MIN_CONTEXT_FIT, _MIN_SHORT_QUOTE_FIT, _MIN_NUMBER_FIT, _SHORT_QUOTE_LENGTH = (
    0.34,
    0.85,
    0.95,
    12,
)  # "2" says little by itself
_ELLIPSIS = re.compile(r"\s*(?:\[\s*(?:\.\.\.|…)\s*\]|\(\s*(?:\.\.\.|…)\s*\)|\.{3,}|…)\s*")
_WRAPPING_QUOTES = "\"'“”‘’«»`"
_NEGATIONS = frozenset(
    "no not never none nor neither nobody nothing nowhere without cannot n't"
    " nicht kein keine keinen nie non pas ne jamais sin nunca".split()
)


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that somebody copied from a text, with some of the words before and after them."""

    text: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a quote stands in its text, how that was found, and what is doubtful about it."""

    span: Range | None
    """Start and end; None when it could not be placed."""
    method: PlacementMethod = ""
    """How it was placed."""
    flags: tuple[str, ...] = ()
    """What a reader should know: words left out, other words around it."""
    why: str = ""
    """Why it has no place."""
    nearest: Range | None = None
    """Where it might have been meant, for a quote without a place."""

    @property
    def is_certain(self) -> bool:
        """Whether nothing about it is doubtful."""
        return self.span is not None and not self.flags


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One place where a quote might belong."""

    span: Range
    method: PlacementMethod
    score: float
    """1 for the quote's own words with their context; less for anything else."""
    fit: float | None
    """How well the words around it fit, 0 to 1; None when the quote has none."""
    flags: tuple[str, ...] = ()
    changed: str = ""
    """A number, negation or name that the quote has changed: never placed."""


def place_quotes(quotes: Sequence[Quote], text: str, ordered: bool = True) -> list[Placement]:
    """The places of all quotes of one reply; `ordered` says that they are expected in the order of the text.

    >>> [placement.span for placement in place_quotes([Quote("two"), Quote("two")], "one two and two")]
    [(4, 7), (12, 15)]
    >>> place_quotes([Quote("two")], "one two and two")[0].why
    'stands 2 times in the text, and nothing tells which is meant'
    """
    index = TextIndex(text)
    candidates = [index.candidates(quote) for quote in quotes]
    open_ = [number for number, options in enumerate(candidates) if any(not candidate.changed for candidate in options)]
    chosen = _choose_candidates(
        [[candidate for candidate in candidates[number] if not candidate.changed] for number in open_], ordered
    )
    picks = dict(zip(open_, chosen, strict=True))
    return [_placement(quote, candidates[number], picks.get(number)) for number, quote in enumerate(quotes)]


def _placement(quote: Quote, candidates: Sequence[_Candidate], pick: _Candidate | None) -> Placement:
    if pick is not None:
        strange = ("the words around it are others",) if _has_strange_context(quote, pick) else ()
        return Placement(pick.span, pick.method, pick.flags + strange)
    if not quote.text.strip():
        return Placement(None, why="the quote is empty")
    if not candidates:
        return Placement(None, why="is not in the text")
    best = max(candidates, key=lambda candidate: candidate.score)
    if best.changed:
        return Placement(None, why=best.changed, nearest=best.span)
    why = f"stands {len(candidates)} times in the text, and nothing tells which is meant"
    return Placement(None, why=why, nearest=best.span)


def _has_strange_context(quote: Quote, pick: _Candidate) -> bool:
    """Whether the words around a place are not those that the quote came with."""
    if pick.fit is None or len(fold_text(quote.text)) > _SHORT_QUOTE_LENGTH:
        return pick.fit is not None and pick.fit < _MIN_CONTEXT_FIT
    return pick.fit < (_MIN_NUMBER_FIT if find_numbers(quote.text) else _MIN_SHORT_QUOTE_FIT)


# --- choosing among candidates -----------------------------------------------------------------------------------


def _choose_candidates(candidates: Sequence[Sequence[_Candidate]], ordered: bool) -> list[_Candidate | None]:
    """The best candidate of each quote when all are placed together; None where two are equally good."""
    if not candidates:
        return []
    scores = [np.array([candidate.score for candidate in options]) for options in candidates]
    steps = [_transition_scores(one, other, ordered) for one, other in itertools.pairwise(candidates)]
    forward, backward = _best_sums(scores, steps), _best_sums(scores[::-1], [step.T for step in steps[::-1]])[::-1]
    totals = [ahead + behind - score for ahead, behind, score in zip(forward, backward, scores, strict=True)]
    return [_unambiguous_best(options, total) for options, total in zip(candidates, totals, strict=True)]


def _best_sums(scores: Sequence[Costs], steps: Sequence[Costs]) -> list[Costs]:
    """The best sum of scores of a path that ends in each candidate."""
    sums = [scores[0]]
    for score, step in zip(scores[1:], steps, strict=True):
        sums.append(score + (sums[-1][:, None] + step).max(axis=0))
    return sums


def _transition_scores(one: Sequence[_Candidate], other: Sequence[_Candidate], ordered: bool) -> Costs:
    """What it costs to have one quote's candidate followed by the next quote's."""
    first = np.array([candidate.span for candidate in one])[:, None]
    second = np.array([candidate.span for candidate in other])[None]
    same = (first == second).all(axis=2)
    disorder = second[..., 0] < first[..., 0]
    return -_SAME_SPAN_PENALTY * same - _DISORDER_PENALTY * disorder * ordered  # type: ignore[no-any-return]


def _unambiguous_best(candidates: Sequence[_Candidate], totals: Costs) -> _Candidate | None:
    best = int(totals.argmax())
    others = np.delete(totals, best)
    return None if len(others) and others.max() > totals[best] - _TIE_MARGIN else candidates[best]


# --- finding candidates ------------------------------------------------------------------------------------------


class TextIndex:
    """A text in the forms in which quotes are looked for; each form is made once, when it is needed."""

    def __init__(self, text: str) -> None:
        self.text = text

    @functools.cached_property
    def folded_text(self) -> FoldedText:
        """The text without case, blanks and kinds of quotes."""
        return FoldedText.from_text(self.text)

    @functools.cached_property
    def tokens(self) -> WordList:
        """The text's words."""
        return WordList.from_text(self.text)

    def candidates(self, quote: Quote) -> list[_Candidate]:
        """Places for one quote, by the first of the four ways that finds any."""
        for method, ranges in self._searches(quote.text):
            if ranges:
                whole = set(keep_whole_words(self.text, ranges))
                rated = [self._rate_candidate(span, method, quote, span in whole) for span in ranges]
                return sorted(rated, key=lambda candidate: -candidate.score)[:_MAX_CANDIDATES]
        return self._find_near(quote)

    def _searches(self, quote: str) -> Iterator[tuple[PlacementMethod, list[Range]]]:
        if not quote.strip():
            return
        for words_ in dict.fromkeys((quote, quote.strip())):
            yield "exact", [(at, at + len(words_)) for at in occurrences(words_, self.text)]
        yield "spelling", self.folded_text.find_ranges(quote)
        yield "spelling", self.folded_text.find_ranges(quote.strip().strip(_WRAPPING_QUOTES))
        yield "elided", self._find_elided(quote)

    def _find_elided(self, quote: str) -> list[Range]:
        """From the first to the last words of a quote with "..."; from each beginning to the nearest end."""
        pieces = [piece for piece in _ELLIPSIS.split(quote) if fold_text(piece)]
        if not pieces or not _ELLIPSIS.search(quote):
            return []
        places = [keep_whole_words(self.text, self.folded_text.find_ranges(piece)) for piece in pieces]
        ranges = [_join_following_pieces(start, places[1:]) for start in places[0]]
        return _shortest_by_end(span for span in ranges if span is not None)

    def _rate_candidate(self, span: Range, method: PlacementMethod, quote: Quote, whole: bool) -> _Candidate:
        fit = self._context_fit(span, quote)
        return _Candidate(span, method, 0.5 + 0.5 * (fit or 0) - (0 if whole else _INSIDE_WORD_PENALTY), fit)

    def _context_fit(self, span: Range, quote: Quote) -> float | None:
        """How well the words before and after a place are those that the quote came with."""
        before, after = fold_text(quote.before), fold_text(quote.after)
        if not before and not after:
            return None
        ahead = fold_text(self.text[max(0, span[0] - 2 * len(quote.before) - 8) : span[0]])
        ahead = ahead[max(0, len(ahead) - len(before)) :]
        behind = fold_text(self.text[span[1] : span[1] + 2 * len(quote.after) + 8])[: len(after)]
        share = _common_prefix_length(before[::-1], ahead[::-1]) + _common_prefix_length(after, behind)
        alike = (len(before) * _similarity(before, ahead) + len(after) * _similarity(after, behind)) / (
            len(before) + len(after)
        )
        return max(share / (len(before) + len(after)), alike)

    # A quote with a slip: an alignment of words, in which each word of the quote is kept, changed or not there, and
    # words of the text may have been left out.

    def _find_near(self, quote: Quote) -> list[_Candidate]:
        wanted = WordList.from_text(quote.text)
        if not wanted.plain or not self.tokens.plain or len(wanted.plain) > 400:
            return []
        alignments = near_alignments(wanted, self.tokens)
        rated = [self._rate_alignment(alignment, wanted, quote) for alignment in alignments]
        return sorted(rated, key=lambda candidate: -candidate.score)

    def _rate_alignment(self, alignment: Alignment, wanted: WordList, quote: Quote) -> _Candidate:
        span = (self.tokens.offsets[alignment.first][0], self.tokens.offsets[alignment.last][1])
        fit = self._context_fit(span, quote)
        score = 0.5 * (1 - alignment.cost) + (0.5 * fit if fit is not None else 0)
        changed, flags = _describe_differences(alignment, wanted, self.tokens)
        return _Candidate(span, "near", score, fit, flags, changed)


def _join_following_pieces(start: Range, places: Sequence[Sequence[Range]]) -> Range | None:
    """From `start` through the nearest place of each further piece; None when one does not follow closely."""
    end = start[1]
    for ranges in places:
        after = [span[1] for span in ranges if end <= span[0] <= end + _MAX_GAP]
        if not after:
            return None
        end = min(after)
    return start[0], end


def _shortest_by_end(ranges: Iterable[Range]) -> list[Range]:
    """Of ranges with the same end the shortest."""
    by_end: dict[int, Range] = {}
    for start, end in ranges:
        by_end[end] = max(by_end.get(end, (start, end)), (start, end))
    return sorted(by_end.values())


def _common_prefix_length(one: str, other: str) -> int:
    """How many characters two strings share from the start."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _similarity(one: str, other: str) -> float:
    """0 for what two unrelated texts have in common anyway, 1 for the same."""
    return max(0.0, fuzz.ratio(one, other) / 50 - 1)


# --- alignment of words ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WordList:
    """The words of a text, as they stand and in a plain form to compare, with what it costs to lose each."""

    written: tuple[str, ...]
    plain: tuple[str, ...]
    offsets: tuple[Range, ...]
    weights: Costs

    @classmethod
    def from_text(cls, text: str) -> WordList:
        """The words and punctuation of `text`."""
        matches = [(match.group(), match.span()) for match in _TOKEN.finditer(text)]
        simple = tuple(_normalise_word(word) for word, _ in matches)
        weights = np.array([1.0 if word[:1].isalnum() else _PUNCTUATION_COST for word in simple])
        return cls(tuple(word for word, _ in matches), simple, tuple(span for _, span in matches), weights)


_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


@functools.lru_cache(maxsize=1 << 14)
def _normalise_word(word: str) -> str:
    return normalise_text(fold_text(word))


@dataclass(frozen=True, slots=True)
class Alignment:
    """A quote's words laid over a stretch of the text's words."""

    first: int
    last: int
    cost: float
    """Share of the quote that differs."""
    pairs: tuple[tuple[int | None, int | None], ...]
    """Word of the quote and word of the text; None where one of them has nothing."""


def near_alignments(quote: WordList, text: WordList, max_share: float = _MAX_DIFFERENT_SHARE) -> list[Alignment]:
    """The best alignments of a quote with stretches of the text, those that overlap a better one left out."""
    changes = _change_costs(quote, text)
    table = _cost_table(quote, text, changes)
    limit = max_share * quote.weights.sum()
    ends = _local_minima(table[-1, 1:], limit + 1e-9)
    alignments: list[Alignment] = []
    for end in ends[:_MAX_CANDIDATES]:
        traced = _trace_alignment(table, changes, quote, text, end)
        if traced and not any(
            traced.first <= alignment.last and alignment.first <= traced.last for alignment in alignments
        ):
            alignments.append(traced)
    return alignments


def _local_minima(costs: Costs, max_cost: float) -> list[int]:
    """Where the costs are no more than `most` and than those beside them, the cheapest first."""
    padded = np.pad(costs, 1, constant_values=np.inf)
    low = np.flatnonzero((costs <= max_cost) & (costs <= padded[:-2]) & (costs <= padded[2:]))
    return [int(at) for at in low[np.argsort(costs[low], kind="stable")]]


def _change_costs(quote: WordList, text: WordList) -> Costs:
    """What it costs to read a word of the text for a word of the quote: 0 for the same, less for a slip of the pen."""
    vocabulary = list(dict.fromkeys(text.plain))
    alike = process.cdist(quote.plain, vocabulary, scorer=OSA.normalized_similarity, dtype=np.float32)
    number = {word: at for at, word in enumerate(vocabulary)}
    alike = alike[:, [number[word] for word in text.plain]].astype(np.float64)
    heavy = np.maximum(quote.weights[:, None], text.weights[None])
    return np.where(alike == 1, 0.0, heavy * np.where(alike >= 0.5, 1.1 - alike, _CHANGED_COST))


def _cost_table(quote: WordList, text: WordList, changes: Costs) -> Costs:
    """Sellers' table, (quote + 1, text + 1): least cost of the quote's first words ending at a word of the text."""
    skips = np.concatenate([[0.0], np.cumsum(_skip_costs(text))])
    table = np.zeros((len(quote.plain) + 1, len(text.plain) + 1))
    for row, (weight, change) in enumerate(zip(quote.weights, changes, strict=True), 1):
        best = table[row - 1] + _ABSENT_COST * weight
        best[1:] = np.minimum(best[1:], table[row - 1, :-1] + change)
        table[row] = np.minimum.accumulate(best - skips) + skips
    return table


def _skip_costs(text: WordList) -> Costs:
    """What it costs that a quote leaves a word of the text out."""
    return _SKIPPED_COST * text.weights


def _trace_alignment(table: Costs, changes: Costs, quote: WordList, text: WordList, end: int) -> Alignment | None:
    """The alignment that ends at a word of the text, read back from the table."""
    row, column = len(quote.plain), end + 1
    pairs: list[tuple[int | None, int | None]] = []
    while row:
        here = table[row, column] + 1e-9
        if column and here >= table[row - 1, column - 1] + changes[row - 1, column - 1]:
            row, column = row - 1, column - 1
            pairs.append((row, column))
        elif here >= table[row - 1, column] + _ABSENT_COST * quote.weights[row - 1]:
            row -= 1
            pairs.append((row, None))
        else:
            column -= 1
            pairs.append((None, column))
    columns = [column for _, column in pairs if column is not None]
    aligned = [column for row_, column in pairs if row_ is not None and column is not None]
    if not aligned or max(columns) != max(aligned):  # ends in words that the quote does not have
        return None
    cost = float(table[-1, end + 1] / quote.weights.sum())
    return Alignment(min(aligned), max(aligned), cost, tuple(reversed(pairs)))


# --- what a slip may not change ----------------------------------------------------------------------------------


def _describe_differences(alignment: Alignment, quote: WordList, text: WordList) -> tuple[str, tuple[str, ...]]:
    """The first number, negation or name that the quote changed; and flags for those that it left out."""
    flags: list[str] = []
    for mine, theirs in alignment.pairs:
        if mine is None:
            if theirs is not None and alignment.first <= theirs <= alignment.last and _word_type(text, theirs):
                flags.append(f"the quote leaves out {text.written[theirs]!r}")
        elif theirs is None:
            if kind := _word_type(quote, mine):
                return f"the quote has the {kind} {quote.written[mine]!r}, which is not there in the text", ()
        elif quote.plain[mine] != text.plain[theirs]:
            kind = _word_type(quote, mine) or _word_type(text, theirs)
            change = f"the quote has {quote.written[mine]!r} where the text has {text.written[theirs]!r}"
            if kind and _is_misspelling(quote, mine, text, theirs):
                flags.append(change)
            elif kind:
                return f"{change}: another {kind}", ()
    return "", tuple(flags)


def _is_misspelling(quote: WordList, mine: int, text: WordList, theirs: int) -> bool:
    """Whether a word is the other one misspelt: alike, without digits, and no number or negation by itself."""
    word, other = quote.plain[mine], text.plain[theirs]
    if any(character.isdigit() for character in word + other) or _word_type(quote, mine) in ("number", "negation"):
        return False
    return OSA.normalized_similarity(word, other) >= 0.75


def _word_type(tokens: WordList, at: int) -> str:
    """Whether a word is a number, a negation or a name; empty for any other."""
    word, written = tokens.plain[at], tokens.written[at]
    if any(character.isdigit() for character in word) or word in _NUMBER_WORDS:
        return "number"
    if word in _NEGATIONS or word.endswith("n't"):
        return "negation"
    return "name" if written[:1].isupper() and written != "I" and not _begins_sentence(tokens, at) else ""


def _begins_sentence(tokens: WordList, at: int) -> bool:
    """Whether a capital letter there may be that of a sentence's first word."""
    if not at or tokens.written[at - 1] in "!?:\"“'‘":
        return True
    return tokens.written[at - 1] == "." and not (at > 1 and tokens.plain[at - 2] in _TITLES)


_TITLES = frozenset("mr mrs ms dr prof st rev gen col capt lt sgt sen rep gov jr".split())
_NUMBER_WORDS = frozenset(
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty"
    " ninety hundred thousand million billion half third quarter first second once twice double triple dozen".split()
)


# --- one quote at a time -----------------------------------------------------------------------------------------


def find_exact(quote: str, text: str) -> list[Range]:
    """Where `quote` stands in `text` as it is, whole words first; else where it does in another spelling."""
    places = [(at, at + len(quote)) for at in occurrences(quote, text)] or FoldedText.from_text(text).find_ranges(quote)
    return keep_whole_words(text, places)


def find_at_or_only(quote: str, start: int, end: int, text: str) -> Range | None:
    """`(start, end)` when the text has the quote there, else the one place where it has it, else None.

    >>> find_at_or_only("two", 4, 7, "one two three"), find_at_or_only("two", 5, 8, "one two three")
    ((4, 7), (4, 7))
    """
    if 0 <= start <= end <= len(text) and text[start:end] == quote:
        return start, end
    starts = occurrences(quote, text)
    return (starts[0], starts[0] + len(quote)) if len(starts) == 1 else None


def find_nth(
    quote: str, text: str, number: int = 0, start: int = 0, end: int | None = None
) -> tuple[Range | None, int]:
    """The place of a quote's repetition `number` (from 0) in `text[start:end]`, and how many places there are.

    The last place where there are fewer; None where there is none.

    >>> text = "one two and two"
    >>> find_nth("two", text, 1), find_nth("two", text, 5), find_nth("three", text)
    (((12, 15), 2), ((12, 15), 2), (None, 0))
    """
    starts = occurrences(quote, text, start, end)
    if not starts:
        return None, 0
    at = starts[min(number, len(starts) - 1)]
    return (at, at + len(quote)), len(starts)


def find_closest(quote: str, text: str, at: int) -> Range | None:
    """The place of a quote that begins nearest to `at`; None when it is not in the text.

    >>> find_closest("two", "one two and two", 11), find_closest("three", "one two and two", 0)
    ((12, 15), None)
    """
    starts = occurrences(quote, text)
    start = min(starts, key=lambda place: abs(place - at), default=None)
    return None if start is None else (start, start + len(quote))


def find_preceding(quote: str, text: str, mark: Range | None) -> Range | None:
    """The last place of a quote that ends before a mark, else its first place other than the mark, else None.

    >>> find_preceding("Ann", "Ann met Ann and Ann", (16, 19)), find_preceding("Ann", "Ann met Bob", (0, 3))
    ((8, 11), (0, 3))
    """
    places = [(at, at + len(quote)) for at in occurrences(quote, text)]
    before = [place for place in places if mark and place[1] <= mark[0]]
    elsewhere = [place for place in places if place != mark]
    return before[-1] if before else next(iter(elsewhere or places), None)


def find_most_similar(quote: str, text: str, min_likeness: float = MIN_LIKENESS) -> Range | None:
    """The words of `text` most like `quote`, with the same numbers; None when none are like enough."""
    best, place = min_likeness, None
    numbers = find_numbers(quote)
    for start, end in _word_windows(text, len(words(quote))):
        alike = likeness(quote, text[start:end]) if find_numbers(text[start:end]) == numbers else 0
        if alike > best or (alike == best and place is None):
            best, place = alike, (start, end)
    return place


def _word_windows(text: str, size: int) -> Iterator[Range]:
    """Runs of about `size` words."""
    offsets = [(int(start), int(end)) for start, end in words(text)]
    for first in range(len(offsets)):
        for last in range(first + max(0, size - 3), min(first + size + 3, len(offsets))):
            yield offsets[first][0], offsets[last][1]
