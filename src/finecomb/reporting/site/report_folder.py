"""Output folder of `report`: pages, tables, figures, data of the study, and hashes to verify them."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from pathlib import Path

import polars as pl

from finecomb.core.errors import FinecombError, param
from finecomb.core.guarded_json import load_json
from finecomb.core.records import Annotation
from finecomb.core.results import Finding
from finecomb.core.spreadsheet_cells import escape_cell
from finecomb.core.study import Study
from finecomb.formats import write as write_study
from finecomb.reporting import datasheet
from finecomb.reporting.figures.figure_model import (
    BaseFigure,
    Report,
    TableFigure,
    TextBarFigure,
    format_count_with_noun,
)
from finecomb.reporting.site.front_page import (
    printed_page_footer_css,
    read_asset,
    render_figure_page_body,
    render_front_page,
    render_report_page,
    report_style_sheet,
)
from finecomb.reporting.site.model_replies import ModelReply, model_replies
from finecomb.reporting.site.report_content import (
    HUMAN_KINDS,
    MACHINE_KINDS,
    ReportSource,
    build_datasheet_source,
    build_report,
    system_by_document,
    text_influences_by_document,
)
from finecomb.reporting.site.study_changes import change_figure
from finecomb.reporting.site.text_page import AnnotatorMarkRow, AnnotatorRowLayout, TextPage, render_text_page
from finecomb.version import signature_version

MANIFEST_FILE = "report.json"
DATA_FOLDER, GOLD_FOLDER, EXTERNAL_TABLES_FOLDER, REPLIES_FOLDER = "data", "gold", "with", "replies"
"""Subfolders of the inputs: the study, a gold standard, tables of other commands, raw replies."""
REPLIES_FILE = "replies.json"
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")
_OPTIONAL_ENTRIES = (GOLD_FOLDER, EXTERNAL_TABLES_FOLDER, REPLIES_FOLDER)  # of an earlier report; never kept
ProgressCallback = Callable[[str, int, int], None]
"""Callback with the name of the current step, the number of finished items and their total."""


def write_report(
    source: ReportSource, folder: Path, date: str, watch: ProgressCallback | None = None, images: Sequence[str] = ()
) -> Report:
    """Write the report of a study into an empty folder or over an earlier report, and return its content.

    The report is written next to the folder and takes its place when it is complete, so that an interrupted command
    leaves the earlier report, or nothing.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / MANIFEST_FILE).exists():
        raise FinecombError(f"{folder} exists and is not a report; choose another folder with {param('output')}")
    with _replace_folder_when_complete(folder) as temporary:
        return _write_report_files(source, temporary, date, watch, images)


