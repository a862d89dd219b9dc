"""Commands that show: a study in pictures, and the tables and figures of papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb.api.reports import report as fc_report
from finecomb.api.reports import reproduce as fc_reproduce
from finecomb.cli.derived import ApiCall, from_api
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    format_count,
    out,
    print_note,
    print_notes,
    print_outcome,
    print_table_or_json,
    read,
    shows_progress,
)
from finecomb.core.study import Study
from finecomb.reporting.site.report_results import VERIFIED, StudyChanges, StudyReport
from finecomb.reporting.tables import finding_rows, print_rows

Compare = Annotated[
    Path | None,
    typer.Option(help="Earlier study, round or version: report what changed since then.", show_default=False),
]
Against = Annotated[Path | None, typer.Option(help="Gold standard that machines are judged by.", show_default=False)]
PaperName = Annotated[str, typer.Argument(help="scarecrow, thomson-reiter, snac, clark or deng.", show_default=False)]
Audit = Annotated[
    Path | None, typer.Option(help="For scarecrow: study with `audit` verdicts on the marks.", show_default=False)
]


@app.command()
@from_api(fc_report)
def report(study: StudyPath, call: ApiCall, compare: Compare = None, against: Against = None, from_: From = "") -> None:
    """Examples: finecomb report demo-study -o report · finecomb report demo-study --export pdf --export png ·
    finecomb report after --compare before -o changes · finecomb report report --verify
    """
    is_verified = call.given.get("verify", False)
    result = call(
        study if is_verified else read(study, from_),
        compare=_read_existing(compare, from_),
        against=_read_existing(against),
        progress=shows_progress(),
    )
    if is_verified:
        print_outcome(study, VERIFIED)
    elif isinstance(result, StudyChanges):
        _print_changes(result)
    else:
        _print_report(result)


def _read_existing(path: Path | None, from_: str = "") -> Study | Path | None:
    """Return a study with its notes printed; a path that does not exist is refused after the options are checked."""
    return read(path, from_) if path and path.exists() else path


def _print_report(result: StudyReport) -> None:
    out.print(result.sentence, style="bold", soft_wrap=True)
    for note in result.figure_notes:
        out.print(f"note: {note}", soft_wrap=True)
    print_outcome(result.folder / "index.html", f"{format_count(len(result), 'figure')}, {result.counts}")
    print_notes(result.sharing_notes)


def _print_changes(result: StudyChanges) -> None:
    rows, signature = finding_rows(result)
    print_rows(out, rows, result.title)
    print_note(signature)
    print_outcome(result.folder / "index.html", format_count(len(result), "difference"))


@app.command()
@from_api(fc_reproduce, flags={"printed": ("--printed/--no-printed",)})
def reproduce(
    paper: PaperName,
    study: StudyPath,
    call: ApiCall,
    audit: Audit = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb reproduce scarecrow demo-study -o scarecrow` ·
    `finecomb reproduce clark STUDY --only "Table 1"`
    """
    result = call(paper, read(study, from_), audit=_read_existing(audit), progress=shows_progress())
    print_table_or_json(result.rows(), as_json_, result.title, "Nothing to show.", result.notes)
    if not as_json_:
        print_outcome(result.folder / "index.html", f"{result.made_count} of {len(result)} tables and figures")
