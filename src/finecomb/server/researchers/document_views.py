"""Documents as the researcher sees them: a list to search, and one text with what everybody said about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

import polars as pl

from finecomb.core.errors import shorten
from finecomb.core.frames import meta_entry
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Mark
from finecomb.server.researchers.schema import (
    AnnotationBars,
    AnnotatorMark,
    DocumentFilter,
    DocumentList,
    DocumentPage,
    DocumentRow,
    StudyProgress,
)
from finecomb.server.researchers.snapshot import MACHINE_KINDS, Snapshot, label_looks
from finecomb.statistics.agreement.agreement_options import AgreeOptions
from finecomb.statistics.agreement.alpha import alpha_from_coincidences
from finecomb.statistics.agreement.rating_sources import build_rating_source

DISPUTED_ALPHA = 0.2
"""A text is disputed when people's agreement on its words, alpha, is below this."""
_KIND_ORDER = {"human": 0, **dict.fromkeys(MACHINE_KINDS, 1), "gold": 2}


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """Which documents to list."""

    show: DocumentFilter = "all"
    search: str = ""
    """Words of the text or of its id."""
    model: str | None = None
    label: str | None = None
    """Only documents where somebody marked it."""
    offset: int = 0
    limit: int = 100


def document_frame(snapshot: Snapshot) -> pl.DataFrame:
    """One row per document.

    Columns: id, text, model, done, of, marks, alpha, disputed, check, unfinished, labels, in the study's order.
    """
    work = snapshot.human_work.study
    done = work.annotations.group_by("document").agg(done=pl.len())
    marks = work.marks.group_by("document").agg(marks=pl.len(), labels=pl.col("label").unique())
    check = pl.col("id").is_in(list(snapshot.study.settings.attention_checks))
    rows = snapshot.study.documents.select("id", "text", meta_entry("model"), check=check)
    for other in (done, marks, _document_agreement_frame(snapshot)):
        rows = rows.join(other, left_on="id", right_on="document", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("done", "marks").fill_null(0), of=pl.lit(snapshot.annotators_per_document))
    return rows.with_columns(
        unfinished=(pl.col("done") < pl.col("of")) & ~check,
        disputed=(pl.col("alpha") < DISPUTED_ALPHA).fill_null(value=False),
    )


def _document_agreement_frame(snapshot: Snapshot) -> pl.DataFrame:
    """Alpha on the words of each document that two people read; null where undefined."""
    tally = build_rating_source(snapshot.human_work, AgreeOptions(by_label=False)).tallies[0]
    values = alpha_from_coincidences(tally.coincidences[:, 0], tally.values)
    documents = pl.Series("document", snapshot.human_work.study.documents["id"], pl.String)
    return pl.DataFrame({"document": documents, "alpha": pl.Series(values, dtype=pl.Float64).fill_nan(None)})


def document_list(rows: pl.DataFrame, wanted: DocumentQuery) -> DocumentList:
    """One page of the list, and the number of documents under each filter."""
    matching = rows.filter(_query_filter(wanted))
    shows: dict[DocumentFilter, pl.Expr] = {
        "all": pl.lit(value=True),
        "unfinished": pl.col("unfinished"),
        "disputed": pl.col("disputed"),
    }
    chosen = matching.filter(shows[wanted.show])
    page = chosen.slice(wanted.offset, wanted.limit)
    counts = {
        show: matching.select(shows[show].sum() if show != "all" else pl.len()).item()
        for show in get_args(DocumentFilter)
    }
    return DocumentList(
        rows=tuple(_document_row(row) for row in page.iter_rows(named=True)), total=len(chosen), counts=counts
    )


def _query_filter(wanted: DocumentQuery) -> pl.Expr:
    words = wanted.search.strip().lower()
    fits = pl.lit(value=True)
    if words:
        fits &= pl.any_horizontal(pl.col("id", "text").str.to_lowercase().str.contains(words, literal=True))
    if wanted.model is not None:
        fits &= pl.col("model") == wanted.model
    if wanted.label is not None:
        fits &= pl.col("labels").list.contains(wanted.label).fill_null(value=False)
    return fits


