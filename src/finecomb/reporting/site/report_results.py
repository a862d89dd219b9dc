"""Results of `report`: the written folder and its main findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from finecomb.core.errors import param
from finecomb.core.notes import ParameterNote
from finecomb.core.results import Finding, Findings, Table
from finecomb.reporting.figures.figure_model import Report
from finecomb.reporting.site.report_content import ReportSource


class StudyReport(Table):
    """Report that was written or verified, with one row per figure."""

    def __init__(self, folder: Path, content: Report | None = None, sharing_notes: Sequence[str] = ()) -> None:
        self.folder = folder
        """Folder of the report; `index.html` is its first page."""
        self.sentence = content.headline.sentence if content else ""
        """Main result in one sentence."""
        self.counts = content.counts if content else ""
        """Number of texts and annotations in the report."""
        self.figure_notes = content.notes if content else ()
        """Reasons for missing figures."""
        self.sharing_notes = tuple(sharing_notes)
        """Notes to read before sharing the folder."""
        super().__init__(
            [{"figure": figure.id, "title": figure.title} for figure in content.figures] if content else [],
            title=f"Report in {folder}: {self.sentence}" if content else f"{folder}: {VERIFIED_NOTE}",
            notes=(*self.figure_notes, *self.sharing_notes),
        )


VERIFIED_NOTE = "all numbers match the data in data/"


class StudyChanges(Findings):
    """Differences between two studies, with the folder of the page that shows them."""

    def __init__(self, findings: Iterable[Finding], folder: Path) -> None:
        super().__init__(findings, title="Changes between studies")
        self.folder = folder
        """Folder of the page."""


def sharing_notes(source: ReportSource, anonymous: bool) -> list[ParameterNote]:
    """Return notes to read before sharing a report: a missing licence, and names of people."""
    notes = []
    if not source.licence:
        notes.append(
            ParameterNote(f"the report contains texts and marks without a licence; add one with {param('licence')}")
        )
    if not anonymous and "human" in set(source.study.annotators["kind"]):
        notes.append(
            ParameterNote(
                "the report, including data/, contains the names of annotators; "
                f"{param('anonymous')} replaces them with reader-1, reader-2, ..."
            )
        )
    return notes
