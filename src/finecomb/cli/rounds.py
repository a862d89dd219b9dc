"""The command that compares two passes over the same texts."""

from __future__ import annotations

import typer

from finecomb.api.judges import rounds as fc_rounds
from finecomb.cli.derived import ApiCall, from_api
from finecomb.cli.shared import AsJson, From, StudyPath, app, print_note, print_notes, print_table, read
from finecomb.reporting.judge_results import RoundsResult
from finecomb.reporting.tables import Row, as_json, finding_rows

_NO_SECOND_PASS = "Nobody has gone through a text a second time."


@app.command()
@from_api(fc_rounds)
def rounds(study: StudyPath, call: ApiCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Example: `finecomb rounds demo-study`"""
    result: RoundsResult = call(read(study, from_))
    agreement, signature = finding_rows(result.agreement)
    if as_json_:
        rows: list[Row] = [{"table": "marks", **row} for row in result.marks]
        rows += [{"table": "agreement", **row} for row in agreement]
        typer.echo(as_json(rows, signature, result.notes))
        return
    print_table(result.marks, result.marks.title, _NO_SECOND_PASS)
    if agreement:
        print_table(agreement, result.agreement.title)
        print_note(f"{signature} (95% intervals)")
    print_notes(result.notes)
