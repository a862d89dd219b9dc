"""Commands about studies: make, convert, check, show, count, simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from finecomb import formats
from finecomb.api.studies import check as fc_check
from finecomb.api.studies import convert as fc_convert
from finecomb.api.studies import list_formats as fc_list_formats
from finecomb.api.studies import merge as fc_merge
from finecomb.api.studies import new as fc_new
from finecomb.api.studies import select as fc_select
from finecomb.api.studies import show as fc_show
from finecomb.api.studies import simulate as fc_simulate
from finecomb.api.studies import stats as fc_stats
from finecomb.api.studies import tour as fc_tour
from finecomb.cli.derived import ApiCall, from_api
from finecomb.cli.planned_tests import planned_problems
from finecomb.cli.shared import (
    AsJson,
    Force,
    From,
    ProtocolName,
    StudyPath,
    app,
    format_count,
    out,
    print_note,
    print_notes,
    print_outcome,
    print_table,
    print_table_or_json,
    read,
    shows_progress,
)
from finecomb.core.errors import FinecombError, Problem
from finecomb.reporting.demo_tour import EXAMPLE_DOCUMENT_ID, DemoTour, print_tour
from finecomb.reporting.problem_tables import problem_lines, problem_row
from finecomb.reporting.tables import as_json

OutputStudy = Annotated[Path, typer.Option("--output", "-o", help="The study to write.", show_default=False)]


@app.command()
@from_api(fc_tour)
def demo(
    call: ApiCall,
    folder: Annotated[Path, typer.Argument(help="Where to put the demo study.")] = Path("demo-study"),
    model: Annotated[
        str, typer.Option(help="A language model that reads one text too, e.g. local:smollm2.", show_default=False)
    ] = "",
) -> None:
    """Example: `finecomb demo`"""
    tour: DemoTour = call(folder)
    print_notes(tour.notes)
    if model:
        _annotate_tour_text(folder, model)
        tour = DemoTour(formats.read(folder))
    print_tour(tour, folder, out)


def _annotate_tour_text(folder: Path, model: str) -> None:
    """Let a language model read the text that the tour shows; say how to get one where there is none."""
    from finecomb.annotators.llm.local_models import install_hint
    from finecomb.cli.annotate import annotate_one_text

    if hint := install_hint(model):
        print_note(f"a language model would read a text here: {hint}")
        return
    print_note(f"{model} reads a text; on a slow machine that takes a minute")
    annotate_one_text(folder, model, EXAMPLE_DOCUMENT_ID)


@app.command("formats")
@from_api(fc_list_formats)
def list_formats(call: ApiCall, as_json_: AsJson = False) -> None:
    """Examples: finecomb formats · finecomb formats --json"""
    rows = [row | {"options": " ".join(f"--{name}" for name in row["options"].split())} for row in call()]
    print_table_or_json(rows, as_json_, "Formats", "No formats.")


@app.command()
@from_api(fc_new)
def new(
    study: Annotated[Path, typer.Argument(help="The folder to make.", show_default=False)],
    call: ApiCall,
    protocol: ProtocolName,
    documents: Annotated[
        Path,
        typer.Option(
            "--documents",
            "-d",
            help="The texts: JSONL, CSV, XLSX, one per line, a folder, or any other format.",
            show_default=False,
        ),
    ],
    force: Force = False,
) -> None:
    """Example: `finecomb new harbour -p scarecrow -d texts.csv --map text=Generation --map id=Key`"""
    created = call(documents, protocol=protocol)
    if problems := planned_problems(created.study.settings.planned):
        raise FinecombError("\n".join(problems))
    print_notes(created.notes)
    created.write(study, "folder", force)
    print_outcome(study, created.title)
    out.print(f"annotators: {created.announcement}", soft_wrap=True)


@app.command()
@from_api(fc_merge)
def merge(
    study: StudyPath,
    marks: Annotated[
        list[Path], typer.Argument(help="Files or studies with more annotations of the same texts.", show_default=False)
    ],
    call: ApiCall,
    output: OutputStudy,
    protocol: ProtocolName = "",
    force: Force = False,
) -> None:
    """Example: `finecomb merge harbour colleague.csv replies.jsonl -o harbour-all --annotator ben`"""
    merged = call(read(study), marks, protocol=protocol, progress=shows_progress())
    print_notes(merged.write(output, force=force))
    print_outcome(output, merged.title)


@app.command()
@from_api(fc_convert)
def convert(
    source: Annotated[Path, typer.Argument(help="What to read.", show_default=False)],
    target: Annotated[
        Path, typer.Argument(help="What to write; a name without an ending makes a study folder.", show_default=False)
    ],
    call: ApiCall,
    protocol: ProtocolName = "",
) -> None:
    """Example: `finecomb convert SNaC_data.json snac-study` · `finecomb convert snac-study marks.csv`"""
    print_notes(call(source, target, protocol=protocol, progress=shows_progress()).notes)
    print_outcome(target, "written")


@app.command()
@from_api(fc_select)
def select(study: StudyPath, output: OutputStudy, call: ApiCall, from_: From = "") -> None:
    """Example: `finecomb select demo-study -o humans --where 'model == "human"' --drop grammar-usage:1`"""
    part = call(read(study, from_), output=output)
    print_notes(part.notes)
    print_outcome(output, part.title)


@app.command()
@from_api(fc_check)
def check(
    study: StudyPath,
    call: ApiCall,
    every: Annotated[bool, typer.Option("--all", help="List all problems, also when many are alike.")] = False,
    as_json_: AsJson = False,
) -> None:
    """The exit code is 1 when there are errors.

    Example: `finecomb check my-study`
    """
    problems = call(study, progress=shows_progress())
    print_notes(problems.notes)
    planned = problems.study.settings.planned if problems.study else ()
    unusable = [Problem(message, kind="settings") for message in planned_problems(planned)]
    problems += formats.locate_problems(unusable, study)
    if as_json_:
        typer.echo(as_json(map(problem_row, problems)))
    else:
        for line, count in problem_lines(problems, max_per_type=len(problems) if every else 3):
            more = f"  ... and {count:,} more like this; --all lists them" if count else ""
            out.print(Text(line + more), soft_wrap=True)
        counts = (format_count(len(problems.errors), "error"), format_count(len(problems.warnings), "warning"))
        print_outcome(study, ", ".join(counts))
    if problems.errors:
        raise typer.Exit(1)


@app.command()
@from_api(fc_show)
def show(
    study: StudyPath,
    call: ApiCall,
    document: Annotated[
        str, typer.Argument(help="Id of a document; the first one when absent.", show_default=False)
    ] = "",
    from_: From = "",
    html: Annotated[Path | None, typer.Option(help="Write a page instead.", show_default=False)] = None,
) -> None:
    """Example: `finecomb show demo-study harbour-a -a truth`"""
    shown = call(read(study, from_), document)
    if html:
        shown.to_html(html)
        print_outcome(html, "written")
        return
    out.print(shown.render(out.width))
    print_notes(shown.notes)


@app.command()
@from_api(fc_stats)
def stats(study: StudyPath, call: ApiCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Example: `finecomb stats demo-study --by model,topic`"""
    counts = call(read(study, from_))
    if as_json_:
        typer.echo(as_json(counts.rows()))
        return
    print_table([{"": name, "count": count} for name, count in counts.totals.items()], counts.title)
    for table in counts.tables.values():
        if len(table):
            out.print()
            print_table(table, table.title, digits=2)


@app.command()
@from_api(fc_simulate)
def simulate(study: StudyPath, output: OutputStudy, call: ApiCall) -> None:
    """Example: `finecomb simulate demo-study -o pretended --truth truth --annotators 10 --recall 0.5`"""
    print_outcome(output, call(read(study), output=output, progress=shows_progress()).title)
