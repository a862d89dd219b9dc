"""Results of `estimate`, `calibrate` and `rounds`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from finecomb.core.errors import ParameterError
from finecomb.core.protocol import Protocol
from finecomb.core.results import Finding, Findings, Result, Table
from finecomb.formats.atomic_file import write_file_atomically
from finecomb.reporting.calibration_tables import CalibrationTable, build_calibration_tables, calibration_page_html
from finecomb.reporting.table_groups import TableGroup
from finecomb.reporting.tables import Row, finding_rows, frame_rows
from finecomb.statistics.agreement.second_pass_changes import PassComparison
from finecomb.statistics.judges.calibration import Calibration
from finecomb.statistics.judges.calibration_record import (
    CALIBRATIONS_FOLDER,
    CalibrationRecord,
    build_calibration_record,
)
from finecomb.statistics.judges.validity import CONTRACTS_FOLDER, JudgeContract, Verdict, expiry_conditions


def format_estimate_row(finding: Finding) -> Row:
    """Return an estimate as a row for display: value and interval share a cell, and text counts are rounded."""
    columns = dict(finding.columns)
    visible = {name: value for name, value in columns.items() if not name.startswith("added") and name != "advice"}
    rounded = {name: round(value) if isinstance(value, float) else value for name, value in visible.items()}
    added = [columns.get(name) for name in ("added", "added_low", "added_high")]
    texts = (
        f"{added[0]:+.0f} [{added[1]:+.0f}, {added[2]:+.0f}]"
        if all(isinstance(number, float) for number in added)
        else ""
    )
    estimate = {"value": finding.estimate.short(), "why": finding.estimate.why}
    return {**rounded, **estimate, "judges add": texts, "advice": columns.get("advice", "")}


class CalibrationResult(TableGroup):
    """Calibration of a judge against people: the verdict and its tables."""

    def __init__(
        self,
        calibration: Calibration,
        made: datetime,
        days: int,
        protocol: Protocol | None = None,
        anchoring: Sequence[Finding] = (),
    ) -> None:
        self.calibration, self.protocol = calibration, protocol
        self.record: CalibrationRecord = build_calibration_record(calibration, made, days)
        """Calibration as one record that can be stored."""
        self.sections: list[CalibrationTable] = build_calibration_tables(calibration)
        """All tables, in print order."""
        if anchoring:
            rows, _ = finding_rows(anchoring)
            self.sections.append(CalibrationTable("help", "Anchoring effect of machine suggestions", rows))
        tables = {section.key: functools.partial(_calibration_section_table, section) for section in self.sections}
        super().__init__(
            tables,
            title=f"{calibration.judge}: {calibration.verdict}",
            notes=calibration.notes,
            signature=str(calibration.signature),
        )

    @property
    def verdict(self) -> Verdict:
        """Verdict on whether the judge can replace people, by fixed rules."""
        return self.calibration.verdict

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels on which the judge agrees with people at least as well as people agree with each other."""
        return self.calibration.labels

    @property
    def paragraph(self) -> str:
        """Verdict with its reasons, as a paragraph."""
        return self.calibration.paragraph

    @property
    def contract(self) -> JudgeContract:
        """Uses that the judge is valid for, and the conditions under which they remain valid."""
        return self.record.contract

    @property
    def agreement(self) -> Findings:
        """Agreement of people with each other, of the judge with people, and the difference."""
        return Findings(self.calibration.agreement, title="Agreement with people", protocol=self.protocol)

    def findings(self) -> list[Finding]:
        """Return the alpha of people and judge by label at the first level, or else the bias; `plot` draws them."""
        alphas = [finding for finding in self.calibration.agreement if finding.columns["measure"] == "alpha"]
        drawn = [
            finding
            for finding in alphas
            if finding.columns["level"] == alphas[0].columns["level"] and finding.columns["who"] in ("people", "judge")
        ]
        return drawn or list(self.calibration.bias)

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Draw the agreement of people and judge by label, as `Result.plot` does."""
        return Findings(self.findings(), title=self.title, protocol=self.protocol).plot(path, **options)

    def to_html(self) -> str:
        """Return the calibration as an HTML page that needs no script and no network."""
        stale = expiry_conditions(self.contract, self.calibration.binding, self.contract.made, {})
        return calibration_page_html(self.calibration, stale)

    def save(self, folder: str | Path) -> Path:
        """Write the calibration and its contract into the folder of a study, and return the path of the contract.

        The server and `annotate` read both files from there.
        """
        if not Path(folder).is_dir():
            raise ParameterError(f"{folder} is not a folder, so the result cannot be saved there", parameter="folder")
        name = f"{self.record.judge.replace('/', '-')}.json"
        path = Path(folder)
        for kind, content in ((CALIBRATIONS_FOLDER, self.record), (CONTRACTS_FOLDER, self.contract)):
            path = Path(folder) / kind / name
            path.parent.mkdir(exist_ok=True)
            write_file_atomically(path, content.model_dump_json(indent=1))
        return path


def _calibration_section_table(section: CalibrationTable) -> Table:
    return Table(section.rows, title=section.title)


class RoundsResult(TableGroup):
    """Comparison of the first and last annotation pass over the same texts: changes to marks, and agreement."""

    def __init__(self, comparison: PassComparison) -> None:
        self.comparison = comparison
        tables: dict[str, Callable[[], Result]] = {
            "marks": lambda: Table(
                frame_rows(comparison.marks) if len(comparison.marks) > 1 else [],
                title="Changes to marks between passes",
            ),
            "agreement": lambda: Findings(comparison.agreement, title="Inter-annotator agreement, first and last pass"),
        }
        super().__init__(tables, title="Changes to marks between passes", notes=comparison.notes)
        self.signature = self.agreement.signature

    @property
    def marks(self) -> Table:
        """Marks kept, changed, withdrawn and added, by annotator; empty if no text was annotated twice."""
        return self._table_as("marks", Table)

    @property
    def agreement(self) -> Findings:
        """Krippendorff's alpha in the first and last pass, and the difference."""
        return self._table_as("agreement", Findings)
