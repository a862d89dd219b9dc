"""The commands `measure` and `power`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from finecomb.api.statistics import measure as fc_measure
from finecomb.api.statistics import power as fc_power
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    plot_findings,
    print_notes,
    print_result,
    print_table,
    prints_bold,
    read,
    shows_progress,
    with_flags,
    write_table_to_requested_file,
)
from finecomb.core.results import Findings
from finecomb.core.study import Study
from finecomb.reporting.pivot_tables import PivotTable
from finecomb.reporting.tables import finding_rows, format_json_tables


@app.command()
@derive_flags_from(fc_measure, skip=["best"])
def measure(
    study: StudyPath,
    call: PublicFunctionCall,
    grid: Annotated[
        bool,
        typer.Option(
            "--grid", help="Print a pivot table: first `--by` field in columns, second field or labels in rows."
        ),
    ] = False,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb measure demo-study --by model` ·
    `finecomb measure demo-study --measure coverage --drop grammar-usage:1 --overlap union --tokens whitespace` ·
    `finecomb measure demo-study --measure variation --sizes 4,8,16`
    """
    print_measures(read(study, from_), call, grid, as_json_)


def print_measures(study: Study, call: PublicFunctionCall, grid: bool, as_json_: bool) -> None:
    """Compute measures and print them, for `finecomb measure` and planned tables."""
    result = call(study, best=prints_bold(), progress=shows_progress())
    if grid:
        print_pivots(result, result.pivots(), as_json_)
    else:
        print_result(result, as_json_, result.table_rows())


def print_pivots(result: Findings, tables: Sequence[PivotTable], as_json_: bool) -> None:
    """Print a result as pivot tables; `--plot` also plots the estimates.

    JSON output has flat rows; in that case, only the file given by `--table-out` contains pivot tables.
    """
    print_notes(result.notes)
    plot_findings(result, result.protocol)
    for table in tables:
        (write_table_to_requested_file if as_json_ else print_table)(
            table.rows(), table.title, paper=table.paper_rows()
        )
    if as_json_:
        typer.echo(format_json_tables(*finding_rows(result), [with_flags(note) for note in result.notes]))


@app.command()
@derive_flags_from(fc_power, flags={"judge": ("--judge", "-j")})
def power(
    call: PublicFunctionCall,
    study: Annotated[
        Path | None,
        typer.Argument(
            help="Pilot study (default: plan a human-or-machine study without a pilot).", show_default=False
        ),
    ] = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb power demo-study --half-width 0.05` · `finecomb power demo-study --annotations 100` ·
    `finecomb power`
    """
    print_result(call(study and read(study, from_), progress=shows_progress()), as_json_)
