"""Which marks of a judge are which gold marks: candidates that meet, and the rules that choose among them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import scipy  # its parts load when first used: start-up stays quick
from numpy.typing import NDArray

from finecomb.core.frames import parse_json_list
from finecomb.statistics.gold.gold_and_judges import Ints
from finecomb.statistics.measures.span_pairs import SpanArrays, mark_pairs_from_span_pairs, overlapping_span_pairs

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MarkArrays:
    """Marks of one side in text order, as arrays."""

    document: Ints
    """(marks,): place of the document in the list both sides share."""
    label: Ints
    """(marks,): code of the label, -1 for a mark without one."""
    length: Ints
    """(marks,): characters."""
    owner: Ints
    """(spans,): which mark a span belongs to."""
    part: Ints
    """(spans,): a number for document and part, the same on both sides."""
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.document)


def build_mark_arrays(
    frame: pl.DataFrame, documents: dict[str, int], labels: dict[str, int], parts: dict[tuple[str, str], int]
) -> MarkArrays:
    """Arrays of a frame with the columns document, label and spans; `parts` is filled with those it meets."""
    spans = (
        frame.select("document", "spans", owner=pl.int_range(pl.len()))
        .filter(pl.col("spans").list.len() > 0)
        .explode("spans")
        .unnest("spans")
    )
    keys = [parts.setdefault(key, len(parts)) for key in zip(spans["document"], spans["part"], strict=True)]
    start, end, owner = (spans[name].to_numpy().astype(np.int64) for name in ("start", "end", "owner"))
    return MarkArrays(
        document=np.array([documents[id] for id in frame["document"]], dtype=np.int64),
        label=np.array([labels.get(label, -1) for label in frame["label"]], dtype=np.int64),
        length=np.bincount(owner, end - start, len(frame)).astype(np.int64),
        owner=owner,
        part=np.array(keys, dtype=np.int64),
        start=start,
        end=end,
    )


# --- candidates --------------------------------------------------------------------------------------------------


class CandidatePairs(NamedTuple):
    """Pairs of a gold mark and a judge's mark that claim a common place, in the order of gold, then of the judge."""

    gold: Ints
    mark: Ints
    shared: Floats
    """Characters that both cover."""

    def select(self, selection: Bools | Ints) -> CandidatePairs:
        """Some of them, in order."""
        return CandidatePairs(self.gold[selection], self.mark[selection], self.shared[selection])

    def swap_sides(self) -> CandidatePairs:
        """The same with the sides changed over, in the order of the judge, then of gold."""
        order = np.lexsort((self.gold, self.mark))
        return CandidatePairs(self.mark[order], self.gold[order], self.shared[order])


def find_candidate_pairs(gold: MarkArrays, judge: MarkArrays) -> CandidatePairs:
    """Every pair that shares a character; an omission meets what it lies in or touches."""
    last = np.zeros(max(gold.part.max(initial=-1), judge.part.max(initial=-1)) + 2, dtype=np.int64)
    for marks in (gold, judge):
        np.maximum.at(last, marks.part + 1, marks.end + 1)
    origins = np.cumsum(last)
    one, other = (
        SpanArrays(marks.start + origins[marks.part], marks.end + origins[marks.part], marks.owner)
        for marks in (gold, judge)
    )
    return CandidatePairs(*mark_pairs_from_span_pairs(overlapping_span_pairs(one, other), one, other))


def iou_of_pairs(pairs: CandidatePairs, gold: MarkArrays, judge: MarkArrays) -> Floats:
    """Characters shared over characters covered by either; 1 for omissions at one place."""
    both = gold.length[pairs.gold] + judge.length[pairs.mark] - pairs.shared
    return np.where(both > 0, pairs.shared / np.where(both > 0, both, 1), 1.0)


# --- alternatives of a gold mark ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MarkAlternatives:
    """Other sets to mark what a mark marks: each is a set of marks that must all be found."""

    marks: MarkArrays
    """The marks of every alternative."""
    sets: dict[int, list[list[int]]]
    """For a mark with alternatives, by its place: the marks of each."""
    spans: list[list[dict[str, Any]]]
    """Of each such mark, in the form of a study's frame."""


def collect_alternatives(
    gold: pl.DataFrame, documents: dict[str, int], labels: dict[str, int], parts: dict[tuple[str, str], int]
) -> MarkAlternatives:
    """The alternatives of marks, of gold or of a judge, as marks of their own."""
    rows: list[dict[str, Any]] = []
    sets: dict[int, list[list[int]]] = {}
    having = gold.with_row_index("at").filter(pl.col("alternatives").is_not_null())
    for at, document, alternatives in having.select("at", "document", "alternatives").iter_rows():
        for members in parse_json_list(alternatives):
            sets.setdefault(at, []).append(list(range(len(rows), len(rows) + len(members))))
            rows += [
                {"document": document, "label": alternative["label"], "spans": _span_structs(alternative["spans"])}
                for alternative in members
            ]
    kinds = {name: gold.schema[name] for name in ("document", "label", "spans")}
    marks = build_mark_arrays(pl.DataFrame(rows, schema=kinds, orient="row"), documents, labels, parts)
    return MarkAlternatives(marks, sets, [row["spans"] for row in rows])


