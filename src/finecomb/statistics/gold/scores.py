"""Recall and precision of anybody against gold, by label and by document meta, with intervals over documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict, Unpack, get_args

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, did_you_mean, flag_style, param
from finecomb.core.estimate import Estimate, Signature
from finecomb.core.frames import json_entry
from finecomb.core.records import Settings
from finecomb.core.span import TEXT
from finecomb.core.study import Study
from finecomb.statistics.agreement.minimal_repairs import REPAIRS, Repairs, add_mark_alternatives
from finecomb.statistics.gold.gold_and_judges import (
    GoldAndJudges,
    Ints,
    JudgeMarks,
    UnreadPolicy,
    pair_gold_with_judges,
)
from finecomb.statistics.gold.mark_matching import (
    RULES,
    Bools,
    Floats,
    MarkAlternatives,
    MarkArrays,
    Matching,
    MatchingProblem,
    Rule,
    build_mark_arrays,
    build_matching_problem,
    collect_alternatives,
    match_shared_task,
)
from finecomb.statistics.inference.resampling import (
    estimate_with_interval,
    few_documents_reason,
    ratio_or_nan,
    seeded_weight_batches,
)
from finecomb.statistics.measures.unit_grid import Level, UnitGrid, build_grid
from finecomb.statistics.selection.view import ANY

Match = Literal["task", "optimal", "overlap", "exact", "partial", "iou", "mpp", "token", "char", "wmt25", "sentence"]
Category = Literal["both", "gold"]
Average = Literal["micro", "macro"]
UNITS: dict[str, Level] = {"token": "token", "char": "char", "wmt25": "char", "sentence": "sentence"}
OTHER_SEVERITY_CREDIT = 0.5
"""What a character with another severity than gold's is worth under `wmt25`."""
MATCHES = (*RULES, *UNITS)
TYPED_ROW = "typed"
GOLD_COLUMN, PREDICTED_COLUMN, MATCHED_COLUMN, RIGHT_COLUMN = range(4)


@dataclass(frozen=True, slots=True)
class Score:
    """Recall, precision and F1 of one judge on one set of gold marks."""

    columns: Mapping[str, object]
    """judge, the `by` columns, label, match."""
    gold: float
    """Gold marks (or tokens, or characters)."""
    predicted: float
    """Marks of the judge."""
    matched: float
    """Gold marks that were found: recall is matched / gold."""
    right: float
    """Marks of the judge that are right: precision is right / predicted. One gold mark found by two numbers that are
    its alternative makes two marks right."""
    recall: Estimate
    precision: Estimate
    f1: Estimate

    def row(self) -> dict[str, object]:
        """Flat, with the interval of each ratio beside it; `why` says why one is undefined."""
        counts = {name: _int_if_whole(getattr(self, name)) for name in ("gold", "predicted", "matched", "right")}
        ratios: dict[str, object] = {}
        for name in ("recall", "precision", "f1"):
            estimate: Estimate = getattr(self, name)
            ratios |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
        whys = dict.fromkeys(
            ratio_estimate.why for ratio_estimate in (self.recall, self.precision, self.f1) if ratio_estimate.why
        )
        return {**self.columns, **counts, **ratios, "why": "; ".join(whys), "signature": str(self.recall.signature)}


def _int_if_whole(number: float) -> float | int:
    return int(number) if number == int(number) else number


@dataclass(frozen=True)
class JudgeComparison:
    """One judge beside gold: which mark is which, and sums for every label and document."""

    judge: JudgeMarks
    gold: pl.DataFrame
    """Gold marks on the texts that count for the judge."""
    matching: Matching
    """By the rule asked for, labels ignored; by the task's rule where units of text are compared."""
    labels: tuple[str, ...]
    """Rows of `sums`: `any`, `typed` and each label."""
    sums: Floats
    """(labels, documents, 4): gold, predicted, matched, right."""


@dataclass(frozen=True)
class Scores:
    """All that was found out about the judges."""

    pair: GoldAndJudges
    judged: tuple[JudgeComparison, ...]
    rows: tuple[Score, ...]
    fields: Mapping[str, object] = field(default_factory=dict)
    """For signatures."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know."""
        return self.pair.notes


class OverlappingMarksError(FinecombError):
    """A judge's marks overlap each other, which the task's rule does not take."""


class ScoreSettings(TypedDict, total=False):
    """What `score` takes beside studies, rule, category and draws."""

    gold_annotator: str
    judges: Sequence[str]
    protocol: str
    tokens: str
    unread: UnreadPolicy
    average: Average
    repairs: Repairs


