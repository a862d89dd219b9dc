"""Commands for the server and its database: `serve`, `preview`, `links`, `backup`, `repair` and `restore`."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from finecomb.api.collection import backup as fc_backup
from finecomb.api.collection import links as fc_links
from finecomb.api.collection import preview as fc_preview
from finecomb.api.collection import repair as fc_repair
from finecomb.api.collection import restore as fc_restore
from finecomb.api.collection import serve as fc_serve
from finecomb.api.collection import verify_backup
from finecomb.cli.derived import PublicFunctionCall, derive_flags_from
from finecomb.cli.shared import app, err, format_count, out, print_note, print_notes, print_outcome
from finecomb.core.errors import FinecombError

ServedStudy = Annotated[
    Path,
    typer.Argument(
        help="A study's folder, its SQLite file, or `postgresql://HOST/DATABASE#STUDY`.", show_default=False
    ),
]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
_EXPOSED = (
    "other machines can reach this server, and connections are not encrypted; use a TLS proxy and pass its",
    "address with --public-url https://...",
)


@app.command()
@derive_flags_from(fc_serve, skip=["block"])
def serve(study: ServedStudy, call: PublicFunctionCall, open_: Open = False) -> None:
    """Example: `finecomb serve my-study`"""
    with suppress(KeyboardInterrupt), call(study) as server:
        out.print(server.title, soft_wrap=True)
        _print_line("researchers", f"{server.links['researchers']}  (works once)")
        if "annotators" in server.links:
            _print_line("annotators", server.links["annotators"])
        _print_line("steps", server.procedure)
        print_notes(_EXPOSED if server.is_exposed else ())
        print_notes(server.notes)
        out.print("Press Ctrl-C to stop. Every change is saved at once.", soft_wrap=True)
        if open_:
            webbrowser.open(server.links["researchers"])
        server.wait()
    err.print("Stopped. All work is saved.")


def _print_line(who: str, link: str) -> None:
    out.print(f"  {who:<12} {link}", soft_wrap=True)


@app.command()
@derive_flags_from(fc_preview, skip=["block"])
def preview(
    protocol: Annotated[
        str,
        typer.Argument(
            help="Name of a shipped protocol (see `finecomb protocols`), or a YAML file.", show_default=False
        ),
    ],
    call: PublicFunctionCall,
    open_: Open = False,
) -> None:
    """A YAML file of your own is shown next to its phone and tablet views, and reloaded whenever you save it.

    Example: `finecomb preview scarecrow --skip training --skip qualification`
    """
    is_live = Path(protocol).is_file()
    with suppress(KeyboardInterrupt), call(protocol) as server:
        out.print(server.title, soft_wrap=True)
        _print_line("preview", server.links["preview"])
        if not is_live:
            print_notes(server.notes)
            out.print("Press Ctrl-C to stop. Nothing is stored.", soft_wrap=True)
        if open_:
            webbrowser.open(server.links["preview"])
        server.wait()
    if not is_live:
        err.print("Stopped.")


@app.command()
@derive_flags_from(fc_links)
def links(study: ServedStudy, call: PublicFunctionCall) -> None:
    """Example: `finecomb links my-study --new 3`"""
    for row in call(study):
        typer.echo("\t".join(row.values()))


@app.command()
@derive_flags_from(fc_backup)
def backup(
    call: PublicFunctionCall,
    study: Annotated[
        Path | None,
        typer.Argument(
            help="A study's folder, its SQLite file, or `postgresql://HOST/DATABASE#STUDY`.", show_default=False
        ),
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option(
            help="Check that this backup file is intact and unchanged, instead of writing a backup.", show_default=False
        ),
    ] = None,
) -> None:
    """Example: `finecomb backup my-study -o monday.db`"""
    if verify is not None:
        if study is not None or call.given:
            raise FinecombError("--verify FILE cannot be used together with a study or --output")
        report = verify_backup(verify)
        seal = (
            f"unchanged since it was made at {report.sealed}"
            if report.sealed
            else "intact, but without a checksum to compare it with"
        )
        studies = "1 study" if len(report) == 1 else f"{len(report)} studies"
        print_outcome(verify, f"{seal}; {studies}, {format_count(report.row_count, 'row')}")
        return
    if study is None:
        raise FinecombError("a study is missing; use, for example: finecomb backup my-study")
    print_outcome(call(study), "written")


@app.command()
@derive_flags_from(fc_repair)
def repair(study: ServedStudy, call: PublicFunctionCall) -> None:
    """Example: `finecomb repair my-study`"""
    report = call(study)
    for row in report:
        subject = f"{row.kind} {row.id!r}" if row.id else row.kind
        out.print(f"{subject}: {row.outcome}: {row.why}", soft_wrap=True)
    print_notes(report.notes)
    records = f"{format_count(len(report), 'record')} repaired or set aside"
    unchanged = "every record can be read" if report.notes else "every record can be read; nothing changed"
    print_outcome(study, records if report else unchanged)


@app.command()
@derive_flags_from(fc_restore)
def restore(
    file: Annotated[Path, typer.Argument(help="Backup file, as written by `finecomb backup`.", show_default=False)],
    study: ServedStudy,
    call: PublicFunctionCall,
) -> None:
    """Example: `finecomb restore monday.db my-study`"""
    if copy := call(file, study):
        print_note(f"the previous database is kept in {copy}")
    print_outcome(study, f"restored from {file}")
