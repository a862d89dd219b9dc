"""Calibration results as tables and as a self-contained HTML page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from finecomb.core.results import Finding
from finecomb.reporting.figures.figure_model import Axis, Dot
from finecomb.reporting.figures.svg import row_svg
from finecomb.reporting.page_shell import render_standalone_page, table_html
from finecomb.reporting.tables import Row, estimate_row
from finecomb.statistics.judges.alt_test import AltTest
from finecomb.statistics.judges.calibration import Calibration
from finecomb.statistics.judges.calibration_record import calibration_headline
from finecomb.statistics.judges.validity import StaleCondition

_FIGURE_WIDTH, _ROW_HEIGHT = 320, 24


class CalibrationTable(NamedTuple):
    """One table of a calibration."""

    key: str
    """Value of the column `section` in the JSON output."""
    title: str
    rows: Sequence[Row]


def build_calibration_tables(calibration: Calibration) -> list[CalibrationTable]:
    """Return all non-empty tables of a calibration, starting with the verdict."""
    measures = ("alpha", "f1", "gamma")
    agreement = [finding for finding in calibration.agreement if finding.columns["measure"] in measures]
    chair = [finding for finding in calibration.agreement if str(finding.columns["measure"]).startswith("one-vs")]
    scores = [dict(row.row()) for row in calibration.scores.rows] if calibration.scores else []
    # omit the columns `measure` and `label`, which are the same in every row
    worth = [
        {name: value for name, value in row.items() if name not in ("measure", "label")}
        for row in _estimate_rows(calibration.worth)
    ]
    tables = [
        CalibrationTable("answer", "Verdict", [_verdict_row(calibration)]),
        CalibrationTable(
            "replacement",
            "Agreement with people (alpha); intervals 95%, of the ratio 90%",
            [calibration.replacement.row()],
        ),
        CalibrationTable(
            "baselines", "Simple baselines", [baseline.row() for baseline in calibration.replacement.baselines]
        ),
        CalibrationTable(
            "agreement", "Agreement with people, by level, measure and label", _comparison_rows(agreement)
        ),
        CalibrationTable(
            "chair", "Leave-one-out agreement, with the judge replacing one person", _comparison_rows(chair)
        ),
        CalibrationTable("test", "Alternative annotator test, by person", list(calibration.test.rows())),
        CalibrationTable("bias", "Number and severity of marks compared with people", _estimate_rows(calibration.bias)),
        CalibrationTable("found", "Share of human marks that the judge finds", _estimate_rows(calibration.found)),
        CalibrationTable("gold", "Comparison with gold", scores),
        CalibrationTable(
            "confusion", "Label confusion: gold in rows, judge in columns", list(calibration.gold_confusion_rows())
        ),
        CalibrationTable("kinds", "Correct, wrong, missed and extra marks", list(calibration.pairing_type_table())),
        CalibrationTable("probes", "Reliability", _estimate_rows(calibration.probes)),
        CalibrationTable("worth", "Marks per text, by estimation method", worth),
        CalibrationTable(
            "cost",
            "Time and cost",
            [
                {name: value for name, value in row.items() if not (isinstance(value, float) and math.isnan(value))}
                for row in calibration.costs
                if any(
                    isinstance(row[name], float) and math.isfinite(float(str(row[name])))
                    for name in ("seconds", "cost")
                )
            ],
        ),
    ]
    return [section for section in tables if section.rows]


def select_summary_tables(tables: Sequence[CalibrationTable]) -> list[CalibrationTable]:
    """Select the rows that fit on a screen.

    Agreement keeps alpha by label and the other measures for all labels together. Confusion tables are omitted.
    """
    level = next((row["level"] for section in tables if section.key == "agreement" for row in section.rows), "")
    filters: Mapping[str, Callable[[Row], bool]] = {
        "agreement": lambda row: row["label"] == "any" or (row["measure"], row["level"]) == ("alpha", level),
        "chair": lambda row: row["label"] == "any" and row["level"] == level,
        "gold": lambda row: row["label"] in ("any", "typed"),
    }
    return [
        section._replace(rows=rows)
        for section in tables
        if section.key not in ("answer", "confusion", "kinds")
        and (rows := [row for row in section.rows if section.key not in filters or filters[section.key](row)])
    ]


def _verdict_row(calibration: Calibration) -> Row:
    test = calibration.test
    return {
        "judge": calibration.judge,
        "verdict": calibration.verdict,
        "labels": ", ".join(calibration.labels),
        "winning rate": test.winning_rate,
        "advantage": test.advantage,
        "epsilon": test.epsilon,
        "texts": calibration.texts,
        "people": len(calibration.people),
    }


def _estimate_rows(findings: Iterable[Finding]) -> list[Row]:
    return [estimate_row(finding.estimate, **finding.columns) for finding in findings]


def _comparison_rows(findings: Sequence[Finding]) -> list[Row]:
    """Return one row per level, measure and label: the value for people, that for the judge, and the difference."""
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for finding in findings:
        columns = finding.columns
        key = columns["level"], columns["measure"], columns["label"]
        row = rows.setdefault(key, dict(zip(("level", "measure", "label"), key, strict=True)))
        side = str(columns["who"])
        row[side] = finding.estimate.value
        row |= {f"{side}_low": finding.estimate.low, f"{side}_high": finding.estimate.high}
        if "verdict" in columns:
            row["verdict"] = columns["verdict"]
    return list(rows.values())


def merge_intervals_into_cells(rows: Iterable[Row]) -> list[Row]:
    """Merge each interval into the cell of its value: `0.412 [0.380, 0.450]`."""
    merged: list[Row] = []
    for row in rows:
        cells: dict[str, object] = {}
        for name, value in row.items():
            if name.endswith(("_low", "_high")) or name in ("low", "high", "signature"):
                continue
            ends = [
                row.get(f"{name}_{end}", row.get(end) if name in ("value", "advantage") else None)
                for end in ("low", "high")
            ]
            if all(isinstance(number, float) and math.isfinite(number) for number in (value, *ends)):
                cells[name] = f"{value:.3f} [{ends[0]:.3f}, {ends[1]:.3f}]"
            else:
                cells[name] = value
        merged.append(cells)
    return merged


# --- HTML page ---------------------------------------------------------------------------------------------------


def calibration_page_html(calibration: Calibration, stale: Sequence[StaleCondition] = ()) -> str:
    """Return an HTML page with the verdict, figures and tables of a calibration; it needs no script and no network."""
    parts = [
        f"<h1>{escape(calibration_headline(calibration))}</h1>",
        f'<p class="words">{escape(calibration.paragraph)}</p>',
        f'<div class="two">{_agreement_figure_html(calibration)}{_alt_test_figure_html(calibration.test)}</div>',
    ]
    for section in build_calibration_tables(calibration):
        if section.key not in ("answer", "test"):
            table = table_html(merge_intervals_into_cells(section.rows))
            parts.append(_section_html(section.title, f'<div class="scroll">{table}</div>'))
    binding = calibration.binding
    facts: list[Row] = [
        {"what": "judge", "value": binding.judge},
        {"what": "model", "value": binding.model or "unknown"},
        {"what": "prompt", "value": binding.prompt or "none"},
        {"what": "protocol", "value": binding.protocol},
        {"what": "valid for", "value": ", ".join(calibration.labels) or calibration.verdict},
        {"what": "systems", "value": ", ".join(calibration.systems) or "unknown"},
        {"what": "hash", "value": binding.hash},
    ]
    conditions: list[Row] = [
        {"no longer valid when": condition.condition, "now": condition.state, "detail": condition.detail}
        for condition in stale
    ]
    parts.append(_section_html("Validity", table_html(facts) + (table_html(conditions) if conditions else "")))
    parts += [f'<p class="cap">{escape(note)}</p>' for note in (*calibration.notes, str(calibration.signature))]
    return render_standalone_page(f"{calibration.judge}: {calibration.verdict}", "".join(parts))


def _section_html(title: str, body: str, caption: str = "") -> str:
    under = f'<p class="cap">{escape(caption)}</p>' if caption else ""
    return f'<section class="sheet"><h2>{escape(title)}</h2>{under}{body}</section>'


def _agreement_figure_html(calibration: Calibration) -> str:
    first = calibration.agreement[0].columns["level"] if calibration.agreement else ""
    rows = [
        row for row in _comparison_rows(calibration.agreement) if row["measure"] == "alpha" and row["level"] == first
    ]
    if not rows:
        return ""
    lowest = min(0.0, *(_float_or_nan(row[f"{side}_low"]) for row in rows for side in ("people", "judge")))
    axis = Axis(lowest, 1, (), 2, reference=0, inset=8)
    cells = [
        {
            "label": row["label"],
            "": row_svg(
                [
                    Dot(
                        _float_or_nan(row[side]),
                        side,
                        _float_or_nan(row[f"{side}_low"]),
                        _float_or_nan(row[f"{side}_high"]),
                        open=side == "people",
                    )
                    for side in ("people", "judge")
                ],
                axis,
                _FIGURE_WIDTH,
                34,
                f"people {_format_two_decimals(row['people'])}, judge {_format_two_decimals(row['judge'])}",
                responsive=False,
            ),
            "people": _format_two_decimals(row["people"]),
            "judge": _format_two_decimals(row["judge"]),
            "verdict": row.get("verdict", ""),
        }
        for row in rows
    ]
    caption = (
        "Open dots: agreement between people. Filled dots: agreement of the judge with people. "
        f"Krippendorff's alpha, {first} level, 95% intervals."
    )
    return _section_html("Agreement by label", f'<div class="scroll">{_figure_rows_html(cells)}</div>', caption)


def _alt_test_figure_html(test: AltTest) -> str:
    axis = Axis(0, 1, (), 2, reference=0.5, inset=8)
    ranked = sorted(test.people, key=lambda person: -person.advantage.value)
    cells = [
        {
            "person": person.person,
            "": row_svg(
                [Dot(person.advantage.value, "", person.advantage.low, person.advantage.high)],
                axis,
                _FIGURE_WIDTH,
                _ROW_HEIGHT,
                person.advantage.short(2),
                responsive=False,
            ),
            "judge at least as close": person.advantage.short(2),
            "wins": "wins" if person.wins else "no",
        }
        for person in ranked
    ]
    caption = (
        "Share of items on which the judge is at least as close to the other people as the named person is. "
        f"Epsilon = {test.epsilon:g} allows for the lower cost of the judge."
    )
    return _section_html("Alternative annotator test", f'<div class="scroll">{_figure_rows_html(cells)}</div>', caption)


def _float_or_nan(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _format_two_decimals(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) and math.isfinite(value) else "–"


def _figure_rows_html(rows: Sequence[Mapping[str, object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>"
        + "".join(f"<td>{cell if name == '' else escape(str(cell))}</td>" for name, cell in row.items())
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
