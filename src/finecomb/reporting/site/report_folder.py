"""A report as a folder of plain files: pages, tables, figures, the study's own data, and hashes to check them by."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

import polars as pl

from finecomb.core.errors import FinecombError, param
from finecomb.core.estimate import Finding
from finecomb.core.records import Annotation
from finecomb.core.study import Study
from finecomb.formats import write as write_study
from finecomb.reporting import datasheet
from finecomb.reporting.figures import svg
from finecomb.reporting.figures.figure_model import Report, ReportFigure, TableFigure, TextBarFigure
from finecomb.reporting.site.front_page import (
    print_footer_css,
    read_asset,
    render_front_page,
    render_report_page,
    render_single_figure,
    style_sheet,
)
from finecomb.reporting.site.model_replies import ModelReply, model_replies
from finecomb.reporting.site.report_content import (
    HUMAN_KINDS,
    MACHINE_KINDS,
    ReportSource,
    build_datasheet_source,
    build_report,
    system_by_document,
    text_influences,
)
from finecomb.reporting.site.study_changes import change_figure
from finecomb.reporting.site.text_page import AnnotatorRowLayout, MarkedTextRow, TextPage, render_text_page
from finecomb.version import __version__

MANIFEST = "report.json"
DATA_FOLDER, GOLD_FOLDER, EXTERNAL_TABLES_FOLDER, REPLIES_FOLDER = "data", "gold", "with", "replies"
"""Folders of what the report was made from: the study, a gold standard, tables of other commands, raw replies."""
REPLIES_FILE = "replies.json"
ProgressCallback = Callable[[str, int, int], None]
"""What is being written, how many are done, and of how many."""


def write_report(
    made_from: ReportSource, folder: Path, date: str, watch: ProgressCallback | None = None, images: Sequence[str] = ()
) -> Report:
    """Write the report of a study into `folder`, which must not hold anything else; returns what it says."""
    if folder.exists() and any(folder.iterdir()) and not (folder / MANIFEST).exists():
        raise FinecombError(f"{folder}: is there already and is no report; name another folder with {param('output')}")
    pages = page_by_document(made_from.study)
    folder.mkdir(parents=True, exist_ok=True)
    _write_data(made_from, folder)
    data = short_data_hash(hash_by_file(folder))
    content = _build_content(made_from, date, pages, data)
    files = dict(_report_files(content, annotator_row_tokens(made_from), data))
    for name, text in files.items():
        _write_text(folder / name, text)
    for number, (name, text) in enumerate(_text_page_files(made_from, content, pages), 1):
        _write_text(folder / name, text)
        if watch:
            watch("texts", number, len(pages))
    for name, text in _datasheet_files(made_from, content):
        _write_text(folder / name, text)
    _write_images(content, folder, images)
    _write_text(
        folder / MANIFEST, json.dumps(_manifest(made_from, content, date, folder), ensure_ascii=False, indent=1)
    )
    return content


def _build_content(made_from: ReportSource, date: str, pages: Mapping[str, str], data: str) -> Report:
    """What the report says, with the hash of its data among the facts."""
    content = build_report(made_from, date, lambda id: pages.get(id, "texts.html"))
    return replace(content, facts=(*content.facts, ("Data", f"{content.counts} sha256 {data}")))


def write_change_page(findings: list[Finding], names: tuple[str, str], folder: Path) -> None:
    """Write the page of what changed between two studies."""
    figure = change_figure(findings, names)
    _write_text(folder / "index.html", render_report_page(f"{names[0]} and {names[1]}", render_single_figure(figure)))
    _write_text(folder / "assets/report.css", style_sheet())
    _write_text(folder / "assets/report.js", read_asset("report.js"))
    _write_text(folder / "tables" / f"{figure.id}.csv", table_csv(figure.table))
    _write_text(folder / "figures" / f"{figure.id}.svg", svg.standalone_svg(figure))


def _datasheet_files(made_from: ReportSource, content: Report) -> Iterator[tuple[str, str]]:
    """The datasheet in its three forms, and the paragraph for a paper."""
    known = build_datasheet_source(made_from, content)
    sheet = datasheet.build_datasheet(known)
    yield "datasheet.md", datasheet.render_markdown(sheet)
    yield "datasheet.json", datasheet.render_json(sheet)
    yield "datasheet.tex", datasheet.render_latex(sheet)
    yield "methods.txt", datasheet.methods_paragraph(known) + "\n"


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def annotator_row_tokens(made_from: ReportSource) -> dict[str, str]:
    """What the style sheet must know about the rows of readers: one layout for each number of people and machines."""
    study = made_from.study.submitted_work()
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
    yield "assets/report.css", style_sheet(tokens) + print_footer_css(f"Report on {content.title} · data {data}")
    yield "assets/report.js", read_asset("report.js")
    for figure in content.figures:
        yield f"tables/{figure.id}.csv", table_csv(figure.table)
        if not isinstance(figure, TableFigure):
            yield f"figures/{figure.id}.svg", svg.standalone_svg(figure)
    for place, ending in (("tables", "csv"), ("figures", "svg")):
        links = "".join(
            f'<li><a href="{figure.id}.{ending}">{escape(figure.title)}</a></li>'
            for figure in content.figures
            if ending == "csv" or not isinstance(figure, TableFigure)
        )
        listing = (
            f'<main class="report-page"><h1>{place.capitalize()}</h1><ul>{links}</ul><p><a href="../index.html">Back'
            "</a></p></main>"
        )
        yield f"{place}/index.html", render_report_page(place.capitalize(), listing, "../")


def table_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as CSV; undefined is empty, and no cell starts what a spreadsheet would run."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_escape_csv_cell(row.get(name)) for name in names])
    return target.getvalue()


def _escape_csv_cell(value: object) -> object:
    if isinstance(value, float) and value != value:
        return ""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" else value


# --- texts -------------------------------------------------------------------------------------------------------


def page_by_document(study: Study) -> dict[str, str]:
    """The page of every document that somebody read; names of files never depend on ids."""
    read = set(study.submitted_work().annotations["document"])
    return {id: f"texts/{number}.html" for number, id in enumerate(study.documents["id"], 1) if id in read}


def _text_page_files(made_from: ReportSource, content: Report, pages: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    study = made_from.study.submitted_work()
    order = _text_order(content, pages)
    by_document: dict[str, list[Annotation]] = {}
    for annotation in study.iter_annotations():
        by_document.setdefault(annotation.document, []).append(annotation)
    kinds = dict(study.annotators.select("id", "kind").iter_rows())
    systems, places = system_by_document(made_from), {id: place for place, id in enumerate(order)}
    known = made_from.label_looks()
    moved = text_influences(made_from)
    replies = _replies_by_document(made_from)
    words: list[tuple[str, str, int, str]] = []
    for document in study.iter_documents():
        if document.id not in pages:
            continue
        place = places[document.id]
        annotations = by_document.get(document.id, [])
        yield (
            pages[document.id],
            render_text_page(
                TextPage(
                    document,
                    annotator_rows(annotations, kinds),
                    known,
                    place + 1,
                    len(order),
                    systems.get(document.id, ""),
                    _neighbour_link(order, place - 1, pages),
                    _neighbour_link(order, place + 1, pages),
                    content.title,
                    moved.get(document.id, ()),
                    replies.get(document.id, ()),
                )
            ),
        )
        marks = sum(len(annotation.marks) for annotation in annotations)
        words.append((document.id, systems.get(document.id, ""), marks, document.text[:160]))
    yield "texts.html", _text_list_page(content, words, pages)


def _replies_by_document(made_from: ReportSource) -> dict[str, list[ModelReply]]:
    """What language models wrote about each text; a failure is no reader, but what came is shown."""
    models = made_from.study.annotators.filter(kind="llm")["id"]
    work = made_from.study.filter_annotations(pl.col("annotator").is_in(models.implode()) & (pl.col("phase") == "work"))
    by_document: dict[str, list[Annotation]] = {}
    for annotation in work.iter_annotations():
        by_document.setdefault(annotation.document, []).append(annotation)
    return {id: model_replies(annotations, made_from.replies) for id, annotations in by_document.items()}


def _text_order(content: Report, pages: Mapping[str, str]) -> list[str]:
    """Texts in the order of the figure with a tooth for each."""
    combs = [figure for figure in content.figures if isinstance(figure, TextBarFigure)]
    shown = [tooth.document for figure in combs for _, teeth in figure.combs for tooth in teeth]
    return [*shown, *(id for id in pages if id not in set(shown))]


def _neighbour_link(order: Sequence[str], place: int, pages: Mapping[str, str]) -> tuple[str, str] | None:
    if not 0 <= place < len(order):
        return None
    return order[place], pages[order[place]].removeprefix("texts/")


def annotator_rows(annotations: Iterable[Annotation], kinds: Mapping[str, str]) -> list[MarkedTextRow]:
    """The rows of a text's staff: people first, then machines, each by name; gold is not a reader."""
    rows = [
        MarkedTextRow(annotation.annotator, kinds.get(annotation.annotator) in MACHINE_KINDS, annotation)
        for annotation in annotations
        if kinds.get(annotation.annotator) in (*HUMAN_KINDS, *MACHINE_KINDS) and annotation.about is None
    ]
    return sorted(rows, key=lambda reader: (reader.machine, reader.name))


