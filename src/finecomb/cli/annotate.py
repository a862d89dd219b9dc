"""Commands for language models: `annotate` and `prompts`."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from finecomb import formats
from finecomb.annotators.llm.blocking import RunInterrupted
from finecomb.annotators.llm.chat import ChatMessage
from finecomb.annotators.llm.prompt import TEMPLATE_VARIABLES
from finecomb.api.annotators import ManyCallsWarning, ModelAnnotation, StaleContractWarning
from finecomb.api.annotators import annotate as fc_annotate
from finecomb.api.annotators import attack_prompt as fc_attack_prompt
from finecomb.api.annotators import export_prompt as fc_export_prompt
from finecomb.api.annotators import list_runs as fc_list_runs
from finecomb.api.annotators import show_prompt as fc_show_prompt
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import (
    AsJson,
    Force,
    From,
    StudyPath,
    app,
    ask_to_trust_endpoint,
    format_count,
    out,
    print_note,
    print_outcome,
    print_table_or_json,
    read,
    shows_progress,
)
from finecomb.core.errors import FinecombError
from finecomb.formats import database, folder
from finecomb.reporting.calibration_tables import merge_intervals_into_cells
from finecomb.reporting.tables import Row, finding_rows
from finecomb.reporting.terminal_text import render_document


@app.command()
@derive_flags_from(fc_annotate, skip=["into"])
def annotate(
    study: StudyPath,
    call: PublicFunctionCall,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Study to write (default: add the annotations to `STUDY`).", show_default=False
        ),
    ] = None,
    from_: From = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb annotate harbour --model local:smollm2 --limit 3` ·
    `finecomb annotate harbour --model judge-4 --probe repeat`
    """
    is_dry, is_probe = call.given.get("dry_run", False), bool(call.given.get("probe"))
    whole = read(study, from_)
    if output is None and not is_dry and not (folder.is_study_folder(study) or database.is_database(study)):
        raise FinecombError(
            f"{study} is not a study folder or database, so annotations cannot be added to it; write a new study "
            "with -o"
        )
    with _print_warnings():
        try:
            into = study if output is None and not is_dry else None
            result, interrupted = ask_to_trust_endpoint(call, whole, into=into, progress=shows_progress()), None
        except RunInterrupted as stop:
            result, interrupted = stop.result, stop
    if not is_dry and output is not None:
        formats.save_records(result.study.items(), output, force=force)
    if not (interrupted and is_probe):
        _report_run(result, output or study, as_json_)
    if interrupted:
        raise interrupted
    if not (is_dry or is_probe or result.runs[0].pending):
        exit_with_failures(result)


def exit_with_failures(result: ModelAnnotation) -> None:
    """Exit with code 1 if no text could be read, or 3 if only some of them could."""
    run = result.runs[0]
    read_count = sum(annotation.status == "submitted" for annotation in run.annotations)
    if read_count < len(run.annotations) + len(run.unasked):
        raise typer.Exit(3 if read_count else 1)


@contextmanager
def _print_warnings() -> Iterator[None]:
    """Before any paid call, print the warnings that a judge is no longer valid and that a run makes many calls."""
    printed = StaleContractWarning, ManyCallsWarning
    with warnings.catch_warnings():
        for category in printed:
            warnings.simplefilter("always", category)
        show = warnings.showwarning

        def print_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, printed):
                print_note(str(message))
            else:
                show(message, category, *place, **more)

        warnings.showwarning = print_warning
        yield


def _report_run(result: ModelAnnotation, path: Path, as_json_: bool) -> None:
    if not as_json_:
        print_messages(result.messages)
    rows: list[Row] = list(result.rows())
    notes = list(result.notes)
    if result.effects is not None:
        rows, signature = finding_rows(result.effects)
        rows, notes = merge_intervals_into_cells(rows), [*notes, signature]
    print_table_or_json(rows, as_json_, result.title, "No replies.", notes)
    if result.runs and result.effects is None and not as_json_:
        run = result.runs[0]
        texts = [annotation for annotation in run.annotations if annotation.status == "submitted"]
        marks = format_count(sum(len(annotation.marks) for annotation in texts), "mark")
        print_outcome(path, f"{marks} in {format_count(len(texts), 'text')} by {run.record.name}")


def print_messages(messages: Sequence[ChatMessage]) -> None:
    """Print the messages of a dry run, each below a horizontal line with its role."""
    for message in messages:
        out.rule(message.role)
        out.print(message.content, soft_wrap=True)
    if messages:
        out.rule()


def annotate_one_text(path: Path, model: str, document: str) -> None:
    """Annotate one text in a study folder with a model and print the marks, for the tour of the demo."""
    study = formats.read(path)
    part = dataclasses.replace(study, documents=study.documents.filter(pl.col("id") == document))
    try:
        result, interrupted = fc_annotate(part, model, into=path, max_tokens=600, progress=shows_progress()), None
    except RunInterrupted as stop:
        result, interrupted = stop.result, stop
    _report_run(result, path, False)
    for annotation in result.runs[0].annotations:
        rendered = render_document(study.document(document), [annotation], study.protocols, min(96, out.width))
        out.print(f"\nMarks by {result.runs[0].record.name}, a language model on this machine", style="bold")
        out.print(rendered)
    if interrupted:
        raise interrupted


@app.command("runs")
@derive_flags_from(fc_list_runs)
def list_runs(study: StudyPath, call: PublicFunctionCall, from_: From = "", as_json_: AsJson = False) -> None:
    """Example: `finecomb runs harbour`"""
    result = call(read(study, from_))
    print_table_or_json(result.rows(), as_json_, result.title, "No runs.")


# --- prompts -----------------------------------------------------------------------------------------------------

prompts_app = typer.Typer(rich_markup_mode="markdown", no_args_is_help=True)
app.add_typer(prompts_app, name="prompts")


@prompts_app.callback()
def prompts() -> None:
    """Show, export or attack the prompt that language models receive for a protocol.

    Examples: finecomb prompts show scarecrow · finecomb prompts export mine.txt
    """


ProtocolArgument = Annotated[
    str,
    typer.Argument(help="Name of a shipped protocol (see `finecomb protocols`), or a YAML file.", show_default=False),
]


@prompts_app.command("show")
@derive_flags_from(fc_show_prompt)
def show_prompt(protocol: ProtocolArgument, call: PublicFunctionCall) -> None:
    """Example: `finecomb prompts show snac`"""
    typer.echo(str(call(protocol)))


@prompts_app.command("export")
@derive_flags_from(fc_export_prompt)
def export_prompt(
    file: Annotated[Path, typer.Argument(help="File to write the prompt template to.", show_default=False)],
    call: PublicFunctionCall,
) -> None:
    """Example: `finecomb prompts export mine.txt`"""
    call(file)
    print_outcome(file, f"template with the variables {', '.join(TEMPLATE_VARIABLES)}")


@prompts_app.command("attack")
@derive_flags_from(fc_attack_prompt)
def attack_prompt(protocol: ProtocolArgument, call: PublicFunctionCall, as_json_: AsJson = False) -> None:
    """Example: `finecomb prompts attack scarecrow --model qwen3:8b --base-url http://localhost:11434/v1`"""
    result = call(protocol, progress=shows_progress())
    print_table_or_json(result.rows(), as_json_, result.title, "", result.notes)