def _document_row(row: dict[str, Any]) -> DocumentRow:
    columns = {name: row[name] for name in ("id", "model", "marks", "alpha", "disputed", "check")}
    return DocumentRow(
        **columns,
        start=shorten(row["text"], 80),
        progress=StudyProgress(done=row["done"], of=max(row["of"], row["done"])),
    )


def document_page(snapshot: Snapshot, rows: pl.DataFrame, id: str) -> DocumentPage:
    """A document with everything that anybody said about it in work, also drafts and what was excluded."""
    document = snapshot.study.document(id)
    annotations = [
        annotation
        for annotation in snapshot.study.annotations_on(id)
        if annotation.phase == "work" and annotation.about is None
    ]
    people = {annotation.id: annotation for annotation in snapshot.study.iter_annotators()}
    used = [
        snapshot.protocol,
        *(snapshot.study.protocols[name] for name in dict.fromkeys(annotation.protocol for annotation in annotations)),
    ]
    row = rows.row(by_predicate=pl.col("id") == id, named=True)
    return DocumentPage(
        **document.model_dump(include={"id", "text", "context", "references", "segments", "meta"}),
        progress=_document_row(row).progress,
        alpha=row["alpha"],
        looks=label_looks(*used),
        answers=_ordered_values_by_question(used),
        readers=tuple(_annotation_bars(snapshot, annotations, people)),
    )


def _annotation_bars(
    snapshot: Snapshot, annotations: Iterable[Annotation], people: dict[str, Annotator]
) -> Iterator[AnnotationBars]:
    ordered = sorted(
        annotations,
        key=lambda annotation: (
            _KIND_ORDER[snapshot.kind_by_annotator[annotation.annotator]],
            snapshot.name_by_annotator[annotation.annotator],
            annotation.round,
        ),
    )
    for annotation in ordered:
        fields = annotation.model_dump(include={"protocol", "round", "phase", "status", "answers", "annotator"})
        yield AnnotationBars(
            **fields,
            annotation=annotation.id,
            name=snapshot.name_by_annotator[annotation.annotator],
            kind=people[annotation.annotator].kind,
            excluded=annotation.excluded or people[annotation.annotator].excluded,
            seconds=annotation.active_seconds if annotation.active_seconds is not None else annotation.seconds,
            marks=tuple(_annotator_mark(mark) for mark in annotation.marks),
        )


def _annotator_mark(mark: Mark) -> AnnotatorMark:
    return AnnotatorMark(
        id=mark.id,
        spans=mark.spans,
        quotes=mark.quotes,
        label=mark.label,
        answers=mark.answers,
        antecedents=mark.antecedents.spans if mark.antecedents else (),
        votes=mark.votes,
        unlocated=mark.unlocated,
        placed=_quote_placement_text(mark),
    )


_PLACEMENT_TEXTS = {
    "exact": "quote placed exactly",
    "spelling": "quote placed in another spelling",
    "elided": "quote placed from its first to its last words",
    "near": "quote placed approximately",
}


def _quote_placement_text(mark: Mark) -> str:
    """How a language model's quote found its place; empty for marks of others."""
    note = mark.meta.get("llm")
    if not isinstance(note, dict):
        return ""
    flags = note.get("flags")
    doubts = [str(flag) for flag in flags] if isinstance(flags, list | tuple) else []
    return "; ".join(filter(None, [_PLACEMENT_TEXTS.get(str(note.get("placed", "")), ""), *doubts]))


def _ordered_values_by_question(protocols: Iterable[Protocol]) -> dict[str, tuple[int | float | str | bool, ...]]:
    """Options of the ordinal questions about marks, by name."""
    questions = [
        question
        for protocol in protocols
        for question in (
            *protocol.questions,
            *(question_ for label in protocol.labels for question_ in label.questions),
        )
    ]
    return {question_.name: tuple(question_.values) for question_ in questions if question_.scale_type.ordered}
