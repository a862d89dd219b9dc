"""Output folder of `reproduce`: one HTML page, and a file per table and figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import polars as pl

from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.results import Table
from finecomb.reporting.figures.figure_model import format_count_with_noun
from finecomb.reporting.page_shell import render_standalone_page
from finecomb.reporting.reproduce.exhibits import Exhibit, ExhibitRow, PaperStudy, RenderedExhibit
from finecomb.reporting.reproduce.printed_values import (
    PrintedCell,
    compare_with_printed,
    find_contradictions,
    printed_rows,
)
from finecomb.reporting.reproduce.registry import Paper
from finecomb.reporting.tables import format_table

_MAX_PAGE_ROWS = 30  # rows per table on the page; the file of the table has all rows


@dataclass(frozen=True, slots=True)
class ExhibitOutcome:
    """Result of reproducing one exhibit."""

    exhibit: Exhibit
    rendering: RenderedExhibit | None
    why: str = ""
    """Reason why the exhibit could not be made."""
    cells: tuple[PrintedCell, ...] = ()
    """Comparison of the values printed in the paper with ours."""


class Reproduction(Table):
    """Exhibits of a paper made from a study: one row per exhibit, with the reason if it could not be made."""

    def __init__(self, paper: Paper, outcomes: Sequence[ExhibitOutcome], folder: Path) -> None:
        super().__init__(
            [
                {
                    "exhibit": outcome.exhibit.number,
                    "what": outcome.exhibit.title,
                    "made": "yes" if outcome.rendering else "no",
                    "as printed": f"{sum(cell.agrees for cell in outcome.cells)} of {len(outcome.cells)}"
                    if outcome.cells
                    else "",
                    "why not": outcome.why,
                }
                for outcome in outcomes
            ],
            title=paper.title,
            notes=[f"{row.where}: {row.says}, but {row.but}" for row in find_contradictions(paper.name)],
        )
        self.folder = folder
        """Output folder; its `index.html` shows all exhibits."""
        self.made_count = sum(outcome.rendering is not None for outcome in outcomes)
        """Number of exhibits that were made."""


def render_exhibits(
    paper: Paper, study: PaperStudy, with_printed: bool, only: Sequence[str] = ()
) -> Iterator[ExhibitOutcome]:
    """Make all exhibits, or those requested; a failed exhibit does not stop the others."""
    chosen = [paper.find_exhibit(number) for number in only] or paper.exhibits
    for exhibit in chosen:
        try:
            rendering = exhibit.make(study)
        except FinecombError as error:
            yield ExhibitOutcome(exhibit, None, error.format_message(format_as_flag))
            continue
        rows = printed_rows(exhibit.paper, exhibit.number) if with_printed else {}
        yield ExhibitOutcome(exhibit, rendering, cells=tuple(compare_with_printed(rendering.table, rows)))


def write_reproduction(
    paper: Paper,
    study: PaperStudy,
    name: str,
    folder: Path,
    with_printed: bool,
    only: Sequence[str] = (),
    watch: Callable[[str], None] = lambda _: None,
) -> list[ExhibitOutcome]:
    """Make the exhibits and write them to a folder; `watch` is called after each exhibit."""
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for outcome in render_exhibits(paper, study, with_printed, only):
        watch(outcome.exhibit.number)
        if outcome.rendering is not None:
            _write_exhibit_files(outcome.exhibit, outcome.rendering, folder)
        outcomes.append(outcome)
    # HTML page with all exhibits, the reasons for missing ones, and contradictions within the paper
    links = " ".join(
        f'<a href="#{outcome.exhibit.file_stem}"{"" if outcome.rendering else " class=no"}>'
        f"{escape(outcome.exhibit.number)}</a>"
        for outcome in outcomes
    )
    done = sum(outcome.rendering is not None for outcome in outcomes)
    summary = f"{done} of {len(outcomes)} tables and figures, computed from {name}."
    printed = (
        " Printed values are shown below ours; a frame marks values that differ after rounding." if with_printed else ""
    )
    contradictions = "".join(
        f"<li><b>{escape(row.where)}</b>: {escape(row.says)}, but {escape(row.but)}.</li>"
        for row in find_contradictions(paper.name)
    )
    parts = [
        f"{_STYLE}<h1>{escape(paper.title)}</h1><p>{escape(summary + printed)}</p>",
        f'<nav class="exhibits">{links}</nav>',
        f'<div class="sheet"><h2>Contradictions within the paper</h2><ul>{contradictions}</ul></div>'
        if contradictions
        else "",
        *(_exhibit_section_html(outcome) for outcome in outcomes),
    ]
    text = render_standalone_page(paper.title, f"<main>{''.join(parts)}</main>", study.label_styles.values())
    (folder / "index.html").write_text(text, encoding="utf-8")
    return outcomes


def _write_exhibit_files(exhibit: Exhibit, rendering: RenderedExhibit, folder: Path) -> None:
    rows = rendering.table
    if rows:
        table = pl.DataFrame(rows, infer_schema_length=None, strict=False)
        (folder / f"{exhibit.file_stem}.csv").write_text(table.write_csv(), encoding="utf-8")
        if rendering.chart is None:
            latex = format_table(rows, "latex", f"{exhibit.number}: {exhibit.title}")
            (folder / f"{exhibit.file_stem}.tex").write_text(latex + "\n", encoding="utf-8")
    if rendering.chart is not None:
        chart = replace(rendering.chart, title=f"{exhibit.number}: {exhibit.title}", caption=rendering.caption)
        chart.save(folder / f"{exhibit.file_stem}.svg", heading=False)  # the page has its own heading
        chart.save(folder / f"{exhibit.file_stem}-dark.svg", heading=False, theme="dark")
    for name, drawing in rendering.graphs.items():
        (folder / f"{exhibit.file_stem}-{name}.svg").write_text(drawing, encoding="utf-8")


# --- HTML page ---------------------------------------------------------------------------------------------------

_STYLE = """<style>
img{max-width:100%;height:auto}
.figure{overflow-x:auto}
@media (max-width:720px){.figure img{max-width:none}}
th.n{text-align:right}
.printed{color:var(--ink-3);font-size:12px;white-space:nowrap}
.differs{outline:2px solid var(--edge);outline-offset:-2px;border-radius:3px}
section.exhibit{margin:28px 0;break-inside:avoid}
nav.exhibits{flex-wrap:wrap;gap:4px 12px}
nav.exhibits .no{color:var(--ink-3);text-decoration:line-through}
@media print{nav{display:none}}
</style>"""


def _exhibit_section_html(outcome: ExhibitOutcome) -> str:
    exhibit = outcome.exhibit
    head = f"<h2>{escape(exhibit.number)} · {escape(exhibit.title)}</h2>"
    if outcome.rendering is None:
        why = f"<p>Not available for this study: {escape(outcome.why)}.</p>"
        body = f"{why}<p class=cap>Requires {escape(exhibit.needs)}.</p>"
        return f'<section class="exhibit sheet" id="{exhibit.file_stem}">{head}{body}</section>'
    rendering = outcome.rendering
    parts = [head, f"<p>{escape(rendering.caption)}</p>", _figures_html(exhibit, rendering), rendering.html]
    table = _table_html(rendering.table, outcome.cells)
    if rendering.chart is not None or rendering.graphs or rendering.html:
        table = f"<details><summary>Table</summary>{table}</details>"
    files = [f'<a href="{exhibit.file_stem}.csv">CSV</a>'] if rendering.table else []
    files += [f'<a href="{exhibit.file_stem}.svg">SVG</a>'] if rendering.chart is not None else []
    files += [f'<a href="{exhibit.file_stem}.tex">LaTeX</a>'] if rendering.chart is None and rendering.table else []
    signature = f"<details><summary>Signature</summary><code>{escape(rendering.signature)}</code></details>"
    computed_by = f"Computed by <code>{escape(exhibit.function_name)}</code>"
    parts += [table, f'<p class="cap">{" ".join(files)} {computed_by}</p>{signature if rendering.signature else ""}']
    return f'<section class="exhibit sheet" id="{exhibit.file_stem}">{"".join(parts)}</section>'


def _figures_html(exhibit: Exhibit, rendering: RenderedExhibit) -> str:
    drawn = ""
    if rendering.chart is not None:
        dark = f'<source srcset="{exhibit.file_stem}-dark.svg" media="screen and (prefers-color-scheme: dark)">'
        image = (
            f'<img src="{exhibit.file_stem}.svg" alt="{escape(exhibit.title, quote=True)}; '
            'the table below contains the values">'
        )
        drawn = f'<div class="figure"><picture>{dark}{image}</picture></div>'
    for name in rendering.graphs:
        target = escape(f"{exhibit.file_stem}-{name}.svg", quote=True)
        drawn += f'<div class="figure"><img src="{target}" alt="{escape(name, quote=True)}"></div>'
    return drawn


def _table_html(rows: Sequence[ExhibitRow], cells: Sequence[PrintedCell]) -> str:
    if not rows:
        return ""
    beside = {(cell.row, cell.column): cell for cell in cells}
    numeric = {name for name in rows[0] if all(isinstance(row[name], int | float | None) for row in rows)}
    head = "".join(f"<th{' class=n' if name in numeric else ''}>{escape(name)}</th>" for name in rows[0])
    lines = []
    for row in rows[:_MAX_PAGE_ROWS]:
        name = str(next(iter(row.values())))
        lines.append(
            "<tr>"
            + "".join(_cell_html(value, column in numeric, beside.get((name, column))) for column, value in row.items())
            + "</tr>"
        )
    more = (
        f"<p class=cap>{format_count_with_noun(len(rows) - _MAX_PAGE_ROWS, 'more row')} in the CSV file.</p>"
        if len(rows) > _MAX_PAGE_ROWS
        else ""
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>{more}'
    )


def _cell_html(value: object, is_numeric: bool, cell: PrintedCell | None) -> str:
    number = ' class="n"' if is_numeric or isinstance(value, int | float) else ""
    if cell is None:
        return f"<td{number}>{escape(_format_cell(value))}</td>"
    title = ' title="our value differs from the printed value after rounding"'
    attributes, sign = ('class="n"', "") if cell.agrees else (f'class="n differs"{title}', " ≠")
    printed = f'<span class="printed">printed {escape(cell.printed)}{sign}</span>'
    return f"<td {attributes}>{escape(_format_cell(value))}<br>{printed}</td>"


def _format_cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