def score(
    gold: Study,
    predicted: Study | None = None,
    match: Match = "optimal",
    category: Category = "both",
    by: Sequence[str] = ("label",),
    *,
    gold_annotator: str = "",
    judges: Sequence[str] = (),
    protocol: str = "",
    tokens: str = "words",
    unread: UnreadPolicy = "empty",
    average: Average = "micro",
    repairs: Repairs = "declared",
    draws: int = 1000,
    seed: int = 0,
) -> Scores:
    """Recall and precision of every judge in `predicted` (or in `gold` itself) against gold.

    `match` is one of `RULES`, or one of `UNITS` for sets of tokens, characters or sentences; under `wmt25` a character
    of another severity than gold's is worth half. Row `any` ignores labels, `typed` asks for the
    same one, and every label has a row of its own when `by` has `label`: with `category="both"` only marks of that
    label on both sides count; with `category="gold"` recall is over gold marks of the label, whatever the judge called
    them, and precision over the judge's marks of the label, whatever gold calls them. Other names in `by` are document
    meta.
    With `average="micro"` marks are summed over documents before dividing; with `macro` each document has its own
    ratios, of which the mean is taken: 1 where neither side marked anything, 0 where only one did.
    A mark, of gold or of a judge, that nothing matches is found by its `alternatives`: all marks of one of them. With
    `repairs="smallest"` such sets are also inferred, see `finecomb.statistics.agreement.minimal_repairs`.
    Intervals resample documents. Recall is NaN without gold marks, precision NaN without marks of the judge.
    """
    choices = (
        ("match", match, MATCHES),
        ("category", category, ("both", "gold")),
        ("average", average, ("micro", "macro")),
        ("repairs", repairs, REPAIRS),
    )
    for name, given, allowed in choices:
        if given not in allowed:
            raise FinecombError(f"{name} cannot be {given!r}{did_you_mean(given, allowed)}")
    both = pair_gold_with_judges(gold, predicted, gold_annotator, judges, protocol, unread, repairs)
    grids = _GridCache(both.documents, tokens)
    judged = tuple(_compare_judge_with_gold(both, judge, match, category, grids) for judge in both.judges)
    fields = {"match": match, "category": category, "tokens": tokens if match == "token" else None, **both.fields}
    fields |= {"average": average if average != "micro" else None}
    fields |= {"draws": draws, "seed": seed}
    rows = [row for comparison in judged for row in _score_rows(both, comparison, match, by, fields, draws, seed)]
    return Scores(both, judged, tuple(rows), fields)


@dataclass(frozen=True, slots=True)
class MatchRuleTable:
    """F1 of every judge under every rule, and how they rank."""

    scores: tuple[dict[str, object], ...]
    """One row for each judge: judge, and F1 by the name of the rule; None where the rule does not take the judge."""
    ranks: tuple[dict[str, object], ...]
    """The same with 1 for the highest F1; equals share the better rank."""
    notes: tuple[str, ...]


def score_by_match_rules(
    gold: Study, predicted: Study | None = None, category: Category = "both", **options: Unpack[ScoreSettings]
) -> MatchRuleTable:
    """F1, labels ignored, under every rule of `MATCH_RULES`: does the order of the judges depend on the rule?"""
    f1: dict[str, dict[str, float]] = {}
    notes: dict[str, None] = {}
    for match in get_args(Match):
        try:
            scores = score(gold, predicted, match, category, (), **options, draws=0)
        except OverlappingMarksError as error:
            notes[f"{match}: {error.text(flag_style)}"] = None  # notes write parameters as flags
            continue
        notes |= dict.fromkeys(scores.notes)
        for row in scores.rows:
            if row.columns["label"] == ANY:
                f1.setdefault(str(row.columns["judge"]), {})[match] = row.f1.value
    ranks = {judge: {match: _judge_rank(f1, judge, match) for match in values} for judge, values in f1.items()}
    columns = [match for match in MATCHES if any(match in values for values in f1.values())]
    tables: list[tuple[dict[str, object], ...]] = [
        tuple({"judge": judge, **{match: table[judge].get(match) for match in columns}} for judge in f1)
        for table in (f1, ranks)
    ]
    return MatchRuleTable(tables[0], tables[1], tuple(notes))


def _judge_rank(f1: Mapping[str, Mapping[str, float]], judge: str, match: str) -> int:
    return 1 + sum(values.get(match, math.nan) > f1[judge][match] for values in f1.values())


# --- counting ----------------------------------------------------------------------------------------------------


