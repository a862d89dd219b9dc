"""Annotators merged into one gold standard by majority: Thomson and Reiter (2020), section 3.5, for every protocol."""

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
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean
from finecomb.core.estimate import Signature
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotator, Answer, Answers
from finecomb.core.span import Span, covered_length, covered_token_mask, merge_spans
from finecomb.core.study import Study
from finecomb.core.tokens import words
from finecomb.statistics.agreement import mark_alignment as alignment
from finecomb.statistics.agreement.minimal_repairs import Repairs, apply_repair_mode, reject_repairs_with_item_alignment
from finecomb.statistics.gold.decisions import ERROR_COLUMNS, NO_ADJUDICATION, collect_adjudication
from finecomb.statistics.gold.mark_normalisation import NormalisationChange, NormalisedView, normalise_marks
from finecomb.statistics.selection.view import NO_TYPE, View, as_view

SpanSize = Literal["widest", "narrowest", "majority", "union"]
MinVotes = int | Literal["majority"]
MAJORITY: Literal["majority"] = "majority"
Row = dict[str, Any]
GOLD = "gold"
SPLIT = "split"
"""What tables print for an error on whose label there is no majority."""


@dataclass(frozen=True)
class Gold:
    """A gold standard, and all that went into it."""

    study: Study
    """The texts with one annotator, `gold`."""
    view: View
    """What the annotators marked, after the protocol's rules were applied."""
    clusters: pl.DataFrame
    """One row per mark, as `align` gives them, with weight: how many readers it stands for."""
    errors: pl.DataFrame
    """One row per cluster: cluster, document, label (or `split`, `no type`), top (votes for that label), votes,
    readers, needed (votes that gold asks for), kept, decided (by an adjudicator)."""
    changes: tuple[NormalisationChange, ...]
    """What was normalised and why."""
    align: str
    """How marks were aligned."""
    signature: Signature
    notes: tuple[str, ...] = ()

    @property
    def kept_errors(self) -> pl.DataFrame:
        """The errors that have enough votes."""
        return self.errors.filter("kept")

    @property
    def undecided_errors(self) -> pl.DataFrame:
        """What is left for adjudication: splits, and errors with too few votes."""
        return self.errors.filter(((pl.col("label") == SPLIT) | ~pl.col("kept")) & ~pl.col("decided"))


def gold(
    study: Study | View,
    min_votes: MinVotes = 2,
    align: str = "auto",
    size: SpanSize = "majority",
    decisions: Study | None = None,
    repairs: Repairs = "declared",
) -> Gold:
    """Merge the annotators of a study: errors that at least `min_votes` of them marked, with the majority's label.

    `majority` asks for more than half of a text's readers, and for two at least. What somebody decided about an error
    counts instead of votes: decisions are those in `decisions`, or in the study itself unless it is a view.

    `align` says which marks are one error, see `finecomb.statistics.agreement.mark_alignment`; `auto` goes by the
    marks' `item` where the
    source gives one, else by overlap. Differences of size are removed by the protocol's `trim` and then by `size`: the
    widest or narrowest mark, the tokens that more than half of those who marked the error have, or all of them. The
    guidelines that can be checked are applied first, but not to given items, which say already what one error is.
    With `repairs="smallest"` one mark of a reader and several of another that put the same words right are one error,
    the smaller set, with the other as its alternative: see `finecomb.statistics.agreement.minimal_repairs`.
    A label needs more than half of those who marked the error; without one the label is null and `label_votes` says
    what was given. A text with fewer readers than votes needed gets an annotation set aside, since nothing could pass.
    """
    view = as_view(study)
    _reject_invalid_merge_options(view, min_votes, size)
    by = _resolve_alignment(view, align)
    reject_repairs_with_item_alignment(repairs, by)
    normal, clusters, errors = normalise_and_cluster_marks(view, by, min_votes, repairs)
    source = decisions or (study if isinstance(study, Study) else None)
    decided = collect_adjudication(source, view, clusters) if source is not None else NO_ADJUDICATION
    errors = decided.apply_to_errors(errors)
    fields = {"min_votes": min_votes, "align": by, "size": size, **normal.view.fields}
    annotations = _build_gold_annotations(
        normal.view, min_votes, decided.texts, Signature.from_fields(statistic=GOLD, **fields)
    )
    merger = _MarkMerger(normal, clusters, size)
    marks = decided.add_gold_marks(merger.build_marks(errors.filter(pl.col("kept") & ~pl.col("decided"))), f"/{GOLD}")
    changes = (*normal.changes, *merger.resized)
    signature = Signature.from_fields(
        statistic=GOLD, **fields, annotators=view.study.annotations["annotator"].n_unique()
    )
    notes = tuple(_merge_notes(annotations, normal.breaches if by == "item" else 0, min_votes)) + decided.notes
    gold_study = _build_gold_study(view.study, annotations, marks)
    return Gold(gold_study, normal.view, clusters, errors, changes, by, signature, notes)


