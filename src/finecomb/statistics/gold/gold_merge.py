"""Merging of annotations into a gold standard by majority, for all protocols (Thomson and Reiter 2020, section 3.5)."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from finecomb.core import frames
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotator, Answer, Answers
from finecomb.core.results import Signature
from finecomb.core.span import Span, covered_length, covered_token_mask, merge_spans
from finecomb.core.study import Study
from finecomb.core.tokens import word_offsets
from finecomb.statistics.agreement import mark_alignment as alignment
from finecomb.statistics.agreement.minimal_repairs import (
    RepairMode,
    apply_repair_mode,
    reject_repairs_with_item_alignment,
)
from finecomb.statistics.gold.decisions import MERGED_ERROR_COLUMNS, NO_ADJUDICATION, collect_adjudication
from finecomb.statistics.gold.mark_normalisation import NormalisationChange, NormalisedView, normalise_marks
from finecomb.statistics.selection.view import NO_TYPE_LABEL, View, as_view

SpanSize = Literal["widest", "narrowest", "majority", "union"]
MinVotes = int | Literal["majority"]
MAJORITY: Literal["majority"] = "majority"
Row = dict[str, Any]
GOLD_ANNOTATOR_ID = "gold"
SPLIT_LABEL = "split"
"""Label shown in tables for an error without a majority label."""


@dataclass(frozen=True)
class Gold:
    """Gold standard, with the marks and clusters from which it was made."""

    study: Study
    """Study with the texts and one annotator, `gold`."""
    view: View
    """Marks of the annotators after the protocol's rules were applied."""
    clusters: pl.DataFrame
    """One row per mark, as returned by `align_marks`, with its weight: the number of annotators it represents."""
    errors: pl.DataFrame
    """One row per cluster: cluster, document, label (or `split`, `no type`), top (votes for that label), votes,
    readers, needed (required votes), kept, decided (by an adjudicator)."""
    changes: tuple[NormalisationChange, ...]
    """Changes made by the normalisation rules."""
    align: str
    """Alignment method of the marks."""
    signature: Signature
    notes: tuple[str, ...] = ()

    @property
    def kept_errors(self) -> pl.DataFrame:
        """Errors with enough votes to be part of gold."""
        return self.errors.filter("kept")

    @property
    def undecided_errors(self) -> pl.DataFrame:
        """Errors left for adjudication: without a majority label or with too few votes."""
        return self.errors.filter(((pl.col("label") == SPLIT_LABEL) | ~pl.col("kept")) & ~pl.col("decided"))


def merge_into_gold(
    study: Study | View,
    min_votes: MinVotes = 2,
    align: str = "auto",
    size: SpanSize = "majority",
    decisions: Study | None = None,
    repairs: RepairMode = "declared",
) -> Gold:
    """Merge annotators into gold: keep errors marked by at least `min_votes` annotators, with the majority label.

    `majority` requires the votes of more than half of a text's annotators, and of at least two. Decisions of
    adjudicators override votes. They are read from `decisions`, by default from the study itself unless it is a view.

    `align` determines which marks are the same error, see `finecomb.statistics.agreement.mark_alignment`. `auto` uses
    the marks' `item` if the source has items, else overlap. Differences in boundaries are removed by the protocol's
    `trim` and then by `size`: the widest or narrowest mark, the tokens marked by more than half of those who marked the
    error, or the union. Guidelines that can be checked are applied first, but not to given items, which already define
    an error. With `repairs="smallest"`, one mark of an annotator and several of another that correct the same words are
    one error. The smaller set is kept, with the other as its alternative, see
    `finecomb.statistics.agreement.minimal_repairs`. A label needs the votes of more than half of those who marked the
    error. Otherwise the label is null and `label_votes` holds the votes. A text with fewer annotators than required
    votes gets an excluded annotation, since no error could pass.
    """
    view = as_view(study)
    _reject_invalid_merge_options(view, min_votes, size)
    if align != "auto":
        by = align
    else:
        # Items of the source identify the marks of one error; overlap is only a guess.
        by = "item" if view.study.marks["item"].null_count() < len(view.study.marks) else "overlap"
    reject_repairs_with_item_alignment(repairs, by)
    normal, clusters, errors = normalise_and_cluster_marks(view, by, min_votes, repairs)
    source = decisions or (study if isinstance(study, Study) else None)
    decided = collect_adjudication(source, view, clusters) if source is not None else NO_ADJUDICATION
    errors = decided.apply_to_errors(errors)
    fields = {"min_votes": min_votes, "align": by, "size": size, **normal.view.fields}
    annotations = _build_gold_annotations(
        normal.view, min_votes, decided.texts, Signature.from_fields(statistic=GOLD_ANNOTATOR_ID, **fields)
    )
    merger = _MarkMerger(normal, clusters, size)
    marks = decided.add_gold_marks(
        merger.build_marks(errors.filter(pl.col("kept") & ~pl.col("decided"))), f"/{GOLD_ANNOTATOR_ID}"
    )
    changes = (*normal.changes, *merger.resized)
    signature = Signature.from_fields(
        statistic=GOLD_ANNOTATOR_ID, **fields, annotators=view.study.annotations["annotator"].n_unique()
    )
    notes = tuple(_merge_notes(annotations, normal.breaches if by == "item" else 0, min_votes)) + decided.notes
    gold_study = _build_gold_study(view.study, annotations, marks)
    return Gold(gold_study, normal.view, clusters, errors, changes, by, signature, notes)


