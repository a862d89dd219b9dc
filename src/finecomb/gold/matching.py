"""Which marks of a judge are which gold marks: candidates that meet, and the rules that choose among them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import scipy  # its parts load when first used: start-up stays quick
from numpy.typing import NDArray

from finecomb.core.frames import values_of
from finecomb.gold.scored_pair import Ints

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Marks:
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


def marks_of(
    frame: pl.DataFrame, documents: dict[str, int], labels: dict[str, int], parts: dict[tuple[str, str], int]
) -> Marks:
    """Arrays of a frame with the columns document, label and spans; `parts` is filled with those it meets."""
    spans = (
        frame.select("document", "spans", owner=pl.int_range(pl.len()))
        .filter(pl.col("spans").list.len() > 0)
        .explode("spans")
        .unnest("spans")
    )
    keys = [parts.setdefault(key, len(parts)) for key in zip(spans["document"], spans["part"], strict=True)]
    start, end, owner = (spans[name].to_numpy().astype(np.int64) for name in ("start", "end", "owner"))
    return Marks(
        document=np.array([documents[id] for id in frame["document"]], dtype=np.int64),
        label=np.array([labels.get(label, -1) for label in frame["label"]], dtype=np.int64),
        length=np.bincount(owner, end - start, len(frame)).astype(np.int64),
        owner=owner,
        part=np.array(keys, dtype=np.int64),
        start=start,
        end=end,
    )


# --- candidates --------------------------------------------------------------------------------------------------


class Candidates(NamedTuple):
    """Pairs of a gold mark and a judge's mark that claim a common place, in the order of gold, then of the judge."""

    gold: Ints
    mark: Ints
    shared: Floats
    """Characters that both cover."""

    def only(self, kept: Bools | Ints) -> Candidates:
        """Some of them, in order."""
        return Candidates(self.gold[kept], self.mark[kept], self.shared[kept])


def candidates(gold: Marks, judge: Marks) -> Candidates:
    """Every pair that shares a character; an omission meets what it lies in or touches.

    Spans of all texts lie on one line in half steps: [2s, 2e), and an omission at s is [2s - 1, 2s + 1).
    """
    last = np.zeros(max(gold.part.max(initial=-1), judge.part.max(initial=-1)) + 2, dtype=np.int64)
    for side in (gold, judge):
        np.maximum.at(last, side.part + 1, side.end + 1)
    origins = np.cumsum(last)
    lines = [(side.start + origins[side.part], side.end + origins[side.part]) for side in (gold, judge)]
    (g_low, g_high), (j_low, j_high) = ((2 * a - (a == b), 2 * b + (a == b)) for a, b in lines)
    first = _starting_within(g_low, g_high, j_low, "left")  # judge's spans that start inside a gold span
    second = _starting_within(j_low, j_high, g_low, "right")  # gold's that start later, inside a judge's span
    one, other = np.concatenate([first[0], second[1]]), np.concatenate([first[1], second[0]])
    shared = np.minimum(lines[0][1][one], lines[1][1][other]) - np.maximum(lines[0][0][one], lines[1][0][other])
    return _summed(gold.owner[one], judge.owner[other], np.maximum(shared, 0), len(judge))


def _starting_within(low: Ints, high: Ints, starts: Ints, side: Any) -> tuple[Ints, Ints]:
    """Pairs (i, j) with low[i] <= starts[j] < high[i], or low[i] < starts[j] with side `right`."""
    order = np.argsort(starts, kind="stable")
    ordered = starts[order]
    first, last = np.searchsorted(ordered, low, side), np.searchsorted(ordered, high, "left")
    counts = np.maximum(last - first, 0)
    one = np.repeat(np.arange(len(low)), counts)
    at = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    return one, order[at]


def _summed(gold: Ints, mark: Ints, shared: Ints, marks: int) -> Candidates:
    keys, inverse = np.unique(gold * max(marks, 1) + mark, return_inverse=True)
    total = np.bincount(inverse, shared, len(keys))
    one, other = np.divmod(keys, max(marks, 1))
    return Candidates(one, other, total.astype(np.float64))


def iou(pairs: Candidates, gold: Marks, judge: Marks) -> Floats:
    """Characters shared over characters covered by either; 1 for omissions at one place."""
    both = gold.length[pairs.gold] + judge.length[pairs.mark] - pairs.shared
    return np.where(both > 0, pairs.shared / np.where(both > 0, both, 1), 1.0)


# --- other readings of a gold mark -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Readings:
    """Gold's alternatives: each way is a set of readings that must all be found."""

    marks: Marks
    """Every reading of every way."""
    ways: dict[int, list[list[int]]]
    """For a gold mark with alternatives: for each way its readings."""
    spans: list[list[dict[str, Any]]]
    """Of each reading, in the form of a study's frame."""


