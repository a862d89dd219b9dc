"""Commands for studies: create, convert, check, show, count and simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from finecomb import formats
from finecomb.api.parameters import parameter_help
from finecomb.api.studies import check as fc_check
from finecomb.api.studies import convert as fc_convert
from finecomb.api.studies import edit as fc_edit
from finecomb.api.studies import list_formats as fc_list_formats
from finecomb.api.studies import merge as fc_merge
from finecomb.api.studies import new as fc_new
from finecomb.api.studies import next_steps as fc_next_steps
from finecomb.api.studies import select as fc_select
from finecomb.api.studies import show as fc_show
from finecomb.api.studies import simulate as fc_simulate
from finecomb.api.studies import stats as fc_stats
from finecomb.api.studies import tour as fc_tour
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.output import OUTPUT
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
from finecomb.core.study import Study
from finecomb.reporting.demo_tour import EXAMPLE_DOCUMENT_ID, DemoTour, print_demo_tour
from finecomb.reporting.problem_tables import grouped_problem_lines, problem_row
from finecomb.reporting.tables import format_json_tables

OutputStudy = Annotated[Path, typer.Option("--output", "-o", help="Study to write.", show_default=False)]


@app.command()
@derive_flags_from(fc_tour)
def demo(
    call: PublicFunctionCall,
    folder: Annotated[Path, typer.Argument(help="Folder of the demo study; created if it does not exist.")] = Path(
        "demo-study"
    ),
    model: Annotated[
        str,
        typer.Option(
            help="Language model that also annotates one text of the tour, such as `local:smollm2`.", show_default=False
        ),
    ] = "",
) -> None:
    """Example: `finecomb demo`"""
    tour: DemoTour = call(folder)
    print_notes(tour.notes)
    if model:
        from finecomb.annotators.llm.local_models import local_model_install_hint
        from finecomb.cli.annotate import annotate_one_text

        if hint := local_model_install_hint(model):
            print_note(f"the tour can show a language model's marks: {hint}")
        else:
            print_note(f"{model} is annotating a text; this can take a minute on a slow machine")
            annotate_one_text(folder, model, EXAMPLE_DOCUMENT_ID)
        tour = DemoTour(formats.read(folder))
    print_demo_tour(tour, folder, out)


@app.command("formats")
@derive_flags_from(fc_list_formats)
def list_formats(call: PublicFunctionCall, as_json_: AsJson = False) -> None:
    """Examples: finecomb formats · finecomb formats --json"""
    rows = [row | {"options": " ".join(f"--{name}" for name in row["options"].split())} for row in call()]
    print_table_or_json(rows, as_json_, "Formats", "No formats.")


@app.command()
@derive_flags_from(fc_new)
def new(
    study: Annotated[Path, typer.Argument(help="Folder of the new study.", show_default=False)],
    call: PublicFunctionCall,
    protocol: ProtocolName,
    documents: Annotated[
        Path,
        typer.Option(
            "--documents",
            "-d",
            help="Texts: JSONL, CSV, XLSX, a file with one text per line, a folder, or another format.",
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
@derive_flags_from(fc_merge)
def merge(
    study: StudyPath,
    marks: Annotated[
        list[Path], typer.Argument(help="Files or studies with annotations of the same texts.", show_default=False)
    ],
    call: PublicFunctionCall,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Study to write.", show_default=False)] = None,
    protocol: ProtocolName = "",
    force: Force = False,
) -> None:
    """Examples: `finecomb merge harbour colleague.csv replies.jsonl -o harbour-all --annotator ben` ·
    `finecomb merge harbour colleague.csv --into harbour`
    """
    into: Path | None = call.given.get("into")
    if (output is None) == (into is None):
        raise FinecombError("merge requires either -o STUDY, to write a new study, or --into STUDY, to add to a study")
    merged = call(read(study), marks, protocol=protocol, progress=shows_progress())
    print_notes(merged.notes)
    if output is not None:
        print_notes(merged.write(output, force=force))
    print_outcome(output or into or study, merged.title)


@app.command()
@derive_flags_from(fc_edit)
def edit(
    study: StudyPath,
    call: PublicFunctionCall,
    documents: Annotated[
        Path | None,
        typer.Option("--documents", "-d", help=parameter_help(fc_edit)["documents"], show_default=False),
    ] = None,
    protocol: Annotated[
        str, typer.Option("--protocol", "-p", help=parameter_help(fc_edit)["protocol"], show_default=False)
    ] = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb edit harbour --documents corrected.jsonl --dry-run` ·
    `finecomb edit harbour --settings more-annotators.yaml`
    """
    edits = call(study, documents=documents, protocol=protocol)
    print_table_or_json(edits.rows(), as_json_, edits.title, "Nothing differs from the study.", edits.notes)


