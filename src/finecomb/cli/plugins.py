"""The command `plugins`."""

from __future__ import annotations

from finecomb.api.plugins import list_plugins
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import AsJson, app, print_notes, print_table_or_json


@app.command()
@derive_flags_from(list_plugins)
def plugins(call: PublicFunctionCall, as_json_: AsJson = False) -> None:
    """Example: `finecomb plugins --package finecomb-example`"""
    result = call()
    print_notes(result.notes)
    print_table_or_json(result.rows(), as_json_, result.title, "No plugins.")
