"""Commands that show: a study in pictures, and the tables and figures of papers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress

from finecomb import formats
from finecomb.cli.filters import Draws, Drop, Seed, Where, filter_study
from finecomb.cli.shared import (
    AsJson,
    From,
    StudyPath,
    app,
    err,
    format_count,
    out,
    print_note,
    print_outcome,
    print_table_or_json,
    read,
)
from finecomb.core.errors import FinecombError
from finecomb.core.study import Study
from finecomb.reporting.site.anonymisation import anonymise_study
from finecomb.reporting.site.model_replies import select_used_replies
from finecomb.reporting.site.report_content import ReportSource, build_report_source
from finecomb.reporting.site.report_folder import (
    EXTERNAL_TABLES_FOLDER,
    GOLD_FOLDER,
    MANIFEST,
    REPLIES_FILE,
    REPLIES_FOLDER,
    verify_report,
    write_change_page,
    write_figures,
    write_report,
)
from finecomb.reporting.site.report_sections import ExternalTable, parse_external_table
from finecomb.reporting.site.study_changes import estimate_changes
from finecomb.reporting.tables import Row, finding_rows, print_rows
from finecomb.statistics.judges.validity import CONTRACTS_FOLDER, JudgeContract

if TYPE_CHECKING:
    from finecomb.reporting.reproduce.exhibit_folder import ExhibitOutcome

Against = Annotated[
    Path | None, typer.Option("--against", help="A gold standard that machines are judged by.", show_default=False)
]
By = Annotated[
    str, typer.Option("--by", help="Document meta that names the system; model without it.", show_default=False)
]
Target = Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")]
Images = Annotated[
    list[str] | None,
    typer.Option(
        "--export",
        help="png or pdf: figures in the report as that too; or a folder that gets every figure and table.",
        show_default=False,
    ),
]
ExtraTables = Annotated[
    list[Path] | None,
    typer.Option(
        "--with",
        help="A table that another command wrote (--json > FILE.json, or --table-out FILE.csv); may be repeated.",
        show_default=False,
    ),
]
Licence = Annotated[
    str, typer.Option("--licence", help="Under which licence the data in it are shared.", show_default=False)
]
Anonymous = Annotated[
    bool,
    typer.Option("--anonymous", help="People become reader-1, reader-2, ...; what else is known of them is left out."),
]
Verify = Annotated[
    bool, typer.Option("--verify", help="STUDY is a report: compute its numbers again from the data it carries.")
]


Compare = Annotated[
    Path | None,
    typer.Option("--compare", help="An earlier study, round or version: what changed since then.", show_default=False),
]


RUNS = "runs"  # as in finecomb.annotators.llm, which may not be installed


@app.command()
def report(
    study: StudyPath,
    compare: Compare = None,
    against: Against = None,
    by: By = "",
    output: Target = Path("report"),
    with_: ExtraTables = None,
    export: Images = None,
    licence: Licence = "",
    anonymous: Anonymous = False,
    verify: Verify = False,
    draws: Draws = 1000,
    seed: Seed = 0,
    where: Where = None,
    drop: Drop = None,
    from_: From = "",
) -> None:
    """The study told in pictures: a folder of pages that opens with a double click, also without a connection.

    Examples: finecomb report demo-study -o report · finecomb report demo-study --export pdf --export png ·
    finecomb report after --compare before -o changes · finecomb report report --verify
    """
    if verify:
        _verify_report(study)
        return
    if compare is not None:
        if against is not None or export or with_ or licence or anonymous:
            raise FinecombError("--compare does not go with --against, --with, --export, --licence or --anonymous")
        _write_comparison(study, compare, by, output, draws, seed, from_)
        return
    images, folders = _split_exports(export or (), output)
    gold = read(against) if against else None
    chosen = filter_study(read(study, from_), where, drop)
    made_from = replace(
        build_report_source(
            anonymise_study(chosen) if anonymous else chosen, study.name or str(study), by, gold, draws, seed
        ),
        verdicts=_judge_verdicts(study),
        further=_read_extra_tables(with_ or ()),
        replies=_raw_replies(study, chosen),
        licence=licence,
    )
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("pages")

        def watch(_: str, number: int, of: int) -> None:
            progress.update(task, completed=number, total=of)

        today = datetime.now(UTC).date()
        content = write_report(made_from, output, f"{today.day} {today:%B %Y}", watch, images)
    for folder in folders:
        write_figures(content, folder)
    out.print(content.answer.sentence, style="bold", soft_wrap=True)
    for note in content.notes:
        out.print(f"note: {note}", soft_wrap=True)
    print_outcome(output / "index.html", f"{format_count(len(content.figures), 'figure')}, {content.counts}")
    _warn_about_sharing(made_from, anonymous)


def _split_exports(wanted: Sequence[str], output: Path) -> tuple[list[str], list[Path]]:
    """Endings of pictures in the report, and folders that get everything."""
    images = [name for name in wanted if name in _IMAGE_FORMATS]
    folders = [Path(name) for name in wanted if name not in _IMAGE_FORMATS]
    for folder in folders:
        if folder.name in _UNSUPPORTED_IMAGE_FORMATS or folder.is_file() or folder.resolve() == output.resolve():
            raise FinecombError(f"--export {folder}: expected png, pdf or another folder; SVG is always there")
    return images, folders


_IMAGE_FORMATS = ("png", "pdf")
_UNSUPPORTED_IMAGE_FORMATS = ("svg", "csv", "jpg", "jpeg", "gif", "eps", "webp")


def _read_extra_tables(files: Sequence[Path]) -> tuple[ExternalTable, ...]:
    tables = []
    for file in files:
        if file.suffix not in (".json", ".csv"):
            raise FinecombError(f"--with {file}: expected a .json or .csv file, as --json and --table-out write them")
        try:
            tables.append(parse_external_table(file.name, file.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise FinecombError(f"--with {file}: cannot be read ({getattr(error, 'strerror', error)})") from None
    if len({table.id for table in tables}) < len(tables):
        raise FinecombError("--with: two files have the same name; rename one, since the report names sections by them")
    return tuple(tables)


def _judge_verdicts(study: Path) -> dict[str, str]:
    """What `calibrate --keep` said of each judge, and whether its time is over."""
    contracts = [
        JudgeContract.model_validate_json(file.read_text(encoding="utf-8"))
        for file in sorted((study / CONTRACTS_FOLDER).glob("*.json"))
    ]
    now = datetime.now(UTC)
    return {
        each.binding.judge: each.verdict + (", stale" if now > each.made + timedelta(days=each.days) else "")
        for each in contracts
    }


def _raw_replies(study: Path, chosen: Study) -> dict[str, str]:
    """What language models wrote word for word, from the journals of the study's runs."""
    runs = study / RUNS if study.is_dir() else study.with_name(f"{study.name}.{RUNS}")
    if not runs.is_dir():
        return {}
    from finecomb.annotators.llm.journal import cached_replies
    from finecomb.annotators.llm.model_calls import truncate_reply

    return select_used_replies(
        chosen, {hash: truncate_reply(entry.reply) for hash, entry in cached_replies(runs).items()}
    )