def normalise_and_cluster_marks(
    view: View, by: str, min_votes: MinVotes, repairs: Repairs = "declared"
) -> tuple[NormalisedView, pl.DataFrame, pl.DataFrame]:
    """The marks after the protocol's rules, the clusters that are one error, and the errors with their votes.

    What `gold` begins with; frames as in `Gold.clusters` and `Gold.errors`, before anybody's decisions.
    """
    normal = normalise_marks(view, guidelines=by != "item")
    normal = replace(normal, view=apply_repair_mode(normal.view, repairs))
    clusters = _add_vote_weights(alignment.align(normal.view, by), normal.view)
    return normal, clusters, _tally_error_votes(clusters, normal.view, min_votes)


def _reject_invalid_merge_options(view: View, min_votes: MinVotes, size: str) -> None:
    if size not in SPAN_MERGERS:
        raise FinecombError(f"a size cannot be {size!r}{did_you_mean(size, SPAN_MERGERS)}")
    if isinstance(min_votes, str) and min_votes != MAJORITY:
        raise FinecombError(f"an error needs a number of votes or `majority`, not {min_votes!r}")
    if isinstance(min_votes, int) and min_votes < 1:
        raise FinecombError(f"an error needs at least one vote, not {min_votes}")
    if view.study.annotations.is_empty():
        _reject_other_protocol(view)
        raise FinecombError("the study has no annotations to merge")
    if view.protocol is None:
        raise FinecombError("the study has no protocol, so nothing says which labels there are")


def _reject_other_protocol(view: View) -> None:
    """Refuse a protocol under which the study has no annotations, where it has some under another."""
    used = sorted(view.source.submitted_work().annotations["protocol"].unique()) if view.source else []
    if used and view.protocol is not None and view.protocol.id not in used:
        raise ParameterError(
            f"the study's annotations are under {', '.join(used)}, not under {view.protocol.id}",
            parameter="protocol",
            choices=used,
        )


def _resolve_alignment(view: View, align: str) -> str:
    if align != "auto":
        return align
    return "item" if view.study.marks["item"].null_count() < len(view.study.marks) else "overlap"


def _build_gold_study(source: Study, annotations: pl.DataFrame, marks: pl.DataFrame) -> Study:
    annotators = frames.build_frame(frames.ANNOTATORS, [frames.annotator_row(Annotator(id=GOLD, kind="gold"))])
    units = frames.build_frame(frames.UNITS, [])
    return Study(source.settings, source.protocols, source.documents, annotators, annotations, units, marks)