@app.command()
@derive_flags_from(fc_convert)
def convert(
    source: Annotated[Path, typer.Argument(help="File or study to read.", show_default=False)],
    target: Annotated[
        Path,
        typer.Argument(
            help="File or study to write; a name without an extension becomes a study folder.", show_default=False
        ),
    ],
    call: PublicFunctionCall,
    protocol: ProtocolName = "",
) -> None:
    """Example: `finecomb convert SNaC_data.json snac-study` · `finecomb convert snac-study marks.csv`"""
    print_notes(call(source, target, protocol=protocol, progress=shows_progress()).notes)
    print_outcome(target, "written")


@app.command()
@derive_flags_from(fc_select)
def select(study: StudyPath, output: OutputStudy, call: PublicFunctionCall, from_: From = "") -> None:
    """Example: `finecomb select demo-study -o humans --where 'model == "human"' --drop grammar-usage:1`"""
    part = call(read(study, from_), output=output)
    print_notes(part.notes)
    print_outcome(output, part.title)


@app.command()
@derive_flags_from(fc_check)
def check(
    study: StudyPath,
    call: PublicFunctionCall,
    every: Annotated[bool, typer.Option("--all", help="List all problems, including repeated ones.")] = False,
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
        typer.echo(format_json_tables(map(problem_row, problems)))
    else:
        for line, count in grouped_problem_lines(problems, max_per_type=len(problems) if every else 3):
            more = f"  ... and {count:,} more like this; --all lists them" if count else ""
            out.print(Text(line + more), soft_wrap=True)
        counts = (format_count(len(problems.errors), "error"), format_count(len(problems.warnings), "warning"))
        print_outcome(study, ", ".join(counts))
    if problems.errors:
        raise typer.Exit(1)


@app.command()
@derive_flags_from(fc_show)
def show(
    study: StudyPath,
    call: PublicFunctionCall,
    document: Annotated[
        str, typer.Argument(help="ID of the text to show (default: the first).", show_default=False)
    ] = "",
    from_: From = "",
    html: Annotated[
        Path | None, typer.Option(help="Write the text to this HTML file instead of printing it.", show_default=False)
    ] = None,
) -> None:
    """Example: `finecomb show demo-study harbour-a -a truth`"""
    shown = call(read(study, from_), document)
    if html:
        shown.to_html(html)
        print_outcome(html, "written")
        return
    out.print(shown.render(out.width))
    print_notes(shown.notes)


@app.command("next")
@derive_flags_from(fc_next_steps)
def next_steps(study: StudyPath, call: PublicFunctionCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Example: `finecomb next demo-study`"""
    steps = call(read(study, from_))
    if as_json_ or OUTPUT.format != "table":
        print_table_or_json(steps.rows(), as_json_, steps.title, "")
        return
    for step in steps:  # commands on lines of their own can be copied
        out.print(step.command, soft_wrap=True)
        out.print(f"    {step.reason}", soft_wrap=True)


@app.command()
@derive_flags_from(fc_stats)
def stats(study: StudyPath, call: PublicFunctionCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Example: `finecomb stats demo-study --by model,topic`"""
    print_counts(read(study, from_), call, as_json_)


def print_counts(study: Study, call: PublicFunctionCall, as_json_: bool) -> None:
    """Count the records of a study and print the counts, for `finecomb stats` and planned tables."""
    counts = call(study)
    if as_json_:
        typer.echo(format_json_tables(counts.rows()))
        return
    print_table([{"": name, "count": count} for name, count in counts.totals.items()], counts.title)
    for table in counts.tables.values():
        if len(table):
            out.print()
            print_table(table, table.title, digits=2)


@app.command()
@derive_flags_from(fc_simulate)
def simulate(study: StudyPath, output: OutputStudy, call: PublicFunctionCall) -> None:
    """Example: `finecomb simulate demo-study -o simulated --truth truth --annotators 10 --recall 0.5`"""
    print_outcome(output, call(read(study), output=output, progress=shows_progress()).title)