def readings_of(
    gold: pl.DataFrame, documents: dict[str, int], labels: dict[str, int], parts: dict[tuple[str, str], int]
) -> Readings:
    """The alternatives of gold marks as marks of their own."""
    rows: list[dict[str, Any]] = []
    ways: dict[int, list[list[int]]] = {}
    having = gold.with_row_index("at").filter(pl.col("alternatives").is_not_null())
    for at, document, alternatives in having.select("at", "document", "alternatives").iter_rows():
        for way in values_of(alternatives):
            ways.setdefault(at, []).append(list(range(len(rows), len(rows) + len(way))))
            rows += [{"document": document, "label": each["label"], "spans": _on_frame(each["spans"])} for each in way]
    kinds = {name: gold.schema[name] for name in ("document", "label", "spans")}
    marks = marks_of(pl.DataFrame(rows, schema=kinds, orient="row"), documents, labels, parts)
    return Readings(marks, ways, [row["spans"] for row in rows])


def _on_frame(spans: list[list[Any]]) -> list[dict[str, Any]]:
    return [{"part": part[0] if part else "text", "start": start, "end": end} for *part, start, end in spans]


# --- rules -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compared:
    """One judge beside gold, ready for any rule."""

    gold: Marks
    judge: Marks
    pairs: Candidates
    readings: Readings
    others: Candidates
    """Candidates of the readings instead of gold marks."""

    def same_label(self) -> Compared:
        """Only pairs that agree on a label; marks without one pair with nothing."""
        kept = [
            (side.label[pairs.gold] == self.judge.label[pairs.mark]) & (side.label[pairs.gold] >= 0)
            for side, pairs in ((self.gold, self.pairs), (self.readings.marks, self.others))
        ]
        return Compared(self.gold, self.judge, self.pairs.only(kept[0]), self.readings, self.others.only(kept[1]))


@dataclass(frozen=True, slots=True)
class Matching:
    """What a rule decided."""

    found: Floats
    """(gold,): 1 where a gold mark was found, a share of it where the rule gives partial credit."""
    right: Floats
    """(marks,): the same for the judge's marks."""
    partner: Ints
    """(gold,): the judge's mark that a gold mark was paired with, -1 where it has none."""
    way: dict[int, int]
    """Gold marks that were found by one of their other readings: which one."""


Rule = Callable[[Compared, Ints], Matching]


def compare_marks(gold: Marks, judge: Marks, readings: Readings) -> Compared:
    """All candidates of one judge."""
    return Compared(gold, judge, candidates(gold, judge), readings, candidates(readings.marks, judge))


def task(compared: Compared, scope: Ints) -> Matching:
    """The shared task's rule: gold from left to right, each takes the first mark not yet taken that it meets.

    One to one within a `scope` of gold marks; marks of different scopes may take the same one. A gold mark that finds
    none tries its other readings, each of which must find marks of its own.
    """
    return _left_to_right(compared, scope, compared.pairs)


def exact(compared: Compared, scope: Ints) -> Matching:
    """The same, but only marks that cover the same characters meet."""
    same = iou(compared.pairs, compared.gold, compared.judge) == 1
    others = compared.others.only(iou(compared.others, compared.readings.marks, compared.judge) == 1)
    strict = Compared(compared.gold, compared.judge, compared.pairs.only(same), compared.readings, others)
    return _left_to_right(strict, scope, strict.pairs)


def _left_to_right(compared: Compared, scope: Ints, pairs: Candidates) -> Matching:
    choices = _grouped(pairs, len(compared.gold))
    partner = np.full(len(compared.gold), -1, dtype=np.int64)
    used: set[tuple[int, int]] = set()
    for at, own in enumerate(choices):
        key = int(scope[at])
        for mark in own:
            if (key, mark) not in used:
                used.add((key, mark))
                partner[at] = mark
                break
    return _with_readings(compared, scope, partner)


def optimal(compared: Compared, scope: Ints) -> Matching:
    """As many pairs as can be made one to one, and among such choices the one that overlaps most (summed IoU)."""
    return _with_readings(compared, scope, _assigned(compared, scope))


def _assigned(compared: Compared, scope: Ints) -> Ints:
    """Pairs that nobody contests at once, the rest document by document and scope by scope."""
    pairs, quality = compared.pairs, iou(compared.pairs, compared.gold, compared.judge)
    partner = np.full(len(compared.gold), -1, dtype=np.int64)
    scopes = int(scope.max(initial=0)) + 1
    wanted = np.bincount(pairs.gold, minlength=len(compared.gold))[pairs.gold]
    claims = np.unique(pairs.mark * scopes + scope[pairs.gold], return_inverse=True, return_counts=True)
    alone = (wanted == 1) & (claims[2][claims[1]] == 1)
    partner[pairs.gold[alone]] = pairs.mark[alone]
    problem = compared.gold.document[pairs.gold] * scopes + scope[pairs.gold]
    order = np.flatnonzero(~alone)[np.argsort(problem[~alone], kind="stable")]
    for own in np.split(order, np.flatnonzero(np.diff(problem[order])) + 1) if len(order) else ():
        gold, mark = _best(pairs.gold[own], pairs.mark[own], quality[own])
        partner[gold] = mark
    return partner


