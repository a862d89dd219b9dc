"""The command `protocols`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from finecomb.api.studies import list_protocols as fc_list_protocols
from finecomb.api.studies import protocol_schema as fc_protocol_schema
from finecomb.api.studies import show_protocol as fc_show_protocol
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import AsJson, app, out, print_notes, print_table_or_json
from finecomb.reporting.protocol_text import render_protocol
from finecomb.reporting.tables import Row

protocols_app = typer.Typer(rich_markup_mode="markdown")
app.add_typer(protocols_app, name="protocols")


@protocols_app.callback(invoke_without_command=True)
@derive_flags_from(fc_list_protocols)
def list_protocols(context: typer.Context, call: PublicFunctionCall, as_json_: AsJson = False) -> None:
    """`finecomb protocols show NAME` prints one of them.

    Example: `finecomb protocols show scarecrow`
    """
    if context.invoked_subcommand:
        return
    rows: list[Row] = [{name: cell for name, cell in row.items() if as_json_ or name != "source"} for row in call()]
    print_table_or_json(rows, as_json_, "Protocols", "No protocols.")


@protocols_app.command("show")
@derive_flags_from(fc_show_protocol)
def show_protocol(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of a shipped protocol (see `finecomb protocols`), or a YAML file.", show_default=False
        ),
    ],
    call: PublicFunctionCall,
    as_json_: AsJson = False,
) -> None:
    """Example: `finecomb protocols show my-protocol.yaml`"""
    details = call(name)
    if as_json_:
        typer.echo(details.protocol.model_dump_json(exclude_defaults=True, indent=1))
    else:
        out.print(render_protocol(details.protocol))
        print_notes(details.notes)


@protocols_app.command("schema")
@derive_flags_from(fc_protocol_schema)
def protocol_schema(call: PublicFunctionCall) -> None:
    """Example: `finecomb protocols schema > protocol.schema.json`"""
    typer.echo(json.dumps(call(), indent=1))
