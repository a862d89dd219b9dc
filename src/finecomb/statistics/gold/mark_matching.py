"""Matching of a judge's marks to gold marks: candidate pairs, and the rules that select among them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import scipy  # submodules are imported on first use, which keeps start-up fast
from numpy.typing import NDArray

from finecomb.core.frames import parse_json_list
from finecomb.statistics.gold.gold_and_judges import Ints
from finecomb.statistics.measures.span_pairs import SpanArrays, mark_pairs_from_span_pairs, overlapping_span_pairs

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MarkArrays:
    """Marks of gold or of a judge in text order, as arrays."""

    document: Ints
    """(marks,): position of the mark's document in the document list of both sides."""
    label: Ints
    """(marks,): code of the label, or -1 if the mark has no label."""
    length: Ints
    """(marks,): number of characters."""
    owner: Ints
    """(spans,): position of the mark that a span belongs to."""
    part: Ints
    """(spans,): number of the document part; both sides use the same numbers."""
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.document)


def build_mark_arrays(
    frame: pl.DataFrame, documents: dict[str, int], labels: dict[str, int], parts: dict[tuple[str, str], int]
) -> MarkArrays:
    """Build arrays from a table with the columns document, label and spans. New document parts are added to `parts`."""
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
    """Overlapping pairs of a gold mark and a mark of the judge, ordered by gold mark, then by the judge's mark."""

    gold: Ints
    mark: Ints
    shared: Floats
    """Number of characters covered by both marks of each pair."""

    def select(self, selection: Bools | Ints) -> CandidatePairs:
        """Return the selected pairs in their original order."""
        return CandidatePairs(self.gold[selection], self.mark[selection], self.shared[selection])

    def swap_sides(self) -> CandidatePairs:
        """Return the pairs with gold and judge swapped, ordered by the judge's mark, then by gold mark."""
        order = np.lexsort((self.gold, self.mark))
        return CandidatePairs(self.mark[order], self.gold[order], self.shared[order])


def find_candidate_pairs(gold: MarkArrays, judge: MarkArrays) -> CandidatePairs:
    """Return all pairs of marks that share a character. An omission pairs with marks that contain or touch it."""
    if not len(gold.start) or not len(judge.start):  # most marks have no alternatives, so their pairs need no sorting
        return CandidatePairs(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))
    last = np.zeros(max(gold.part.max(initial=-1), judge.part.max(initial=-1)) + 2, dtype=np.int64)
    for marks in (gold, judge):
        np.maximum.at(last, marks.part + 1, marks.end + 1)
    origins = np.cumsum(last)
    first, second = (
        SpanArrays(marks.start + origins[marks.part], marks.end + origins[marks.part], marks.owner)
        for marks in (gold, judge)
    )
    return CandidatePairs(*mark_pairs_from_span_pairs(overlapping_span_pairs(first, second), first, second))


def iou_of_pairs(pairs: CandidatePairs, gold: MarkArrays, judge: MarkArrays) -> Floats:
    """Return the intersection over union of each pair; 1 for two omissions at the same position."""
    both = gold.length[pairs.gold] + judge.length[pairs.mark] - pairs.shared
    return np.where(both > 0, pairs.shared / np.where(both > 0, both, 1), 1.0)


# --- alternatives of a gold mark ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MarkAlternatives:
    """Alternatives of marks. An alternative is a set of marks that must all be found."""

    marks: MarkArrays
    """Marks that belong to any of the alternatives."""
    sets: dict[int, list[list[int]]]
    """Alternatives of each mark, by the mark's position. An alternative is a list of positions in `marks`."""
    spans: list[list[dict[str, Any]]]
    """Spans of each mark in `marks`, in the form of the study's table."""


def collect_alternatives(
    gold: pl.DataFrame, documents: dict[str, int], labels: dict[str, int], parts: dict[tuple[str, str], int]
) -> MarkAlternatives:
    """Collect the marks that belong to alternatives of gold's or a judge's marks."""
    rows: list[dict[str, Any]] = []
    sets: dict[int, list[list[int]]] = {}
    having = gold.with_row_index("at").filter(pl.col("alternatives").is_not_null())
    if having.is_empty():
        return NO_ALTERNATIVES
    for index, document, alternatives in having.select("at", "document", "alternatives").iter_rows():
        for members in parse_json_list(alternatives):
            sets.setdefault(index, []).append(list(range(len(rows), len(rows) + len(members))))
            rows += [
                {
                    "document": document,
                    "label": alternative["label"],
                    "spans": [
                        {"part": part[0] if part else "text", "start": start, "end": end}
                        for *part, start, end in alternative["spans"]
                    ],
                }
                for alternative in members
            ]
    kinds = {name: gold.schema[name] for name in ("document", "label", "spans")}
    marks = build_mark_arrays(pl.DataFrame(rows, schema=kinds, orient="row"), documents, labels, parts)
    return MarkAlternatives(marks, sets, [row["spans"] for row in rows])


