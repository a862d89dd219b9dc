"""Results as text, HTML and pictures: what `finecomb.core.results` loads when a result is shown."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from finecomb.core.palette import label_styles
from finecomb.core.results import Findings, Result
from finecomb.reporting.figures.estimate_plots import draw_findings_svg, save_plot
from finecomb.reporting.tables import TableFormat, finding_rows, format_rows, format_table


def table_text(result: Result, format: TableFormat, digits: int) -> str:
    """Return a result as Markdown, LaTeX, CSV or JSON."""
    rows = finding_rows(result)[0] if isinstance(result, Findings) else result.rows()
    return format_table(rows, format, result.title, digits)


def result_html(result: Result) -> str:
    """Return a table with its title, notes, and the signature that all rows share folded below it."""
    rows = finding_rows(result)[0] if isinstance(result, Findings) else result.rows()
    cells = format_rows(rows)
    if not cells:
        return f"<p>{escape(result.title or 'Result')}: no rows.</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in cells[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row.values()) + "</tr>" for row in cells)
    caption = f"<caption>{escape(result.title)}</caption>" if result.title else ""
    notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in result.notes)
    made = f"<details><summary>How these were made</summary><code>{escape(result.signature)}</code></details>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"{table}{notes}{made if result.signature else ''}"


@dataclass(frozen=True)
class Picture:
    """A figure that a notebook shows."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Picture({len(self.svg):,} characters of SVG)"


def plot_result(result: Result, path: str | Path | None = None) -> Picture:
    """Draw the estimates of a result, and write the figure to `path` where one is given."""
    findings = result.findings()
    protocol = result.protocol if isinstance(result, Findings) else None
    styles = label_styles(protocol) if protocol else None
    if path is not None:
        save_plot(findings, Path(path), styles)
    return Picture(draw_findings_svg(findings, styles))
