"""The command `stress`."""

from __future__ import annotations

import json
from typing import Any

import typer

from finecomb.api.corpora import stress as fc_stress
from finecomb.api.progress import resume_note
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    print_note,
    print_notes,
    print_signature,
    print_table,
    read,
    shows_progress,
    with_flags,
)
from finecomb.core.guarded_json import load_json
from finecomb.reporting.tables import Row, finding_rows, format_json_tables


@app.command()
@derive_flags_from(fc_stress, flags={"metric": ("--metric", "-m")})
def stress(study: StudyPath, call: PublicFunctionCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Example: `finecomb stress study --metric rougeL --metric chrf --corruption shuffled,negated`"""
    result = call(read(study, from_), progress=shows_progress())
    print_notes(resume_note(result.reused_scores, "score"))
    rows, signature = finding_rows(result)
    rank_rows, rank_signature = finding_rows(result.ranks)
    if as_json_:
        whole: dict[str, Any] = load_json(
            format_json_tables(rows, signature, [with_flags(note) for note in result.notes])
        )
        typer.echo(
            json.dumps(whole | {"ranks": load_json(format_json_tables(rank_rows, rank_signature))["table"]}, indent=1)
        )
    else:
        print_table([_rename_value(row, "fall") for row in rows], result.title)
        print_table([_rename_value(row, "correlation") for row in rank_rows], result.ranks.title)
        print_notes(result.notes)
        print_note(
            "fall: positive if the metric noticed the corruption; "
            "fooled: share of texts whose corrupted version scores higher"
        )
        print_signature(signature, " (95% intervals over texts)")
    if result.failed:
        raise typer.Exit(1)


def _rename_value(row: Row, name: str) -> Row:
    return {name if key == "value" else key: value for key, value in row.items()}