def _compare_judge_with_gold(
    both: GoldAndJudges, judge: JudgeMarks, match: str, category: str, grids: _GridCache
) -> JudgeComparison:
    gold_marks = both.gold.filter(pl.col("document").is_in(list(judge.documents)))
    gold_marks = add_mark_alternatives(gold_marks, judge.gold_repairs)
    positions = {id: at for at, id in enumerate(judge.documents)}
    codes = {label: at for at, label in enumerate(both.labels)}
    parts: dict[tuple[str, str], int] = {}
    truth, marks = (build_mark_arrays(frame, positions, codes, parts) for frame in (gold_marks, judge.marks))
    alternatives, theirs = (collect_alternatives(frame, positions, codes, parts) for frame in (gold_marks, judge.marks))
    compared = build_matching_problem(truth, marks, alternatives, theirs)
    if match == "task":
        _reject_overlapping_marks(judge, marks)
    rule = RULES.get(match, match_shared_task)
    everything = np.zeros(len(truth), dtype=np.int64)
    whole = rule(compared, everything)
    if match in UNITS:
        grid = grids.get_grid(judge.documents, UNITS[match])
        gold_as_found = substitute_alternatives(gold_marks, alternatives, whole.alternative_used)
        marks_as_found = substitute_alternatives(judge.marks, theirs, whole.judge_alternative_used)
        sums = _unit_outcome_sums(both, marks_as_found, gold_as_found, grid, category, match == "wmt25")
    else:
        sums = _mark_outcome_sums(compared, rule, whole, len(judge.documents), len(both.labels), category)
    typed = sums[1:].sum(axis=0, keepdims=True)
    rows = np.concatenate([sums[:1], typed, sums[1:]])
    return JudgeComparison(judge, gold_marks, whole, (ANY, TYPED_ROW, *both.labels), rows)


def _reject_overlapping_marks(judge: JudgeMarks, marks: MarkArrays) -> None:
    """The task's rule knows no mark inside another: a word belongs to one mistake only."""
    order = np.lexsort((marks.end, marks.start, marks.part))
    order = order[marks.end[order] > marks.start[order]]  # an omission covers no word
    part, start, end = marks.part[order], marks.start[order], marks.end[order]
    both = np.flatnonzero((part[1:] == part[:-1]) & (start[1:] < end[:-1]))
    clash = [at for at in both if marks.owner[order[at]] != marks.owner[order[at + 1]]]
    if clash:
        first, second = (judge.marks.row(int(marks.owner[order[clash[0] + at]]), named=True) for at in (0, 1))
        words = [" … ".join(mark["quotes"]) for mark in (first, second)]
        what = f"{judge.name}: marks {first['id']!r} ({words[0]!r}) and {second['id']!r} ({words[1]!r}) overlap"
        more = f", and {len(clash) - 1:,} more pairs" if len(clash) > 1 else ""
        raise OverlappingMarksError(
            f"{what}{more}; the task's rule gives a word to one mark only: use {param('match', 'optimal')}"
        )


def _mark_outcome_sums(
    compared: MatchingProblem,
    rule: Rule,
    whole: Matching,
    documents: int,
    labels: int,
    how: str,
) -> Floats:
    """Counts of marks, (1 + labels, documents, 4), `any` first."""
    gold, judge = compared.gold, compared.judge
    scopes = np.maximum(gold.label, -1) + 1
    same = rule(compared.with_same_label(), scopes) if how == "both" else rule(compared, scopes)
    credit, right = same.credit, same.right if how == "both" else whole.right
    sums = np.zeros((1 + labels, documents, 4))
    for side, column, credit_of_any, label_credit in (
        (gold, GOLD_COLUMN, np.ones(len(gold)), np.ones(len(gold))),
        (judge, PREDICTED_COLUMN, np.ones(len(judge)), np.ones(len(judge))),
        (gold, MATCHED_COLUMN, whole.credit, credit),
        (judge, RIGHT_COLUMN, whole.right, right),
    ):
        labelled = side.label >= 0
        cell = side.label[labelled] * documents + side.document[labelled]
        sums[0, :, column] = np.bincount(side.document, credit_of_any, documents)
        sums[1:, :, column] = np.bincount(cell, label_credit[labelled], labels * documents).reshape(labels, documents)
    return sums


def substitute_alternatives(
    marks: pl.DataFrame, alternatives: MarkAlternatives, used: Mapping[int, int]
) -> pl.DataFrame:
    """Marks of gold or of a judge, with the alternative by which one was found in place of the mark's own spans."""
    if not used:
        return marks
    spans = marks["spans"].to_list()
    for at, number in used.items():
        spans[at] = [span for member in alternatives.sets[at][number] for span in alternatives.spans[member]]
    return marks.with_columns(spans=pl.Series(spans, dtype=marks.schema["spans"]))


