"""The command that makes texts ready for a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from finecomb import formats
from finecomb.cli.filters import split_names
from finecomb.cli.shared import (
    AsJson,
    Columns,
    Force,
    From,
    app,
    format_count,
    parse_mapping,
    print_outcome,
    print_table_or_json,
)
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import MAX_OVERLAP, Priming
from finecomb.corpora.preparation import Preparation, PreparedTexts, PromptKind, prepare
from finecomb.formats.base import Options
from finecomb.reporting.tables import Row


@app.command("prepare")
def prepare_texts(
    texts: Annotated[
        list[Path],
        typer.Argument(help="Articles or texts, in any format that `finecomb formats` lists.", show_default=False),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the texts go, e.g. texts.jsonl.", show_default=False)
    ],
    prompt: Annotated[
        PromptKind | None,
        typer.Option(
            help="What of an article becomes the prompt; the rest is the human continuation.", show_default=False
        ),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            help="With --prompt start: words that texts begin with, e.g. 'Once upon a time'.", show_default=False
        ),
    ] = "",
    words: Annotated[
        str,
        typer.Option(
            help="LEAST-MOST or LEAST-: cut at the first sentence end from LEAST words on; drop others.",
            show_default=False,
        ),
    ] = "",
    priming: Annotated[
        Path | None, typer.Option(help="Priming texts; texts that copy one are dropped.", show_default=False)
    ] = None,
    overlap: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of a text's words that makes it a copy.")
    ] = MAX_OVERLAP,
    balance: Annotated[
        str,
        typer.Option(
            help="Meta fields whose combinations get equally many texts, e.g. topic,model.", show_default=False
        ),
    ] = "",
    per_cell: Annotated[
        int | None,
        typer.Option(min=1, help="Texts for each combination; those of the smallest when absent.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For the draw of --balance.")] = 0,
    detokenise: Annotated[
        bool, typer.Option("--detokenise", help="Take out the blanks that a tokenizer put around signs.")
    ] = False,
    keep_duplicates: Annotated[bool, typer.Option("--keep-duplicates", help="Equal texts may come twice.")] = False,
    sections: Annotated[
        Literal["with-titles", "without-titles", "read"] | None,
        typer.Option(
            help="Mark sections for a model, with their titles or without; or read them back.", show_default=False
        ),
    ] = None,
    columns: Columns = None,
    from_: From = "",
    force: Force = False,
    as_json_: AsJson = False,
) -> None:
    """Make texts ready for a study: prompts, lengths, copies, duplicates, balance. Every text dropped is counted.

    Example: `finecomb prepare articles.jsonl -o prompts.jsonl --prompt first-sentence --words 80-145`
    """
    if priming is None and overlap != MAX_OVERLAP:
        raise FinecombError("--overlap means nothing without --priming; name the priming texts or leave it out")
    documents = [document for path in texts for document in _read_documents(path, from_, columns)]
    if not documents:
        raise FinecombError(f"{', '.join(map(str, texts))}: no texts in it; there is nothing to prepare")
    preparation = Preparation(
        detokenise=detokenise,
        prompt=prompt,
        start=start,
        sections=sections,
        rule=LengthRule.parse(words) if words else None,
        priming=Priming(tuple(_read_documents(priming, "", None)) if priming else ()),
        most_overlap=overlap,
        balance=tuple(split_names(balance)),
        per_cell=per_cell,
        seed=seed,
        duplicates=keep_duplicates,
    )
    prepared = prepare(documents, preparation)
    if prepared.documents:
        formats.save(prepared.documents, output, force=force)
    _report_preparation(prepared, len(documents), preparation, output, as_json_)


def _read_documents(path: Path, from_: str, columns: list[str] | None) -> list[Document]:
    items = formats.stream(path, from_, Options(columns=parse_mapping(columns)))
    return [item for item in items if isinstance(item, Document)]


def _report_preparation(
    prepared: PreparedTexts, count: int, preparation: Preparation, output: Path, as_json_: bool
) -> None:
    rows: list[Row] = [{"what": "texts read", "texts": count}]
    rows += [{"what": f"dropped: {reason}", "texts": texts} for reason, texts in prepared.dropped.most_common()]
    rows.append({"what": "texts kept", "texts": len(prepared.documents)})
    cells = [
        f"{', '.join(f'{name} {value}' for name, value in zip(preparation.balance, cell, strict=True))}: {texts}"
        for cell, texts in prepared.cells.items()
    ]
    print_table_or_json(rows, as_json_, "What became of the texts", "", [*prepared.notes, *cells])
    if not prepared.documents:
        raise FinecombError(f"no text is left; most were dropped because: {prepared.dropped.most_common(1)[0][0]}")
    if not as_json_:
        print_outcome(output, format_count(len(prepared.documents), "text"))