def _best(gold: Ints, mark: Ints, quality: Floats) -> tuple[Ints, Ints]:
    """The one-to-one choice among pairs; one more pair always weighs more than better ones."""
    rows, row = np.unique(gold, return_inverse=True)
    columns, column = np.unique(mark, return_inverse=True)
    weight = np.zeros((len(rows), len(columns)))
    weight[row, column] = 1 + quality / (min(weight.shape) + 1)
    a, b = scipy.optimize.linear_sum_assignment(weight, maximize=True)
    real = weight[a, b] > 0
    return rows[a[real]], columns[b[real]]


def overlap(compared: Compared, scope: Ints) -> Matching:
    """Not one to one: a gold mark is found, and a judge's mark right, when it meets any mark of the other side."""
    partner = np.full(len(compared.gold), -1, dtype=np.int64)
    partner[compared.pairs.gold[::-1]] = compared.pairs.mark[::-1]  # the first is kept
    right = np.zeros(len(compared.judge))
    right[compared.pairs.mark] = 1
    way: dict[int, int] = {}
    choices = _grouped(compared.others, len(compared.readings.marks))
    for at, ways in compared.readings.ways.items():
        for number, readings in enumerate(ways) if partner[at] < 0 else ():
            if all(choices[each] for each in readings):
                way[at] = number
                right[[mark for each in readings for mark in choices[each]]] = 1
                break
    found = (partner >= 0).astype(np.float64)
    found[list(way)] = 1
    return Matching(found, right, partner, way)


def partial(compared: Compared, scope: Ints) -> Matching:
    """Pairs as in `optimal`, each worth the share of its own characters that the other covers."""
    return _credited(compared, scope, lambda shared, length: np.where(length > 0, shared / np.maximum(length, 1), 1.0))


def by_iou(compared: Compared, scope: Ints) -> Matching:
    """Pairs as in `optimal`, each worth its IoU."""
    return _credited(compared, scope, None)


def _credited(compared: Compared, scope: Ints, share: Callable[[Floats, Ints], Floats] | None) -> Matching:
    matching = optimal(compared, scope)
    at = np.flatnonzero(matching.partner >= 0)
    keys = compared.pairs.gold * max(len(compared.judge), 1) + compared.pairs.mark
    where = np.searchsorted(keys, at * max(len(compared.judge), 1) + matching.partner[at])
    own = compared.pairs.only(where)
    found, right = matching.found.copy(), matching.right.copy()
    quality = iou(own, compared.gold, compared.judge)
    found[at] = share(own.shared, compared.gold.length[at]) if share else quality
    right[own.mark] = share(own.shared, compared.judge.length[own.mark]) if share else quality
    return Matching(found, right, matching.partner, matching.way)


RULES: dict[str, Rule] = {
    "task": task,
    "optimal": optimal,
    "overlap": overlap,
    "exact": exact,
    "partial": partial,
    "iou": by_iou,
}


def _grouped(pairs: Candidates, size: int) -> list[list[int]]:
    """The candidates of each gold mark."""
    groups: list[list[int]] = [[] for _ in range(size)]
    for one, other in zip(pairs.gold.tolist(), pairs.mark.tolist(), strict=True):
        groups[one].append(other)
    return groups


def _with_readings(compared: Compared, scope: Ints, partner: Ints) -> Matching:
    """Let gold marks that found nothing try their other readings, each taking marks that nobody has."""
    choices = _grouped(compared.others, len(compared.readings.marks))
    used = {(int(scope[at]), int(partner[at])) for at in np.flatnonzero(partner >= 0)}
    way: dict[int, int] = {}
    for at, ways in compared.readings.ways.items():
        for number, readings in enumerate(ways) if partner[at] < 0 else ():
            taken: set[tuple[int, int]] = set()
            for each in readings:
                keys = ((int(scope[at]), mark) for mark in choices[each])
                free = (key for key in keys if key not in used and key not in taken)
                taken |= set(itertools.islice(free, 1))
            if len(taken) == len(readings):
                used |= taken
                way[at] = number
                break
    found = (partner >= 0).astype(np.float64)
    found[list(way)] = 1
    right = np.zeros(len(compared.judge))
    right[[mark for _, mark in used]] = 1
    return Matching(found, right, partner, way)
