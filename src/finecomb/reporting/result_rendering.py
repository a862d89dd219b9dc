"""Rendering of results as text, HTML and figures; `finecomb.core.results` loads this module on first use."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Unpack

from finecomb.core.palette import label_styles
from finecomb.core.results import Findings, Result
from finecomb.reporting.figures.estimate_plots import plot_findings
from finecomb.reporting.figures.figure_model import DrawingOptions, FigureStack
from finecomb.reporting.tables import TableFormat, finding_rows, format_rows, format_table


def table_text(result: Result, format: TableFormat, digits: int) -> str:
    """Format a result as Markdown, LaTeX, CSV or JSON."""
    rows = finding_rows(result)[0] if isinstance(result, Findings) else result.rows()
    return format_table(rows, format, result.title, digits)


def result_html(result: Result) -> str:
    """Return a result as an HTML table with its title, its notes, and the common signature in a collapsed section."""
    cells = format_rows(finding_rows(result)[0] if isinstance(result, Findings) else result.rows())
    if not cells:
        return f"<p>{escape(result.title or 'Result')}: no rows.</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in cells[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row.values()) + "</tr>" for row in cells)
    caption = f"<caption>{escape(result.title)}</caption>" if result.title else ""
    notes = "".join(f"<p><small>{escape(note)}</small></p>" for note in result.notes)
    signature = f"<details><summary>Signature</summary><code>{escape(result.signature)}</code></details>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"{table}{notes}{signature if result.signature else ''}"


def plot_result(result: Result, path: str | Path | None = None, **options: Unpack[DrawingOptions]) -> FigureStack:
    """Return the figure of the estimates of a result, and write it to `path` if given."""
    protocol = result.protocol if isinstance(result, Findings) else None
    styles = label_styles(protocol) if protocol else None
    figure = replace(plot_findings(result.findings(), styles), options=options)
    if path is not None:
        figure.save(path)
    return figure