_EMPTY_INTS = np.zeros(0, dtype=np.int64)
NO_ALTERNATIVES = MarkAlternatives(
    MarkArrays(_EMPTY_INTS, _EMPTY_INTS, _EMPTY_INTS, _EMPTY_INTS, _EMPTY_INTS, _EMPTY_INTS, _EMPTY_INTS), {}, []
)


# --- rules -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatchingProblem:
    """Marks, candidate pairs and alternatives of gold and one judge, as the input of a matching rule."""

    gold: MarkArrays
    judge: MarkArrays
    pairs: CandidatePairs
    alternatives: MarkAlternatives
    others: CandidatePairs
    """Candidate pairs of the alternatives of gold marks with the judge's marks."""
    judge_alternatives: MarkAlternatives
    judge_others: CandidatePairs
    """Candidate pairs of gold marks with the alternatives of the judge's marks."""

    def with_same_label(self) -> MatchingProblem:
        """Return the problem restricted to pairs with the same label; marks without a label have no pairs."""
        kept: list[CandidatePairs] = []
        for pairs, gold, judge in (
            (self.pairs, self.gold, self.judge),
            (self.others, self.alternatives.marks, self.judge),
            (self.judge_others, self.gold, self.judge_alternatives.marks),
        ):
            label = gold.label[pairs.gold]
            is_same = (label == judge.label[pairs.mark]) & (label >= 0)
            kept.append(CandidatePairs(pairs.gold[is_same], pairs.mark[is_same], pairs.shared[is_same]))
        return replace(self, pairs=kept[0], others=kept[1], judge_others=kept[2])


@dataclass(frozen=True, slots=True)
class Matching:
    """Result of a matching rule."""

    credit: Floats
    """(gold,): 1 for a gold mark that was found, or a fraction under partial credit."""
    right: Floats
    """(marks,): 1 for a judge's mark that is right, or a fraction under partial credit."""
    partner: Ints
    """(gold,): position of the judge's mark paired with each gold mark, or -1 if it has no partner."""
    alternative_used: dict[int, int]
    """Number of the alternative by which a gold mark was found, by position of the gold mark."""
    judge_alternative_used: dict[int, int] = field(default_factory=dict)
    """Number of the alternative by which a judge's mark is right, by position of the judge's mark."""


MatchRule = Callable[[MatchingProblem, Ints], Matching]


def match_shared_task(compared: MatchingProblem, scope: Ints) -> Matching:
    """Match by the shared-task rule: from left to right, each gold mark takes the first free mark that it overlaps.

    Matching is one to one within a `scope` of gold marks; marks of different scopes may take the same mark. A gold mark
    without a partner is found if all marks of one of its alternatives have a partner.
    """
    return _match_left_to_right(compared, scope, compared.pairs)


def match_exact_spans(compared: MatchingProblem, scope: Ints) -> Matching:
    """Match from left to right as in `match_shared_task`, but only marks that cover the same characters."""
    pairs, others, judge_others = (
        pairs.select(iou_of_pairs(pairs, gold, judge) == 1)
        for pairs, gold, judge in (
            (compared.pairs, compared.gold, compared.judge),
            (compared.others, compared.alternatives.marks, compared.judge),
            (compared.judge_others, compared.gold, compared.judge_alternatives.marks),
        )
    )
    strict = replace(compared, pairs=pairs, others=others, judge_others=judge_others)
    return _match_left_to_right(strict, scope, strict.pairs)


def _match_left_to_right(compared: MatchingProblem, scope: Ints, pairs: CandidatePairs) -> Matching:
    choices = _candidates_by_gold_mark(pairs, len(compared.gold))
    partner = np.full(len(compared.gold), -1, dtype=np.int64)
    used: set[tuple[int, int]] = set()
    for index, candidates in enumerate(choices):
        key = int(scope[index])
        for mark in candidates:
            if (key, mark) not in used:
                used.add((key, mark))
                partner[index] = mark
                break
    return _match_alternatives(compared, scope, partner)