_EMPTY_INTS = np.zeros(0, dtype=np.int64)
NO_ALTERNATIVES = MarkAlternatives(
    MarkArrays(_EMPTY_INTS, _EMPTY_INTS, _EMPTY_INTS, _EMPTY_INTS, _EMPTY_INTS, _EMPTY_INTS, _EMPTY_INTS), {}, []
)


def _span_structs(spans: list[list[Any]]) -> list[dict[str, Any]]:
    return [{"part": part[0] if part else "text", "start": start, "end": end} for *part, start, end in spans]


# --- rules -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatchingProblem:
    """One judge beside gold, ready for any rule."""

    gold: MarkArrays
    judge: MarkArrays
    pairs: CandidatePairs
    alternatives: MarkAlternatives
    others: CandidatePairs
    """Candidates of the alternatives instead of gold marks."""
    judge_alternatives: MarkAlternatives
    judge_others: CandidatePairs
    """Candidates of gold marks and the alternatives of the judge's marks."""

    def with_same_label(self) -> MatchingProblem:
        """Only pairs that agree on a label; marks without one pair with nothing."""
        others, theirs = self.alternatives.marks, self.judge_alternatives.marks
        return self._select_pairs(
            _same_label_mask(self.pairs, self.gold, self.judge),
            _same_label_mask(self.others, others, self.judge),
            _same_label_mask(self.judge_others, self.gold, theirs),
        )

    def with_same_spans(self) -> MatchingProblem:
        """Only pairs that cover the same characters."""
        others, theirs = self.alternatives.marks, self.judge_alternatives.marks
        return self._select_pairs(
            iou_of_pairs(self.pairs, self.gold, self.judge) == 1,
            iou_of_pairs(self.others, others, self.judge) == 1,
            iou_of_pairs(self.judge_others, self.gold, theirs) == 1,
        )

    def _select_pairs(self, pairs: Bools, others: Bools, judge_others: Bools) -> MatchingProblem:
        return replace(
            self,
            pairs=self.pairs.select(pairs),
            others=self.others.select(others),
            judge_others=self.judge_others.select(judge_others),
        )


def _same_label_mask(pairs: CandidatePairs, gold: MarkArrays, judge: MarkArrays) -> Bools:
    same: Bools = (gold.label[pairs.gold] == judge.label[pairs.mark]) & (gold.label[pairs.gold] >= 0)
    return same


@dataclass(frozen=True, slots=True)
class Matching:
    """What a rule decided."""

    credit: Floats
    """(gold,): 1 where a gold mark was found, a share of it where the rule gives partial credit."""
    right: Floats
    """(marks,): the same for the judge's marks."""
    partner: Ints
    """(gold,): the judge's mark that a gold mark was paired with, -1 where it has none."""
    alternative_used: dict[int, int]
    """Gold marks that were found by one of their alternatives: which one."""
    judge_alternative_used: dict[int, int] = field(default_factory=dict)
    """The judge's marks of which an alternative found gold marks: which one."""


Rule = Callable[[MatchingProblem, Ints], Matching]


def build_matching_problem(
    gold: MarkArrays,
    judge: MarkArrays,
    alternatives: MarkAlternatives,
    judge_alternatives: MarkAlternatives | None = None,
) -> MatchingProblem:
    """All candidates of one judge."""
    theirs = judge_alternatives or NO_ALTERNATIVES
    pairs, others = find_candidate_pairs(gold, judge), find_candidate_pairs(alternatives.marks, judge)
    return MatchingProblem(gold, judge, pairs, alternatives, others, theirs, find_candidate_pairs(gold, theirs.marks))


def match_shared_task(compared: MatchingProblem, scope: Ints) -> Matching:
    """The shared task's rule: gold from left to right, each takes the first mark not yet taken that it meets.

    One to one within a `scope` of gold marks; marks of different scopes may take the same one. A gold mark that finds
    none tries its alternatives, each mark of which must find one of its own.
    """
    return _match_left_to_right(compared, scope, compared.pairs)


def match_exact_spans(compared: MatchingProblem, scope: Ints) -> Matching:
    """The same, but only marks that cover the same characters meet."""
    strict = compared.with_same_spans()
    return _match_left_to_right(strict, scope, strict.pairs)