def _text_list_page(content: Report, words: Sequence[tuple[str, str, int, str]], pages: Mapping[str, str]) -> str:
    rows = "".join(
        f'<tr><td><a href="{pages[id]}">{escape(id)}</a></td>'
        f'<td>{escape(system)}</td><td class="n">{marks:,}</td><td><bdi>{escape(text)}…</bdi></td></tr>'
        for id, system, marks, text in words
    )
    body = (
        '<header class="top"><a href="index.html">Answer</a><span class="grow"></span>'
        f'<span id="text-count">{len(words):,} texts</span></header>'
        '<main class="report-page"><h1>Texts</h1><p><label>Find '
        '<input id="text-search" type="search" placeholder="words, id or system"></label></p>'
        '<div class="scroll" tabindex="0"><table class="data texts"><tr><th scope="col">text</th>'
        '<th scope="col">system</th><th scope="col" class="n">marks</th><th scope="col">begins</th>'
        f"</tr>{rows}</table></div></main>"
    )
    return render_report_page(f"Texts of {content.title}", body)


# --- pictures, data, proof ---------------------------------------------------------------------------------------


def write_figures(content: Report, folder: Path) -> None:
    """Every figure as SVG, PNG and PDF, and every table as CSV, in one folder."""
    for figure in content.figures:
        _write_text(folder / f"{figure.id}.csv", table_csv(figure.table))
        if not isinstance(figure, TableFigure):
            _write_text(folder / f"{figure.id}.svg", svg.standalone_svg(figure))
    _draw_images(content, folder, ("png", "pdf"))


