"""Findings for a notebook: a quiet table, and a chart of values with their intervals."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from finecomb.core.results import Findings
from finecomb.reporting.tables import finding_rows, format_rows


def findings_html(findings: Findings) -> str:
    """A table of the findings, with the signature that they share folded below it."""
    rows, signature = finding_rows(findings)
    if not rows:
        return "<p>No findings.</p>"
    cells = format_rows(rows)
    head = "".join(f"<th>{escape(name)}</th>" for name in cells[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row.values()) + "</tr>" for row in cells)
    details = f"<details><summary>How these were made</summary><code>{escape(signature)}</code></details>"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{details if signature else ''}"


def findings_chart(findings: Findings) -> Any:
    """A point for each finding with its interval; what varies most among the columns goes down, the next is a panel."""
    import altair as alt  # slow to import: only for who wants a chart

    names = _varying_columns(findings)
    points = [
        {**{name: str(finding.columns.get(name)) for name in names}}
        | {"value": finding.estimate.value, "low": finding.estimate.low, "high": finding.estimate.high}
        for finding in findings
        if not math.isnan(finding.estimate.value)
    ]
    for point in points:
        point |= {edge: point["value"] for edge in ("low", "high") if math.isnan(float(point[edge]))}
    down = names[0] if names else "value"
    base = alt.Chart(alt.InlineData(values=points)).encode(y=alt.Y(f"{down}:N", sort=None, title=down))
    if len(names) > 1:
        base = base.encode(color=alt.Color(f"{names[1]}:N", sort=None), yOffset=alt.YOffset(f"{names[1]}:N", sort=None))
    marks = alt.layer(
        base.mark_rule().encode(x=alt.X("low:Q", title="value, 95% interval"), x2="high:Q"),
        base.mark_point(filled=True, size=60).encode(x="value:Q"),
    )
    return marks.facet(row=alt.Row(f"{names[2]}:N", sort=None)) if len(names) > 2 else marks


def _varying_columns(findings: Findings) -> list[str]:
    """The columns that tell findings apart, those with the most values first."""
    names = dict.fromkeys(name for finding in findings for name in finding.columns)
    values = {name: {str(finding.columns.get(name)) for finding in findings} for name in names}
    words = [name for name in names if len(values[name]) > 1 and not _is_numeric_column(findings, name)]
    return sorted(words, key=lambda name: -len(values[name]))[:3]


def _is_numeric_column(findings: Findings, name: str) -> bool:
    return any(isinstance(finding.columns.get(name), float) for finding in findings)
