"""The command `generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb.annotators.llm.blocking import RunInterrupted
from finecomb.api.generation import generate as fc_generate
from finecomb.cli.annotate import print_messages
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import (
    AsJson,
    From,
    app,
    format_count,
    print_outcome,
    print_table_or_json,
    read,
    shows_progress,
)
from finecomb.corpora.generation.run_reports import require_texts


@app.command("generate")
@derive_flags_from(fc_generate)
def generate_texts(
    prompts: Annotated[
        Path,
        typer.Argument(
            help="Documents with prompts (see `finecomb prepare`), or a text file with one prompt per line.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Output file for the texts: `.jsonl` or another format that `finecomb formats` lists.",
            show_default=False,
        ),
    ],
    call: PublicFunctionCall,
    priming: Annotated[
        Path | None,
        typer.Option(
            help="Human texts shown before every prompt; generated copies of them are dropped.", show_default=False
        ),
    ] = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Example: `finecomb generate prompts.jsonl -o texts.jsonl --model local:smollm2 --top-p .4,.7,.9,.96
    --temperature 0,.4,.7,1 --frequency-penalty 0,1`
    """
    shots = read(priming) if priming else None
    interrupted = None
    try:
        result = call(read(prompts, from_), output=output, priming=shots, progress=shows_progress())
    except RunInterrupted as stop:
        result, interrupted = stop.result, stop
    if not as_json_:
        print_messages(result.messages)
    print_table_or_json(result.rows(), as_json_, result.title, "No texts.", result.notes)
    if result.run and result.run.documents and not as_json_:
        texts, count = format_count(len(result.run.documents), "text"), len(result.plan.prompts)
        print_outcome(output, f"{texts} from {format_count(count, 'prompt')}")
    if result.run:
        require_texts(result.run)
    if interrupted:
        raise interrupted
