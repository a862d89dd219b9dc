"""Documents as researchers see them: a searchable list, and a page per text with all its annotations."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

import polars as pl

from finecomb.api.monitoring import agreement_by_document
from finecomb.core.errors import shorten
from finecomb.core.frames import meta_entry
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

MAX_DISPUTED_ALPHA = 0.2
"""Agreement (Krippendorff's alpha on words) below which a text counts as disputed."""
_KIND_ORDER = {"human": 0, **dict.fromkeys(MACHINE_KINDS, 1), "gold": 2}


@dataclass(frozen=True, slots=True)
class DocumentQuery:
    """Search text and filters for the document list."""

    show: DocumentFilter = "all"
    search: str = ""
    """Search words, matched against the text and the ID."""
    model: str | None = None
    label: str | None = None
    """Label that at least one person must have used in the text."""
    offset: int = 0
    limit: int = 100


def build_document_frame(snapshot: Snapshot) -> pl.DataFrame:
    """Build a frame with one row per document, in the study's order.

    Columns: id, text, model, done, of, marks, alpha, disputed, check, unfinished, labels.
    """
    work = snapshot.human_work.study
    done = work.annotations.group_by("document").agg(done=pl.len())
    marks = work.marks.group_by("document").agg(marks=pl.len(), labels=pl.col("label").unique())
    check = pl.col("id").is_in(list(snapshot.study.settings.attention_checks))
    rows = snapshot.study.documents.select("id", "text", meta_entry("model"), check=check)
    for other in (done, marks, agreement_by_document(snapshot.human_work)):
        rows = rows.join(other, left_on="id", right_on="document", how="left", maintain_order="left")
    rows = rows.with_columns(pl.col("done", "marks").fill_null(0), of=pl.lit(snapshot.annotators_per_document))
    return rows.with_columns(
        unfinished=(pl.col("done") < pl.col("of")) & ~check,
        disputed=(pl.col("alpha") < MAX_DISPUTED_ALPHA).fill_null(value=False),
    )


def build_document_list(rows: pl.DataFrame, wanted: DocumentQuery) -> DocumentList:
    """Build one page of the document list, with the number of documents that match each filter."""
    fits, words = pl.lit(value=True), wanted.search.strip().lower()
    if words:
        fits &= pl.any_horizontal(pl.col("id", "text").str.to_lowercase().str.contains(words, literal=True))
    if wanted.model is not None:
        fits &= pl.col("model") == wanted.model
    if wanted.label is not None:
        fits &= pl.col("labels").list.contains(wanted.label).fill_null(value=False)
    matching = rows.filter(fits)
    shows: dict[DocumentFilter, pl.Expr] = {
        "all": pl.lit(value=True),
        "unfinished": pl.col("unfinished"),
        "disputed": pl.col("disputed"),
    }
    chosen = matching.filter(shows[wanted.show])
    page = chosen.slice(min(wanted.offset, len(chosen)), wanted.limit)  # polars accepts only 64-bit offsets
    counts = {
        show: matching.select(shows[show].sum() if show != "all" else pl.len()).item()
        for show in get_args(DocumentFilter)
    }
    return DocumentList(
        rows=tuple(_document_row(row) for row in page.iter_rows(named=True)), total=len(chosen), counts=counts
    )


def _document_row(row: dict[str, Any]) -> DocumentRow:
    columns = {name: row[name] for name in ("id", "model", "marks", "alpha", "disputed", "check")}
    return DocumentRow(
        **columns,
        start=shorten(row["text"], 80),
        progress=StudyProgress(done=row["done"], of=max(row["of"], row["done"])),
    )


def build_document_page(snapshot: Snapshot, rows: pl.DataFrame, id: str) -> DocumentPage:
    """Build the page of a document with all annotations from the work phase, including drafts and excluded ones."""
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
    questions = [
        question
        for protocol in used
        for question in (*protocol.questions, *itertools.chain(*(label.questions for label in protocol.labels)))
        if question.scale_type.ordered
    ]
    row = rows.row(by_predicate=pl.col("id") == id, named=True)
    return DocumentPage(
        **document.model_dump(include={"id", "text", "context", "references", "segments", "meta"}),
        progress=_document_row(row).progress,
        alpha=row["alpha"],
        looks=label_looks(*used),
        answers={question.name: tuple(question.values) for question in questions},
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
            marks=tuple(
                AnnotatorMark(
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
                for mark in annotation.marks
            ),
        )


_PLACEMENT_TEXTS = {
    "exact": "exact quote",
    "spelling": "quote with different spelling",
    "elided": "quote located by its first and last words",
    "near": "approximate quote",
}


def _quote_placement_text(mark: Mark) -> str:
    """Describe how the position of a language model's quote was found, or return an empty string for other marks."""
    note = mark.meta.get("llm")
    if not isinstance(note, dict):
        return ""
    flags = note.get("flags")
    doubts = [str(flag) for flag in flags] if isinstance(flags, list | tuple) else []
    return "; ".join(filter(None, [_PLACEMENT_TEXTS.get(str(note.get("placed", "")), ""), *doubts]))
