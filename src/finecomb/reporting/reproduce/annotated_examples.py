"""Example texts with marks, as papers print them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import polars as pl

from finecomb.core.palette import LabelStyle
from finecomb.core.span import TEXT_PART
from finecomb.core.study import Study, annotation_rows_with_groups
from finecomb.reporting.page_shell import flag_html, marked_text_html
from finecomb.reporting.reproduce.exhibits import ExhibitRow


def build_examples(study: Study, by: str, styles: dict[str | None, LabelStyle]) -> tuple[list[ExhibitRow], str]:
    """Return one example per group, as rows and as HTML: the text with its marks, and a list of marks and answers.

    The example is the annotation with the median number of marks, to avoid hand-picked examples.
    """
    counts = dict(study.marks.group_by("annotation").len().iter_rows())
    groups = annotation_rows_with_groups(study, [by] if by else [])
    parts = groups.partition_by(by, as_dict=True, maintain_order=True) if by else {("all texts",): groups}
    medians: dict[str, str] = {}
    for (name,), group in parts.items():
        ids = sorted(group["annotation"], key=lambda id: (counts.get(id, 0), id))
        medians[str(name)] = ids[len(ids) // 2]
    chosen = study.filter_annotations(pl.col("id").is_in(list(medians.values()))).iter_annotations()
    by_id = {annotation.id: annotation for annotation in chosen}
    rows: list[ExhibitRow] = []
    pages: list[str] = []
    for name, id in medians.items():
        annotation, document = by_id[id], study.document(by_id[id].document)
        in_text, lines = [], []
        for mark in annotation.marks:
            style, quote = styles.get(mark.label) or styles[None], " … ".join(mark.quotes)
            columns = {by or "group": name, "document": document.id, "label": mark.label, "quote": quote}
            rows.append({**columns, **mark.answers})
            if spans := [span for span in mark.spans if span.part == TEXT_PART]:
                in_text.append((spans, style, ""))
            answers = "; ".join(f"{question}: {value}" for question, value in mark.answers.items())
            words = f"{quote} ({answers})" if answers else quote
            lines.append(f"<li>{flag_html(style)} {escape(words)}</li>")
        head = escape(f"{name}: {document.id}, {annotation.annotator}")
        text = f'<div class="text" dir="auto">{marked_text_html(document.text, in_text)}</div>'
        pages.append(f"<h3>{head}</h3>{text}<ul>{''.join(lines)}</ul>")
    return rows, "".join(pages)


def join_and_shorten_quotes(values: Sequence[str], limit: int = 200) -> str:
    """Join quotes and shorten the result to `limit` characters."""
    text = " … ".join(values)
    return text if len(text) <= limit else f"{text[:limit]}…"
