"""The command `prepare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb import formats
from finecomb.api.corpora import prepare as fc_prepare
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import (
    AsJson,
    Columns,
    Force,
    From,
    app,
    format_count,
    print_outcome,
    print_table_or_json,
)
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.formats.base import Options, parse_column_pairs

Texts = Annotated[
    list[Path],
    typer.Argument(help="Articles or texts, in any format that `finecomb formats` lists.", show_default=False),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="File to write, such as `texts.jsonl`.", show_default=False)
]
PrimingTexts = Annotated[
    Path | None,
    typer.Option(
        help="Texts that a model was primed with; texts that copy one of them are dropped.", show_default=False
    ),
]


@app.command("prepare")
@derive_flags_from(fc_prepare)
def prepare_texts(
    call: PublicFunctionCall,
    texts: Texts,
    output: Output,
    priming: PrimingTexts = None,
    columns: Columns = None,
    from_: From = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Example: `finecomb prepare articles.jsonl -o prompts.jsonl --prompt first-sentence --words 80-145`"""
    documents = [document for path in texts for document in _read_documents(path, from_, columns)]
    if not documents:
        raise FinecombError(f"{', '.join(map(str, texts))}: no texts found")
    result = call(documents, priming=_read_documents(priming, "", None) if priming else None)
    if result.documents:
        formats.save_records(result.documents, output, force=force)
    print_table_or_json(result.rows(), as_json_, result.title, "", result.notes)
    if not result.documents:
        most_common = result[1]["what"].removeprefix("dropped: ")
        raise FinecombError(f"every text was dropped; most common reason: {most_common}")
    if not as_json_:
        print_outcome(output, format_count(len(result.documents), "text"))


def _read_documents(path: Path, from_: str, columns: list[str] | None) -> list[Document]:
    items = formats.stream_records(path, from_, Options(columns=parse_column_pairs(columns or ())))
    return [item for item in items if isinstance(item, Document)]
