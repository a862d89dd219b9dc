"""Commands about judges: estimates with their help, calibration against people, and counterfactual validation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from finecomb.api.judges import calibrate as fc_calibrate
from finecomb.api.judges import estimate as fc_estimate
from finecomb.api.judges import validate as fc_validate
from finecomb.api.parameters import parameter_help
from finecomb.cli.derived import ApiCall, from_api
from finecomb.cli.output import OUTPUT
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    err,
    out,
    plot_findings,
    print_note,
    print_notes,
    print_outcome,
    print_table,
    read,
)
from finecomb.core.errors import FinecombError
from finecomb.core.results import Findings
from finecomb.formats.atomic_file import write_file
from finecomb.reporting.calibration_tables import format_intervals, select_summary_tables
from finecomb.reporting.judge_results import CalibrationResult, format_estimate_row
from finecomb.reporting.tables import Row, as_json, finding_rows

_JUDGE_FLAG = {"judge": ("--judge", "-j")}


def _print_findings(result: Findings, printed: Sequence[Row], intervals: str, as_json_: bool) -> None:
    """Print rows for people, then notes and signature; or everything as one JSON object."""
    rows, signature = finding_rows(result)
    if as_json_:
        typer.echo(as_json(rows, signature, result.notes))
        return
    print_table(printed, result.title, flat=rows)
    print_notes((*result.notes, f"{signature} ({intervals})"))


@app.command()
@from_api(fc_calibrate, flags=_JUDGE_FLAG)
def calibrate(
    study: StudyPath,
    call: ApiCall,
    everything: Annotated[
        bool, typer.Option("--all", help="Print all tables, not only those that fit a screen.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the page to this file.", show_default=False)
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the contract in the study's folder.")] = False,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb calibrate demo-study --judge reader-1` ·
    `finecomb calibrate STUDY --judge gpt --html gpt.html --keep`
    """
    if keep and study.is_file():
        raise FinecombError(f"{study} is not a folder, so a contract cannot be kept there; take --json or --html")
    result: CalibrationResult = call(read(study, from_))
    plot_findings(result.findings(), result.protocol)
    _print_calibration(result, everything, as_json_)
    if html:
        write_file(html, result.to_html())
        if not as_json_:
            print_outcome(html, "written")
    if keep:
        path = result.save(study)
        if not as_json_:
            print_outcome(path, f"{result.verdict}; holds for {result.contract.days} days")


def _print_calibration(result: CalibrationResult, everything: bool, as_json_: bool) -> None:
    if as_json_:
        rows = [{"section": section.key, **row} for section in result.sections for row in section.rows]
        typer.echo(as_json(rows, result.signature, [result.paragraph, *result.notes]))
        return
    (out if OUTPUT.format == "table" else err).print(result.paragraph, soft_wrap=True)
    for section in result.sections if everything else select_summary_tables(result.sections):
        if OUTPUT.format == "table":
            out.print()
        shown = format_intervals(section.rows)
        print_table(shown, section.title, "", flat=section.rows, paper=shown)
    print_notes(result.notes)
    print_note(f"{result.signature} (95% intervals over texts)")


@app.command()
@from_api(fc_validate, skip=("runs",))
def validate(
    study: StudyPath,
    judge: Annotated[str, typer.Option("--judge", "-j", help=parameter_help(fc_validate)["judge"], show_default=False)],
    call: ApiCall,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb validate games --judge boxscore` ·
    `finecomb validate games --judge qwen3:8b --base-url http://localhost:11434/v1`
    """
    result: Findings = call(read(study, from_), judge, runs=study / "runs" if study.is_dir() else None)
    _print_findings(result, format_intervals(finding_rows(result)[0]), "95% intervals over texts", as_json_)


@app.command()
@from_api(fc_estimate, flags=_JUDGE_FLAG)
def estimate(study: StudyPath, call: ApiCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Examples: `finecomb estimate STUDY --judge gpt --measure count,coverage` ·
    `finecomb estimate STUDY --judge gpt --by model --strata topic`
    """
    result: Findings = call(read(study, from_))
    plot_findings(result)
    _print_findings(result, [format_estimate_row(finding) for finding in result], "95% intervals", as_json_)
