"""Command that imports files of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb.api.imports import import_table as fc_import_table
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import AsJson, Force, ProtocolName, app, print_notes, print_outcome, print_table
from finecomb.core.errors import FinecombError
from finecomb.reporting.tables import format_json_tables


@app.command("import")
@derive_flags_from(fc_import_table)
def import_table(
    source: Annotated[
        list[Path],
        typer.Argument(help="Tables, JSON files, logs or folders; `-` for standard input.", show_default=False),
    ],
    call: PublicFunctionCall,
    into: Annotated[
        Path | None, typer.Option(help="Study folder that the records are added to.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="New study to write.", show_default=False)
    ] = None,
    use_map: Annotated[
        str,
        typer.Option(
            help="Name of a shipped import map, or a YAML file (default: recognised from the fields).",
            show_default=False,
        ),
    ] = "",
    protocol: ProtocolName = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Without --into and --output, only the roles and the summary are printed.

    Example: `finecomb import log.eval -o study` · `finecomb import errors.csv --into study --no-row read`
    """
    if into is not None and output is not None:
        raise FinecombError("--into and --output cannot be used together")
    first = source[0] if len(source) == 1 else source
    result = call(first, into=into, output=output, use_map=use_map, protocol=protocol, force=force)
    print_notes(result.notes)
    if as_json_:
        typer.echo(format_json_tables(result.rows(), notes=list(result.notes)))
        return
    print_table(result.roles, "Roles")
    print_table(result.rows(), "Summary")
    if (target := into or output) is not None:
        print_outcome(target, f"{'added' if into else 'written'}: {result.title}")