def match_optimal(compared: MatchingProblem, scope: Ints) -> Matching:
    """Match one to one with the maximum number of pairs; among matchings of that size, maximise the summed IoU."""
    quality = iou_of_pairs(compared.pairs, compared.gold, compared.judge)
    return _match_alternatives(compared, scope, _assign_partners(compared, scope, quality))


def _assign_partners(compared: MatchingProblem, scope: Ints, quality: Floats, count_first: bool = True) -> Ints:
    """Assign pairs without competitors first, then solve the assignment of the others by document and scope."""
    pairs, size = compared.pairs, len(compared.gold.document)
    partner = np.full(size, -1, dtype=np.int64)
    scopes = int(scope.max(initial=0)) + 1
    wanted = np.bincount(pairs.gold, minlength=size)[pairs.gold]
    claims = np.unique(pairs.mark * scopes + scope[pairs.gold], return_inverse=True, return_counts=True)
    # Most pairs have no competitor, so the assignment problem is solved only for the others.
    alone = (wanted == 1) & (claims[2][claims[1]] == 1)
    partner[pairs.gold[alone]] = pairs.mark[alone]
    problem = compared.gold.document[pairs.gold] * scopes + scope[pairs.gold]
    order = np.flatnonzero(~alone)[np.argsort(problem[~alone], kind="stable")]
    for contested in np.split(order, np.flatnonzero(np.diff(problem[order])) + 1) if len(order) else ():
        # Best one-to-one assignment; with `count_first`, one more pair outweighs any gain in quality
        rows, row = np.unique(pairs.gold[contested], return_inverse=True)
        columns, column = np.unique(pairs.mark[contested], return_inverse=True)
        weight = np.zeros((len(rows), len(columns)))
        # Quality is at most 1, so all qualities together add less than one more pair.
        weight[row, column] = 1 + quality[contested] / (min(weight.shape) + 1) if count_first else quality[contested]
        a, b = scipy.optimize.linear_sum_assignment(weight, maximize=True)
        # The solver also assigns pairs that are not candidates; they have weight 0.
        real = weight[a, b] > 0
        gold, mark = rows[a[real]], columns[b[real]]
        partner[gold] = mark
    return partner


def match_any_overlap(compared: MatchingProblem, scope: Ints) -> Matching:
    """Match many to many: each mark that overlaps a mark of the other side counts as found or right."""
    partner = np.full(len(compared.gold), -1, dtype=np.int64)
    partner[compared.pairs.gold[::-1]] = compared.pairs.mark[::-1]  # a gold mark keeps its first candidate as partner
    right = np.zeros(len(compared.judge))
    right[compared.pairs.mark] = 1
    alternative_used: dict[int, int] = {}
    choices = _candidates_by_gold_mark(compared.others, len(compared.alternatives.marks))
    for index, sets in compared.alternatives.sets.items():
        for number, members in enumerate(sets) if partner[index] < 0 else ():
            if all(choices[member] for member in members):
                alternative_used[index] = number
                right[[mark for member in members for mark in choices[member]]] = 1
                break
    credit = (partner >= 0).astype(np.float64)
    credit[list(alternative_used)] = 1
    meetings = _candidates_by_gold_mark(compared.judge_others.swap_sides(), len(compared.judge_alternatives.marks))
    judge_used: dict[int, int] = {}
    for index, sets in compared.judge_alternatives.sets.items():
        for number, members in enumerate(sets) if not right[index] else ():
            if all(meetings[member] for member in members):
                judge_used[index] = number
                credit[[gold for member in members for gold in meetings[member]]] = 1
                right[index] = 1
                break
    return Matching(credit, right, partner, alternative_used, judge_used)


def match_partial_credit(compared: MatchingProblem, scope: Ints) -> Matching:
    """Match as in `match_optimal`; a mark's credit is the share of its characters that its partner covers."""
    return _apply_partial_credit(compared, match_optimal(compared, scope), _covered_share)


def match_mpp(compared: MatchingProblem, scope: Ints) -> Matching:
    """Match one to one for the maximum summed credit, regardless of the number of pairs.

    Credit is as in `match_partial_credit`. After "match with partial overlap and partial credit" of Perrella, Morales
    Agostinho and Zaragoza (2026).
    """
    pairs = compared.pairs
    shares = [
        _covered_share(pairs.shared, side.length[positions])
        for side, positions in ((compared.gold, pairs.gold), (compared.judge, pairs.mark))
    ]
    partner = _assign_partners(compared, scope, (shares[0] + shares[1]) / 2, count_first=False)
    return _apply_partial_credit(compared, _match_alternatives(compared, scope, partner), _covered_share)


