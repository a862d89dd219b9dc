"""A folder with a paper's tables and figures made from a study: one page, and a file for each table and drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import polars as pl

from finecomb.core.errors import FinecombError, flag_style
from finecomb.core.results import Table
from finecomb.reporting.figures.validation_charts import apply_theme, recolour_for_dark, save_chart
from finecomb.reporting.page_shell import render_page
from finecomb.reporting.reproduce.exhibits import Exhibit, ExhibitRow, PaperStudy, Rendering
from finecomb.reporting.reproduce.printed_values import (
    Contradiction,
    PrintedCell,
    compare_with_printed,
    find_contradictions,
    printed_rows,
)
from finecomb.reporting.reproduce.registry import Paper
from finecomb.reporting.tables import format_table

_MAX_PAGE_ROWS = 30  # rows of a table on the page; its file has all


@dataclass(frozen=True, slots=True)
class ExhibitOutcome:
    """What became of one exhibit."""

    exhibit: Exhibit
    rendering: Rendering | None
    why: str = ""
    """Why it could not be made."""
    cells: tuple[PrintedCell, ...] = ()
    """Printed numbers beside ours."""

    @property
    def differing_cells(self) -> list[PrintedCell]:
        """Printed numbers that ours do not round to."""
        return [cell for cell in self.cells if not cell.agrees]


class Reproduction(Table):
    """Exhibits of a paper that were made from a study: one row each, with the reason where one could not be made."""

    def __init__(self, paper: Paper, outcomes: Sequence[ExhibitOutcome], folder: Path) -> None:
        contradictions = find_contradictions(paper.name)
        super().__init__(
            map(_outcome_row, outcomes),
            title=paper.title,
            notes=[f"{row.where}: {row.says}, but {row.but}" for row in contradictions],
        )
        self.folder = folder
        """The folder of the files; `index.html` in it shows all exhibits."""
        self.made_count = sum(outcome.rendering is not None for outcome in outcomes)
        """How many exhibits could be made."""


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


def make_exhibits(
    paper: Paper, study: PaperStudy, with_printed: bool, only: Sequence[str] = ()
) -> Iterator[ExhibitOutcome]:
    """Every exhibit, or those asked for, one after the other; one that cannot be made holds up no other."""
    chosen = [paper.find_exhibit(number) for number in only] or paper.exhibits
    for exhibit in chosen:
        try:
            rendering = exhibit.make(study)
        except FinecombError as error:
            yield ExhibitOutcome(exhibit, None, error.text(flag_style))
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
    """Write the folder; `watch` hears of each exhibit."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for outcome in make_exhibits(paper, study, with_printed, only):
        watch(outcome.exhibit.number)
        if outcome.rendering is not None:
            _write_exhibit_files(outcome.exhibit, outcome.rendering, folder)
        made.append(outcome)
    text = reproduction_page(paper, made, name, study, with_printed)
    (folder / "index.html").write_text(text, encoding="utf-8")
    return made


def _write_exhibit_files(exhibit: Exhibit, rendering: Rendering, folder: Path) -> None:
    rows = unify_columns(rendering.table)
    if rows:
        table = pl.DataFrame(rows, infer_schema_length=None, strict=False)
        (folder / f"{exhibit.file_stem}.csv").write_text(table.write_csv(), encoding="utf-8")
        if rendering.chart is None:
            latex = format_table(rows, "latex", f"{exhibit.number}: {exhibit.title}")
            (folder / f"{exhibit.file_stem}.tex").write_text(latex + "\n", encoding="utf-8")
    if rendering.chart is not None:
        save_chart(apply_theme(rendering.chart, dark=False), folder / f"{exhibit.file_stem}.svg")
        save_chart(recolour_for_dark(apply_theme(rendering.chart, dark=True)), folder / f"{exhibit.file_stem}-dark.svg")
    for name, drawing in rendering.graphs.items():
        (folder / f"{exhibit.file_stem}-{name}.svg").write_text(drawing, encoding="utf-8")