def normalise_and_cluster_marks(
    view: View, by: str, min_votes: MinVotes, repairs: RepairMode = "declared"
) -> tuple[NormalisedView, pl.DataFrame, pl.DataFrame]:
    """Apply the protocol's rules to the marks, and return the marks, their clusters, and the errors with votes.

    These are the first steps of `merge_into_gold`. The tables are those of `Gold.clusters` and `Gold.errors`, before
    any decisions of adjudicators.
    """
    normal = normalise_marks(view, guidelines=by != "item")
    normal = replace(normal, view=apply_repair_mode(normal.view, repairs))
    clusters = _add_vote_weights(alignment.align_marks(normal.view, by), normal.view)
    # One row per cluster with its votes and the label given by more than half of those who marked it
    readers = normal.view.study.annotations.group_by("document").agg(readers=pl.col("readers").fill_null(1).sum())
    given = clusters.group_by("cluster", "document", "label", maintain_order=True).agg(top=pl.col("weight").sum())
    given = given.with_columns(votes=pl.col("top").sum().over("cluster"))
    best = given.sort("top", descending=True, maintain_order=True).unique("cluster", keep="first", maintain_order=True)
    majority = pl.when(pl.col("top") * 2 > pl.col("votes")).then("label").otherwise(pl.lit(SPLIT_LABEL))
    rows = best.with_columns(label=majority).join(readers, on="document", how="left", maintain_order="left")
    majority_votes = pl.max_horizontal(2, pl.col("readers") // 2 + 1)
    rows = rows.with_columns(needed=pl.lit(min_votes) if isinstance(min_votes, int) else majority_votes)
    rows = rows.with_columns(
        kept=(pl.col("votes") >= pl.col("needed")) & (pl.col("readers") >= pl.col("needed")), decided=pl.lit(False)
    )
    return normal, clusters, rows.select(MERGED_ERROR_COLUMNS).sort("cluster")


def _reject_invalid_merge_options(view: View, min_votes: MinVotes, size: str) -> None:
    if size not in SPAN_MERGERS:
        raise FinecombError(f"unknown size {size!r}{did_you_mean(size, SPAN_MERGERS)}")
    if isinstance(min_votes, str) and min_votes != MAJORITY:
        raise FinecombError(f"{param('min_votes')} must be a number or 'majority', found {min_votes!r}")
    if isinstance(min_votes, int) and min_votes < 1:
        raise FinecombError(f"{param('min_votes')} must be at least 1, found {min_votes}")
    if view.study.annotations.is_empty():
        _reject_protocol_without_work(view)
        raise FinecombError("no submitted annotations to merge; annotate texts first, or change the selection")
    if view.protocol is None:
        raise FinecombError("the study has no protocol, so its labels are unknown; add the protocol to the study")


def _reject_protocol_without_work(view: View) -> None:
    """Raise an error if the study has annotations, but none under the given protocol."""
    used = sorted(view.source.submitted_work().annotations["protocol"].unique()) if view.source else []
    if used and view.protocol is not None and view.protocol.id not in used:
        raise ParameterError(
            f"the study's annotations use protocol {', '.join(used)}, not {view.protocol.id}",
            parameter="protocol",
            choices=used,
        )


def _build_gold_study(source: Study, annotations: pl.DataFrame, marks: pl.DataFrame) -> Study:
    annotators = frames.build_frame(
        frames.ANNOTATOR_COLUMNS, [frames.annotator_row(Annotator(id=GOLD_ANNOTATOR_ID, kind="gold"))]
    )
    units = frames.build_frame(frames.UNIT_COLUMNS, [])
    return Study(source.settings, source.protocols, source.documents, annotators, annotations, units, marks)


def required_vote_count(readers: int, min_votes: MinVotes) -> int:
    """Return how many annotators must mark an error; a majority is more than half of a text's annotators, at least two.

    >>> [required_vote_count(readers, "majority") for readers in (1, 2, 3, 4, 5)]
    [2, 2, 2, 3, 3]
    """
    return max(2, readers // 2 + 1) if isinstance(min_votes, str) else min_votes


def _build_gold_annotations(
    view: View, min_votes: MinVotes, decided: Sequence[str], signature: Signature
) -> pl.DataFrame:
    """Build gold's annotations, one per annotated text. Texts in `decided` may have fewer annotators than required."""
    assert view.protocol is not None
    work = view.study.annotations.group_by("document").agg(made_from="id", readers=pl.col("readers").fill_null(1).sum())
    order = view.study.documents.select(document="id")
    texts = order.join(work, on="document", how="left", maintain_order="left")
    rows = []
    for document, ids, readers in texts.iter_rows():
        needed = required_vote_count(readers, min_votes)
        reason = (
            f"{readers} of the {needed} annotators required for gold"
            if readers < needed and document not in decided
            else ""
        )
        row = {
            "id": f"{document}/{GOLD_ANNOTATOR_ID}",
            "document": document,
            "annotator": GOLD_ANNOTATOR_ID,
            "protocol": view.protocol.id,
            "round": 0,
            "phase": "work",
            "status": "excluded" if reason else "submitted",
            "excluded": frames.encode_json_cell({"by": "finecomb", "reason": reason}) if reason else None,
            "made_from": frames.encode_list_cell(ids),
            "meta": frames.encode_json_cell({"gold": str(signature), "readers": readers}),
        }
        rows.append(tuple(row.get(name) for name in frames.ANNOTATION_COLUMNS))
    return frames.build_frame(frames.ANNOTATION_COLUMNS, rows)


def _merge_notes(annotations: pl.DataFrame, breaches: int, min_votes: MinVotes) -> Iterator[str]:
    # Under `majority`, only texts with a single annotator fall short of the two required votes.
    required = required_vote_count(1, min_votes)
    short = annotations.filter(pl.col("excluded").is_not_null())["document"].to_list()
    if short:
        listed = ", ".join(short[:5]) + (", ..." if len(short) > 5 else "")
        yield f"{len(short)} texts have fewer than {required} annotators and are excluded from gold ({listed})"
    if breaches:
        yield f"{breaches} marks break the guidelines; they are kept because the source defines the errors"


# --- votes -------------------------------------------------------------------------------------------------------


def _add_vote_weights(clusters: pl.DataFrame, view: View) -> pl.DataFrame:
    """Add the number of annotators that each mark represents: 1, the votes of a pooled mark, or 0 if repeated."""
    votes = view.study.marks.select("votes", mark="id")
    kinds = view.study.annotators.select("kind", annotator="id")
    rows = clusters.join(votes, on="mark", how="left", maintain_order="left")
    rows = rows.join(kinds, on="annotator", how="left", maintain_order="left")
    first = pl.int_range(pl.len()).over("cluster", "annotator") == 0
    weight = pl.when(pl.col("kind") == "pooled").then(pl.col("votes").fill_null(1)).otherwise(first)
    return rows.with_columns(weight=weight.cast(pl.Int64)).drop("votes", "kind")


# --- merging the marks of an error -------------------------------------------------------------------------------


class _MarkMerger:
    """Builder of gold marks that records which marks were resized."""

    def __init__(self, normal: NormalisedView, clusters: pl.DataFrame, size: SpanSize) -> None:
        assert normal.view.protocol is not None
        self.protocol, self.origins, self.size = normal.view.protocol, normal.origins, size
        self.texts = frames.text_by_part(normal.view.study.documents)
        self.order = normal.view.study.documents.select(document="id").with_row_index("place")
        columns = clusters.select("mark", "cluster", "weight", "reading_of", "label")
        marks = normal.view.study.marks.drop("label")  # an alternative of an error takes the label of the error
        self.members = columns.join(marks, left_on="mark", right_on="id", maintain_order="left")
        self.resized: list[NormalisationChange] = []

    def build_marks(self, errors: pl.DataFrame) -> pl.DataFrame:
        """Return gold's marks table, one row per error in text order."""
        rows = errors.join(self.order, on="document", how="left", maintain_order="left")
        rows = rows.sort("place", "cluster").with_columns(number=pl.int_range(1, pl.len() + 1).over("document"))
        members = self.members.join(errors.select("cluster"), on="cluster", how="semi", maintain_order="left")
        groups: dict[int, list[Row]] = {}
        for member in members.iter_rows(named=True):
            groups.setdefault(member["cluster"], []).append(member)
        cells = (self._gold_mark_row(error, groups[error["cluster"]]) for error in rows.iter_rows(named=True))
        return frames.build_frame(
            frames.MARK_COLUMNS, [tuple(row.get(name) for name in frames.MARK_COLUMNS) for row in cells]
        )

    def _gold_mark_row(self, error: Row, members: Sequence[Row]) -> Row:
        """Return the gold mark of an error as a row of `MARKS`."""
        document = error["document"]
        label = None if error["label"] in (SPLIT_LABEL, NO_TYPE_LABEL) else error["label"]
        answers = [frames.parse_answers(member["answers"]) for member in members]
        items = {member["item"] for member in members}
        origins = dict.fromkeys(self.origins.get(member["mark"], member["mark"]) for member in members)
        sets = [choice for member in members for choice in frames.parse_json_list(member["alternatives"])]
        return {
            "id": f"{document}/{GOLD_ANNOTATOR_ID}/{error['number']}",
            "annotation": f"{document}/{GOLD_ANNOTATOR_ID}",
            "document": document,
            "annotator": GOLD_ANNOTATOR_ID,
            "protocol": self.protocol.id,
            "label": label,
            "answers": frames.encode_json_cell(merge_answers(answers, self.protocol, label)),
            **_antecedent_cells([member for member in members if member["label"] == label] or members),
            "votes": error["votes"],
            "label_votes": frames.encode_json_cell(_label_votes(members)) if error["label"] == SPLIT_LABEL else None,
            "item": items.pop() if len(items) == 1 else None,
            "made_from": frames.encode_list_cell(list(origins)),
            "alternatives": frames.encode_json_cell(
                tuple({frames.encode_list_cell(choice): choice for choice in sets}.values())
            ),
            **self._merge_spans(document, members),
        }

    def _merge_spans(self, document: str, members: Sequence[Row]) -> Row:
        """Return spans and quotes of the requested size, and record a change for each mark of another size."""
        located = [
            (member, frames.parse_spans(member["spans"]))
            for member in members
            if member["spans"] and member["reading_of"] is None
        ]
        if not located:
            return {
                "spans": "[]",
                "quotes": frames.encode_list_cell(members[0]["quotes"]),
                "unlocated": members[0]["unlocated"],
            }
        sizes = [spans for _, spans in located]
        weights = [member["weight"] for member, _ in located]
        same = len(set(sizes)) == 1
        spans = (
            sizes[0]
            if same
            else SPAN_MERGERS[self.size](sizes, weights, lambda part: self.texts.get((document, part), ""))
        )
        quotes = [span.extract(self.texts.get((document, span.part), "")) for span in spans]
        for member, other in located:
            if merge_spans(other) != merge_spans(spans):
                words = (" … ".join(member["quotes"]), " … ".join(quotes))
                self.resized.append(NormalisationChange(document, member["annotator"], member["mark"], "size", *words))
        return {"spans": frames.encode_spans_cell(spans), "quotes": frames.encode_list_cell(quotes), "unlocated": ""}


def _antecedent_cells(members: Sequence[Row]) -> Row:
    """Return the antecedents of the first mark that has any, as table cells."""
    first = next((member for member in members if member["antecedents"] is not None), None)
    if first is None:
        return {}
    spans, quotes = (frames.encode_list_cell(first[name]) for name in ("antecedents", "antecedent_quotes"))
    return {"antecedents": spans, "antecedent_quotes": quotes, "antecedent_unlocated": first["antecedent_unlocated"]}


def _label_votes(members: Sequence[Row]) -> dict[str, int]:
    votes: Counter[str] = Counter()
    for member in members:
        votes[member["label"] or NO_TYPE_LABEL] += member["weight"]
    return dict(votes)


def merge_answers(given: Sequence[Answers], protocol: Protocol, label: str | None) -> Answers:
    """Merge the answers about one error: differing texts are joined, other answers take the most frequent value.

    In a tie, the first answer is used. Answers to questions that the label does not ask are dropped.
    """
    questions = {question.name: question for question in protocol.questions_for_label(label)}
    merged: dict[str, Answer] = {}
    for name in dict.fromkeys(name for answers in given for name in answers):
        if name in questions:
            merged[name] = questions[name].scale_type.merge([answers[name] for answers in given if name in answers])
    return merged


# --- span sizes --------------------------------------------------------------------------------------------------

Spans = tuple[Span, ...]
PartTextLookup = Callable[[str], str]
"""Function that takes the name of a document part and returns its text."""
_cached_token_offsets = functools.lru_cache(maxsize=16)(word_offsets)  # the errors of one text are adjacent


def _widest_spans(sizes: Sequence[Spans], weights: Sequence[int], text_of: PartTextLookup) -> Spans:
    return min(sizes, key=lambda spans: (-covered_length(spans), spans))


def _narrowest_spans(sizes: Sequence[Spans], weights: Sequence[int], text_of: PartTextLookup) -> Spans:
    return min(sizes, key=lambda spans: (covered_length(spans), spans))


def _union_spans(sizes: Sequence[Spans], weights: Sequence[int], text_of: PartTextLookup) -> Spans:
    return tuple(sorted(merge_spans(itertools.chain.from_iterable(sizes))))


def _majority_spans(sizes: Sequence[Spans], weights: Sequence[int], text_of: PartTextLookup) -> Spans:
    """Return the runs of tokens that more than half of the marks cover, or the widest mark if there is no such run."""
    runs: list[Span] = []
    for part in dict.fromkeys(span.part for spans in sizes for span in spans):
        offsets = _cached_token_offsets(text_of(part))
        shares = [
            weight * covered_token_mask([span for span in spans if span.part == part], offsets)
            for spans, weight in zip(sizes, weights, strict=True)
        ]
        chosen = np.flatnonzero(np.sum(shares, axis=0) * 2 > sum(weights))
        for run in np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1) if len(chosen) else ():
            runs.append(Span(int(offsets[run[0], 0]), int(offsets[run[-1], 1]), part))
    return tuple(sorted(runs)) or _widest_spans(sizes, weights, text_of)


SPAN_MERGERS: dict[str, Callable[[Sequence[Spans], Sequence[int], PartTextLookup], Spans]] = {
    "widest": _widest_spans,
    "narrowest": _narrowest_spans,
    "majority": _majority_spans,
    "union": _union_spans,
}
