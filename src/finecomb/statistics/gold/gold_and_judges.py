"""Gold and judges of one or two studies, paired on the same texts and checked for consistency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, diff_excerpt, param
from finecomb.core.frames import json_entry_names, meta_entry, parse_json_object
from finecomb.core.protocol import Protocol
from finecomb.core.study import Study
from finecomb.core.text_hash import hash_text
from finecomb.statistics.agreement.minimal_repairs import (
    AlternativeSets,
    RepairMode,
    add_mark_alternatives,
    inferred_alternatives_by_mark,
)
from finecomb.statistics.gold.decisions import decision_and_text_counts
from finecomb.statistics.gold.gold_merge import SPLIT_LABEL
from finecomb.statistics.selection.view import NO_TYPE_LABEL, Filters, view

Ints = NDArray[np.int64]
UnreadPolicy = Literal["empty", "leave-out"]

MARK_COLUMNS = ["id", "document", "label", "spans", "quotes", "alternatives", "answers"]


@dataclass(frozen=True, slots=True)
class JudgeMarks:
    """Marks of a judge, and the texts on which the judge is scored."""

    name: str
    marks: pl.DataFrame
    """Marks in text order, with the columns id, document, label, spans, quotes, alternatives and answers."""
    documents: tuple[str, ...]
    """IDs of the texts on which this judge is scored, in the order of the study."""
    gold_repairs: AlternativeSets = field(default_factory=dict)
    """Alternatives inferred from this judge's marks, by the ID of the gold mark."""


