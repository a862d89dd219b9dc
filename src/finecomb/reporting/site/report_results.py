"""Results of reports: the folder that was written, and what it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from finecomb.core.errors import param
from finecomb.core.estimate import Finding
from finecomb.core.notes import ParameterNote
from finecomb.core.results import Findings, Table
from finecomb.reporting.figures.figure_model import Report
from finecomb.reporting.site.report_content import ReportSource


class StudyReport(Table):
    """A report that was written or verified; one row per figure."""

    def __init__(self, folder: Path, content: Report | None = None, sharing_notes: Sequence[str] = ()) -> None:
        self.folder = folder
        """The folder of the report; `index.html` in it is the first page."""
        self.sentence = content.answer.sentence if content else ""
        """The main finding in one sentence."""
        self.counts = content.counts if content else ""
        """How many texts, annotations and marks the report is about."""
        self.figure_notes = content.notes if content else ()
        """Figures that could not be made, and why."""
        self.sharing_notes = tuple(sharing_notes)
        """What to know before the folder is passed on."""
        super().__init__(
            [{"figure": figure.id, "title": figure.title} for figure in content.figures] if content else [],
            title=f"Report in {folder}: {self.sentence}" if content else f"{folder}: {VERIFIED}",
            notes=(*self.figure_notes, *self.sharing_notes),
        )


VERIFIED = "every number comes out again from the data in data/"


class StudyChanges(Findings):
    """Differences between two studies, and the folder of the page that shows them."""

    def __init__(self, findings: Iterable[Finding], folder: Path) -> None:
        super().__init__(findings, title="What changed")
        self.folder = folder
        """The folder of the page."""


def sharing_notes(source: ReportSource, anonymous: bool) -> list[ParameterNote]:
    """Return what to know before a report is passed on: it carries texts, marks and people's names in the study."""
    notes = []
    if not source.licence:
        notes.append(
            ParameterNote(f"it carries the study's texts and marks and names no licence for them ({param('licence')})")
        )
    if not anonymous and "human" in set(source.study.annotators["kind"]):
        notes.append(
            ParameterNote(
                "people have their names in the study, also in data/ "
                f"({param('anonymous')} makes them reader-1, reader-2, ...)"
            )
        )
    return notes