class _GridCache:
    """Texts cut into units, once for all judges of the same texts."""

    def __init__(self, documents: pl.DataFrame, tokens: str) -> None:
        self.documents, self.tokens = documents, tokens
        self.made: dict[tuple[str, ...], UnitGrid] = {}

    def get_grid(self, documents: tuple[str, ...], level: Level) -> UnitGrid:
        """The units of these texts."""
        if documents not in self.made:
            texts = self.documents.filter(pl.col("id").is_in(list(documents)))
            study = replace(Study.from_items([Settings()]), documents=texts)
            self.made[documents] = build_grid(study, level, self.tokens)
        return self.made[documents]


def _unit_outcome_sums(
    both: GoldAndJudges, marks: pl.DataFrame, gold: pl.DataFrame, grid: UnitGrid, how: str, by_severity: bool = False
) -> Floats:
    """Counts of tokens, characters or sentences, each once, (1 + labels, documents, 4)."""
    truth, marked = (_covered_units_by_label(frame, grid, both.labels) for frame in (gold, marks))
    crossed = list(_units_by_outcome(truth, marked, how))
    if by_severity:
        worth = np.where(_same_severity_mask(gold, marks, grid), 1.0, OTHER_SEVERITY_CREDIT)
        crossed[MATCHED_COLUMN], crossed[RIGHT_COLUMN] = crossed[MATCHED_COLUMN] * worth, crossed[RIGHT_COLUMN] * worth
    return np.stack([grid.sum_per_document(units) for units in crossed], axis=-1)


def _same_severity_mask(gold: pl.DataFrame, judge: pl.DataFrame, grid: UnitGrid) -> Bools:
    """Which units have a severity that both sides give them, (units,); a mark without one has the severity ``."""
    same = np.zeros(len(grid), dtype=bool)
    severity = json_entry("answers", "severity").fill_null("")
    sides = [frame.with_columns(severity) for frame in (gold, judge)]
    for value in set(sides[0]["severity"]) & set(sides[1]["severity"]):
        one, other = (_covered_units_by_label(side.filter(pl.col("severity") == value), grid, ())[0] for side in sides)
        same |= one & other
    return same


def _covered_units_by_label(frame: pl.DataFrame, grid: UnitGrid, labels: Sequence[str]) -> Bools:
    """Which units are marked at all, and with each label, (1 + labels, units)."""
    spans = frame.select("document", "label", "spans").filter(pl.col("spans").list.len() > 0)
    spans = spans.explode("spans").unnest("spans").filter(pl.col("part") == TEXT)
    at = grid.document_positions(spans["document"])
    first, last = grid.unit_ranges(at, spans["start"].to_numpy(), spans["end"].to_numpy())
    codes = {label: row + 1 for row, label in enumerate(labels)}
    row = np.array([codes.get(label, 0) for label in spans["label"]], dtype=np.int64)
    edges = np.zeros((1 + len(labels), len(grid) + 1), dtype=np.int64)
    for rows in (row, np.zeros_like(row)):
        np.add.at(edges, (rows, first), 1)
        np.add.at(edges, (rows, last), -1)
    depth: Bools = np.cumsum(edges, axis=1)[:, :-1] > 0
    return depth


def _units_by_outcome(gold: Bools, judge: Bools, how: str) -> Iterator[Floats]:
    """Gold, predicted, matched and right units of every row."""
    others = (judge, gold) if how == "both" else (judge[:1], gold[:1])
    yield from (units.astype(np.float64) for units in (gold, judge, gold & others[0], judge & others[1]))


# --- rows --------------------------------------------------------------------------------------------------------


def _score_rows(
    both: GoldAndJudges,
    judged: JudgeComparison,
    match: str,
    by: Sequence[str],
    fields_of_all: Mapping[str, object],
    draws: int,
    seed: int,
) -> Iterator[Score]:
    """One row for each label and combination of document meta."""
    names = [name for name in by if name != "label"]
    labels = [ANY] if fields_of_all["category"] == "gold" else [ANY, TYPED_ROW]
    labels += judged.labels[2:] if "label" in by else []
    rows = [judged.labels.index(label) for label in labels]
    for columns, at in _document_groups(both, judged.judge, names):
        where = "+".join(f"{name}={value}" for name, value in columns.items()) or None
        sums = judged.sums[rows][:, at]
        average: Average = "macro" if fields_of_all["average"] == "macro" else "micro"
        drawn = (
            bootstrap_score_ratios(sums, draws, seed)
            if average == "micro"
            else bootstrap_mean_document_ratios(sums, draws, seed)
        )
        for label, label_sums, resamples in zip(labels, sums, drawn, strict=True):
            fields = {"statistic": "score", "label": label, **fields_of_all, "where": where, "documents": len(at)}
            row_columns = {"judge": judged.judge.name, **columns, "label": label, "match": match}
            yield build_score(label_sums, resamples, row_columns, Signature.from_fields(**fields), average)


