"""The command that damages texts and tells which metrics notice."""

from __future__ import annotations

import json
from typing import Any

import typer

from finecomb.api.corpora import stress as fc_stress
from finecomb.cli.derived import ApiCall, from_api
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
    resume_note,
    shows_progress,
    with_flags,
)
from finecomb.corpora.stress.stress_trial import MetricFalls
from finecomb.reporting.tables import Row, as_json, finding_rows


@app.command()
@from_api(fc_stress, flags={"metric": ("--metric", "-m")})
def stress(study: StudyPath, call: ApiCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Example: `finecomb stress study --metric rougeL --metric chrf --corruption shuffled,negated`"""
    result = call(read(study, from_), progress=shows_progress())
    print_notes(resume_note(result.reused_scores, "score"))
    _print_falls(result, as_json_)
    if result.failed:
        raise typer.Exit(1)


def _print_falls(result: MetricFalls, as_json_: bool) -> None:
    rows, signature = finding_rows(result)
    rank_rows, rank_signature = finding_rows(result.ranks)
    if as_json_:
        whole: dict[str, Any] = json.loads(as_json(rows, signature, [with_flags(note) for note in result.notes]))
        typer.echo(json.dumps(whole | {"ranks": json.loads(as_json(rank_rows, rank_signature))["table"]}, indent=1))
        return
    print_table([_rename_value(row, "fall") for row in rows], result.title)
    print_table([_rename_value(row, "correlation") for row in rank_rows], result.ranks.title)
    print_notes(result.notes)
    print_note("fall: positive where the metric noticed; fooled: share of texts whose damaged version it ranks higher")
    print_signature(signature, " (95% intervals over texts)")


def _rename_value(row: Row, name: str) -> Row:
    return {name if key == "value" else key: value for key, value in row.items()}
