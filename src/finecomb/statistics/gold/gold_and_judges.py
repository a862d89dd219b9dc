"""Gold on one side, one or more judges on the other: read, held together, and refused when they do not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, diff_excerpt, param
from finecomb.core.frames import json_entry, json_entry_names, meta_entry, parse_json_object
from finecomb.core.protocol import Protocol
from finecomb.core.study import Study
from finecomb.core.text_hash import text_hash
from finecomb.statistics.agreement.minimal_repairs import (
    AlternativeSets,
    Repairs,
    add_mark_alternatives,
    smallest_repairs_by_mark,
)
from finecomb.statistics.gold.decisions import decision_counts
from finecomb.statistics.gold.gold_merge import SPLIT
from finecomb.statistics.selection.view import NO_TYPE, Filters, view

Ints = NDArray[np.int64]
UnreadPolicy = Literal["empty", "leave-out"]

MARK_COLUMNS = ["id", "document", "label", "spans", "quotes", "alternatives", "answers"]


@dataclass(frozen=True, slots=True)
class JudgeMarks:
    """Somebody to be scored: what they marked, and on which texts that counts."""

    name: str
    marks: pl.DataFrame
    """id, document, label, spans, quotes, alternatives, answers; in text order."""
    documents: tuple[str, ...]
    """Ids of the texts that count for this judge, in the order of the study."""
    gold_repairs: AlternativeSets = field(default_factory=dict)
    """Alternatives of gold marks, by their id, that only this judge's marks show."""


@dataclass(frozen=True, slots=True)
class GoldAndJudges:
    """Gold and the judges on the same texts."""

    documents: pl.DataFrame
    """As in a study."""
    gold: pl.DataFrame
    """Gold marks, with the columns of a judge's."""
    judges: tuple[JudgeMarks, ...]
    protocol: Protocol
    labels: tuple[str, ...]
    """Labels that gold or a judge used, in the order of gold's protocol; `split` and `no type` are not among them."""
    fields: dict[str, object]
    """For the signature."""
    notes: tuple[str, ...]

    def select_meta(self, names: Sequence[str]) -> pl.DataFrame:
        """Document ids with the meta columns asked for."""
        meta_names = json_entry_names(self.documents["meta"])
        for name in names:
            if name not in meta_names:
                raise ParameterError(
                    f"{param('by', name)}: documents have no meta of that name{did_you_mean(name, meta_names)}",
                    parameter="by",
                )
        return self.documents.select("id", *[meta_entry(name) for name in names])


def pair_gold_with_judges(
    gold: Study,
    predicted: Study | None = None,
    gold_annotator: str = "",
    judges: Sequence[str] = (),
    protocol: str = "",
    unread: UnreadPolicy = "empty",
    repairs: Repairs = "declared",
) -> GoldAndJudges:
    """Gold of one study and the judges of another, or of the same one when there is no other.

    Gold is the annotator of kind `gold`, or the one named. Judges are all others, or those named. A text counts where
    gold or the judge has an annotation; with `unread="leave-out"` where both have. Work that was set aside on either
    side never counts. With `repairs="smallest"` one mark of gold and several of a judge, or the other way round, that
    put the same words right are alternatives of each other.
    """
    if unread not in ("empty", "leave-out"):
        raise FinecombError(f"unread texts are 'empty' or 'leave-out', not {unread!r}")
    other = gold if predicted is None else predicted
    truth = gold_annotator or find_gold_annotator(gold)
    require_same_texts(gold, other)
    gold_view = view(gold, Filters(protocol=protocol, annotators=(truth,)))
    if gold_view.protocol is None:
        raise FinecombError("gold has no protocol, so nothing says which labels there are")
    named = tuple(judges) or tuple(_default_judges(other, truth, predicted is not None))
    for name in (truth, *(named if predicted is None else ())):
        _reject_other_protocol(gold, name, gold_view.protocol)
    judge_view = view(other, Filters(protocol=protocol if predicted is None else "", annotators=named))
    marks = _marks_in_text_order(gold_view.study, gold.documents)
    notes: list[str] = list(_adjudication_notes(gold, truth))
    scored = [
        _build_judge_marks(
            name,
            judge_view.study.filter_annotations(pl.col("annotator") == name),
            gold,
            other,
            gold_view.study,
            truth,
            unread,
            notes,
        )
        for name in sorted(set(named))
    ]
    given = pl.concat([marks["label"], *(judge.marks["label"] for judge in scored)]).unique().drop_nulls().to_list()
    labels = [label.name for label in gold_view.protocol.labels if label.name in given]
    strange = sorted(set(given) - set(labels) - {SPLIT, NO_TYPE})
    if strange:
        notes.append(f"labels that gold's protocol {gold_view.protocol.id} does not have: {', '.join(strange)}")
    if repairs == "smallest":
        scored = [_add_inferred_repairs(judge, marks, gold.documents) for judge in scored]
    _add_mark_notes(marks, scored, notes)
    notes += _training_overlap_notes(scored, other)
    fields = {**gold_view.fields, "who": None, "gold_annotator": truth, "unread": unread if unread != "empty" else None}
    fields |= {"repairs": repairs if repairs != "declared" else None}
    return GoldAndJudges(
        gold.documents, marks, tuple(scored), gold_view.protocol, (*labels, *strange), fields, tuple(notes)
    )