def required_vote_count(readers: int, min_votes: MinVotes) -> int:
    """How many of a text's readers must have marked an error; a majority is more than half, and two at least.

    >>> [required_vote_count(readers, "majority") for readers in (1, 2, 3, 4, 5)]
    [2, 2, 2, 3, 3]
    """
    return max(2, readers // 2 + 1) if isinstance(min_votes, str) else min_votes


def _build_gold_annotations(
    view: View, min_votes: MinVotes, decided: Sequence[str], signature: Signature
) -> pl.DataFrame:
    """Gold's annotations frame: one row for each text that was read; a text `decided` about needs no votes."""
    assert view.protocol is not None
    work = view.study.annotations.group_by("document").agg(made_from="id", readers=pl.col("readers").fill_null(1).sum())
    order = view.study.documents.select(document="id")
    texts = order.join(work, on="document", how="left", maintain_order="left")
    rows = []
    for document, ids, readers in texts.iter_rows():
        needed = required_vote_count(readers, min_votes)
        reason = (
            f"{readers} of the {needed} readers that gold needs" if readers < needed and document not in decided else ""
        )
        row = {
            "id": f"{document}/{GOLD}",
            "document": document,
            "annotator": GOLD,
            "protocol": view.protocol.id,
            "round": 0,
            "phase": "work",
            "status": "excluded" if reason else "submitted",
            "excluded": frames.json_cell({"by": "finecomb", "reason": reason}) if reason else None,
            "made_from": frames.list_cell(ids),
            "meta": frames.json_cell({"gold": str(signature), "readers": readers}),
        }
        rows.append(tuple(row.get(name) for name in frames.ANNOTATIONS))
    return frames.build_frame(frames.ANNOTATIONS, rows)


def _merge_notes(annotations: pl.DataFrame, breaches: int, min_votes: MinVotes) -> Iterator[str]:
    least = required_vote_count(1, min_votes)
    short = annotations.filter(pl.col("excluded").is_not_null())["document"].to_list()
    if short:
        listed = ", ".join(short[:5]) + (", ..." if len(short) > 5 else "")
        yield f"{len(short)} texts have fewer than {least} readers and get no gold ({listed})"
    if breaches:
        yield f"{breaches} marks do not follow the guidelines; they are kept, since the source says what one error is"


# --- votes -------------------------------------------------------------------------------------------------------


def _add_vote_weights(clusters: pl.DataFrame, view: View) -> pl.DataFrame:
    """How many readers each mark stands for: one, or the votes of pooled readers; a second mark of one reader none."""
    votes = view.study.marks.select("votes", mark="id")
    kinds = view.study.annotators.select("kind", annotator="id")
    rows = clusters.join(votes, on="mark", how="left", maintain_order="left")
    rows = rows.join(kinds, on="annotator", how="left", maintain_order="left")
    first = pl.int_range(pl.len()).over("cluster", "annotator") == 0
    weight = pl.when(pl.col("kind") == "pooled").then(pl.col("votes").fill_null(1)).otherwise(first)
    return rows.with_columns(weight=weight.cast(pl.Int64)).drop("votes", "kind")


def _tally_error_votes(clusters: pl.DataFrame, view: View, min_votes: MinVotes) -> pl.DataFrame:
    """One row per cluster with its votes, and the label that more than half of those who marked it gave."""
    readers = view.study.annotations.group_by("document").agg(readers=pl.col("readers").fill_null(1).sum())
    given = clusters.group_by("cluster", "document", "label", maintain_order=True).agg(top=pl.col("weight").sum())
    given = given.with_columns(votes=pl.col("top").sum().over("cluster"))
    best = given.sort("top", descending=True, maintain_order=True).unique("cluster", keep="first", maintain_order=True)
    majority = pl.when(pl.col("top") * 2 > pl.col("votes")).then("label").otherwise(pl.lit(SPLIT))
    rows = best.with_columns(label=majority).join(readers, on="document", how="left", maintain_order="left")
    majority_votes = pl.max_horizontal(2, pl.col("readers") // 2 + 1)
    rows = rows.with_columns(needed=pl.lit(min_votes) if isinstance(min_votes, int) else majority_votes)
    rows = rows.with_columns(
        kept=(pl.col("votes") >= pl.col("needed")) & (pl.col("readers") >= pl.col("needed")), decided=pl.lit(False)
    )
    return rows.select(ERROR_COLUMNS).sort("cluster")


# --- one mark of many --------------------------------------------------------------------------------------------


class _MarkMerger:
    """Makes the marks of gold; apart from the rest so that what was resized can be told."""

    def __init__(self, normal: NormalisedView, clusters: pl.DataFrame, size: SpanSize) -> None:
        assert normal.view.protocol is not None
        self.protocol, self.origins, self.size = normal.view.protocol, normal.origins, size
        self.texts = frames.part_texts(normal.view.study.documents)
        self.order = normal.view.study.documents.select(document="id").with_row_index("place")
        columns = clusters.select("mark", "cluster", "weight", "reading_of", "label")
        marks = normal.view.study.marks.drop("label")  # another reading of an error has the label of the first
        self.members = columns.join(marks, left_on="mark", right_on="id", maintain_order="left")
        self.resized: list[NormalisationChange] = []

    def build_marks(self, errors: pl.DataFrame) -> pl.DataFrame:
        """Gold's marks frame: one row for each error, text by text."""
        rows = errors.join(self.order, on="document", how="left", maintain_order="left")
        rows = rows.sort("place", "cluster").with_columns(number=pl.int_range(1, pl.len() + 1).over("document"))
        members = self.members.join(errors.select("cluster"), on="cluster", how="semi", maintain_order="left")
        groups: dict[int, list[Row]] = {}
        for member in members.iter_rows(named=True):
            groups.setdefault(member["cluster"], []).append(member)
        cells = (self._gold_mark_row(error, groups[error["cluster"]]) for error in rows.iter_rows(named=True))
        return frames.build_frame(frames.MARKS, [tuple(row.get(name) for name in frames.MARKS) for row in cells])

    def _gold_mark_row(self, error: Row, members: Sequence[Row]) -> Row:
        """The gold mark of an error, as a row of `MARKS`."""
        document = error["document"]
        label = None if error["label"] in (SPLIT, NO_TYPE) else error["label"]
        answers = [frames.parse_answers(member["answers"]) for member in members]
        items = {member["item"] for member in members}
        origins = dict.fromkeys(self.origins.get(member["mark"], member["mark"]) for member in members)
        return {
            "id": f"{document}/{GOLD}/{error['number']}",
            "annotation": f"{document}/{GOLD}",
            "document": document,
            "annotator": GOLD,
            "protocol": self.protocol.id,
            "label": label,
            "answers": frames.json_cell(merge_answers(answers, self.protocol, label)),
            **_antecedent_cells([member for member in members if member["label"] == label] or members),
            "votes": error["votes"],
            "label_votes": frames.json_cell(_label_votes(members)) if error["label"] == SPLIT else None,
            "item": items.pop() if len(items) == 1 else None,
            "made_from": frames.list_cell(list(origins)),
            "alternatives": _alternatives_cell(members),
            **self._merge_spans(document, members),
        }

    def _part_text(self, document: str, part: str) -> str:
        return self.texts.get((document, part), "")

    def _merge_spans(self, document: str, members: Sequence[Row]) -> Row:
        """Spans and quotes of the size asked for; every mark of another size is a change."""
        located = [
            (member, frames.parse_spans(member["spans"]))
            for member in members
            if member["spans"] and member["reading_of"] is None
        ]
        if not located:
            return {
                "spans": "[]",
                "quotes": frames.list_cell(members[0]["quotes"]),
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
        return {"spans": frames.spans_cell(spans), "quotes": frames.list_cell(quotes), "unlocated": ""}


def _antecedent_cells(members: Sequence[Row]) -> Row:
    """The earlier words that the first of the marks with any refers to, as cells."""
    first = next((member for member in members if member["antecedents"] is not None), None)
    if first is None:
        return {}
    spans, quotes = (frames.list_cell(first[name]) for name in ("antecedents", "antecedent_quotes"))
    return {"antecedents": spans, "antecedent_quotes": quotes, "antecedent_unlocated": first["antecedent_unlocated"]}


def _alternatives_cell(members: Sequence[Row]) -> str | None:
    """Every alternative of the marks once, as JSON."""
    sets = [choice for member in members for choice in frames.parse_json_list(member["alternatives"])]
    return frames.json_cell(tuple({frames.list_cell(choice): choice for choice in sets}.values()))


def _label_votes(members: Sequence[Row]) -> dict[str, int]:
    votes: Counter[str] = Counter()
    for member in members:
        votes[member["label"] or NO_TYPE] += member["weight"]
    return dict(votes)


def merge_answers(given: Sequence[Answers], protocol: Protocol, label: str | None) -> Answers:
    """What was answered about one error: words that differ side by side, of anything else the most frequent answer.

    Of answers equally frequent the first counts. Answers to questions that the label does not ask stay behind.
    """
    questions = {question.name: question for question in protocol.questions_of(label)}
    merged: dict[str, Answer] = {}
    for name in dict.fromkeys(name for answers in given for name in answers):
        if name in questions:
            merged[name] = questions[name].scale_type.merge([answers[name] for answers in given if name in answers])
    return merged


# --- sizes -------------------------------------------------------------------------------------------------------

Spans = tuple[Span, ...]
PartTextLookup = Callable[[str], str]
"""The words of a part of a text by its name."""
_tokens = functools.lru_cache(maxsize=16)(words)  # the errors of a text come one after another


def _widest_spans(sizes: Sequence[Spans], weights: Sequence[int], text_of: PartTextLookup) -> Spans:
    return min(sizes, key=lambda spans: (-covered_length(spans), spans))


def _narrowest_spans(sizes: Sequence[Spans], weights: Sequence[int], text_of: PartTextLookup) -> Spans:
    return min(sizes, key=lambda spans: (covered_length(spans), spans))


def _union_spans(sizes: Sequence[Spans], weights: Sequence[int], text_of: PartTextLookup) -> Spans:
    return tuple(sorted(merge_spans(itertools.chain.from_iterable(sizes))))


def _majority_spans(sizes: Sequence[Spans], weights: Sequence[int], text_of: PartTextLookup) -> Spans:
    """Runs of the tokens that more than half of the marks touch; the widest mark where there is none."""
    runs: list[Span] = []
    for part in dict.fromkeys(span.part for spans in sizes for span in spans):
        offsets = _tokens(text_of(part))
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