def _stored_replies(file: Path) -> dict[str, str]:
    """The raw replies that a report carries."""
    replies: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return replies


def _warn_about_sharing(made_from: ReportSource, anonymous: bool) -> None:
    """The folder carries texts, marks and people's names in the study: who passes it on must know."""
    if not made_from.licence:
        print_note("it carries the study's texts and marks and names no licence for them (--licence)")
    if not anonymous and "human" in set(made_from.study.annotators["kind"]):
        print_note(
            "people have their names in the study, also in data/ (--anonymous makes them reader-1, reader-2, ...)"
        )


def _write_comparison(study: Path, before: Path, by: str, output: Path, draws: int, seed: int, from_: str) -> None:
    first, second = (
        build_report_source(read(path, from_), path.name, by, None, draws, seed) for path in (before, study)
    )
    findings = estimate_changes(first, second)
    write_change_page(findings, (before.name, study.name), output)
    rows, signature = finding_rows(findings)
    print_rows(out, rows, "What changed")
    print_note(signature)
    print_outcome(output / "index.html", f"{format_count(len(findings), 'difference')}")


def _verify_report(folder: Path) -> None:
    if not (folder / MANIFEST).exists():
        raise FinecombError(f"{folder}: is no report; --verify takes the folder that `finecomb report` wrote")
    differing = verify_report(folder, formats.read, lambda study, manifest: _rebuild_source(study, manifest, folder))
    if differing:
        raise FinecombError(f"{folder}: " + "\n".join(differing))
    print_outcome(folder, "every number comes out again from the data in data/")