def _add_inferred_repairs(judge: JudgeMarks, gold: pl.DataFrame, documents: pl.DataFrame) -> JudgeMarks:
    """A judge with the alternatives that its marks and gold's show beside each other: one name, or two numbers."""
    texts = dict(documents.select("id", "text").iter_rows())
    sides = [frame.with_columns(annotator=pl.lit(name)) for name, frame in (("gold", gold), ("judge", judge.marks))]
    sets = smallest_repairs_by_mark(pl.concat(sides), texts)
    of_gold = {id: sets[id] for id in gold["id"] if id in sets}
    return replace(judge, marks=add_mark_alternatives(judge.marks, sets), gold_repairs=of_gold)


def _reject_other_protocol(study: Study, annotator: str, protocol: Protocol) -> None:
    """Refuse a protocol under which an annotator has no work, where they have work under another."""
    work = study.submitted_work().annotations.filter(pl.col("annotator") == annotator)
    used = sorted(work["protocol"].unique())
    if used and protocol.id not in used:
        raise ParameterError(
            f"the annotations of {annotator} are under {', '.join(used)}, not under {protocol.id}",
            parameter="protocol",
            choices=used,
        )


def find_gold_annotator(study: Study) -> str:
    """The only annotator of kind gold, else the only annotator there is."""
    kinds = study.annotators.filter(pl.col("id").is_in(study.annotations["annotator"].implode()))
    golden = kinds.filter(pl.col("kind") == "gold")["id"].to_list()
    candidates = golden or kinds["id"].to_list()
    if len(candidates) != 1:
        what = "no annotator of kind gold" if not golden else f"{len(golden)} annotators of kind gold"
        raise ParameterError(
            f"gold has {what}; say who is gold with {param('gold')} ({', '.join(candidates) or 'nobody is there'})",
            parameter="gold",
        )
    return str(candidates[0])


def _default_judges(study: Study, gold: str, is_other: bool) -> list[str]:
    """Everybody who annotated but gold and scalar metrics; gold of another study when there is nobody else in it."""
    present = set(study.submitted_work().annotations["annotator"].unique()) - scalar_score_annotators(study)
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    others = sorted(present - {gold})
    judges = [name for name in others if kinds.get(name) != "gold"] or others
    judges = judges or (sorted(present) if is_other else [])
    if not judges:
        raise FinecombError("there is nobody to score: no annotations beside gold")
    return judges


def _adjudication_notes(gold: Study, truth: str) -> Iterator[str]:
    """What gold is made of, where an adjudicator decided about it."""
    decisions, texts = decision_counts(gold, truth)
    if decisions:
        yield f"gold was decided by an adjudicator: {decisions:,} decisions in {texts:,} texts"


def _training_overlap_notes(judges: Sequence[JudgeMarks], study: Study) -> Iterator[str]:
    """A warning for each judge that was fitted on texts it is scored on."""
    for name, cell in study.annotators.select("id", "meta").iter_rows():
        fitted = parse_json_object(cell).get("fitted_texts")
        judge = next((judge for judge in judges if judge.name == name), None)
        if judge is None or not isinstance(fitted, list) or not fitted:
            continue
        texts = dict(study.documents.select("id", "text").iter_rows())
        hashes = set(map(str, fitted))
        known = sum(text_hash(texts.get(id, "")) in hashes for id in judge.documents)
        if known:
            yield (
                f"warning: {name} was fitted on {known:,} of the {len(judge.documents):,} texts it is scored on; "
                "its scores there say nothing about new texts"
            )


def scalar_score_annotators(study: Study) -> set[str]:
    """Who gave each text a `score` and marked nothing."""
    scored = set(study.annotations.filter(json_entry("answers", "score").is_not_null())["annotator"])
    return scored - _marking_annotators(study) if scored else scored


