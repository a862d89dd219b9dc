"""Commands that collect annotations from people: serve, preview, links, backup, restore."""

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
from finecomb.cli.derived import ApiCall, from_api
from finecomb.cli.shared import app, err, format_count, out, print_note, print_notes, print_outcome
from finecomb.core.errors import FinecombError

ServedStudy = Annotated[
    Path,
    typer.Argument(help="A study's folder, its SQLite file, or postgresql://HOST/DATABASE#STUDY.", show_default=False),
]
Open = Annotated[bool, typer.Option("--open", help="Open the page in a browser.")]
_EXPOSED = (
    "other machines can reach this, and nothing is encrypted; put a proxy with TLS in front and name its",
    "address with --public-url https://...",
)


@app.command()
@from_api(fc_serve, skip=["block"])
def serve(study: ServedStudy, call: ApiCall, open_: Open = False) -> None:
    """Example: `finecomb serve my-study`"""
    with suppress(KeyboardInterrupt), call(study) as server:
        out.print(server.title, soft_wrap=True)
        _print_line("researchers", f"{server.links['researchers']}  (works once)")
        if "annotators" in server.links:
            _print_line("annotators", server.links["annotators"])
        _print_line("their way", server.procedure)
        print_notes(_EXPOSED if server.is_exposed else ())
        print_notes(server.notes)
        out.print("Stop with Ctrl-C; everything is saved as it happens.", soft_wrap=True)
        if open_:
            webbrowser.open(server.links["researchers"])
        server.wait()
    err.print("Stopped; everything is saved.")


def _print_line(who: str, link: str) -> None:
    out.print(f"  {who:<12} {link}", soft_wrap=True)


@app.command()
@from_api(fc_preview, skip=["block"])
def preview(
    protocol: Annotated[str, typer.Argument(help="A shipped protocol's name or your YAML file.", show_default=False)],
    call: ApiCall,
    open_: Open = False,
) -> None:
    """Your own YAML file is shown on phone and tablet beside its text, and anew whenever it is saved.

    Example: `finecomb preview scarecrow --skip training --skip qualification`
    """
    is_live = Path(protocol).is_file()
    with suppress(KeyboardInterrupt), call(protocol) as server:
        out.print(server.title, soft_wrap=True)
        _print_line("preview", server.links["preview"])
        if not is_live:
            print_notes(server.notes)
            out.print("Stop with Ctrl-C; everything is saved as it happens.", soft_wrap=True)
        if open_:
            webbrowser.open(server.links["preview"])
        server.wait()
    if not is_live:
        err.print("Stopped; everything is saved.")


@app.command()
@from_api(fc_links)
def links(study: ServedStudy, call: ApiCall) -> None:
    """Example: `finecomb links my-study --new 3`"""
    for row in call(study):
        typer.echo("\t".join(row.values()))


@app.command()
@from_api(fc_backup)
def backup(
    call: ApiCall,
    study: Annotated[
        Path | None,
        typer.Argument(
            help="A study's folder, its SQLite file, or postgresql://HOST/DATABASE#STUDY.", show_default=False
        ),
    ] = None,
    verify: Annotated[
        Path | None,
        typer.Option(help="Check this backup instead: whether it is intact and unchanged.", show_default=False),
    ] = None,
) -> None:
    """Example: `finecomb backup my-study -o monday.db`"""
    if verify is not None:
        if study is not None or call.given:
            raise FinecombError("--verify FILE stands alone; leave the study and --output out")
        report = verify_backup(verify)
        seal = f"as it was made at {report.sealed}" if report.sealed else "sound, but without a seal to compare it with"
        studies = "1 study" if len(report) == 1 else f"{len(report)} studies"
        print_outcome(verify, f"{seal}; {studies}, {format_count(report.row_count, 'row')}")
        return
    if study is None:
        raise FinecombError("say which study, e.g. finecomb backup my-study")
    print_outcome(call(study), "written")


@app.command()
@from_api(fc_repair)
def repair(study: ServedStudy, call: ApiCall) -> None:
    """Example: `finecomb repair my-study`"""
    report = call(study)
    for row in report:
        subject = f"{row.kind} {row.id!r}" if row.id else row.kind
        out.print(f"{subject}: {row.outcome}: {row.why}", soft_wrap=True)
    print_notes(report.notes)
    records = f"{format_count(len(report), 'record')} mended or set aside"
    print_outcome(study, records if report else "every record can be read; nothing was changed")


@app.command()
@from_api(fc_restore)
def restore(
    file: Annotated[Path, typer.Argument(help="A file that `finecomb backup` wrote.", show_default=False)],
    study: ServedStudy,
    call: ApiCall,
) -> None:
    """Example: `finecomb restore monday.db my-study`"""
    if copy := call(file, study):
        print_note(f"what was there is kept in {copy}")
    print_outcome(study, f"restored from {file}")