def unify_columns(rows: Sequence[ExhibitRow]) -> list[dict[str, object]]:
    """Rows that all have the same columns."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


# --- the page ----------------------------------------------------------------------------------------------------

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


def reproduction_page(
    paper: Paper, made: Sequence[ExhibitOutcome], name: str, study: PaperStudy, with_printed: bool
) -> str:
    """The page with every exhibit, what could not be made and why, and where the paper contradicts itself."""
    links = " ".join(
        f'<a href="#{one.exhibit.file_stem}"{"" if one.rendering else " class=no"}>{escape(one.exhibit.number)}</a>'
        for one in made
    )
    done = sum(one.rendering is not None for one in made)
    said = f"{done} of {len(made)} tables and figures, from {name}."
    beside = " Printed numbers stand beside ours; those that ours do not round to are framed." if with_printed else ""
    parts = [
        f"{_STYLE}<h1>{escape(paper.title)}</h1><p>{escape(said + beside)}</p>",
        f'<nav class="exhibits">{links}</nav>',
        _contradictions_html(find_contradictions(paper.name)),
        *(_exhibit_section_html(outcome) for outcome in made),
    ]
    return render_page(paper.title, f"<main>{''.join(parts)}</main>", study.label_looks.values())


def _contradictions_html(rows: Sequence[Contradiction]) -> str:
    if not rows:
        return ""
    items = "".join(f"<li><b>{escape(row.where)}</b>: {escape(row.says)}, but {escape(row.but)}.</li>" for row in rows)
    return f'<div class="sheet"><h2>Where the paper contradicts itself</h2><ul>{items}</ul></div>'


def _exhibit_section_html(outcome: ExhibitOutcome) -> str:
    exhibit = outcome.exhibit
    head = f"<h2>{escape(exhibit.number)} · {escape(exhibit.title)}</h2>"
    if outcome.rendering is None:
        why = f"<p>Cannot be made from this study: {escape(outcome.why)}.</p>"
        body = f"{why}<p class=cap>Needs {escape(exhibit.needs)}.</p>"
        return f'<section class="exhibit sheet" id="{exhibit.file_stem}">{head}{body}</section>'
    rendering = outcome.rendering
    parts = [head, f"<p>{escape(rendering.caption)}</p>", _figures_html(exhibit, rendering), rendering.html]
    table = _table_html(unify_columns(rendering.table), outcome.cells)
    if rendering.chart is not None or rendering.graphs or rendering.html:
        table = f"<details><summary>table</summary>{table}</details>"
    parts += [table, _footer_html(exhibit, rendering)]
    return f'<section class="exhibit sheet" id="{exhibit.file_stem}">{"".join(parts)}</section>'


def _figures_html(exhibit: Exhibit, rendering: Rendering) -> str:
    drawn = ""
    if rendering.chart is not None:
        dark = f'<source srcset="{exhibit.file_stem}-dark.svg" media="screen and (prefers-color-scheme: dark)">'
        image = (
            f'<img src="{exhibit.file_stem}.svg" alt="{escape(exhibit.title, quote=True)}; its numbers are '
            'in the table">'
        )
        drawn = f'<div class="figure"><picture>{dark}{image}</picture></div>'
    for name in rendering.graphs:
        target = escape(f"{exhibit.file_stem}-{name}.svg", quote=True)
        drawn += f'<div class="figure"><img src="{target}" alt="{escape(name, quote=True)}"></div>'
    return drawn


def _footer_html(exhibit: Exhibit, rendering: Rendering) -> str:
    files = [f'<a href="{exhibit.file_stem}.csv">CSV</a>'] if rendering.table else []
    files += [f'<a href="{exhibit.file_stem}.svg">SVG</a>'] if rendering.chart is not None else []
    files += [f'<a href="{exhibit.file_stem}.tex">LaTeX</a>'] if rendering.chart is None and rendering.table else []
    signature = f"<details><summary>signature</summary><code>{escape(rendering.signature)}</code></details>"
    made = f"made by <code>{escape(exhibit.function_name)}</code>"
    return f'<p class="cap">{" ".join(files)} {made}</p>{signature if rendering.signature else ""}'


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
        f"<p class=cap>{len(rows) - _MAX_PAGE_ROWS:,} more rows in the file.</p>" if len(rows) > _MAX_PAGE_ROWS else ""
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>{more}'
    )


def _cell_html(value: object, is_numeric: bool, cell: PrintedCell | None) -> str:
    number = ' class="n"' if is_numeric or isinstance(value, int | float) else ""
    if cell is None:
        return f"<td{number}>{escape(_format_cell(value))}</td>"
    mark = "" if cell.agrees else " differs"
    title = "" if cell.agrees else ' title="ours does not round to what is printed"'
    beside = f"printed {escape(cell.printed)}{'' if cell.agrees else ' ≠'}"
    return f'<td class="n{mark}"{title}>{escape(_format_cell(value))}<br><span class="printed">{beside}</span></td>'


def _format_cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
