"""Recall and precision of judges against gold, by label and document meta, with intervals over documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict, Unpack, get_args

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, did_you_mean, format_as_flag, param
from finecomb.core.frames import json_entry
from finecomb.core.records import Settings
from finecomb.core.results import Estimate, Signature
from finecomb.core.span import TEXT_PART
from finecomb.core.study import Study
from finecomb.statistics.agreement.minimal_repairs import REPAIR_MODES, RepairMode, add_mark_alternatives
from finecomb.statistics.gold.gold_and_judges import (
    GoldAndJudges,
    Ints,
    JudgeMarks,
    UnreadPolicy,
    pair_gold_with_judges,
)
from finecomb.statistics.gold.mark_matching import (
    MATCH_RULES,
    Bools,
    Floats,
    MarkAlternatives,
    MarkArrays,
    Matching,
    MatchingProblem,
    MatchRule,
    build_mark_arrays,
    collect_alternatives,
    find_candidate_pairs,
    match_shared_task,
)
from finecomb.statistics.inference.clusters import Clusters, find_clusters, text_clusters
from finecomb.statistics.inference.intervals import (
    DEFAULT_SETTINGS,
    IntervalMethod,
    IntervalSettings,
    estimate_from_interval,
    weighted_intervals,
)
from finecomb.statistics.inference.resampling import ratio_or_nan
from finecomb.statistics.measures.unit_grid import UnitGrid, UnitLevel, build_unit_grid
from finecomb.statistics.selection.view import ANY_LABEL

MatchName = Literal[
    "task", "optimal", "overlap", "exact", "partial", "iou", "mpp", "token", "char", "wmt25", "sentence"
]
LabelRowRule = Literal["both", "gold"]
Average = Literal["micro", "macro"]
UNIT_LEVEL_BY_MATCH: dict[str, UnitLevel] = {"token": "token", "char": "char", "wmt25": "char", "sentence": "sentence"}
OTHER_SEVERITY_CREDIT = 0.5
"""Credit under `wmt25` for a character whose severity differs from gold's."""
MATCH_NAMES = (*MATCH_RULES, *UNIT_LEVEL_BY_MATCH)
TYPED_ROW = "typed"
GOLD_COLUMN, PREDICTED_COLUMN, MATCHED_COLUMN, RIGHT_COLUMN = range(4)


@dataclass(frozen=True, slots=True)
class Score:
    """Recall, precision and F1 of one judge on one set of gold marks."""

    columns: Mapping[str, object]
    """Values of the columns judge, label, match and the columns in `by`."""
    gold: float
    """Number of gold marks (or tokens, characters, sentences)."""
    predicted: float
    """Number of marks (or tokens, characters, sentences) of the judge."""
    matched: float
    """Number of gold marks that were found: recall is matched / gold."""
    right: float
    """Number of marks of the judge that are right: precision is right / predicted. A gold mark found by an alternative
    of two marks makes both of them right."""
    recall: Estimate
    precision: Estimate
    f1: Estimate

    def row(self) -> dict[str, object]:
        """Return a flat table row with the interval of each ratio, and the reasons for undefined ratios in `why`."""
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
    """Matching of one judge with gold, and its counts by label and document."""

    judge: JudgeMarks
    gold: pl.DataFrame
    """Gold marks on the texts on which the judge is scored."""
    matching: Matching
    """Matching by the requested rule, or by the shared-task rule for units of text. Labels are ignored."""
    labels: tuple[str, ...]
    """Row names of `sums`: `any`, `typed` and each label."""
    sums: Floats
    """(labels, documents, 4): counts of gold, predicted, matched and right marks."""


@dataclass(frozen=True)
class Scores:
    """Scores of all judges."""

    pair: GoldAndJudges
    judged: tuple[JudgeComparison, ...]
    rows: tuple[Score, ...]
    fields: Mapping[str, object] = field(default_factory=dict)
    """Signature fields."""
    cluster_notes: tuple[str, ...] = ()
    """Description of the clusters of documents."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader."""
        return (*self.pair.notes, *self.cluster_notes)


class OverlappingMarksError(FinecombError):
    """Error for a judge whose marks overlap, which the shared-task rule does not allow."""


class ScoreSettings(TypedDict, total=False):
    """Options of `score_judges_against_gold` other than the studies, rule, category and draws."""

    gold_annotator: str
    judges: Sequence[str]
    protocol: str
    tokens: str
    unread: UnreadPolicy
    average: Average
    repairs: RepairMode


