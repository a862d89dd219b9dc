"""Commands about language models: let one annotate a study, and see what it is asked."""

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
from finecomb.annotators.llm.prompt import VARIABLES
from finecomb.annotators.llm.run_reports import run_protocols
from finecomb.api.annotators import ModelAnnotation, StaleContractWarning
from finecomb.api.annotators import annotate as fc_annotate
from finecomb.api.annotators import attack_prompt as fc_attack_prompt
from finecomb.api.annotators import export_prompt as fc_export_prompt
from finecomb.api.annotators import show_prompt as fc_show_prompt
from finecomb.cli.derived import ApiCall, from_api
from finecomb.cli.shared import (
    AsJson,
    Force,
    From,
    StudyPath,
    app,
    format_count,
    out,
    print_note,
    print_outcome,
    print_table_or_json,
    read,
    shows_progress,
)
from finecomb.core.errors import FinecombError
from finecomb.formats import folder
from finecomb.reporting.calibration_tables import format_intervals
from finecomb.reporting.tables import Row, finding_rows
from finecomb.reporting.terminal_text import render_document


@app.command()
@from_api(fc_annotate)
def annotate(
    study: StudyPath,
    call: ApiCall,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write a new study instead of adding to this one.", show_default=False),
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
    if output is None and not is_dry and not folder.is_study_folder(study):
        raise FinecombError(f"{study}: is no study folder, so nothing can be added to it; name a new study with -o")
    with _print_warnings():
        try:
            result, interrupted = call(whole, progress=shows_progress()), None
        except RunInterrupted as stop:
            result, interrupted = stop.result, stop
    if not is_dry:
        _write_runs(result, study, output, force)
    if not (interrupted and is_probe):
        _report_run(result, output or study, as_json_)
    if interrupted:
        raise interrupted


@contextmanager
def _print_warnings() -> Iterator[None]:
    """Print a warning about a stale contract as a note at once: before calls are paid."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", StaleContractWarning)
        show = warnings.showwarning

        def print_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, StaleContractWarning):
                print_note(str(message))
            else:
                show(message, category, *place, **more)

        warnings.showwarning = print_warning
        yield


def _write_runs(result: ModelAnnotation, path: Path, output: Path | None, force: bool) -> None:
    """Write a new study, or add the annotations to the study's folder."""
    if output is not None:
        formats.save(result.study.items(), output, force=force)
        return
    folder.add_annotations(
        path,
        run_protocols(result.study, result.runs),
        [annotator for run in result.runs for annotator in run.annotators],
        [annotation for run in result.runs for annotation in run.annotations],
    )


def _report_run(result: ModelAnnotation, path: Path, as_json_: bool) -> None:
    if not as_json_:
        print_messages(result.messages)
    rows: list[Row] = list(result.rows())
    notes = list(result.notes)
    if result.effects is not None:
        rows, signature = finding_rows(result.effects)
        rows, notes = format_intervals(rows), [*notes, signature]
    print_table_or_json(rows, as_json_, result.title, "No replies.", notes)
    if result.runs and result.effects is None and not as_json_:
        run = result.runs[0]
        marks = format_count(sum(len(annotation.marks) for annotation in run.annotations), "mark")
        print_outcome(path, f"{marks} in {format_count(len(run.annotations), 'text')} by {run.record.name}")


def print_messages(messages: Sequence[ChatMessage]) -> None:
    """Print the messages of a dry run, each under a rule with its role."""
    for message in messages:
        out.rule(message.role)
        out.print(message.content, soft_wrap=True)
    if messages:
        out.rule()


def annotate_one_text(path: Path, model: str, document: str) -> None:
    """Let a model read one text of a study's folder and tell what it said, as the tour does."""
    study = formats.read(path)
    part = dataclasses.replace(study, documents=study.documents.filter(pl.col("id") == document))
    try:
        result, interrupted = fc_annotate(part, model, max_tokens=600, progress=shows_progress()), None
    except RunInterrupted as stop:
        result, interrupted = stop.result, stop
    _write_runs(result, path, None, False)
    _report_run(result, path, False)
    for annotation in result.runs[0].annotations:
        rendered = render_document(study.document(document), [annotation], study.protocols, min(96, out.width))
        out.print(f"\nWhat {result.runs[0].record.name} marked, a model that runs on this machine", style="bold")
        out.print(rendered)
    if interrupted:
        raise interrupted


# --- prompts -----------------------------------------------------------------------------------------------------

prompts_app = typer.Typer(rich_markup_mode="markdown", no_args_is_help=True)
app.add_typer(prompts_app, name="prompts")


@prompts_app.callback()
def prompts() -> None:
    """What language models are asked: the prompt written from a protocol, and the template behind it.

    Examples: finecomb prompts show scarecrow · finecomb prompts export mine.txt
    """


ProtocolArgument = Annotated[
    str, typer.Argument(help="A shipped protocol's name or your YAML file.", show_default=False)
]


@prompts_app.command("show")
@from_api(fc_show_prompt)
def show_prompt(protocol: ProtocolArgument, call: ApiCall) -> None:
    """Example: `finecomb prompts show snac`"""
    typer.echo(str(call(protocol)))


@prompts_app.command("export")
@from_api(fc_export_prompt)
def export_prompt(
    file: Annotated[Path, typer.Argument(help="Where to write it.", show_default=False)], call: ApiCall
) -> None:
    """Example: `finecomb prompts export mine.txt`"""
    call(file)
    print_outcome(file, f"a template with the variables {', '.join(VARIABLES)}")


@prompts_app.command("attack")
@from_api(fc_attack_prompt)
def attack_prompt(protocol: ProtocolArgument, call: ApiCall, as_json_: AsJson = False) -> None:
    """Example: `finecomb prompts attack scarecrow --model qwen3:8b --base-url http://localhost:11434/v1`"""
    result = call(protocol, progress=shows_progress())
    print_table_or_json(result.rows(), as_json_, result.title, "", result.notes)
