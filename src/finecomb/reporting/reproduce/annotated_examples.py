"""Texts with their marks in place, as papers print examples."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import polars as pl

from finecomb.core.palette import LabelStyle
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import TEXT
from finecomb.core.study import Study
from finecomb.reporting.page_shell import flag_html, marked_text_html
from finecomb.reporting.reproduce.exhibits import ExhibitRow
from finecomb.statistics.measures.study_counts import annotation_rows_with_groups


def example_html(document: Document, annotation: Annotation, looks: dict[str | None, LabelStyle], head: str) -> str:
    """A text with the marks of one reader, and below it what each mark says."""
    marks = [(mark, _label_look(looks, mark)) for mark in annotation.marks]
    in_text = [(spans, look, "") for mark, look in marks if (spans := [s for s in mark.spans if s.part == TEXT])]
    lines = "".join(f"<li>{flag_html(look)} {escape(_format_mark(mark))}</li>" for mark, look in marks)
    words = marked_text_html(document.text, in_text)
    return f'<h3>{escape(head)}</h3><div class="text" dir="auto">{words}</div><ul>{lines}</ul>'


def _label_look(looks: dict[str | None, LabelStyle], mark: Mark) -> LabelStyle:
    return looks.get(mark.label) or looks[None]


def _format_mark(mark: Mark) -> str:
    answers = "; ".join(f"{name}: {value}" for name, value in mark.answers.items())
    return " … ".join(mark.quotes) + (f" ({answers})" if answers else "")


def example_rows(document: Document, annotation: Annotation, **columns: object) -> list[ExhibitRow]:
    """One row for each mark of an example."""
    return [
        {**columns, "document": document.id, "label": mark.label, "quote": " … ".join(mark.quotes), **mark.answers}
        for mark in annotation.marks
    ]


def median_annotations(study: Study, by: str) -> list[tuple[str, Annotation]]:
    """For each group the annotation with the median number of marks, so that nobody chose the example."""
    counts = dict(study.marks.group_by("annotation").len().iter_rows())
    groups = annotation_rows_with_groups(study, [by] if by else [])
    chosen: dict[str, str] = {}
    parts = groups.partition_by(by, as_dict=True, maintain_order=True) if by else {("all texts",): groups}
    for (name,), rows in parts.items():
        ids = sorted(rows["annotation"], key=lambda id: (counts.get(id, 0), id))
        chosen[str(name)] = ids[len(ids) // 2]
    by_id = {
        one.id: one for one in study.filter_annotations(pl.col("id").is_in(list(chosen.values()))).iter_annotations()
    }
    return [(name, by_id[id]) for name, id in chosen.items()]


def build_examples(study: Study, by: str, looks: dict[str | None, LabelStyle]) -> tuple[list[ExhibitRow], str]:
    """One example for each group, as rows and as a page."""
    rows: list[ExhibitRow] = []
    pages: list[str] = []
    for name, annotation in median_annotations(study, by):
        document = study.document(annotation.document)
        rows += example_rows(document, annotation, **{by or "group": name})
        pages.append(example_html(document, annotation, looks, f"{name}: {document.id}, {annotation.annotator}"))
    return rows, "".join(pages)


def shorten_quotes(values: Sequence[str], limit: int = 200) -> str:
    """Words that are cut where they are long."""
    text = " … ".join(values)
    return text if len(text) <= limit else f"{text[:limit]}…"