def _match_left_to_right(compared: MatchingProblem, scope: Ints, pairs: CandidatePairs) -> Matching:
    choices = _candidates_by_gold_mark(pairs, len(compared.gold))
    partner = np.full(len(compared.gold), -1, dtype=np.int64)
    used: set[tuple[int, int]] = set()
    for at, candidates_here in enumerate(choices):
        key = int(scope[at])
        for mark in candidates_here:
            if (key, mark) not in used:
                used.add((key, mark))
                partner[at] = mark
                break
    return _match_alternatives(compared, scope, partner)


def match_optimal(compared: MatchingProblem, scope: Ints) -> Matching:
    """As many pairs as can be made one to one, and among such choices the one that overlaps most (summed IoU)."""
    quality = iou_of_pairs(compared.pairs, compared.gold, compared.judge)
    return _match_alternatives(compared, scope, _assign_partners(compared, scope, quality))


def _assign_partners(compared: MatchingProblem, scope: Ints, quality: Floats, count_first: bool = True) -> Ints:
    """Pairs that nobody contests at once, the rest document by document and scope by scope."""
    pairs = compared.pairs
    partner = np.full(len(compared.gold), -1, dtype=np.int64)
    scopes = int(scope.max(initial=0)) + 1
    wanted = np.bincount(pairs.gold, minlength=len(compared.gold))[pairs.gold]
    claims = np.unique(pairs.mark * scopes + scope[pairs.gold], return_inverse=True, return_counts=True)
    alone = (wanted == 1) & (claims[2][claims[1]] == 1)
    partner[pairs.gold[alone]] = pairs.mark[alone]
    problem = compared.gold.document[pairs.gold] * scopes + scope[pairs.gold]
    order = np.flatnonzero(~alone)[np.argsort(problem[~alone], kind="stable")]
    for contested in np.split(order, np.flatnonzero(np.diff(problem[order])) + 1) if len(order) else ():
        gold, mark = _best_assignment(pairs.gold[contested], pairs.mark[contested], quality[contested], count_first)
        partner[gold] = mark
    return partner


def _best_assignment(gold: Ints, mark: Ints, quality: Floats, count_first: bool) -> tuple[Ints, Ints]:
    """The one-to-one choice among pairs; with `count_first` one more pair always weighs more than better ones."""
    rows, row = np.unique(gold, return_inverse=True)
    columns, column = np.unique(mark, return_inverse=True)
    weight = np.zeros((len(rows), len(columns)))
    weight[row, column] = 1 + quality / (min(weight.shape) + 1) if count_first else quality
    a, b = scipy.optimize.linear_sum_assignment(weight, maximize=True)
    real = weight[a, b] > 0
    return rows[a[real]], columns[b[real]]


def match_any_overlap(compared: MatchingProblem, scope: Ints) -> Matching:
    """Not one to one: a gold mark is found, and a judge's mark right, when it meets any mark of the other side."""
    partner = np.full(len(compared.gold), -1, dtype=np.int64)
    partner[compared.pairs.gold[::-1]] = compared.pairs.mark[::-1]  # the first is kept
    right = np.zeros(len(compared.judge))
    right[compared.pairs.mark] = 1
    alternative_used: dict[int, int] = {}
    choices = _candidates_by_gold_mark(compared.others, len(compared.alternatives.marks))
    for at, sets in compared.alternatives.sets.items():
        for number, members in enumerate(sets) if partner[at] < 0 else ():
            if all(choices[member] for member in members):
                alternative_used[at] = number
                right[[mark for member in members for mark in choices[member]]] = 1
                break
    credit = (partner >= 0).astype(np.float64)
    credit[list(alternative_used)] = 1
    meetings = _candidates_by_gold_mark(compared.judge_others.swap_sides(), len(compared.judge_alternatives.marks))
    judge_used: dict[int, int] = {}
    for at, sets in compared.judge_alternatives.sets.items():
        for number, members in enumerate(sets) if not right[at] else ():
            if all(meetings[member] for member in members):
                judge_used[at] = number
                credit[[gold for member in members for gold in meetings[member]]] = 1
                right[at] = 1
                break
    return Matching(credit, right, partner, alternative_used, judge_used)


def match_partial_credit(compared: MatchingProblem, scope: Ints) -> Matching:
    """Pairs as in `optimal`, each worth the share of its own characters that the other covers."""
    return _apply_partial_credit(compared, match_optimal(compared, scope), _covered_share)


