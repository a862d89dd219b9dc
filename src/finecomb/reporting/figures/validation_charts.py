"""Charts of a validation: precision and recall by label with intervals, and label confusion.

Colour is reserved for labels, and counts are shades of grey. A flag next to each point names its label, so that colour
is never needed to identify it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from html import escape

import numpy as np

from finecomb.core.palette import label_styles
from finecomb.reporting.figures.figure_model import Axis, Categories, Cell, Chart, Dot, Line, Mark, PlotPanel, Text
from finecomb.reporting.figures.svg import figure_html
from finecomb.statistics.gold.disagreements import EXTRA, MISSED, label_confusion_rows
from finecomb.statistics.gold.scores import TYPED_ROW, Score, Scores
from finecomb.statistics.selection.view import ANY_LABEL

_F1_LEVELS = (0.2, 0.4, 0.6, 0.8)
_TOTAL_ROW_TITLES = {ANY_LABEL: "All marks, labels ignored", TYPED_ROW: "All marks, same label"}


def precision_recall_chart(scores: Scores) -> Chart:
    """Chart precision against recall with intervals and F1 contours: one point per label, one panel per judge."""
    styles = label_styles(scores.pair.protocol)
    axis = Axis(0, 1, (0, 0.2, 0.4, 0.6, 0.8, 1), 2, length=270, inset=0)
    contours: list[Mark] = []
    for f1 in _F1_LEVELS:
        recalls = np.linspace(f1 / (2 - f1), 1, 60).tolist()
        points = tuple((recall, f1 * recall / (2 * recall - f1)) for recall in recalls)
        contours.append(Line(points, "line-2", 1))
        contours.append(Text(*points[-1], f"{f1:.1f}", "end", dx=-2, dy=-6, colour="ink-3", font_size=10))
    dots: dict[str, list[Mark]] = {}
    for row in scores.rows:
        # a panel is named after the judge and the values of the other grouping columns
        judge = ", ".join(str(value) for name, value in row.columns.items() if name not in ("label", "match"))
        own, label = dots.setdefault(judge, []), str(row.columns["label"])
        if has_undefined_ratio(row):
            continue
        style, recall, precision = styles.get(label), row.recall, row.precision
        title = style.title if style else _TOTAL_ROW_TITLES.get(label, label)
        ratios = ", ".join(f"{name} {getattr(row, name).short()}" for name in ("recall", "precision", "f1"))
        counts = f"gold {row.gold:g}, predicted {row.predicted:g}, matched {row.matched:g}"
        own.append(Dot(
            recall.value, precision.value, recall.low, recall.high, precision.low, precision.high,
            colour=style.slot if style else "ink", name=style.flag if style else label,
            description=f"{title}: {ratios}; {counts}",
        ))  # fmt: skip
    across, down = replace(axis, title="recall"), replace(axis, title="precision")
    panels = tuple(
        PlotPanel(across, down, (*contours, *own), judge if len(dots) > 1 else "") for judge, own in dots.items()
    )
    return Chart("precision-recall", "Precision and recall by label", panels=panels, columns=3)


def has_undefined_ratio(row: Score) -> bool:
    """Return True if recall or precision is undefined, so that the score cannot be drawn as a point."""
    return math.isnan(row.recall.value) or math.isnan(row.precision.value)


def confusion_chart(scores: Scores) -> Chart:
    """Chart label confusion, gold in rows and judge in columns; numbers are counts, shades are shares of the row."""
    rows = label_confusion_rows(scores)
    panels = []
    judges = list(dict.fromkeys(str(row["judge"]) for row in rows))
    for judge in judges:
        own = [row for row in rows if row["judge"] == judge]
        across = tuple(name for name in own[0] if name not in ("judge", "gold label"))
        cells = []
        for row in own:
            gold, counts = str(row["gold label"]), {name: int(str(row[name])) for name in across}
            total = sum(counts.values())
            cells += [
                Cell(
                    name, gold, count / total if total else 0.0, str(count), count == 0,
                    f"gold {gold}, judge {name}: {count} of {total}",
                )
                for name, count in counts.items()
                if not (gold == EXTRA and name == MISSED)  # marks that neither gold nor the judge made are not counted
            ]  # fmt: skip
        down = tuple(str(row["gold label"]) for row in own)
        x, y = Categories(across, "judge's label", step=36), Categories(down, "gold label", step=30)
        panels.append(PlotPanel(x, y, tuple(cells), judge if len(judges) > 1 else ""))
    return Chart("confusion", "Label confusion", panels=tuple(panels), columns=2)


def panels_html(chart: Chart, words: str, width: int) -> str:
    """Return the panels of a chart side by side, each under its name; they wrap on narrow pages."""
    if len(chart.panels) == 1:
        return figure_html(chart, words)
    panels = []
    for number, panel in enumerate(chart.panels):
        alone = replace(chart, id=f"{chart.id}-{number}", panels=(replace(panel, title=""),))
        panels.append(f"<div><h3>{escape(panel.title)}</h3>{figure_html(alone, f'{words}: {panel.title}')}</div>")
    return f'<div class="panels" style="--panel:{width}px">{"".join(panels)}</div>'
