"""Commands for judges: `calibrate`, `validate` and `estimate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from finecomb.api.judges import calibrate as fc_calibrate
from finecomb.api.judges import estimate as fc_estimate
from finecomb.api.judges import validate as fc_validate
from finecomb.api.parameters import parameter_help
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.output import OUTPUT
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    ask_to_trust_endpoint,
    err,
    out,
    plot_findings,
    print_note,
    print_notes,
    print_outcome,
    print_table,
    read,
    shows_progress,
)
from finecomb.core.errors import FinecombError
from finecomb.core.results import Findings
from finecomb.formats.atomic_file import write_file_atomically
from finecomb.reporting.calibration_tables import merge_intervals_into_cells, select_summary_tables
from finecomb.reporting.judge_results import CalibrationResult, format_estimate_row
from finecomb.reporting.tables import Row, finding_rows, format_json_tables

_JUDGE_FLAG = {"judge": ("--judge", "-j")}


def _print_findings(result: Findings, printed: Sequence[Row], intervals: str, as_json_: bool) -> None:
    """Print rows, notes and signature, or everything as one JSON object."""
    rows, signature = finding_rows(result)
    if as_json_:
        typer.echo(format_json_tables(rows, signature, result.notes))
        return
    print_table(printed, result.title, flat=rows)
    print_notes((*result.notes, f"{signature} ({intervals})"))


@app.command()
@derive_flags_from(fc_calibrate, flags=_JUDGE_FLAG)
def calibrate(
    study: StudyPath,
    call: PublicFunctionCall,
    everything: Annotated[
        bool, typer.Option("--all", help="Print all tables (default: a summary that fits one screen).")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="HTML file to write the result to.", show_default=False)
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Save the verdict and its scope in the study's folder.")] = False,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb calibrate demo-study --judge reader-1` ·
    `finecomb calibrate STUDY --judge gpt --html gpt.html --keep`
    """
    if keep and study.is_file():
        raise FinecombError(f"{study} is not a folder, so the result cannot be saved there; use --json or --html")
    result: CalibrationResult = call(read(study, from_), progress=shows_progress())
    plot_findings(result.findings(), result.protocol)
    if as_json_:
        rows = [{"section": section.key, **row} for section in result.sections for row in section.rows]
        typer.echo(format_json_tables(rows, result.signature, [result.paragraph, *result.notes]))
    else:
        (out if OUTPUT.format == "table" else err).print(result.paragraph, soft_wrap=True)
        for section in result.sections if everything else select_summary_tables(result.sections):
            if OUTPUT.format == "table":
                out.print()
            shown = merge_intervals_into_cells(section.rows)
            print_table(shown, section.title, "", flat=section.rows, paper=shown)
        print_notes(result.notes)
        print_note(f"{result.signature} (95% intervals over texts)")
    if html:
        write_file_atomically(html, result.to_html())
        if not as_json_:
            print_outcome(html, "written")
    if keep:
        path = result.save(study)
        if not as_json_:
            print_outcome(path, f"{result.verdict}; valid for {result.contract.days} days")


@app.command()
@derive_flags_from(fc_validate, skip=("runs",))
def validate(
    study: StudyPath,
    judge: Annotated[str, typer.Option("--judge", "-j", help=parameter_help(fc_validate)["judge"], show_default=False)],
    call: PublicFunctionCall,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb validate games --judge boxscore` ·
    `finecomb validate games --judge qwen3:8b --base-url http://localhost:11434/v1`
    """
    result: Findings = ask_to_trust_endpoint(
        call, read(study, from_), judge, runs=study / "runs" if study.is_dir() else None, progress=shows_progress()
    )
    _print_findings(result, merge_intervals_into_cells(finding_rows(result)[0]), "95% intervals over texts", as_json_)


@app.command()
@derive_flags_from(fc_estimate, flags=_JUDGE_FLAG)
def estimate(study: StudyPath, call: PublicFunctionCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Examples: `finecomb estimate STUDY --judge gpt --measure count,coverage` ·
    `finecomb estimate STUDY --judge gpt --by model --strata topic`
    """
    result: Findings = call(read(study, from_))
    plot_findings(result)
    _print_findings(result, [format_estimate_row(finding) for finding in result], "95% intervals", as_json_)
