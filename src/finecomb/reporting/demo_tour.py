"""The tour that `finecomb demo` gives."""

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
from finecomb.statistics.selection.view import ANY

EXAMPLE_DOCUMENT_ID = "harbour-c"


class DemoTour(Result):
    """The demo study at a glance: one text, counts, coverage by system and agreement by label."""

    title = "Saltby: the demo study"

    def __init__(self, study: Study, notes: Iterable[str] = ()) -> None:
        ids = study.documents["id"].to_list()
        id = EXAMPLE_DOCUMENT_ID if EXAMPLE_DOCUMENT_ID in ids else ids[0]
        truth = [annotation for annotation in study.annotations_on(id) if annotation.annotator == "truth"]
        people = study.annotators.filter(pl.col("kind") == "human")["id"]
        readers = study.submitted_work().filter_annotations(pl.col("annotator").is_in(people.implode()))
        self.study, self.notes = study, tuple(notes)
        self.example = ShownText(study.document(id), truth, study.protocols)
        self.counts = Table(frame_rows(counts_by_group(readers, ["model"])), title="Marks of the simulated annotators")
        self.coverage = Table(coverage_rows(readers), title="Span coverage by system")
        self.agreement = Table(agreement_rows(readers), title="Agreement by label")

    def rows(self) -> list[ResultRow]:
        """Return the rows of the agreement by label."""
        return self.agreement.rows()


def print_tour(tour: DemoTour, folder: Path, console: Console) -> None:
    """Print one text with its marks, counts, coverage by system and agreement by label."""
    _print_heading(console, "A text with the errors that its author put into it")
    console.print(tour.example.render(console.width))
    _print_heading(console, "What the simulated readers marked")
    print_rows(console, tour.counts, digits=2)
    _print_heading(
        console, "How much of a text they marked: span coverage by system, with 95% intervals over documents"
    )
    print_rows(console, tour.coverage)
    _print_heading(console, "How far they agree on words, label by label")
    print_rows(console, tour.agreement)
    _print_heading(console, "Go on")
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


def coverage_rows(study: Study) -> list[Row]:
    """Coverage by system."""
    models = study.documents.select("id", meta_entry("model"))
    rows: list[Row] = []
    for model in models["model"].unique(maintain_order=True):
        ids = models.filter(pl.col("model") == model)["id"]
        estimate = coverage(study.filter_annotations(pl.col("document").is_in(ids.implode())))
        rows.append(estimate_row(estimate, model=model))
    return rows


def agreement_rows(study: Study) -> list[Row]:
    """Alpha and two-agree of every label, and of any mark."""
    estimates = {(row.columns["measure"], str(row.columns["label"])): row.estimate for row in agree(study)}
    rows: list[Row] = []
    for label in [*(label.name for label in study.protocol().labels), ANY]:
        alpha, both = (estimates[measure, label] for measure in ("alpha", "two-agree"))
        numbers = {"alpha": alpha.value, "low": alpha.low, "high": alpha.high, "two-agree %": both.value}
        rows.append({"label": label, **numbers, "why": alpha.why or both.why})
    return rows