def _covered_share(shared: Floats, length: Ints) -> Floats:
    """Return the share of a mark's characters that its partner covers; 1 for an omission."""
    return np.where(length > 0, shared / np.maximum(length, 1), 1.0)


def match_iou_credit(compared: MatchingProblem, scope: Ints) -> Matching:
    """Match as in `match_optimal`, with the IoU of each pair as credit."""
    return _apply_partial_credit(compared, match_optimal(compared, scope), None)


def _apply_partial_credit(
    compared: MatchingProblem, matching: Matching, share: Callable[[Floats, Ints], Floats] | None
) -> Matching:
    """Return the matching with partial credit, which is `share` for each side (default: the IoU of the pair)."""
    positions = np.flatnonzero(matching.partner >= 0)
    keys = compared.pairs.gold * max(len(compared.judge), 1) + compared.pairs.mark
    where = np.searchsorted(keys, positions * max(len(compared.judge), 1) + matching.partner[positions])
    partners = compared.pairs.select(where)
    credit, right = matching.credit.copy(), matching.right.copy()
    quality = iou_of_pairs(partners, compared.gold, compared.judge)
    credit[positions] = share(partners.shared, compared.gold.length[positions]) if share else quality
    right[partners.mark] = share(partners.shared, compared.judge.length[partners.mark]) if share else quality
    return replace(matching, credit=credit, right=right)


MATCH_RULES: dict[str, MatchRule] = {
    "task": match_shared_task,
    "optimal": match_optimal,
    "overlap": match_any_overlap,
    "exact": match_exact_spans,
    "partial": match_partial_credit,
    "iou": match_iou_credit,
    "mpp": match_mpp,
}


def _candidates_by_gold_mark(pairs: CandidatePairs, size: int) -> list[list[int]]:
    """Return the candidate marks of the judge for each gold mark."""
    groups: list[list[int]] = [[] for _ in range(size)]
    for gold_mark, other in zip(pairs.gold.tolist(), pairs.mark.tolist(), strict=True):
        groups[gold_mark].append(other)
    return groups


def _match_alternatives(compared: MatchingProblem, scope: Ints, partner: Ints) -> Matching:
    """Match unpaired marks by their alternatives, gold's first. Each mark of an alternative takes a free mark."""
    sets_of_gold = compared.alternatives.sets
    choices = _candidates_by_gold_mark(compared.others, len(compared.alternatives.marks)) if sets_of_gold else []
    used = {(int(scope[index]), int(partner[index])) for index in np.flatnonzero(partner >= 0)}
    alternative_used: dict[int, int] = {}
    for index, sets in sets_of_gold.items():
        for number, members in enumerate(sets) if partner[index] < 0 else ():
            taken: set[tuple[int, int]] = set()
            for member in members:
                keys = ((int(scope[index]), mark) for mark in choices[member])
                free = (key for key in keys if key not in used and key not in taken)
                taken |= set(itertools.islice(free, 1))
            if len(taken) == len(members):
                used |= taken
                alternative_used[index] = number
                break
    credit = (partner >= 0).astype(np.float64)
    credit[list(alternative_used)] = 1
    right = np.zeros(len(compared.judge.document))
    right[[mark for _, mark in used]] = 1
    has_alternatives = bool(compared.judge_alternatives.sets)
    judge_used = _match_judge_alternatives(compared, scope, credit, used) if has_alternatives else {}
    right[list(judge_used)] = 1
    return Matching(credit, right, partner, alternative_used, judge_used)


def _match_judge_alternatives(
    compared: MatchingProblem, scope: Ints, credit: Floats, used: set[tuple[int, int]]
) -> dict[int, int]:
    """Return the judge's marks that are right by an alternative, and give credit to the gold marks that it found."""
    meetings = _candidates_by_gold_mark(compared.judge_others.swap_sides(), len(compared.judge_alternatives.marks))
    judge_used: dict[int, int] = {}
    for index, sets in compared.judge_alternatives.sets.items():
        for number, members in enumerate(sets):
            taken: list[int] = []
            for member in members:
                free = (gold for gold in meetings[member] if not credit[gold] and gold not in taken)
                taken += [gold for gold in itertools.islice(free, 1) if (int(scope[gold]), index) not in used]
            if members and len(taken) == len(members):
                credit[taken] = 1
                judge_used[index] = number
                break
    return judge_used