def match_mpp(compared: MatchingProblem, scope: Ints) -> Matching:
    """Pairs as in `partial`, but chosen one to one so that their shares add up to the most, however many they are.

    After "match with partial overlap and partial credit" of Perrella, Morales Agostinho and Zaragoza (2026).
    """
    pairs = compared.pairs
    shares = [_covered_share(pairs.shared, side.length[at]) for side, at in _both_sides(compared, pairs)]
    partner = _assign_partners(compared, scope, (shares[0] + shares[1]) / 2, count_first=False)
    return _apply_partial_credit(compared, _match_alternatives(compared, scope, partner), _covered_share)


def _both_sides(
    compared: MatchingProblem, pairs: CandidatePairs
) -> tuple[tuple[MarkArrays, Ints], tuple[MarkArrays, Ints]]:
    return (compared.gold, pairs.gold), (compared.judge, pairs.mark)


def _covered_share(shared: Floats, length: Ints) -> Floats:
    """The share of a mark's own characters that its partner covers; all of an omission."""
    return np.where(length > 0, shared / np.maximum(length, 1), 1.0)


def match_iou_credit(compared: MatchingProblem, scope: Ints) -> Matching:
    """Pairs as in `optimal`, each worth its IoU."""
    return _apply_partial_credit(compared, match_optimal(compared, scope), None)


def _apply_partial_credit(
    compared: MatchingProblem, matching: Matching, share: Callable[[Floats, Ints], Floats] | None
) -> Matching:
    """A matching whose pairs are worth a share instead of 1: `share` of each side, or without it their IoU."""
    at = np.flatnonzero(matching.partner >= 0)
    keys = compared.pairs.gold * max(len(compared.judge), 1) + compared.pairs.mark
    where = np.searchsorted(keys, at * max(len(compared.judge), 1) + matching.partner[at])
    partners = compared.pairs.select(where)
    credit, right = matching.credit.copy(), matching.right.copy()
    quality = iou_of_pairs(partners, compared.gold, compared.judge)
    credit[at] = share(partners.shared, compared.gold.length[at]) if share else quality
    right[partners.mark] = share(partners.shared, compared.judge.length[partners.mark]) if share else quality
    return replace(matching, credit=credit, right=right)


RULES: dict[str, Rule] = {
    "task": match_shared_task,
    "optimal": match_optimal,
    "overlap": match_any_overlap,
    "exact": match_exact_spans,
    "partial": match_partial_credit,
    "iou": match_iou_credit,
    "mpp": match_mpp,
}


def _candidates_by_gold_mark(pairs: CandidatePairs, size: int) -> list[list[int]]:
    """The candidates of each gold mark."""
    groups: list[list[int]] = [[] for _ in range(size)]
    for one, other in zip(pairs.gold.tolist(), pairs.mark.tolist(), strict=True):
        groups[one].append(other)
    return groups


def _match_alternatives(compared: MatchingProblem, scope: Ints, partner: Ints) -> Matching:
    """Let marks that found nothing try their alternatives, gold's first; each member takes a mark that nobody has."""
    choices = _candidates_by_gold_mark(compared.others, len(compared.alternatives.marks))
    used = {(int(scope[at]), int(partner[at])) for at in np.flatnonzero(partner >= 0)}
    alternative_used: dict[int, int] = {}
    for at, sets in compared.alternatives.sets.items():
        for number, members in enumerate(sets) if partner[at] < 0 else ():
            taken: set[tuple[int, int]] = set()
            for member in members:
                keys = ((int(scope[at]), mark) for mark in choices[member])
                free = (key for key in keys if key not in used and key not in taken)
                taken |= set(itertools.islice(free, 1))
            if len(taken) == len(members):
                used |= taken
                alternative_used[at] = number
                break
    credit = (partner >= 0).astype(np.float64)
    credit[list(alternative_used)] = 1
    right = np.zeros(len(compared.judge))
    right[[mark for _, mark in used]] = 1
    judge_used = _match_judge_alternatives(compared, scope, credit, used)
    right[list(judge_used)] = 1
    return Matching(credit, right, partner, alternative_used, judge_used)


def _match_judge_alternatives(
    compared: MatchingProblem, scope: Ints, credit: Floats, used: set[tuple[int, int]]
) -> dict[int, int]:
    """The judge's marks that are right by an alternative all of whose members find gold marks; those get credit."""
    meetings = _candidates_by_gold_mark(compared.judge_others.swap_sides(), len(compared.judge_alternatives.marks))
    judge_used: dict[int, int] = {}
    for at, sets in compared.judge_alternatives.sets.items():
        for number, members in enumerate(sets):
            taken: list[int] = []
            for member in members:
                free = (gold for gold in meetings[member] if not credit[gold] and gold not in taken)
                taken += [gold for gold in itertools.islice(free, 1) if (int(scope[gold]), at) not in used]
            if members and len(taken) == len(members):
                credit[taken] = 1
                judge_used[at] = number
                break
    return judge_used