def _document_groups(
    both: GoldAndJudges, judge: JudgeMarks, names: Sequence[str]
) -> Iterator[tuple[dict[str, object], Ints]]:
    if not names:
        yield {}, np.arange(len(judge.documents))
        return
    rows = (
        both.select_meta(names)
        .filter(pl.col("id").is_in(list(judge.documents)))
        .with_columns(at=pl.int_range(pl.len()))
    )
    parts = rows.partition_by(names, as_dict=True)
    for key in sorted(parts, key=lambda key: tuple(map(str, key))):
        yield dict(zip(names, key, strict=True)), parts[key]["at"].to_numpy().astype(np.int64)


def recall_precision_and_f1(sums: Floats) -> Floats:
    """Recall, precision and F1, (..., 3), of sums (..., 4); F1 is 0 where both others are, NaN where one is NaN."""
    recall, precision = (
        ratio_or_nan(sums[..., MATCHED_COLUMN], sums[..., GOLD_COLUMN]),
        ratio_or_nan(sums[..., RIGHT_COLUMN], sums[..., PREDICTED_COLUMN]),
    )
    total = recall + precision
    f1 = np.where(total == 0, 0.0, ratio_or_nan(2 * recall * precision, np.nan_to_num(total)))
    return np.stack([recall, precision, np.where(np.isnan(total), np.nan, f1)], axis=-1)


def bootstrap_score_ratios(sums: Floats, draws: int, seed: int) -> Floats:
    """Recall, precision and F1 of each draw, (labels, draws, 3), from the sums of documents, (labels, documents, 4)."""
    labels, documents, _ = sums.shape
    flat = np.moveaxis(sums, 1, 0).reshape(documents, labels * 4)  # one product for all labels
    totals = np.concatenate([weights @ flat for weights in seeded_weight_batches(documents, draws, seed)])
    return recall_precision_and_f1(np.moveaxis(totals.reshape(len(totals), labels, 4), 1, 0))


def score_ratios_per_document(sums: Floats) -> Floats:
    """Recall, precision and F1 of each document, (..., documents, 3): 1 where nobody marked, 0 where one side did."""
    values = np.nan_to_num(recall_precision_and_f1(sums), nan=0.0)
    nothing = (sums[..., GOLD_COLUMN] == 0) & (sums[..., PREDICTED_COLUMN] == 0)
    return np.where(nothing[..., None], 1.0, values)


def bootstrap_mean_document_ratios(sums: Floats, draws: int, seed: int) -> Floats:
    """Mean recall, precision and F1 of the documents of each draw, (labels, draws, 3)."""
    values = score_ratios_per_document(sums)
    means = [
        np.einsum("wd,ldk->lwk", weights / weights.sum(axis=1, keepdims=True), values)
        for weights in seeded_weight_batches(sums.shape[1], draws, seed)
    ]
    return np.concatenate(means, axis=1)


def build_score(
    sums: Floats, drawn: Floats, columns: Mapping[str, object], signature: Signature, average: Average = "micro"
) -> Score:
    """A row from the sums of each document, (documents, 4), and the ratios of each draw, (draws, 3)."""
    total = sums.sum(axis=0)
    values = recall_precision_and_f1(total) if average == "micro" else score_ratios_per_document(sums).mean(axis=0)
    no_gold = "gold marks nothing here" if not total[GOLD_COLUMN] else ""
    no_marks = "nothing was submitted here" if not total[PREDICTED_COLUMN] else ""
    whys = (no_gold, no_marks, no_gold or no_marks) if average == "micro" else ("", "", "")
    recall, precision, f1 = (
        estimate_with_interval(float(value), drawn[:, at], signature, why, few_documents_reason(len(sums)))
        for at, (value, why) in enumerate(zip(values, whys, strict=True))
    )
    gold, predicted, matched, right = map(float, total)
    return Score(columns, gold, predicted, matched, right, recall, precision, f1)