@dataclass(frozen=True, slots=True)
class GoldAndJudges:
    """Gold and the judges on the same texts."""

    documents: pl.DataFrame
    """Documents table of the study."""
    gold: pl.DataFrame
    """Gold marks, with the same columns as a judge's marks."""
    judges: tuple[JudgeMarks, ...]
    protocol: Protocol
    labels: tuple[str, ...]
    """Labels used by gold or a judge, in the order of gold's protocol. `split` and `no type` are not included."""
    fields: dict[str, object]
    """Signature fields."""
    notes: tuple[str, ...]

    def select_meta(self, names: Sequence[str]) -> pl.DataFrame:
        """Return the document IDs with the requested meta columns."""
        meta_names = json_entry_names(self.documents["meta"])
        for name in names:
            if name not in meta_names:
                raise ParameterError(
                    f"{param('by', name)}: no document has this meta field{did_you_mean(name, meta_names)}",
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
    repairs: RepairMode = "declared",
) -> GoldAndJudges:
    """Pair the gold of one study with the judges of another, or of the same study by default.

    Gold is the named annotator, by default the one of kind `gold`. Judges are the named annotators, by default all
    others. A text counts if gold or the judge annotated it or, with `unread="leave-out"`, only if both did. Excluded
    and unsubmitted work never counts. With `repairs="smallest"`, one mark of gold and several of a judge (or vice
    versa) that correct the same words are alternatives of each other.
    """
    if unread not in ("empty", "leave-out"):
        raise FinecombError(f"unread must be 'empty' or 'leave-out', found {unread!r}")
    other = gold if predicted is None else predicted
    truth = gold_annotator or find_gold_annotator(gold)
    if other is not gold:
        require_same_texts(gold, other)
    gold_view = view(gold, Filters(protocol=protocol, annotators=(truth,)))
    if gold_view.protocol is None:
        raise FinecombError("the gold study has no protocol, so its labels are unknown; add the protocol to the study")
    named = tuple(judges) or tuple(_default_judges(other, truth, predicted is not None))
    if set(gold.annotations["protocol"].unique()) != {gold_view.fields["protocol"]}:
        for name in (truth, *(named if predicted is None else ())):
            _reject_protocol_without_work(gold, name, gold_view.protocol)
    judge_view = view(other, Filters(protocol=protocol if predicted is None else "", annotators=named))
    marks = _marks_in_text_order(gold_view.study, gold.documents)
    notes: list[str] = []
    if not gold.annotations.filter(pl.col("annotator") == truth)["meta"].is_null().all():
        decisions, texts = decision_and_text_counts(gold, truth)
        notes += [f"gold was adjudicated: {decisions:,} decisions in {texts:,} texts"] if decisions else []
    scored = [
        _collect_judge_marks(
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
    strange = sorted(set(given) - set(labels) - {SPLIT_LABEL, NO_TYPE_LABEL})
    if strange:
        notes.append(f"labels missing in gold's protocol {gold_view.protocol.id}: {', '.join(strange)}")
    if repairs == "smallest":
        scored = [_add_inferred_repairs(judge, marks, gold.documents) for judge in scored]
    notes += _judge_notes(marks, scored, other)
    fields = {**gold_view.fields, "who": None, "gold_annotator": truth, "unread": unread if unread != "empty" else None}
    fields |= {"repairs": repairs if repairs != "declared" else None}
    return GoldAndJudges(
        gold.documents, marks, tuple(scored), gold_view.protocol, (*labels, *strange), fields, tuple(notes)
    )


def _add_inferred_repairs(judge: JudgeMarks, gold: pl.DataFrame, documents: pl.DataFrame) -> JudgeMarks:
    """Return the judge with alternatives inferred from its marks and those of gold, e.g. one name or two numbers."""
    texts = dict(documents.select("id", "text").iter_rows())
    sides = [frame.with_columns(annotator=pl.lit(name)) for name, frame in (("gold", gold), ("judge", judge.marks))]
    sets = inferred_alternatives_by_mark(pl.concat(sides), texts)
    of_gold = {id: sets[id] for id in gold["id"] if id in sets}
    return replace(judge, marks=add_mark_alternatives(judge.marks, sets), gold_repairs=of_gold)


def _reject_protocol_without_work(study: Study, annotator: str, protocol: Protocol) -> None:
    """Raise an error if an annotator has work, but none under the given protocol."""
    work = study.submitted_work().annotations.filter(pl.col("annotator") == annotator)
    used = sorted(work["protocol"].unique())
    if used and protocol.id not in used:
        raise ParameterError(
            f"the annotations of {annotator} use protocol {', '.join(used)}, not {protocol.id}",
            parameter="protocol",
            choices=used,
        )


def find_gold_annotator(study: Study) -> str:
    """Return the only annotator of kind gold, or else the only annotator."""
    kinds = study.annotators.filter(pl.col("id").is_in(study.annotations["annotator"].implode()))
    golden = kinds.filter(pl.col("kind") == "gold")["id"].to_list()
    candidates = golden or kinds["id"].to_list()
    if len(candidates) != 1:
        if not candidates:
            raise ParameterError(f"{study.origin or 'the study'} has no annotations", parameter="gold")
        what = "no annotator of kind gold" if not golden else f"{len(golden)} annotators of kind gold"
        raise ParameterError(
            f"{study.origin or 'the study'} has {what}; name the gold annotator with {param('gold')} "
            f"({', '.join(candidates)})",
            parameter="gold",
        )
    return str(candidates[0])


def _default_judges(study: Study, gold: str, is_other: bool) -> list[str]:
    """Return all annotators except gold and scalar metrics. In another study, gold counts if it is alone."""
    present = set(study.submitted_work().annotations["annotator"].unique()) - scalar_score_annotators(study)
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    others = sorted(present - {gold})
    # Other gold annotators are scored only if there are no other judges.
    judges = [name for name in others if kinds.get(name) != "gold"] or others
    judges = judges or (sorted(present) if is_other else [])
    if not judges:
        raise FinecombError(
            "no judge to score; the study has no submitted annotations other than gold and scalar scores"
        )
    return judges


def _judge_notes(gold: pl.DataFrame, judges: Sequence[JudgeMarks], study: Study) -> Iterator[str]:
    """Yield notes on marks that cannot be matched, and a warning for each judge trained on texts it is scored on."""
    for name, marks in (("gold", gold), *((judge.name, judge.marks) for judge in judges)):
        if lost := int((marks["spans"].list.len() == 0).sum()):
            yield f"{lost:,} marks of {name} have no position in their text; they are counted but cannot be matched"
    if untyped := int(gold["label"].is_in([SPLIT_LABEL, NO_TYPE_LABEL]).sum()):
        yield f"{untyped:,} gold marks have no label (`split`, `no type`); they count only in `any`"
    fitted_models = study.annotators.filter(pl.col("meta").str.contains("fitted_texts", literal=True))
    for name, cell in fitted_models.select("id", "meta").iter_rows():
        fitted = parse_json_object(cell).get("fitted_texts")
        judge = next((judge for judge in judges if judge.name == name), None)
        if judge is None or not isinstance(fitted, list) or not fitted:
            continue
        texts = dict(study.documents.select("id", "text").iter_rows())
        hashes = set(map(str, fitted))
        known = sum(hash_text(texts.get(id, "")) in hashes for id in judge.documents)
        if known:
            yield (
                f"warning: {name} was trained on {known:,} of the {len(judge.documents):,} texts it is scored on; "
                "its scores do not generalise to new texts"
            )


def scalar_score_annotators(study: Study) -> set[str]:
    """Return the annotators who gave a `score` to texts and made no marks."""
    score = pl.col("answers").str.json_path_match("$.score")
    scored = set(study.annotations.filter(score.is_not_null())["annotator"])
    if not scored:
        return scored
    marks = study.scan_marks().select(pl.col("annotator").unique()).collect(engine="streaming")
    return scored - set(marks["annotator"])


def has_only_scalar_scores(study: Study) -> bool:
    """Return True if a study has only scalar predictions: scores, and no marks except those of gold."""
    golden = study.annotators.filter(pl.col("kind") == "gold")["id"]
    return bool(scalar_score_annotators(study)) and not set(study.marks["annotator"]) - set(golden)


def require_same_texts(gold: Study, predicted: Study) -> None:
    """Raise an error for annotated texts that are missing from gold's study or differ from its version."""
    used = predicted.annotations["document"].unique()
    texts = predicted.documents.filter(pl.col("id").is_in(used.implode()))
    gold_texts = dict(gold.documents.select("id", "text").iter_rows())
    wrong = []
    for id, text in texts.select("id", "text").iter_rows():
        if id not in gold_texts:
            wrong.append(f"document {id!r} is annotated but missing in gold{did_you_mean(id, list(gold_texts)[:5000])}")
        elif gold_texts[id] != text:
            ours, theirs = diff_excerpt(gold_texts[id], text)
            wrong.append(f"document {id!r} differs from gold: {theirs} instead of {ours}")
    if wrong:
        raise FinecombError("\n".join(wrong))


def restrict_judges_to_gold_texts(gold: Study, predicted: Study) -> Study:
    """Return the judges' study restricted to the texts of gold, e.g. after gold was filtered by a condition."""
    texts = gold.documents["id"].implode()
    part = replace(predicted, documents=predicted.documents.filter(pl.col("id").is_in(texts)))
    return part.filter_annotations(pl.col("document").is_in(texts))


def _collect_judge_marks(
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
    aside: set[str] = set()  # texts on which the work of gold or the judge was excluded or not submitted
    for study, annotator, annotated in ((gold, truth_name, has), (other, name, read)):
        theirs = pl.col("annotator") == annotator
        work = study.annotations.filter(theirs & (pl.col("phase") == "work"))
        aside |= set(work["document"]) - set(study.submitted_work().annotations.filter(theirs)["document"]) - annotated
    counted = (has | read if unread == "empty" else has & read) - aside
    if not has & read:
        raise FinecombError(f"{name} has not annotated any text with gold; let it annotate the gold texts")
    option = "they count as annotated without errors (--unread leave-out omits them)"
    meaning = option if unread == "empty" else "they are left out"
    for who, missing, whose in ((name, has - read - aside, "with gold"), ("gold", read - has - aside, f"of {name}")):
        if missing:
            total = len(has) if who == name else len(read)
            notes.append(f"{who} has no annotation on {len(missing):,} of {total:,} texts {whose}; {meaning}")
    if gone := len((has | read) & aside):
        notes.append(
            f"{gone:,} texts are left out for {name} because the work of gold or {name} was excluded or not submitted"
        )
    marks = _marks_in_text_order(judge_work, gold.documents).filter(pl.col("document").is_in(sorted(counted)))
    return JudgeMarks(name, marks, tuple(id for id in gold.documents["id"] if id in counted))


def _marks_in_text_order(study: Study, documents: pl.DataFrame) -> pl.DataFrame:
    """Return the marks in text order, with the label `split` for marks without a majority label."""
    order = documents.select(document="id").with_row_index("place")
    edge = pl.col("spans").list.first()
    votes = pl.col("label_votes").is_not_null() & (pl.col("label") == NO_TYPE_LABEL)
    rows = study.marks.with_columns(label=pl.when(votes).then(pl.lit(SPLIT_LABEL)).otherwise("label"))
    rows = rows.join(order, on="document", how="left", maintain_order="left").with_columns(
        start=edge.struct.field("start"), end=edge.struct.field("end")
    )
    return rows.sort("place", "start", "end", "id", nulls_last=True).select(MARK_COLUMNS)