def score_judges_against_gold(
    gold: Study,
    predicted: Study | None = None,
    match: MatchName = "optimal",
    category: LabelRowRule = "both",
    by: Sequence[str] = ("label",),
    *,
    gold_annotator: str = "",
    judges: Sequence[str] = (),
    protocol: str = "",
    tokens: str = "words",
    unread: UnreadPolicy = "empty",
    average: Average = "micro",
    repairs: RepairMode = "declared",
    cluster: str = "",
    interval: IntervalMethod = "auto",
    draws: int = 1000,
    seed: int = 0,
) -> Scores:
    """Compute recall and precision of each judge in `predicted` (default: in `gold` itself) against gold.

    `match` is one of `MATCH_RULES`, or one of `UNIT_LEVEL_BY_MATCH` for sets of tokens, characters or sentences. Under
    `wmt25`, a character whose severity differs from gold's counts half. The row `any` ignores labels, and the row
    `typed` requires the same label. If `by` contains `label`, each label has a row of its own. With `category="both"`,
    this row counts only marks with that label on both sides. With `category="gold"`, recall is over gold marks of the
    label and precision over the judge's marks of the label, whatever label the other side gave. Other names in `by` are
    document meta.

    With `average="micro"`, marks are summed over documents before dividing. With `macro`, the ratios of documents are
    averaged; a document scores 1 if neither side marked anything and 0 if only one side did. An unmatched mark of gold
    or a judge is found if all marks of one of its `alternatives` are. With `repairs="smallest"`, alternatives are also
    inferred, see `finecomb.statistics.agreement.minimal_repairs`. Intervals are over clusters of
    documents. Recall is NaN without gold marks, precision is NaN without marks of the judge.
    """
    choices = (
        ("match", match, MATCH_NAMES),
        ("category", category, ("both", "gold")),
        ("average", average, ("micro", "macro")),
        ("repairs", repairs, REPAIR_MODES),
    )
    for name, given, allowed in choices:
        if given not in allowed:
            raise FinecombError(f"unknown {name} {given!r}{did_you_mean(given, allowed)}")
    both = pair_gold_with_judges(gold, predicted, gold_annotator, judges, protocol, unread, repairs)
    grids: dict[tuple[str, ...], UnitGrid] = {}  # shared by judges with the same texts
    judged = tuple(_compare_judge_with_gold(both, judge, match, category, tokens, grids) for judge in both.judges)
    fields = {"match": match, "category": category, "tokens": tokens if match == "token" else None, **both.fields}
    fields |= {"average": average if average != "micro" else None}
    settings = IntervalSettings(interval, draws, seed)
    fields |= settings.signature_fields
    clusters = find_clusters(both.documents, cluster)
    rows = [row for one in judged for row in _score_rows(both, one, match, by, fields, clusters, settings)]
    return Scores(both, judged, tuple(rows), fields, tuple(clusters.notes))


@dataclass(frozen=True, slots=True)
class MatchRuleTable:
    """F1 and rank of each judge under each matching rule."""

    scores: tuple[dict[str, object], ...]
    """One row per judge, with F1 by name of the rule; None if the rule does not apply to the judge."""
    ranks: tuple[dict[str, object], ...]
    """One row per judge, with the rank by F1 under each rule. Rank 1 is the highest, and ties share the better rank."""
    notes: tuple[str, ...]


def score_by_match_rules(
    gold: Study, predicted: Study | None = None, category: LabelRowRule = "both", **options: Unpack[ScoreSettings]
) -> MatchRuleTable:
    """Compute F1 under each matching rule, ignoring labels, to show whether the ranking depends on the rule."""
    f1: dict[str, dict[str, float]] = {}
    notes: dict[str, None] = {}
    for match in get_args(MatchName):
        try:
            scores = score_judges_against_gold(gold, predicted, match, category, (), **options, draws=0)
        except OverlappingMarksError as error:
            notes[f"{match}: {error.format_message(format_as_flag)}"] = (
                None  # notes name parameters as command-line flags
            )
            continue
        notes |= dict.fromkeys(scores.notes)
        for row in scores.rows:
            if row.columns["label"] == ANY_LABEL:
                f1.setdefault(str(row.columns["judge"]), {})[match] = row.f1.value
    ranks = {
        judge: {
            match: (1 + sum(values.get(match, math.nan) > f1[judge][match] for values in f1.values()))
            for match in values
        }
        for judge, values in f1.items()
    }
    columns = [match for match in MATCH_NAMES if any(match in values for values in f1.values())]
    tables: list[tuple[dict[str, object], ...]] = [
        tuple({"judge": judge, **{match: table[judge].get(match) for match in columns}} for judge in f1)
        for table in (f1, ranks)
    ]
    return MatchRuleTable(tables[0], tables[1], tuple(notes))


