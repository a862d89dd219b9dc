"""The command that lets models write texts from prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb.annotators.llm.blocking import RunInterrupted
from finecomb.api.corpora import generate as fc_generate
from finecomb.cli.annotate import print_messages
from finecomb.cli.derived import ApiCall, from_api
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
@from_api(fc_generate)
def generate_texts(
    prompts: Annotated[
        Path,
        typer.Argument(
            help="Documents with a prompt, as `finecomb prepare` writes them, or one prompt per line (.txt).",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File for the texts: .jsonl or any other format.", show_default=False)
    ],
    call: ApiCall,
    priming: Annotated[
        Path | None,
        typer.Option(help="Texts by people that precede every prompt; copies of them are dropped.", show_default=False),
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
