"""Commands about gold: merge annotators into a gold standard, and score annotators against it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from finecomb import formats
from finecomb.api.judges import gold as fc_gold
from finecomb.api.judges import score as fc_score
from finecomb.api.parameters import parameter_help
from finecomb.cli.derived import ApiCall, from_api
from finecomb.cli.filters import split_names
from finecomb.cli.output import refuse_plot
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
from finecomb.reporting.gold_results import GOLD_TABLE_TITLES, SCORE_TABLE_TITLES, GoldResult, ScoreResult
from finecomb.reporting.table_groups import ScoreTable, flat_rows
from finecomb.reporting.tables import Row, as_json
from finecomb.statistics.comparisons.system_ranking import BEST_RULE


def _print_tables(
    tables: Mapping[str, Result], notes: Sequence[str], as_json_: bool, best: Collection[tuple[str, str]] = ()
) -> None:
    """Print tables one after the other and then the notes, or everything as one JSON object.

    `best` are judge and ratio of the scores in bold.
    """
    flat_by_name = {name: flat_rows(table) for name, table in tables.items()}
    if as_json_:
        rows = [
            {"table": name, **row} if len(tables) > 1 else row
            for name, (flat, _) in flat_by_name.items()
            for row in flat
        ]
        signatures = [signature for _, signature in flat_by_name.values() if signature]
        typer.echo(as_json(rows, signatures[0] if len(signatures) == 1 else "", notes))
        return
    for name, table in tables.items():
        flat, signature = flat_by_name[name]
        printed: Sequence[Row] = table.display_table(best) if isinstance(table, ScoreTable) else flat
        printed, title = _move_judge_to_title(printed, table.title)
        print_table(printed, title, f"{title}: nothing to show.", flat=flat)
        print_signature(signature, " (95% intervals)" if any(map(_has_interval, flat)) else "")
    print_notes(notes)


def _move_judge_to_title(rows: Sequence[Row], title: str) -> tuple[Sequence[Row], str]:
    """Name a single judge above the table instead of in every row."""
    judges = {row.get("judge") for row in rows}
    if len(judges) != 1 or judges == {None}:
        return rows, title
    others: list[Row] = [{name: value for name, value in row.items() if name != "judge"} for row in rows]
    return others, f"{title}: {judges.pop()}"


def _has_interval(row: Row) -> bool:
    edges = [value for name, value in row.items() if name == "low" or name.endswith("_low")]
    return any(isinstance(edge, float) and math.isfinite(edge) for edge in edges)


def _parse_table_names(text: str, all_names: Collection[str]) -> list[str]:
    chosen = list(all_names) if text == "all" else split_names(text)
    for name in chosen:
        if name not in all_names:
            raise FinecombError(f"no table is called {name!r}{did_you_mean(name, [*all_names, 'all'])}")
    return chosen


@app.command()
@from_api(fc_gold, flags={"decisions": ("--decisions/--votes-only",)})
def gold(
    study: StudyPath,
    call: ApiCall,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The gold study to write.", show_default=False)
    ] = None,
    min_votes: Annotated[
        str | None,
        typer.Option(help=parameter_help(fc_gold)["min_votes"], show_default="2; with --subsets the majority of each"),
    ] = None,
    tables_: Annotated[
        str, typer.Option("--table", "-t", help=f"Comma-separated, or all: {', '.join(GOLD_TABLE_TITLES)}.")
    ] = "errors,annotators",
    grid: Annotated[bool, typer.Option("--grid", help="For rates: systems in rows and labels in columns.")] = False,
    from_: From = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb gold demo-study -o demo-gold` ·
    `finecomb gold demo-study --table confusion,rates --subsets 3`
    """
    names = _parse_table_names(tables_, GOLD_TABLE_TITLES)
    if grid and "rates" not in names:
        raise FinecombError("--grid is for the table of rates: --table rates --grid")
    result: GoldResult = call(read(study, from_), min_votes=min_votes)
    tables = {name: result.table(name) for name in names}
    if grid and not as_json_:
        tables["rates"] = result.rate_grid
    if result.subsets is not None:
        tables["subsets"] = result.subsets
    _print_tables(tables, result.notes, as_json_)
    if output:
        _write_gold(result, output, force, as_json_)


def _write_gold(result: GoldResult, output: Path, force: bool, quiet: bool) -> None:
    print_notes(formats.save(result.study.items(), output, force=force))
    if not quiet:
        texts = result.study.submitted_work().annotations["document"].n_unique()
        kept, left = (
            format_count(len(part), "error") for part in (result.merge.kept_errors, result.merge.undecided_errors)
        )
        print_outcome(output, f"{kept} in {format_count(texts, 'text')}; {left} left for adjudication (--table rest)")


@app.command()
@from_api(fc_score, flags={"judge": ("--judge", "-a")})
def score(
    study: Annotated[
        Path,
        typer.Argument(
            metavar="GOLD",
            help="A study's folder, or a file in any format that `finecomb formats` lists.",
            show_default=False,
        ),
    ],
    call: ApiCall,
    predicted: Annotated[
        Path | None, typer.Argument(help=parameter_help(fc_score)["predicted"], show_default=False)
    ] = None,
    tables_: Annotated[
        str, typer.Option("--table", "-t", help=f"Comma-separated, or all: {', '.join(SCORE_TABLE_TITLES)}.")
    ] = "scores",
    report: Annotated[
        Path | None, typer.Option(help="Write pages and figures into this folder.", show_default=False)
    ] = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb score gsml.csv submission.csv` · `finecomb score demo-study --by label,model` ·
    `finecomb score demo-study --match all` · `finecomb score demo-study --table all --report validation`
    """
    names = _parse_table_names(tables_, SCORE_TABLE_TITLES)
    result: ScoreResult = call(read(study, from_), read(predicted, from_) if predicted else None)
    if "rules" in result.names:
        refuse_plot("a table of F1 by every rule")
    is_all = tables_ == "all" or result.evaluation is None
    tables = {name: result.table(name) for name in (result.names if is_all else names)}
    plot_findings(result.findings(), result.evaluation.pair.protocol if result.evaluation else None)
    best = result.best if prints_bold() else ()
    if best:
        print_note(f"bold: higher than every other judge (labels ignored), {BEST_RULE}")
    _print_tables(tables, result.notes, as_json_, best)
    if report:
        files = result.write_report(report)
        if not as_json_:
            print_outcome(report, f"{format_count(len(files), 'file')}; open {report / 'index.html'}")
