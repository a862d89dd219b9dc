"""The command that tells a study in pictures."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from finecomb import formats
from finecomb.cli.filters import Draws, Drop, Seed, Where, part_of
from finecomb.cli.shared import From, StudyPath, app, counted, done, err, out, read, say
from finecomb.core.errors import FinecombError
from finecomb.core.study import Study
from finecomb.report.site.change import changes
from finecomb.report.site.content import Source, source
from finecomb.report.site.folder import MANIFEST, verified, write_changes, write_report
from finecomb.report.tables import finding_rows, print_rows

Against = Annotated[
    Path | None, typer.Option("--against", help="A gold standard that machines are judged by.", show_default=False)
]
By = Annotated[
    str, typer.Option("--by", help="Document meta that names the system; model without it.", show_default=False)
]
Target = Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")]
Images = Annotated[
    list[str] | None, typer.Option("--export", help="Figures as png or pdf too; may be repeated.", show_default=False)
]
Verify = Annotated[
    bool, typer.Option("--verify", help="STUDY is a report: compute its numbers again from the data it carries.")
]


Compare = Annotated[
    Path | None,
    typer.Option("--compare", help="An earlier study, round or version: what changed since then.", show_default=False),
]


@app.command()
def report(
    study: StudyPath,
    compare: Compare = None,
    against: Against = None,
    by: By = "",
    output: Target = Path("report"),
    export: Images = None,
    verify: Verify = False,
    draws: Draws = 1000,
    seed: Seed = 0,
    where: Where = None,
    drop: Drop = None,
    from_: From = "",
) -> None:
    """The study told in pictures: a folder of pages that opens with a double click, also without a connection.

    finecomb report STUDY -o report
    finecomb report STUDY --export pdf --export png
    finecomb report after --compare before -o changes
    finecomb report report --verify
    """
    if verify:
        _verify(study)
        return
    if compare is not None:
        if against is not None or export:
            raise FinecombError("--compare does not go with --against or --export")
        _compare(study, compare, by, output, draws, seed, from_)
        return
    for ending in export or ():
        if ending not in ("png", "pdf"):
            raise FinecombError(f"--export {ending}: figures can be png or pdf; SVG is always there")
    gold = read(against) if against else None
    made_from = source(part_of(read(study, from_), where, drop), study.name or str(study), by, gold, draws, seed)
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("pages")

        def watch(_: str, number: int, of: int) -> None:
            progress.update(task, completed=number, total=of)

        today = datetime.now(UTC).date()
        content = write_report(made_from, output, f"{today.day} {today:%B %Y}", watch, export or ())
    out.print(content.answer.sentence, style="bold", soft_wrap=True)
    for note in content.notes:
        out.print(f"note: {note}", soft_wrap=True)
    done(output / "index.html", f"{counted(len(content.figures), 'figure')}, {content.counts}")


def _compare(study: Path, before: Path, by: str, output: Path, draws: int, seed: int, from_: str) -> None:
    first, second = (source(read(path, from_), path.name, by, None, draws, seed) for path in (before, study))
    findings = changes(first, second)
    write_changes(findings, (before.name, study.name), output)
    rows, signature = finding_rows(findings)
    print_rows(out, rows, "What changed")
    say(signature)
    done(output / "index.html", f"{counted(len(findings), 'difference')}")


def _verify(folder: Path) -> None:
    if not (folder / MANIFEST).exists():
        raise FinecombError(f"{folder}: is no report; --verify takes the folder that `finecomb report` wrote")
    differing = verified(folder, formats.read, _again)
    if differing:
        raise FinecombError(f"{folder}: " + "\n".join(differing))
    done(folder, "every number comes out again from the data in data/")


def _again(study: Study, manifest: Mapping[str, object]) -> Source:
    """What the report was made from, as its manifest says."""
    draws, seed = (int(str(manifest[name])) for name in ("draws", "seed"))
    return source(study, str(manifest["name"]), str(manifest["by"]), None, draws, seed)
