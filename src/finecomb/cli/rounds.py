"""The command `rounds`."""

from __future__ import annotations

import typer

from finecomb.api.judges import rounds as fc_rounds
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import AsJson, From, StudyPath, app, print_note, print_notes, print_table, read
from finecomb.reporting.judge_results import RoundsResult
from finecomb.reporting.tables import Row, finding_rows, format_json_tables

_NO_SECOND_PASS = "No annotator annotated a text a second time."


@app.command()
@derive_flags_from(fc_rounds)
def rounds(study: StudyPath, call: PublicFunctionCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Example: `finecomb rounds demo-study`"""
    result: RoundsResult = call(read(study, from_))
    agreement, signature = finding_rows(result.agreement)
    if as_json_:
        rows: list[Row] = [{"table": "marks", **row} for row in result.marks]
        rows += [{"table": "agreement", **row} for row in agreement]
        typer.echo(format_json_tables(rows, signature, result.notes))
        return
    print_table(result.marks, result.marks.title, _NO_SECOND_PASS)
    if agreement:
        print_table(agreement, result.agreement.title)
        print_note(f"{signature} (95% intervals)")
    print_notes(result.notes)