# --- counts ------------------------------------------------------------------------------------------------------


def _compare_judge_with_gold(
    both: GoldAndJudges,
    judge: JudgeMarks,
    match: str,
    category: str,
    tokens: str,
    grids: dict[tuple[str, ...], UnitGrid],
) -> JudgeComparison:
    gold_marks = both.gold.filter(pl.col("document").is_in(list(judge.documents)))
    if judge.gold_repairs:
        gold_marks = add_mark_alternatives(gold_marks, judge.gold_repairs)
    positions = {id: index for index, id in enumerate(judge.documents)}
    codes = {label: index for index, label in enumerate(both.labels)}
    parts: dict[tuple[str, str], int] = {}
    truth, marks = (build_mark_arrays(frame, positions, codes, parts) for frame in (gold_marks, judge.marks))
    alternatives, theirs = (collect_alternatives(frame, positions, codes, parts) for frame in (gold_marks, judge.marks))
    compared = MatchingProblem(
        truth,
        marks,
        find_candidate_pairs(truth, marks),
        alternatives,
        find_candidate_pairs(alternatives.marks, marks),
        theirs,
        find_candidate_pairs(truth, theirs.marks),
    )
    if match == "task":
        _reject_overlapping_marks(judge, marks)
    rule = MATCH_RULES.get(match, match_shared_task)
    matching = rule(compared, np.zeros(len(truth.document), dtype=np.int64))
    if match in UNIT_LEVEL_BY_MATCH:
        if judge.documents not in grids:
            texts = both.documents.filter(pl.col("id").is_in(list(judge.documents)))
            study = replace(Study.from_items([Settings()]), documents=texts)
            grids[judge.documents] = build_unit_grid(study, UNIT_LEVEL_BY_MATCH[match], tokens)
        grid = grids[judge.documents]
        gold_as_found = substitute_alternatives(gold_marks, alternatives, matching.alternative_used)
        marks_as_found = substitute_alternatives(judge.marks, theirs, matching.judge_alternative_used)
        sums = _unit_outcome_sums(both, marks_as_found, gold_as_found, grid, category, match == "wmt25")
    else:
        sums = _mark_outcome_sums(compared, rule, matching, len(judge.documents), len(both.labels), category)
    typed = sums[1:].sum(axis=0, keepdims=True)
    rows = np.concatenate([sums[:1], typed, sums[1:]])
    return JudgeComparison(judge, gold_marks, matching, (ANY_LABEL, TYPED_ROW, *both.labels), rows)


def _reject_overlapping_marks(judge: JudgeMarks, marks: MarkArrays) -> None:
    """Raise an error for overlapping marks. Under the shared-task rule, a word belongs to one mark only."""
    order = np.lexsort((marks.end, marks.start, marks.part))
    order = order[marks.end[order] > marks.start[order]]  # an omission covers no characters
    part, start, end = marks.part[order], marks.start[order], marks.end[order]
    both = np.flatnonzero((part[1:] == part[:-1]) & (start[1:] < end[:-1]))
    clash = [position for position in both if marks.owner[order[position]] != marks.owner[order[position + 1]]]
    if clash:
        first, second = (
            judge.marks.row(int(marks.owner[order[clash[0] + position]]), named=True) for position in (0, 1)
        )
        words = [" … ".join(mark["quotes"]) for mark in (first, second)]
        what = f"{judge.name}: marks {first['id']!r} ({words[0]!r}) and {second['id']!r} ({words[1]!r}) overlap"
        more = f", and {len(clash) - 1:,} more pairs" if len(clash) > 1 else ""
        raise OverlappingMarksError(
            f"{what}{more}; the rule of the shared task allows one mark per word, so use {param('match', 'optimal')}"
        )


