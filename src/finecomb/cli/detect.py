"""Commands for detectors: `detectors`, `detect` and `train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb.annotators.detectors import DETECTORS
from finecomb.annotators.detectors.study_detection import require_real_texts, training_by_detector
from finecomb.api.annotators import detect as fc_detect
from finecomb.api.annotators import list_detectors
from finecomb.api.annotators import train as fc_train
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.options import further_options, with_options
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    format_count,
    print_note,
    print_notes,
    print_outcome,
    print_table,
    print_table_or_json,
    read,
    shows_progress,
)
from finecomb.core.options import OptionValues
from finecomb.formats.parquet import is_parquet_folder
from finecomb.reporting.tables import format_json_tables


@app.command()
@derive_flags_from(list_detectors)
def detectors(call: PublicFunctionCall, as_json_: AsJson = False) -> None:
    """Example: `finecomb detectors`"""
    result = call()
    print_table_or_json(result.rows(), as_json_, result.title, "No detectors.")


@app.command()
@derive_flags_from(fc_detect, skip=["options"], flags={"protocol": ("--protocol",)})
@with_options([further_options(fc_detect, [row.options for row in DETECTORS.values()])])
def detect(
    study: StudyPath, call: PublicFunctionCall, values: OptionValues, from_: From = "", as_json_: AsJson = False
) -> None:
    """Example: `finecomb detect games --detector boxscore -o checked --basis record`"""
    stays_on_disk = from_ in ("", "parquet") and is_parquet_folder(study)
    source = study if stays_on_disk else read(study, from_)
    result = call(source, options=values.given, progress=shows_progress())
    print_notes(note for note in result.notes if note not in result.problems)
    if as_json_:
        typer.echo(format_json_tables(result.rows(), result.signature, result.problems))
        return
    print_notes(result.problems)
    if result.output:
        marks, texts = format_count(result.mark_count, "mark"), format_count(result.text_count, "text")
        print_outcome(result.output, f"{marks} in {texts}; `finecomb show` prints the explanations")
    else:
        print_table(result.rows(), result.title, "No marks.")
        print_note(result.signature)


@app.command()
@derive_flags_from(fc_train, skip=["options"])
@with_options([further_options(fc_train, [training.options for training in training_by_detector().values()])])
def train(
    study: StudyPath,
    call: PublicFunctionCall,
    values: OptionValues,
    real: Annotated[
        Path | None,
        typer.Option(
            "--real",
            help="For the detectors `entity-grid` and `synthetic`: study or file with coherent texts.",
            show_default=False,
        ),
    ] = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Example: `finecomb train games --detector boxscore -o weights.json`"""
    if real:
        require_real_texts(call.given["detector"])
    result = call(read(study, from_), real=read(real, from_) if real else None, options=values.given)
    if as_json_:
        typer.echo(format_json_tables(result.rows(), result.signature, result.notes))
        return
    print_notes(result.notes)
    if len(result):
        print_table(result.rows(), result.title)
    print_note(result.signature)
    if output := call.given.get("output"):
        print_outcome(output, f"fitted on {format_count(result.text_count, 'text')}")
