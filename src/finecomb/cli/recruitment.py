"""Commands for managing participants: `screen`, `pay` and `forget`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb.api.collection import PersonalData
from finecomb.api.collection import forget as fc_forget
from finecomb.api.collection import pay as fc_pay
from finecomb.api.collection import screen as fc_screen
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.serve import ServedStudy
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    format_count,
    out,
    print_notes,
    print_outcome,
    print_table_or_json,
    read,
)
from finecomb.reporting.tables import format_json_tables


@app.command()
@derive_flags_from(fc_screen)
def screen(study: StudyPath, call: PublicFunctionCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Example: `finecomb screen my-study`"""
    screening = call(read(study, from_))
    if as_json_:
        typer.echo(format_json_tables(screening.rows(), people=screening.people.rows()))
        return
    print_table_or_json(screening.rows(), False, screening.title, "Nothing needs review.", screening.notes)
    if screening.people:
        print_table_or_json(screening.people.rows(), False, screening.people.title, "")


@app.command()
@derive_flags_from(fc_pay)
def pay(
    study: ServedStudy,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="CSV file to write; only your user account can read it.", show_default=False
        ),
    ],
    call: PublicFunctionCall,
) -> None:
    """Example: `finecomb pay my-study -o pay.csv`"""
    table = call(study, output=output)
    people = "1 person" if len(table) == 1 else f"{len(table):,} people"
    is_ledger = call.given.get("form") == "tasks"
    print_outcome(output, f"{format_count(len(table), 'line') if is_ledger else people} written")


@app.command()
@derive_flags_from(fc_forget, skip=["dry_run"])
def forget(
    study: ServedStudy,
    call: PublicFunctionCall,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Example: `finecomb forget my-study`"""
    found = call(study, dry_run=True)
    out.print(f"{study}: {_format_personal_data(found)}", soft_wrap=True)
    if found.is_empty:
        return
    if not yes:
        typer.confirm("Remove this data permanently?", abort=True)
    removed = call(study)
    print_outcome(study, f"removed {_format_personal_data(removed)}")
    print_notes(removed.notes)


def _format_personal_data(data: PersonalData) -> str:
    return ", ".join(format_count(row.records, row.data) for row in data)
