"""Commands about protocols."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from finecomb import protocols
from finecomb.cli.shared import AsJson, app, out, print_notes, print_table_or_json
from finecomb.core.protocol import Protocol
from finecomb.reporting.protocol_text import render_protocol
from finecomb.reporting.tables import Row
from finecomb.statistics.measures.numeric_answers import unusable_severities

protocols_app = typer.Typer(rich_markup_mode="markdown")
app.add_typer(protocols_app, name="protocols")


@protocols_app.callback(invoke_without_command=True)
def list_protocols(context: typer.Context, as_json_: AsJson = False) -> None:
    """What annotators can be asked; `protocols show NAME` tells all about one.

    Example: `finecomb protocols show scarecrow`
    """
    if context.invoked_subcommand:
        return
    shipped = [protocols.load_shipped(name) for name in protocols.names()]
    rows: list[Row] = [
        {"name": protocol.name, "version": protocol.version, "labels": len(protocol.labels), "asks": protocol.summary}
        | ({"source": protocol.source} if as_json_ else {})
        for protocol in shipped
    ]
    print_table_or_json(rows, as_json_, "Protocols", "No protocols.")


@protocols_app.command("show")
def show_protocol(
    name: Annotated[str, typer.Argument(help="A shipped protocol's name or your YAML file.", show_default=False)],
    as_json_: AsJson = False,
) -> None:
    """Labels, questions, rules and work of one protocol; your own file is checked on the way.

    Example: `finecomb protocols show my-protocol.yaml`
    """
    protocol = protocols.load(name)
    if as_json_:
        typer.echo(protocol.model_dump_json(exclude_defaults=True, indent=1))
    else:
        out.print(render_protocol(protocol))
        print_notes(unusable_severities(protocol))


@protocols_app.command("schema")
def protocol_schema() -> None:
    """The JSON schema of a protocol file, for editors that check while you type.

    Example: `finecomb protocols schema > protocol.schema.json`
    """
    typer.echo(json.dumps(Protocol.model_json_schema(), indent=1))