def _marking_annotators(study: Study) -> set[str]:
    return set(study.scan_marks().select(pl.col("annotator").unique()).collect(engine="streaming")["annotator"])


def require_same_texts(gold: Study, predicted: Study) -> None:
    """Refuse annotated texts that gold does not know, or knows in another version."""
    if predicted is gold:
        return
    used = predicted.annotations["document"].unique()
    texts = predicted.documents.filter(pl.col("id").is_in(used.implode()))
    gold_texts = dict(gold.documents.select("id", "text").iter_rows())
    wrong = []
    for id, text in texts.select("id", "text").iter_rows():
        if id not in gold_texts:
            wrong.append(
                f"document {id!r} is annotated, but gold does not have it{did_you_mean(id, list(gold_texts)[:5000])}"
            )
        elif gold_texts[id] != text:
            ours, theirs = diff_excerpt(gold_texts[id], text)
            wrong.append(f"document {id!r} has another text than in gold: {theirs} where gold has {ours}")
    if wrong:
        raise FinecombError("\n".join(wrong))


def restrict_judges_to_gold_texts(gold: Study, predicted: Study) -> Study:
    """Return the judges' study on the texts of gold only, e.g. where a condition has chosen some of gold's texts."""
    texts = gold.documents["id"].implode()
    part = replace(predicted, documents=predicted.documents.filter(pl.col("id").is_in(texts)))
    return part.filter_annotations(pl.col("document").is_in(texts))


def _build_judge_marks(
    name: str,
    judge_work: Study,
    gold: Study,
    other: Study,
    truth: Study,
    truth_name: str,
    unread: UnreadPolicy,
    notes: list[str],
) -> JudgeMarks:
    has, read = set(truth.annotations["document"]), set(judge_work.annotations["document"])
    aside = (
        _excluded_or_unsubmitted_documents(gold, truth_name) - has
        | _excluded_or_unsubmitted_documents(other, name) - read
    )
    counted = (has | read if unread == "empty" else has & read) - aside
    if not has & read:
        raise FinecombError(f"{name} has no annotation on any text that gold has; nothing can be compared")
    option = "they count as read and found without errors; --unread leave-out leaves them out"
    meaning = option if unread == "empty" else "they are left out"
    for who, missing, whose in ((name, has - read - aside, "with gold"), ("gold", read - has - aside, f"of {name}")):
        if missing:
            total = len(has) if who == name else len(read)
            notes.append(f"{who} has no annotation on {len(missing):,} of {total:,} texts {whose}; {meaning}")
    if gone := len((has | read) & aside):
        notes.append(f"{gone:,} texts are left out for {name}: gold or {name} was set aside there")
    marks = _marks_in_text_order(judge_work, gold.documents).filter(pl.col("document").is_in(sorted(counted)))
    return JudgeMarks(name, marks, tuple(id for id in gold.documents["id"] if id in counted))


def _excluded_or_unsubmitted_documents(study: Study, annotator: str) -> set[str]:
    """Texts on which an annotator's work was excluded or never handed in."""
    whole = study.annotations.filter((pl.col("annotator") == annotator) & (pl.col("phase") == "work"))
    return set(whole["document"]) - set(
        study.submitted_work().annotations.filter(pl.col("annotator") == annotator)["document"]
    )


def _marks_in_text_order(study: Study, documents: pl.DataFrame) -> pl.DataFrame:
    """Marks in text order; the label of one without majority is `split`."""
    order = documents.select(document="id").with_row_index("place")
    edge = pl.col("spans").list.first()
    votes = pl.col("label_votes").is_not_null() & (pl.col("label") == NO_TYPE)
    rows = study.marks.with_columns(label=pl.when(votes).then(pl.lit(SPLIT)).otherwise("label"))
    rows = rows.join(order, on="document", how="left", maintain_order="left").with_columns(
        start=edge.struct.field("start"), end=edge.struct.field("end")
    )
    return rows.sort("place", "start", "end", "id", nulls_last=True).select(MARK_COLUMNS)


def _add_mark_notes(gold: pl.DataFrame, judges: Sequence[JudgeMarks], notes: list[str]) -> None:
    for name, marks in (("gold", gold), *((judge.name, judge.marks) for judge in judges)):
        if lost := int((marks["spans"].list.len() == 0).sum()):
            notes.append(
                f"{lost:,} marks of {name} have no place in their text; they count, and nothing can match them"
            )
    untyped = int(gold["label"].is_in([SPLIT, NO_TYPE]).sum())
    if untyped:
        notes.append(f"{untyped:,} gold marks have no label that counts (`split`, `no type`); they are in `any` only")