def _mark_outcome_sums(
    compared: MatchingProblem,
    rule: MatchRule,
    matching: Matching,
    documents: int,
    labels: int,
    how: str,
) -> Floats:
    """Count marks by outcome, (1 + labels, documents, 4), starting with `any`."""
    gold, judge = compared.gold, compared.judge
    scopes = np.maximum(gold.label, -1) + 1
    same = rule(compared.with_same_label(), scopes) if how == "both" else rule(compared, scopes)
    credit, right = same.credit, same.right if how == "both" else matching.right
    sums = np.zeros((1 + labels, documents, 4))
    for side, column, credit_of_any, label_credit in (
        (gold, GOLD_COLUMN, np.ones_like(credit), np.ones_like(credit)),
        (judge, PREDICTED_COLUMN, np.ones_like(right), np.ones_like(right)),
        (gold, MATCHED_COLUMN, matching.credit, credit),
        (judge, RIGHT_COLUMN, matching.right, right),
    ):
        labelled = side.label >= 0
        cell = side.label[labelled] * documents + side.document[labelled]
        sums[0, :, column] = np.bincount(side.document, credit_of_any, documents)
        sums[1:, :, column] = np.bincount(cell, label_credit[labelled], labels * documents).reshape(labels, documents)
    return sums


def substitute_alternatives(
    marks: pl.DataFrame, alternatives: MarkAlternatives, used: Mapping[int, int]
) -> pl.DataFrame:
    """Return the marks of gold or a judge. A mark found by an alternative has the spans of that alternative."""
    if not used:
        return marks
    spans = marks["spans"].to_list()
    for index, number in used.items():
        spans[index] = [span for member in alternatives.sets[index][number] for span in alternatives.spans[member]]
    return marks.with_columns(spans=pl.Series(spans, dtype=marks.schema["spans"]))


def _unit_outcome_sums(
    both: GoldAndJudges, marks: pl.DataFrame, gold: pl.DataFrame, grid: UnitGrid, how: str, by_severity: bool = False
) -> Floats:
    """Count tokens, characters or sentences by outcome, (1 + labels, documents, 4)."""
    truth, marked = (_covered_units_by_label(frame, grid, both.labels) for frame in (gold, marks))
    crossed = list(_units_by_outcome(truth, marked, how))
    if by_severity:
        # Mask of the units with a severity in common, (units,); a mark without a severity has the severity ""
        same = np.zeros(len(grid), dtype=bool)
        severity = json_entry("answers", "severity").fill_null("")
        sides = [frame.with_columns(severity) for frame in (gold, marks)]
        for value in set(sides[0]["severity"]) & set(sides[1]["severity"]):
            one, other = (
                _covered_units_by_label(side.filter(pl.col("severity") == value), grid, ())[0] for side in sides
            )
            same |= one & other
        worth = np.where(same, 1.0, OTHER_SEVERITY_CREDIT)
        crossed[MATCHED_COLUMN], crossed[RIGHT_COLUMN] = crossed[MATCHED_COLUMN] * worth, crossed[RIGHT_COLUMN] * worth
    return np.stack([grid.sum_per_document(units) for units in crossed], axis=-1)


def _covered_units_by_label(frame: pl.DataFrame, grid: UnitGrid, labels: Sequence[str]) -> Bools:
    """Return masks of the units marked with any label and with each label, (1 + labels, units)."""
    spans = frame.select("document", "label", "spans").filter(pl.col("spans").list.len() > 0)
    spans = spans.explode("spans").unnest("spans").filter(pl.col("part") == TEXT_PART)
    _, first, last = grid.unit_ranges(spans)
    codes = {label: row + 1 for row, label in enumerate(labels)}
    row = np.array([codes.get(label, 0) for label in spans["label"]], dtype=np.int64)
    edges = np.zeros((1 + len(labels), len(grid) + 1), dtype=np.int64)
    for rows in (row, np.zeros_like(row)):
        np.add.at(edges, (rows, first), 1)
        np.add.at(edges, (rows, last), -1)
    depth: Bools = np.cumsum(edges, axis=1)[:, :-1] > 0
    return depth


def _units_by_outcome(gold: Bools, judge: Bools, how: str) -> Iterator[Floats]:
    """Yield, for each row, masks of the gold, predicted, matched and right units."""
    others = (judge, gold) if how == "both" else (judge[:1], gold[:1])
    yield from (units.astype(np.float64) for units in (gold, judge, gold & others[0], judge & others[1]))


# --- rows --------------------------------------------------------------------------------------------------------