def _write_images(content: Report, folder: Path, endings: Sequence[str]) -> None:
    if endings:
        _draw_images(content, folder / "figures", endings)


def _draw_images(content: Report, folder: Path, endings: Sequence[str]) -> None:
    import vl_convert

    make = {"png": lambda drawn: vl_convert.svg_to_png(drawn, scale=2), "pdf": vl_convert.svg_to_pdf}
    for figure in content.figures:
        for ending in () if isinstance(figure, TableFigure) else endings:
            (folder / f"{figure.id}.{ending}").write_bytes(make[ending](svg.standalone_svg(figure)))


def _write_data(made_from: ReportSource, folder: Path) -> None:
    for name in (
        GOLD_FOLDER,
        EXTERNAL_TABLES_FOLDER,
        REPLIES_FOLDER,
    ):  # a report is written again in its place: nothing of the earlier one stays
        shutil.rmtree(folder / name, ignore_errors=True)
    write_study(made_from.study, folder / DATA_FOLDER, force=True)
    if made_from.gold is not None:
        write_study(made_from.gold, folder / GOLD_FOLDER, force=True)
    for table in made_from.further:
        _write_text(folder / EXTERNAL_TABLES_FOLDER / table.name, table.text)
    if made_from.replies:
        _write_text(
            folder / REPLIES_FOLDER / REPLIES_FILE, json.dumps(dict(made_from.replies), ensure_ascii=False, indent=0)
        )
    if made_from.licence:
        _write_text(folder / DATA_FOLDER / "LICENCE.txt", made_from.licence + "\n")


