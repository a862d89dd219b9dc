"""The command `criticize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finecomb.api.corpora import CorpusFile
from finecomb.api.corpora import criticize as fc_criticize
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import (
    AsJson,
    From,
    app,
    format_count,
    out,
    print_note,
    print_notes,
    print_signature,
    print_table,
    read,
    shows_progress,
    with_flags,
)
from finecomb.core.errors import FinecombError
from finecomb.corpora.critics.critic_run import CriticTables
from finecomb.corpora.critics.storage import required_user_code
from finecomb.reporting.tables import format_json_tables

Real = Annotated[
    Path | None,
    typer.Argument(
        help="Real documents to compare the generated ones with, in any format that `finecomb formats` lists.",
        show_default=False,
    ),
]
Generated = Annotated[
    list[Path] | None, typer.Argument(help="Generated documents, one file per system.", show_default=False)
]
Fit = Annotated[
    Path | None,
    typer.Option(help="Real documents to fit the critic to (default: a share of `REAL` that is not compared).",
                 show_default=False),
]  # fmt: skip
People = Annotated[
    Path | None,
    typer.Option(
        help="Study annotated by people with the `sections` protocol, for comparison with the critic.",
        show_default=False,
    ),
]


@app.command()
@derive_flags_from(fc_criticize, flags={"critic": ("--critic", "-c")})
def criticize(
    call: PublicFunctionCall,
    real: Real = None,
    generated: Generated = None,
    fit: Fit = None,
    people: People = None,
    drop: Annotated[list[str] | None, typer.Option("--drop", hidden=True)] = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """Examples: `finecomb criticize real.jsonl a.jsonl b.jsonl --critic sections,topics` ·
    `finecomb criticize real.jsonl generated.jsonl --by model --show outliers` ·
    `finecomb criticize real.jsonl --show power,certainty` · `finecomb criticize --synthetic`
    """
    if drop:
        raise FinecombError(f"--drop {drop[0]} omits marks, but critics read texts only; select texts with --where")
    result = call(
        CorpusFile(real, from_) if real else None,
        [CorpusFile(path, from_) for path in generated or ()],
        fit=CorpusFile(fit, from_) if fit else None,
        people=read(people) if people and people.exists() else people,
        progress=shows_progress(),
    )
    _print_tables(result, as_json_)


def _print_tables(result: CriticTables, as_json_: bool) -> None:
    """Print each table, then notes on the files written; signature and notes follow the last table."""
    for criticism, folder in zip(result.criticisms, result.saved, strict=False):
        code = "".join(f" --code {name}" for name in required_user_code(criticism.critic))
        print_note(f"{folder}: fitted {criticism.critic.name} critic saved; use it with --critic {folder}{code}")
    last = list(result.tables)[-1:]
    for name, table in result.tables.items():
        signature, notes = (result.signature, result.notes) if [name] == last else ("", ())
        if as_json_:
            typer.echo(format_json_tables(table.rows(), signature, [with_flags(note) for note in notes]))
            continue
        if name == "text":
            for row in table:
                out.print(f"{table.title} ({row['critic']} critic)\n{row['text']}", soft_wrap=True)
        else:
            print_table(table.rows(), table.title)
        print_signature(signature, " (95% intervals; nats)")
        print_notes(notes)
    if result.written:
        tables, figures = (sum(file.suffix == suffix for file in result.written) for suffix in (".csv", ".svg"))
        folder = result.written[0].parent
        print_note(f"{folder}: {format_count(tables, 'table')} and {format_count(figures, 'figure')} written")