def _score_rows(
    both: GoldAndJudges,
    judged: JudgeComparison,
    match: str,
    by: Sequence[str],
    fields_of_all: Mapping[str, object],
    clusters: Clusters,
    settings: IntervalSettings,
) -> Iterator[Score]:
    """Yield one row per label and combination of document meta."""
    names = [name for name in by if name != "label"]
    labels = [ANY_LABEL] if fields_of_all["category"] == "gold" else [ANY_LABEL, TYPED_ROW]
    labels += judged.labels[2:] if "label" in by else []
    rows = [judged.labels.index(label) for label in labels]
    everywhere: list[tuple[dict[str, object], Ints]] = [({}, np.arange(len(judged.judge.documents)))]
    positions = {id: position for position, id in enumerate(both.documents["id"])}
    clusters = clusters.select([positions[id] for id in judged.judge.documents])
    for columns, document_positions in _document_groups(both, judged.judge, names) if names else everywhere:
        where = "+".join(f"{name}={value}" for name, value in columns.items()) or None
        sums = judged.sums[rows][:, document_positions]
        average: Average = "macro" if fields_of_all["average"] == "macro" else "micro"
        chosen = clusters.select(document_positions)
        for label, label_sums in zip(labels, sums, strict=True):
            fields = {
                "statistic": "score",
                "label": label,
                **fields_of_all,
                "where": where,
                "documents": len(document_positions),
                **chosen.signature_fields,
            }
            row_columns = {"judge": judged.judge.name, **columns, "label": label, "match": match}
            signature = Signature.from_fields(**fields)
            yield build_score(label_sums, row_columns, signature, average, chosen, settings)


def _document_groups(
    both: GoldAndJudges, judge: JudgeMarks, names: Sequence[str]
) -> Iterator[tuple[dict[str, object], Ints]]:
    rows = (
        both.select_meta(names)
        .filter(pl.col("id").is_in(list(judge.documents)))
        .with_columns(at=pl.int_range(pl.len()))
    )
    parts = rows.partition_by(names, as_dict=True)
    for key in sorted(parts, key=lambda key: tuple(map(str, key))):
        yield dict(zip(names, key, strict=True)), parts[key]["at"].to_numpy().astype(np.int64)


def recall_precision_and_f1(sums: Floats) -> Floats:
    """Return recall, precision and F1, (..., 3), from sums (..., 4).

    F1 is 0 if recall and precision are both 0, and NaN if one of them is NaN.
    """
    recall, precision = (
        ratio_or_nan(sums[..., MATCHED_COLUMN], sums[..., GOLD_COLUMN]),
        ratio_or_nan(sums[..., RIGHT_COLUMN], sums[..., PREDICTED_COLUMN]),
    )
    total = recall + precision
    # Without this case, recall and precision of 0 would divide 0 by 0.
    f1 = np.where(total == 0, 0.0, ratio_or_nan(2 * recall * precision, np.nan_to_num(total)))
    return np.stack([recall, precision, np.where(np.isnan(total), np.nan, f1)], axis=-1)


def score_ratios_per_document(sums: Floats) -> Floats:
    """Return recall, precision and F1 per document, (..., documents, 3).

    All are 1 without any marks, and 0 if only one side marked anything.
    """
    values = np.nan_to_num(recall_precision_and_f1(sums), nan=0.0)
    nothing = (sums[..., GOLD_COLUMN] == 0) & (sums[..., PREDICTED_COLUMN] == 0)
    return np.where(nothing[..., None], 1.0, values)


def build_score(
    sums: Floats,
    columns: Mapping[str, object],
    signature: Signature,
    average: Average = "micro",
    clusters: Clusters | None = None,
    settings: IntervalSettings = DEFAULT_SETTINGS,
) -> Score:
    """Build a score from the sums of documents, (documents, 4); each document is a cluster by default."""
    clusters, total = clusters or text_clusters(len(sums)), sums.sum(axis=0)
    values = recall_precision_and_f1(total) if average == "micro" else score_ratios_per_document(sums).mean(axis=0)
    no_gold = "this row has no gold marks" if not total[GOLD_COLUMN] else ""
    no_marks = "this row has no marks to score" if not total[PREDICTED_COLUMN] else ""
    whys = (no_gold, no_marks, no_gold or no_marks) if average == "micro" else ("", "", "")
    if average == "micro":
        intervals = weighted_intervals(
            lambda weights: recall_precision_and_f1(weights @ sums), clusters, "proportion", settings=settings
        )
    else:
        ratios = score_ratios_per_document(sums)
        intervals = weighted_intervals(
            lambda weights: weights @ ratios / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300),
            clusters,
            "proportion",
            settings=settings,
        )
    recall, precision, f1 = (
        estimate_from_interval(float(value), interval, signature, why)
        for value, interval, why in zip(values, intervals, whys, strict=True)
    )
    gold, predicted, matched, right = map(float, total)
    return Score(columns, gold, predicted, matched, right, recall, precision, f1)