def _rebuild_source(study: Study, manifest: Mapping[str, Any], folder: Path) -> ReportSource:
    """What the report was made from, as its manifest says."""
    draws, seed = (int(str(manifest[name])) for name in ("draws", "seed"))
    gold = formats.read(folder / GOLD_FOLDER) if (folder / GOLD_FOLDER).is_dir() else None
    return replace(
        build_report_source(study, str(manifest["name"]), str(manifest["by"]), gold, draws, seed),
        verdicts=manifest.get("verdicts", {}),
        further=_read_extra_tables([folder / EXTERNAL_TABLES_FOLDER / name for name in manifest.get("with", ())]),
        replies=_stored_replies(folder / REPLIES_FOLDER / REPLIES_FILE),
        licence=str(manifest.get("licence", "")),
    )


# --- reproduce ---------------------------------------------------------------------------------------------------

PaperName = Annotated[str, typer.Argument(help="scarecrow, thomson-reiter, snac, clark or deng.", show_default=False)]
Audit = Annotated[
    Path | None,
    typer.Option("--audit", help="For scarecrow: a study with `audit` verdicts on the marks.", show_default=False),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", help='One exhibit, e.g. "Figure 2"; may be repeated.', show_default=False),
]
WithPrinted = Annotated[
    bool | None,
    typer.Option(
        "--printed/--no-printed",
        help="Printed numbers beside ours; without it, only where the data are the paper's.",
        show_default=False,
    ),
]


@app.command()
def reproduce(
    paper: PaperName,
    study: StudyPath,
    output: Target = Path("reproduced"),
    only: Only = None,
    audit: Audit = None,
    with_printed: WithPrinted = None,
    draws: Draws = 1000,
    seed: Seed = 0,
    where: Where = None,
    drop: Drop = None,
    from_: From = "",
    as_json_: AsJson = False,
) -> None:
    """The tables and figures of a paper from your study: in its layout, with what cannot be made and why.

    Examples: `finecomb reproduce scarecrow demo-study -o scarecrow` ·
    `finecomb reproduce clark STUDY --only "Table 1"`
    """
    from finecomb.reporting.reproduce.exhibit_folder import write_reproduction
    from finecomb.reporting.reproduce.exhibits import PaperStudy  # critics and charts: only for who wants them
    from finecomb.reporting.reproduce.printed_values import find_contradictions, is_paper_data
    from finecomb.reporting.reproduce.registry import find_paper

    chosen = find_paper(paper)
    if audit is not None and paper != "scarecrow":
        raise FinecombError(f"--audit does not apply to {paper}; it applies to scarecrow")
    whole = filter_study(read(study, from_), where, drop)
    source_of_paper = PaperStudy(whole, draws, seed, read(audit) if audit else None)
    beside = is_paper_data(paper, whole) if with_printed is None else with_printed
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(paper, total=len(only or chosen.exhibits))
        outcomes = write_reproduction(
            chosen, source_of_paper, study.name or str(study), output, beside, only or (),
            lambda number: progress.update(task, advance=1, description=number),
        )  # fmt: skip
    rows: list[Row] = [_outcome_row(outcome) for outcome in outcomes]
    print_table_or_json(
        rows,
        as_json_,
        chosen.title,
        "Nothing to show.",
        [f"{c.where}: {c.says}, but {c.but}" for c in find_contradictions(paper)],
    )
    if not as_json_:
        number = sum(outcome.rendering is not None for outcome in outcomes)
        print_outcome(output / "index.html", f"{number} of {len(outcomes)} tables and figures")


def _outcome_row(outcome: ExhibitOutcome) -> dict[str, object]:
    differing = outcome.differing_cells
    beside = f"{len(outcome.cells) - len(differing)} of {len(outcome.cells)}" if outcome.cells else ""
    return {
        "exhibit": outcome.exhibit.number,
        "what": outcome.exhibit.title,
        "made": "yes" if outcome.rendering else "no",
        "as printed": beside,
        "why not": outcome.why,
    }