@contextmanager
def _replace_folder_when_complete(folder: Path) -> Iterator[Path]:
    """Yield a new folder that takes the place of `folder` at the end. Other files in `folder` are kept."""
    for abandoned in folder.parent.glob(f".{folder.name}.*.part"):  # of a command that was killed
        shutil.rmtree(abandoned, ignore_errors=True)
    temporary, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{kind}") for kind in ("part", "old"))
    temporary.mkdir(parents=True)
    try:
        yield temporary
        if not folder.exists():
            temporary.replace(folder)
            return
        folder.replace(old)
        temporary.replace(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        if old.exists() and not folder.exists():
            old.replace(folder)
        raise
    for entry in old.iterdir():
        if entry.name not in _OPTIONAL_ENTRIES and not (folder / entry.name).exists():
            entry.replace(folder / entry.name)
    shutil.rmtree(old)


def _write_report_files(
    source: ReportSource, folder: Path, date: str, watch: ProgressCallback | None, images: Sequence[str]
) -> Report:
    """Write all files of a report into an empty folder, and return its content."""
    pages = page_by_document(source.study)
    _write_report_data(source, folder)
    data_hashes = hash_by_file(folder)
    data = short_data_hash(data_hashes)
    content = _build_content(source, date, pages, data)
    tokens = annotator_row_css_tokens(source)
    for name, text in itertools.chain(_report_files(content, tokens, data), _datasheet_files(source, content)):
        _write_text(folder / name, text)
    for number, (name, text) in enumerate(_text_page_files(source, content, pages), 1):
        _write_text(folder / name, text)
        if watch:
            watch("texts", number, len(pages))
    for figure in content.figures:
        for ending in () if isinstance(figure, TableFigure) else images:
            figure.save(folder / "figures" / f"{figure.id}.{ending}")
    manifest = {
        "finecomb": signature_version(),
        "date": date,
        "by": source.by,
        "draws": source.draws,
        "seed": source.seed,
        "name": source.name,
        "licence": source.licence,
        "verdicts": dict(source.verdicts),
        "with": [table.name for table in source.further],
        "data": data_hashes,
        "answer": content.headline.sentence,
        "figures": {figure.id: figure_hash(figure) for figure in content.figures},
    }
    _write_text(folder / MANIFEST_FILE, json.dumps(manifest, ensure_ascii=False, indent=1))
    return content


def _build_content(source: ReportSource, date: str, pages: Mapping[str, str], data: str) -> Report:
    """Build the content of a report with the hash of its data."""
    content = build_report(source, date, lambda id: pages.get(id, "texts.html"))
    return replace(content, facts=(*content.facts, ("Data", f"{content.counts} sha256 {data}")))


def write_change_page(findings: list[Finding], names: tuple[str, str], folder: Path) -> None:
    """Write a page with the changes between two studies."""
    figure = change_figure(findings, names)
    _write_text(
        folder / "index.html", render_report_page(f"{names[0]} and {names[1]}", render_figure_page_body(figure))
    )
    _write_text(folder / "assets/report.css", report_style_sheet())
    _write_text(folder / "assets/report.js", read_asset("report.js"))
    _write_text(folder / "tables" / f"{figure.id}.csv", table_csv(figure.table))
    _write_text(folder / "figures" / f"{figure.id}.svg", figure.to_svg())


def _datasheet_files(source: ReportSource, content: Report) -> Iterator[tuple[str, str]]:
    """Yield the datasheet in three formats and the methods paragraph, with their file names."""
    sheet_source = build_datasheet_source(source, content)
    sheet = datasheet.build_datasheet(sheet_source)
    yield "datasheet.md", datasheet.render_datasheet_markdown(sheet)
    yield "datasheet.json", datasheet.render_datasheet_json(sheet)
    yield "datasheet.tex", datasheet.render_datasheet_latex(sheet)
    yield "methods.txt", datasheet.methods_paragraph(sheet_source) + "\n"


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def annotator_row_css_tokens(source: ReportSource) -> dict[str, str]:
    """Return the CSS variables of annotator rows, one layout per number of people and machines on a text."""
    study = source.study.submitted_work()
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    by_document: dict[str, list[str]] = {}
    for document, annotator, about in study.annotations.select("document", "annotator", "about").iter_rows():
        if about is None:
            by_document.setdefault(document, []).append(kinds.get(annotator, ""))
    layouts = {
        AnnotatorRowLayout(sum(kind in HUMAN_KINDS for kind in rows), sum(kind in MACHINE_KINDS for kind in rows))
        for rows in by_document.values()
    }
    ordered = sorted(layouts, key=lambda layout: (layout.people, layout.machines))
    return {name: value for layout in ordered for name, value in layout.css_tokens().items()}


def _report_files(content: Report, tokens: Mapping[str, str], data: str) -> Iterator[tuple[str, str]]:
    yield "index.html", render_front_page(content)
    yield (
        "assets/report.css",
        report_style_sheet(tokens) + printed_page_footer_css(f"Report on {content.title} · data {data}"),
    )
    yield "assets/report.js", read_asset("report.js")
    for figure in content.figures:
        yield f"tables/{figure.id}.csv", table_csv(figure.table)
        if not isinstance(figure, TableFigure):
            yield f"figures/{figure.id}.svg", figure.to_svg()
    for place, ending in (("tables", "csv"), ("figures", "svg")):
        links = "".join(
            f'<li><a href="{figure.id}.{ending}">{escape(figure.title)}</a></li>'
            for figure in content.figures
            if ending == "csv" or not isinstance(figure, TableFigure)
        )
        listing = (
            f'<main class="report-page"><h1>{place.capitalize()}</h1><ul>{links}</ul>'
            '<p><a href="../index.html">Back to the report</a></p></main>'
        )
        yield f"{place}/index.html", render_report_page(place.capitalize(), listing, "../")


def table_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Format rows as CSV; undefined cells are empty, and no cell starts a spreadsheet formula."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        cells = [row.get(name) for name in names]
        cells = [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]
        writer.writerow([escape_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    return target.getvalue()


# --- texts -------------------------------------------------------------------------------------------------------


def page_by_document(study: Study) -> dict[str, str]:
    """Return the page of each annotated document, by document ID; file names are numbers, not IDs."""
    read = set(study.submitted_work().annotations["document"])
    return {id: f"texts/{number}.html" for number, id in enumerate(study.documents["id"], 1) if id in read}


def _text_page_files(source: ReportSource, content: Report, pages: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    study = source.study.submitted_work()
    bar_figures = [figure for figure in content.figures if isinstance(figure, TextBarFigure)]
    shown = [bar.document for figure in bar_figures for _, bars in figure.groups for bar in bars]
    order = [*shown, *(id for id in pages if id not in set(shown))]
    by_document: dict[str, list[Annotation]] = {}
    for annotation in study.iter_annotations():
        by_document.setdefault(annotation.document, []).append(annotation)
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    systems, places = system_by_document(source), {id: place for place, id in enumerate(order)}
    links = [None, *((id, pages[id].removeprefix("texts/")) for id in order), None]
    styles = source.label_styles()
    influences = text_influences_by_document(source)
    replies = _replies_by_document(source)
    words: list[tuple[str, str, int, str]] = []
    for document in study.iter_documents():
        if document.id not in pages:
            continue
        place = places[document.id]
        rows = annotator_rows(by_document.get(document.id, []), kinds)
        yield (
            pages[document.id],
            render_text_page(
                TextPage(
                    document,
                    rows,
                    styles,
                    place + 1,
                    len(order),
                    systems.get(document.id, ""),
                    links[place],
                    links[place + 2],
                    content.title,
                    influences.get(document.id, ()),
                    replies.get(document.id, ()),
                )
            ),
        )
        marks = sum(len(row.annotation.marks) for row in rows)
        words.append((document.id, systems.get(document.id, ""), marks, document.text[:160]))
    yield "texts.html", _text_list_page_html(content, words, pages)


def _replies_by_document(source: ReportSource) -> dict[str, list[ModelReply]]:
    """Return the replies of language models by document, including replies that could not be parsed."""
    models = source.study.annotators.filter(kind="llm")["id"]
    work = source.study.filter_annotations(pl.col("annotator").is_in(models.implode()) & (pl.col("phase") == "work"))
    by_document: dict[str, list[Annotation]] = {}
    for annotation in work.iter_annotations():
        by_document.setdefault(annotation.document, []).append(annotation)
    return {id: model_replies(annotations, source.replies) for id, annotations in by_document.items()}


def annotator_rows(annotations: Iterable[Annotation], kinds: Mapping[str, str]) -> list[AnnotatorMarkRow]:
    """Return the annotator rows of a text, people before machines and by name; gold has no row."""
    rows = [
        AnnotatorMarkRow(annotation.annotator, kinds.get(annotation.annotator) in MACHINE_KINDS, annotation)
        for annotation in annotations
        if kinds.get(annotation.annotator) in (*HUMAN_KINDS, *MACHINE_KINDS) and annotation.about is None
    ]
    return sorted(rows, key=lambda row: (row.machine, row.name))


def _text_list_page_html(content: Report, words: Sequence[tuple[str, str, int, str]], pages: Mapping[str, str]) -> str:
    rows = "".join(
        f'<tr><td><a href="{pages[id]}">{escape(id)}</a></td>'
        f'<td>{escape(system)}</td><td class="n">{marks:,}</td><td><bdi>{escape(text)}…</bdi></td></tr>'
        for id, system, marks, text in words
    )
    body = (
        '<header class="top"><a href="index.html">Report</a><span class="grow"></span>'
        f'<span id="text-count">{format_count_with_noun(len(words), "text")}</span></header>'
        '<main class="report-page"><h1>Texts</h1><p><label>Search '
        '<input id="text-search" type="search" placeholder="words, ID or system"></label></p>'
        '<div class="scroll" tabindex="0"><table class="data texts"><tr><th scope="col">text</th>'
        '<th scope="col">system</th><th scope="col" class="n">marks</th><th scope="col">beginning</th>'
        f"</tr>{rows}</table></div></main>"
    )
    return render_report_page(f"Texts in {content.title}", body)


# --- images, data and verification -------------------------------------------------------------------------------


def write_figures_and_tables(content: Report, folder: Path) -> None:
    """Write every figure as SVG, PNG and PDF, and every table as CSV, into one folder."""
    for figure in content.figures:
        _write_text(folder / f"{figure.id}.csv", table_csv(figure.table))
        if not isinstance(figure, TableFigure):
            for ending in ("svg", "png", "pdf"):
                figure.save(folder / f"{figure.id}.{ending}")


def _write_report_data(source: ReportSource, folder: Path) -> None:
    write_study(source.study, folder / DATA_FOLDER, force=True)
    if source.gold is not None:
        write_study(source.gold, folder / GOLD_FOLDER, force=True)
    for table in source.further:
        _write_text(folder / EXTERNAL_TABLES_FOLDER / table.name, table.text)
    if source.replies:
        _write_text(
            folder / REPLIES_FOLDER / REPLIES_FILE, json.dumps(dict(source.replies), ensure_ascii=False, indent=0)
        )
    if source.licence:
        _write_text(folder / DATA_FOLDER / "LICENCE.txt", source.licence + "\n")


def hash_by_file(folder: Path) -> dict[str, str]:
    """Hash the data files of a report: the study, its gold, tables of other commands and replies."""
    files = [
        file
        for part in (DATA_FOLDER, GOLD_FOLDER, EXTERNAL_TABLES_FOLDER, REPLIES_FOLDER)
        for file in sorted((folder / part).rglob("*"))
        if file.is_file()
    ]
    return {file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def short_data_hash(hashes: Mapping[str, str]) -> str:
    """Combine the hashes of all data files into eight hexadecimal digits, e.g. `a83f 21c2`."""
    letters = hashlib.sha256(json.dumps(dict(hashes), sort_keys=True).encode()).hexdigest()
    return f"{letters[:4]} {letters[4:8]}"


def figure_hash(figure: BaseFigure) -> str:
    """Hash the table of a figure."""
    return hashlib.sha256(table_csv(figure.table).encode()).hexdigest()


def verify_report(
    folder: Path, read: Callable[[Path], Study], build_source: Callable[[Study, Mapping[str, object]], ReportSource]
) -> list[str]:
    """Recompute a report from its data, and list the data files, figures, tables and pages that differ.

    Wording changes between versions, so pages, notes and the headline are compared only if the same version of Finecomb
    wrote them; otherwise only numbers are compared.
    """
    try:
        manifest = load_json((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    except OSError as error:
        raise FinecombError(f"{folder} is not a report; {MANIFEST_FILE} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise FinecombError(f"{folder / MANIFEST_FILE}: invalid JSON; write the report again") from None
    if not (isinstance(manifest, dict) and {"date", "finecomb", "figures", "answer"} <= manifest.keys()):
        raise FinecombError(f"{folder / MANIFEST_FILE}: not the manifest of a report; write the report again")
    hashes_then, hashes_now = manifest.get("data", {}), hash_by_file(folder)
    other_files = sorted(
        name for name in {*hashes_then, *hashes_now} if hashes_then and hashes_then.get(name) != hashes_now.get(name)
    )
    study = read(folder / DATA_FOLDER)
    pages = page_by_document(study)
    source = build_source(study, manifest)
    data = short_data_hash(hashes_then or hashes_now)
    content = _build_content(source, manifest["date"], pages, data)
    hashes = {figure.id: figure_hash(figure) for figure in content.figures}
    same_version = manifest["finecomb"] == signature_version()
    differing = [f"{name} differs from the file that the report was made from" for name in other_files]
    differing += [
        f"figure {id} differs from the figure computed from the data"
        for id, known in manifest["figures"].items()
        if id not in hashes or (same_version and hashes[id] != known)
    ]
    for figure in content.figures:
        kept = _read_bytes(folder / "tables" / f"{figure.id}.csv")
        normalise = str if same_version else _csv_numbers
        if kept is None or normalise(kept.decode()) != normalise(table_csv(figure.table)):
            differing.append(f"tables/{figure.id}.csv differs from the table computed from the data")
    if same_version and content.headline.sentence != manifest["answer"]:
        differing.append("the headline differs from the one computed from the data")
    if same_version:
        page_texts = itertools.chain(
            _report_files(content, annotator_row_css_tokens(source), data),
            _text_page_files(source, content, pages),
            _datasheet_files(source, content),
        )
        differing += [
            f"{name} differs from the page computed from the data"
            for name, text in page_texts
            if not name.startswith("tables/") and _read_bytes(folder / name) != text.encode()
        ]
    return differing


def _csv_numbers(text: str) -> list[list[float]]:
    return [[float(cell) for cell in row if _NUMBER.fullmatch(cell)] for row in csv.reader(io.StringIO(text))]


def _read_bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
