"""A calibration as tables for the terminal and for programs, and as one page for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from finecomb.core.estimate import Estimate, Finding
from finecomb.reporting.page_shell import render_page, table_html
from finecomb.reporting.tables import Row, estimate_row
from finecomb.statistics.judges.alt_test import AltTest
from finecomb.statistics.judges.calibration import Calibration
from finecomb.statistics.judges.calibration_record import calibration_headline
from finecomb.statistics.judges.validity import StaleCondition

_FIGURE_WIDTH, _ROW_HEIGHT = 320, 24


class CalibrationTable(NamedTuple):
    """One table of a calibration."""

    key: str
    """For the column `section` of the JSON object."""
    title: str
    rows: Sequence[Row]


def build_calibration_tables(calibration: Calibration) -> list[CalibrationTable]:
    """Every table of a calibration, the answer first."""
    measures = ("alpha", "f1", "gamma")
    agreement = [finding for finding in calibration.agreement if finding.columns["measure"] in measures]
    chair = [finding for finding in calibration.agreement if str(finding.columns["measure"]).startswith("one-vs")]
    scores = [dict(row.row()) for row in calibration.scores.rows] if calibration.scores else []
    every = [
        CalibrationTable("answer", "May it stand in?", [_verdict_row(calibration)]),
        CalibrationTable("agreement", "Agreement with people", _comparison_rows(agreement)),
        CalibrationTable("chair", "One against the rest, the judge in the chair", _comparison_rows(chair)),
        CalibrationTable("test", "Person by person: the alternative annotator test", list(calibration.test.rows())),
        CalibrationTable("bias", "Marks and severity beside people's", _estimate_rows(calibration.bias)),
        CalibrationTable("found", "What it finds of people's marks", _estimate_rows(calibration.found)),
        CalibrationTable("gold", "Against gold", scores),
        CalibrationTable("confusion", "Labels: gold in rows, judge in columns", list(calibration.confusion())),
        CalibrationTable("kinds", "Right, wrong, missed and extra", list(calibration.pairing_type_table())),
        CalibrationTable("probes", "Reliability", _estimate_rows(calibration.probes)),
        CalibrationTable(
            "worth", "What the judge is worth, in texts that people read", _judge_worth_rows(calibration.worth)
        ),
        CalibrationTable(
            "cost", "Time and cost", [_drop_undefined_cells(row) for row in calibration.costs if _has_cost(row)]
        ),
    ]
    return [section for section in every if section.rows]


def select_summary_tables(every: Sequence[CalibrationTable]) -> list[CalibrationTable]:
    """What fits a screen: of agreement alpha by label and the rest for all labels together, no confusion tables."""
    level = next((row["level"] for section in every if section.key == "agreement" for row in section.rows), "")
    filters: Mapping[str, Callable[[Row], bool]] = {
        "agreement": lambda row: row["label"] == "any" or (row["measure"], row["level"]) == ("alpha", level),
        "chair": lambda row: row["label"] == "any" and row["level"] == level,
        "gold": lambda row: row["label"] in ("any", "typed"),
    }
    chosen = [
        section._replace(rows=[row for row in section.rows if section.key not in filters or filters[section.key](row)])
        for section in every
        if section.key not in ("answer", "confusion", "kinds")
    ]
    return [section for section in chosen if section.rows]


def select_figure_findings(calibration: Calibration) -> list[Finding]:
    """What a figure of a calibration shows: agreement of people and of the judge by label, at the first level."""
    alphas = [finding for finding in calibration.agreement if finding.columns["measure"] == "alpha"]
    level = alphas[0].columns["level"] if alphas else ""
    of_level = [finding for finding in alphas if finding.columns["level"] == level]
    return [finding for finding in of_level if finding.columns["who"] in ("people", "judge")] or list(calibration.bias)


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


def _judge_worth_rows(findings: Iterable[Finding]) -> list[Row]:
    """Marks per text by each method, without what only programs read."""
    hidden = ("measure", "label")
    return [{name: value for name, value in row.items() if name not in hidden} for row in _estimate_rows(findings)]


def _comparison_rows(findings: Sequence[Finding]) -> list[Row]:
    """People, judge and their difference side by side, one row for each level, measure and label."""
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for finding in findings:
        columns = finding.columns
        key = columns["level"], columns["measure"], columns["label"]
        row = rows.setdefault(key, dict(zip(("level", "measure", "label"), key, strict=True)))
        who = str(columns["who"])
        row[who] = finding.estimate.value
        row |= {f"{who}_low": finding.estimate.low, f"{who}_high": finding.estimate.high}
        if "verdict" in columns:
            row["verdict"] = columns["verdict"]
    return list(rows.values())


def format_intervals(rows: Iterable[Row]) -> list[Row]:
    """Rows with each interval in the cell of its number: `0.412 [0.380, 0.450]`."""
    return [_format_row_intervals(row) for row in rows]


def _format_row_intervals(row: Row) -> Row:
    cells: dict[str, object] = {}
    for name, value in row.items():
        if name.endswith(("_low", "_high")) or name in ("low", "high", "signature"):
            continue
        ends = [
            row.get(f"{name}_{end}", row.get(end) if name in ("value", "advantage") else None)
            for end in ("low", "high")
        ]
        cells[name] = _format_with_interval(value, ends)
    return cells


def _format_with_interval(value: object, ends: Sequence[object]) -> object:
    numbers = [end for end in ends if isinstance(end, float) and math.isfinite(end)]
    if not isinstance(value, float) or len(numbers) != 2 or not math.isfinite(value):
        return value
    return f"{value:.3f} [{numbers[0]:.3f}, {numbers[1]:.3f}]"


def _has_cost(row: Mapping[str, object]) -> bool:
    return any(isinstance(row[name], float) and math.isfinite(float(str(row[name]))) for name in ("seconds", "cost"))


def _drop_undefined_cells(row: Mapping[str, object]) -> Row:
    return {name: value for name, value in row.items() if not (isinstance(value, float) and math.isnan(value))}


# --- the page ----------------------------------------------------------------------------------------------------


def calibration_page(calibration: Calibration, stale: Sequence[StaleCondition] = ()) -> str:
    """One page that says whether a judge may stand in, with figures and tables; it needs no script and no network."""
    parts = [
        f"<h1>{escape(calibration_headline(calibration))}</h1>",
        f'<p class="words">{escape(calibration.paragraph)}</p>',
    ]
    parts.append(f'<div class="two">{_agreement_figure(calibration)}{_alt_test_figure(calibration.test)}</div>')
    skipped = {"answer", "test"}
    for section in build_calibration_tables(calibration):
        if section.key not in skipped:
            parts.append(
                _section_html(section.title, f'<div class="scroll">{table_html(format_intervals(section.rows))}</div>')
            )
    parts.append(_section_html("Contract", _validity_tables_html(calibration, stale)))
    notes = "".join(f'<p class="cap">{escape(note)}</p>' for note in calibration.notes)
    parts.append(f'{notes}<p class="cap">{escape(str(calibration.signature))}</p>')
    return render_page(f"{calibration.judge}: {calibration.verdict}", "".join(parts))


def _section_html(title: str, body: str, caption: str = "") -> str:
    under = f'<p class="cap">{escape(caption)}</p>' if caption else ""
    return f'<section class="sheet"><h2>{escape(title)}</h2>{under}{body}</section>'


def _agreement_figure(calibration: Calibration) -> str:
    first = calibration.agreement[0].columns["level"] if calibration.agreement else ""
    rows = [
        row for row in _comparison_rows(calibration.agreement) if row["measure"] == "alpha" and row["level"] == first
    ]
    if not rows:
        return ""
    scale = _FigureScale(
        min(0.0, *(_float_or_nan(row[f"{who}_low"]) for row in rows for who in ("people", "judge"))), 1.0
    )
    cells = [
        {
            "label": row["label"],
            "": scale.people_and_judge_svg(row),
            "people": _format_number(row["people"]),
            "judge": _format_number(row["judge"]),
            "verdict": row.get("verdict", ""),
        }
        for row in rows
    ]
    caption = "Open: people among themselves; filled: judge with people. Alpha of tokens, 95% intervals."
    return _section_html("Agreement by label", f'<div class="scroll">{_figure_table_html(cells)}</div>', caption)


def _alt_test_figure(test: AltTest) -> str:
    scale = _FigureScale(0.0, 1.0)
    ranked = sorted(test.people, key=lambda person: -person.advantage.value)
    cells = [
        {
            "person": person.person,
            "": scale.estimate_svg(person.advantage, 0.5),
            "judge at least as close": person.advantage.short(2),
            "wins": "wins" if person.wins else "no",
        }
        for person in ranked
    ]
    caption = (
        "Leave one person out. How often is the judge at least as close to the others as that person is? "
        f"{test.epsilon:g} is allowed for its lower cost."
    )
    return _section_html("Person by person", f'<div class="scroll">{_figure_table_html(cells)}</div>', caption)


def _validity_tables_html(calibration: Calibration, stale: Sequence[StaleCondition]) -> str:
    binding = calibration.binding
    facts: list[Row] = [
        {"what": "judge", "value": binding.judge},
        {"what": "model", "value": binding.model or "not known"},
        {"what": "prompt", "value": binding.prompt or "none"},
        {"what": "protocol", "value": binding.protocol},
        {"what": "holds for", "value": ", ".join(calibration.labels) or calibration.verdict},
        {"what": "texts of", "value": ", ".join(calibration.systems) or "not known"},
        {"what": "hash", "value": binding.hash},
    ]
    conditions: list[Row] = [
        {"stale when": condition.condition, "now": condition.state, "detail": condition.detail} for condition in stale
    ]
    return table_html(facts) + (table_html(conditions) if conditions else "")


class _FigureScale(NamedTuple):
    """From numbers to places in a small figure."""

    low: float
    high: float

    def x_position(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return 8 + (_FIGURE_WIDTH - 16) * min(max(share, 0.0), 1.0)

    def interval_svg(self, value: float, low: float, high: float, y: float, filled: bool) -> str:
        """A dot with its line."""
        if not math.isfinite(value):
            return ""
        ends = (low, high) if math.isfinite(low) and math.isfinite(high) else (value, value)
        line = _line(
            self.x_position(ends[0]),
            self.x_position(ends[1]),
            y,
            y,
            'stroke="currentColor" stroke-width="2" stroke-linecap="round"',
        )
        fill = "currentColor" if filled else "var(--paper)"
        dot = (
            f'<circle cx="{self.x_position(value):.1f}" cy="{y}" r="4.5" fill="{fill}" stroke="currentColor" '
            'stroke-width="2"/>'
        )
        return line + dot

    def svg_element(self, inside: str, height: int, name: str, mark: float | None = None) -> str:
        rule = ""
        if mark is not None:
            rule = _line(
                self.x_position(mark), self.x_position(mark), 0, height, 'stroke="var(--edge)" stroke-dasharray="3 3"'
            )
        size = f'width="{_FIGURE_WIDTH}" height="{height}" viewBox="0 0 {_FIGURE_WIDTH} {height}"'
        return f'<svg {size} role="img" aria-label="{escape(name)}">{rule}{inside}</svg>'

    def people_and_judge_svg(self, row: Row) -> str:
        """People open above, the judge filled below."""
        parts = []
        for who, y, filled in (("people", 8, False), ("judge", 26, True)):
            parts.append(
                self.interval_svg(
                    _float_or_nan(row[who]),
                    _float_or_nan(row[f"{who}_low"]),
                    _float_or_nan(row[f"{who}_high"]),
                    y,
                    filled,
                )
            )
        return self.svg_element(
            "".join(parts), 34, f"people {_format_number(row['people'])}, judge {_format_number(row['judge'])}", 0.0
        )

    def estimate_svg(self, estimate: Estimate, mark: float) -> str:
        """One filled dot."""
        inside = self.interval_svg(estimate.value, estimate.low, estimate.high, _ROW_HEIGHT / 2, filled=True)
        return self.svg_element(inside, _ROW_HEIGHT, estimate.short(2), mark)


def _line(x1: float, x2: float, y1: float, y2: float, look: str) -> str:
    return f'<line x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:g}" y2="{y2:g}" {look}/>'


def _float_or_nan(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _format_number(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) and math.isfinite(value) else "–"


def _figure_table_html(rows: Sequence[Mapping[str, object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>"
        + "".join(f"<td>{cell if name == '' else escape(str(cell))}</td>" for name, cell in row.items())
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
