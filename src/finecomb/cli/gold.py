"""The commands `gold` and `score`."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from finecomb import formats
from finecomb.api.judges import gold as fc_gold
from finecomb.api.judges import score as fc_score
from finecomb.api.parameters import as_names, parameter_help
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.output import OUTPUT
from finecomb.cli.shared import (
    AsJson,
    Force,
    From,
    StudyPath,
    app,
    format_count,
    plot_findings,
    print_note,
    print_notes,
    print_outcome,
    print_signature,
    print_table,
    prints_bold,
    read,
)
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.results import Result
from finecomb.core.study import Study
from finecomb.reporting.gold_results import GOLD_TABLE_TITLES, SCORE_TABLE_TITLES, GoldResult, ScoreResult
from finecomb.reporting.table_groups import ScoreTable, flat_rows
from finecomb.reporting.tables import Row, format_json_tables
from finecomb.statistics.comparisons.system_ranking import BEST_VALUE_RULE


def _print_tables(
    tables: Mapping[str, Result], notes: Sequence[str], as_json_: bool, best: Collection[tuple[str, str]] = ()
) -> None:
    """Print tables followed by notes, or everything as one JSON object.

    `best` holds the pairs of judge and ratio whose score is printed in bold.
    """
    flat_by_name = {name: flat_rows(table) for name, table in tables.items()}
    if as_json_:
        rows = [
            {"table": name, **row} if len(tables) > 1 else row
            for name, (flat, _) in flat_by_name.items()
            for row in flat
        ]
        signatures = [signature for _, signature in flat_by_name.values() if signature]
        typer.echo(format_json_tables(rows, signatures[0] if len(signatures) == 1 else "", notes))
        return
    for name, table in tables.items():
        flat, signature = flat_by_name[name]
        printed: Sequence[Row] = table.display_table(best) if isinstance(table, ScoreTable) else flat
        title = table.title
        judges = {row.get("judge") for row in printed}
        if len(judges) == 1 and judges != {None}:  # a single judge is named in the title instead of in each row
            printed = [{name: value for name, value in row.items() if name != "judge"} for row in printed]
            title = f"{title}: {judges.pop()}"
        print_table(printed, title, f"{title}: no rows.", flat=flat)
        print_signature(signature, " (95% intervals)" if any(map(_has_interval, flat)) else "")
    print_notes(notes)


def _has_interval(row: Row) -> bool:
    edges = [value for name, value in row.items() if name == "low" or name.endswith("_low")]
    return any(isinstance(edge, float) and math.isfinite(edge) for edge in edges)


def _parse_table_names(text: str, all_names: Collection[str]) -> list[str]:
    chosen = list(all_names) if text == "all" else list(as_names(text))
    for name in chosen:
        if name not in all_names:
            raise FinecombError(f"unknown table {name!r}{did_you_mean(name, [*all_names, 'all'])}")
    return chosen


@app.command()
@derive_flags_from(fc_gold, flags={"decisions": ("--decisions/--votes-only",)})
def gold(
    study: StudyPath,
    call: PublicFunctionCall,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Gold study to write.", show_default=False)
    ] = None,
    min_votes: Annotated[
        str | None,
        typer.Option(
            help=parameter_help(fc_gold)["min_votes"], show_default="2; with --subsets, the majority of each subset"
        ),
    ] = None,
    tables_: Annotated[
        str,
        typer.Option(
            "--table",
            "-t",
            help=f"Tables to print, comma-separated (`all` for all of them): {', '.join(GOLD_TABLE_TITLES)}.",
        ),
    ] = "errors,annotators",
    grid: Annotated[
        bool, typer.Option("--grid", help="Print the `rates` table with systems in rows and labels in columns.")
    ] = False,
    from_: From = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb gold demo-study -o demo-gold` ·
    `finecomb gold demo-study --table confusion,rates --subsets 3`
    """
    print_gold(read(study, from_), call, output, min_votes, tables_, grid, force, as_json_)


def print_gold(
    study: Study,
    call: PublicFunctionCall,
    output: Path | None,
    min_votes: str | None,
    tables_: str,
    grid: bool,
    force: bool,
    as_json_: bool,
) -> None:
    """Merge annotations, print the tables and write the gold study, for `finecomb gold` and planned tables."""
    names = _parse_table_names(tables_, GOLD_TABLE_TITLES)
    if grid and "rates" not in names:
        raise FinecombError("--grid requires --table rates")
    result: GoldResult = call(study, min_votes=min_votes)
    tables = {name: result.table(name) for name in names}
    if grid and not as_json_:
        tables["rates"] = result.rate_grid
    if result.subsets is not None:
        tables["subsets"] = result.subsets
    _print_tables(tables, result.notes, as_json_)
    if output:
        print_notes(formats.save_records(result.study.items(), Path(output), force=force))
    place = output or call.given.get("into")
    if place and not as_json_:
        texts = result.study.submitted_work().annotations["document"].n_unique()
        errors, undecided = (
            format_count(len(part), "error") for part in (result.merge.kept_errors, result.merge.undecided_errors)
        )
        print_outcome(
            Path(place), f"{errors} in {format_count(texts, 'text')}; {undecided} to adjudicate (--table rest)"
        )


@app.command()
@derive_flags_from(fc_score, flags={"judge": ("--judge", "-a")})
def score(
    study: Annotated[
        Path,
        typer.Argument(
            metavar="GOLD",
            help="Gold study: its folder, or a file in any format that `finecomb formats` lists.",
            show_default=False,
        ),
    ],
    call: PublicFunctionCall,
    predicted: Annotated[
        Path | None, typer.Argument(help=parameter_help(fc_score)["predicted"], show_default=False)
    ] = None,
    tables_: Annotated[
        str,
        typer.Option(
            "--table",
            "-t",
            help=f"Tables to print, comma-separated (`all` for all of them): {', '.join(SCORE_TABLE_TITLES)}.",
        ),
    ] = "scores",
    report: Annotated[
        Path | None, typer.Option(help="Folder to write a report with pages and figures to.", show_default=False)
    ] = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb score gsml.csv submission.csv` · `finecomb score demo-study --by label,model` ·
    `finecomb score demo-study --match all` · `finecomb score demo-study --table all --report validation`
    """
    names = _parse_table_names(tables_, SCORE_TABLE_TITLES)
    result: ScoreResult = call(read(study, from_), read(predicted, from_) if predicted else None)
    if "rules" in result.names and OUTPUT.plot is not None:
        raise FinecombError("--plot does not apply to the table of F1 by match rule")
    is_all = tables_ == "all" or result.evaluation is None
    tables = {name: result.table(name) for name in (result.names if is_all else names)}
    plot_findings(result.findings(), result.evaluation.pair.protocol if result.evaluation else None)
    best = result.best if prints_bold() else ()
    if best:
        print_note(f"bold: higher than all other judges (labels ignored), {BEST_VALUE_RULE}")
    _print_tables(tables, result.notes, as_json_, best)
    if report:
        files = result.write_report(report)
        if not as_json_:
            print_outcome(report, f"{format_count(len(files), 'file')} written; open {report / 'index.html'}")
