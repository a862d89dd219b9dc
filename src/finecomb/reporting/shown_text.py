"""Result of `show`: one text with its marks, for notebooks, terminals and programs."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console, RenderableType

from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document
from finecomb.core.results import Result, ResultRow
from finecomb.formats.atomic_file import write_file_atomically
from finecomb.reporting.figures.figure_model import format_count_with_noun
from finecomb.reporting.marked_text import document_html, document_page_html
from finecomb.reporting.terminal_text import render_document


class ShownText(Result):
    """Text with the marks of its annotators; prints as text and displays as coloured HTML in a notebook."""

    def __init__(
        self,
        document: Document,
        annotations: Sequence[Annotation],
        protocols: Mapping[str, Protocol],
        columns: int = 96,
        notes: Sequence[str] = (),
    ) -> None:
        self.document, self.annotations = document, tuple(annotations)
        self.protocols, self.columns, self.notes = dict(protocols), columns, tuple(notes)
        people = len({annotation.annotator for annotation in annotations})
        marks = sum(len(annotation.marks) for annotation in annotations)
        by = f"by {format_count_with_noun(people, 'annotator')}"
        self.title = f"{document.id}: {format_count_with_noun(marks, 'mark')} {by}"

    def rows(self) -> list[ResultRow]:
        """Return one row per mark: annotator, label, quote, start and end of its first span, and mark ID."""
        return [
            ResultRow(
                annotator=annotation.annotator,
                label=mark.label or "",
                quote=" ... ".join(mark.quotes),
                start=mark.spans[0].start if mark.spans else None,
                end=mark.spans[0].end if mark.spans else None,
                id=mark.id,
            )
            for annotation in self.annotations
            for mark in annotation.marks
        ]

    def render(self, max_columns: int | None = None) -> RenderableType:
        """Return the text with its marks below the words, for a Rich console."""
        columns = min(self.columns, max_columns or self.columns)
        return render_document(self.document, self.annotations, self.protocols, columns)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the text as a standalone HTML page, and write it to `path` if given."""
        page = document_page_html(self.document, self.annotations, self.protocols)
        if path is not None:
            write_file_atomically(Path(path), page)
        return page

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=self.columns + 4, color_system=None, highlight=False, markup=False)
        with console.capture() as capture:
            console.print(self.render())
        return capture.get()

    def _repr_html_(self) -> str:
        return document_html(self.document, self.annotations, self.protocols)
