"""The command that compares two passes over the same texts."""

from __future__ import annotations

import typer

from finecomb.cli.filters import Annotators, Draws, Protocol, Seed, Where, build_filters
from finecomb.cli.shared import AsJson, From, StudyPath, app, print_note, print_table, read
from finecomb.reporting.tables import Row, as_json, finding_rows, frame_rows
from finecomb.statistics.agreement.second_pass_changes import compare_passes as compared

_NO_SECOND_PASS = "Nobody has gone through a text a second time."


@app.command()
def rounds(
    study: StudyPath,
    protocol: Protocol = "",
    annotators: Annotators = None,
    where: Where = None,
    draws: Draws = 1000,
    seed: Seed = 0,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """What a second pass changed: marks kept, changed, withdrawn and added, and agreement before and after.

    Example: `finecomb rounds demo-study`
    """
    chosen = build_filters(protocol, annotators=annotators, where=where, kinds=None if annotators else ["human"])
    comparison = compared(read(study, from_), chosen, draws, seed)
    agreement, signature = finding_rows(comparison.agreement)
    marks = frame_rows(comparison.marks) if len(comparison.marks) > 1 else []
    if as_json_:
        rows: list[Row] = [{"table": "marks", **row} for row in marks]
        rows += [{"table": "agreement", **row} for row in agreement]
        typer.echo(as_json(rows, signature, comparison.notes))
        return
    print_table(marks, "What became of the marks", _NO_SECOND_PASS)
    if agreement:
        print_table(agreement, "Agreement of the same people on the same texts")
        print_note(f"{signature} (95% intervals)")
    for note in comparison.notes:
        print_note(note)
