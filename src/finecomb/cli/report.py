"""The commands `report` and `reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb.api.reports import report as fc_report
from finecomb.api.reports import reproduce as fc_reproduce
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
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
from finecomb.reporting.site.report_results import VERIFIED_NOTE, StudyChanges
from finecomb.reporting.tables import finding_rows, print_rows

Compare = Annotated[
    Path | None,
    typer.Option(help="Report the changes since this earlier study, round or version.", show_default=False),
]
Against = Annotated[
    Path | None,
    typer.Option(
        help="Study with the gold standard against which models and detectors are scored.", show_default=False
    ),
]
PaperName = Annotated[
    str,
    typer.Argument(
        help="Name of the paper: `scarecrow`, `thomson-reiter`, `snac`, `clark` or `deng`.", show_default=False
    ),
]
Audit = Annotated[
    Path | None,
    typer.Option(
        help="For the paper `scarecrow`: study in which auditors judged the marks (`audit` protocol).",
        show_default=False,
    ),
]


@app.command()
@derive_flags_from(fc_report)
def report(
    study: StudyPath, call: PublicFunctionCall, compare: Compare = None, against: Against = None, from_: From = ""
) -> None:
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
        print_outcome(study, VERIFIED_NOTE)
    elif isinstance(result, StudyChanges):
        rows, signature = finding_rows(result)
        print_rows(out, rows, result.title)
        print_note(signature)
        print_outcome(result.folder / "index.html", format_count(len(result), "difference"))
    else:
        out.print(result.sentence, style="bold", soft_wrap=True)
        for note in result.figure_notes:
            out.print(f"note: {note}", soft_wrap=True)
        print_outcome(result.folder / "index.html", f"{format_count(len(result), 'figure')}, {result.counts}")
        print_notes(result.sharing_notes)


def _read_existing(path: Path | None, from_: str = "") -> Study | Path | None:
    """Read a study and print its notes if a path was passed; called after the other options have been checked."""
    return read(path, from_) if path and path.exists() else path


@app.command()
@derive_flags_from(fc_reproduce, flags={"printed": ("--printed/--no-printed",)})
def reproduce(
    paper: PaperName,
    study: StudyPath,
    call: PublicFunctionCall,
    audit: Audit = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb reproduce scarecrow demo-study -o scarecrow` ·
    `finecomb reproduce clark STUDY --only "Table 1"`
    """
    result = call(paper, read(study, from_), audit=_read_existing(audit), progress=shows_progress())
    print_table_or_json(result.rows(), as_json_, result.title, "No tables or figures.", result.notes)
    if not as_json_:
        print_outcome(result.folder / "index.html", f"{result.made_count} of {len(result)} tables and figures")