def hash_by_file(folder: Path) -> dict[str, str]:
    """What each file that the report carries comes to: the study, its gold, and further tables."""
    files = [
        file
        for part in (DATA_FOLDER, GOLD_FOLDER, EXTERNAL_TABLES_FOLDER, REPLIES_FOLDER)
        for file in sorted((folder / part).rglob("*"))
        if file.is_file()
    ]
    return {file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def short_data_hash(hashes: Mapping[str, str]) -> str:
    """All files of a report's data as eight letters and digits, e.g. `a83f 21c2`: the same data, the same letters."""
    letters = hashlib.sha256(json.dumps(dict(hashes), sort_keys=True).encode()).hexdigest()
    return f"{letters[:4]} {letters[4:8]}"


def _manifest(made_from: ReportSource, content: Report, date: str, folder: Path) -> dict[str, object]:
    return {
        "finecomb": __version__,
        "date": date,
        "by": made_from.by,
        "draws": made_from.draws,
        "seed": made_from.seed,
        "name": made_from.name,
        "licence": made_from.licence,
        "verdicts": dict(made_from.verdicts),
        "with": [table.name for table in made_from.further],
        "data": hash_by_file(folder),
        "answer": content.answer.sentence,
        "figures": {figure.id: figure_hash(figure) for figure in content.figures},
    }


def figure_hash(figure: ReportFigure) -> str:
    """What the numbers of a figure come to: equal for equal tables."""
    return hashlib.sha256(table_csv(figure.table).encode()).hexdigest()


def verify_report(
    folder: Path, read: Callable[[Path], Study], build_source: Callable[[Study, Mapping[str, object]], ReportSource]
) -> list[str]:
    """Compute a report again from the data it carries; returns what differs, in data, figures, tables and pages.

    Pages are compared word for word where the same version of Finecomb wrote them.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise FinecombError(f"{folder}: is no report: {MANIFEST} is missing or cannot be read") from None
    hashes_then, hashes_now = manifest.get("data", {}), hash_by_file(folder)
    other_files = sorted(
        name for name in {*hashes_then, *hashes_now} if hashes_then and hashes_then.get(name) != hashes_now.get(name)
    )
    study = read(folder / DATA_FOLDER)
    pages = page_by_document(study)
    made_from = build_source(study, manifest)
    data = short_data_hash(hashes_then or hashes_now)
    content = _build_content(made_from, manifest["date"], pages, data)
    hashes = {figure.id: figure_hash(figure) for figure in content.figures}
    differing = [f"{name}: is not the file that the report was made from" for name in other_files]
    differing += [
        f"figure {id}: its numbers are not those of the data"
        for id, known in manifest["figures"].items()
        if hashes.get(id) != known
    ]
    for figure in content.figures:
        kept = folder / "tables" / f"{figure.id}.csv"
        if not kept.exists() or kept.read_text(encoding="utf-8") != table_csv(figure.table):
            differing.append(f"tables/{figure.id}.csv: is not the table of the data")
    if content.answer.sentence != manifest["answer"]:
        differing.append("the answer is not that of the data")
    if manifest["finecomb"] == __version__:
        page_texts = itertools.chain(
            _report_files(content, annotator_row_tokens(made_from), data),
            _text_page_files(made_from, content, pages),
            _datasheet_files(made_from, content),
        )
        differing += [
            f"{name}: is not the page of the data"
            for name, text in page_texts
            if not name.startswith("tables/") and _read_bytes(folder / name) != text.encode()
        ]
    return differing


def _read_bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.is_file() else None
