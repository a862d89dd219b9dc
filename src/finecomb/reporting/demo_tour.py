"""Printed tour of the demo study (`finecomb demo`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl
from rich.console import Console
from rich.text import Text

from finecomb.core.frames import meta_entry
from finecomb.core.results import Result, ResultRow, Table
from finecomb.core.study import Study
from finecomb.reporting.shown_text import ShownText
from finecomb.reporting.tables import Row, estimate_row, frame_rows, print_rows
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.measures.coverage import coverage
from finecomb.statistics.measures.study_counts import counts_by_group
from finecomb.statistics.selection.view import ANY_LABEL

EXAMPLE_DOCUMENT_ID = "harbour-c"


class DemoTour(Result):
    """Summary of the demo study: one text, mark counts, coverage by system and agreement by label."""

    title = "Saltby: the demo study"

    def __init__(self, study: Study, notes: Iterable[str] = ()) -> None:
        ids = study.documents["id"].to_list()
        id = EXAMPLE_DOCUMENT_ID if EXAMPLE_DOCUMENT_ID in ids else ids[0]
        truth = [annotation for annotation in study.annotations_on(id) if annotation.annotator == "truth"]
        people = study.annotators.filter(pl.col("kind") == "human")["id"]
        simulated = study.submitted_work().filter_annotations(pl.col("annotator").is_in(people.implode()))
        self.study, self.notes = study, tuple(notes)
        self.example = ShownText(study.document(id), truth, study.protocols)
        self.counts = Table(
            frame_rows(counts_by_group(simulated, ["model"])), title="Marks of the simulated annotators"
        )
        by_model: list[Row] = []
        for (model,), documents in simulated.documents.group_by(meta_entry("model"), maintain_order=True):
            own = simulated.filter_annotations(pl.col("document").is_in(documents["id"].implode()))
            by_model.append(estimate_row(coverage(own), model=model))
        self.coverage = Table(by_model, title="Span coverage by system")
        estimates = {(row.columns["measure"], str(row.columns["label"])): row.estimate for row in agree(simulated)}
        rows: list[Row] = []
        for label in [*(label.name for label in simulated.protocol().labels), ANY_LABEL]:
            alpha, both = (estimates[measure, label] for measure in ("alpha", "two-agree"))
            numbers = {"alpha": alpha.value, "low": alpha.low, "high": alpha.high, "two-agree %": both.value}
            rows.append({"label": label, **numbers, "why": alpha.why or both.why})
        self.agreement = Table(rows, title="Agreement by label")

    def rows(self) -> list[ResultRow]:
        """Return the rows of the table of agreement by label."""
        return self.agreement.rows()


def print_demo_tour(tour: DemoTour, folder: Path, console: Console) -> None:
    """Print one text with its marks, mark counts, coverage by system and agreement by label."""
    _print_heading(console, "One text with the errors its author inserted")
    console.print(tour.example.render(console.width))
    for heading, table, digits in (
        ("Marks of the simulated annotators", tour.counts, 2),
        ("Span coverage by system (95% intervals over texts)", tour.coverage, 3),
        ("Inter-annotator agreement on words, by label", tour.agreement, 3),
    ):
        _print_heading(console, heading)
        print_rows(console, table, digits=digits)
    _print_heading(console, "Next steps")
    for does in (
        f"stats {folder}",
        f"show {folder} {tour.example.document.id}",
        f"gold {folder} -o gold",
        f"report {folder}",
        f"serve {folder} --open",
    ):
        console.print(f"  finecomb {does}")


def _print_heading(console: Console, words: str) -> None:
    console.print()
    console.print(Text(words, "bold"))
    console.print()
