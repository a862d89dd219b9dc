"""One text with its marks, as a result: a page for a notebook, lines for a terminal, rows for programs."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console, RenderableType

from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document
from finecomb.core.results import Result, ResultRow
from finecomb.formats.atomic_file import write_file
from finecomb.reporting.marked_text import document_html, document_page
from finecomb.reporting.terminal_text import render_document


class ShownText(Result):
    """A text with the marks of its annotators; `print` shows the text, a notebook a coloured page."""

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
        marked = f"{marks:,} mark{'' if marks == 1 else 's'}"
        self.title = f"{document.id}: {marked} by {people:,} annotator{'' if people == 1 else 's'}"

    def rows(self) -> list[ResultRow]:
        """Return one row per mark: annotator, label, quote, start and end of its first span, and its id."""
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
        """Return the text for a console of Rich, with marks below the words."""
        columns = min(self.columns, max_columns or self.columns)
        return render_document(self.document, self.annotations, self.protocols, columns)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the text as an HTML page of its own, and write it to `path` where one is given."""
        page = document_page(self.document, self.annotations, self.protocols)
        if path is not None:
            write_file(Path(path), page)
        return page

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=self.columns + 4, color_system=None, highlight=False, markup=False)
        with console.capture() as capture:
            console.print(self.render())
        return capture.get()

    def _repr_html_(self) -> str:
        return document_html(self.document, self.annotations, self.protocols)
