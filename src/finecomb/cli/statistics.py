"""Commands about numbers: measure and power."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from finecomb.api.statistics import measure as fc_measure
from finecomb.api.statistics import power as fc_power
from finecomb.cli.derived import ApiCall, from_api
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
)
from finecomb.core.results import Findings
from finecomb.reporting.pivot_tables import PivotTable


@app.command()
@from_api(fc_measure, skip=["best"])
def measure(
    study: StudyPath,
    call: ApiCall,
    grid: Annotated[
        bool, typer.Option("--grid", help="One --by column across and labels down, or two: one across, one down.")
    ] = False,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb measure demo-study --by model` ·
    `finecomb measure demo-study --measure coverage --drop grammar-usage:1 --overlap union --tokens whitespace` ·
    `finecomb measure demo-study --measure variation --sizes 4,8,16`
    """
    result = call(read(study, from_), best=prints_bold())
    if grid and not as_json_:
        print_pivots(result, result.pivots())
    else:
        print_result(result, as_json_, result.table_rows())


def print_pivots(result: Findings, tables: Sequence[PivotTable]) -> None:
    """Print a result as tables with groups across; with `--plot` its estimates are drawn too."""
    print_notes(result.notes)
    plot_findings(result, result.protocol)
    for table in tables:
        print_table(table.rows(), table.title, paper=table.paper_rows())


@app.command()
@from_api(fc_power, flags={"judge": ("--judge", "-j")})
def power(
    call: ApiCall,
    study: Annotated[
        Path | None,
        typer.Argument(help="A pilot; without one, a human-or-machine study is planned.", show_default=False),
    ] = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb power demo-study --half-width 0.05` · `finecomb power demo-study --annotations 100` ·
    `finecomb power`
    """
    print_result(call(study and read(study, from_)), as_json_)
