"""Results about judges: estimates with their help, a calibration with its verdict, and two passes compared."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from finecomb.core.errors import ParameterError
from finecomb.core.estimate import Finding
from finecomb.core.protocol import Protocol
from finecomb.core.results import Findings, Result, Table
from finecomb.formats.atomic_file import write_file
from finecomb.reporting.calibration_tables import (
    CalibrationTable,
    build_calibration_tables,
    calibration_page,
    select_figure_findings,
)
from finecomb.reporting.table_groups import TableGroup
from finecomb.reporting.tables import Row, finding_rows, frame_rows
from finecomb.statistics.agreement.second_pass_changes import PassComparison
from finecomb.statistics.judges.calibration import Calibration
from finecomb.statistics.judges.calibration_record import (
    CALIBRATIONS_FOLDER,
    CalibrationRecord,
    build_calibration_record,
)
from finecomb.statistics.judges.validity import CONTRACTS_FOLDER, JudgeContract, Verdict, stale_conditions


def format_estimate_row(finding: Finding) -> Row:
    """Return a row for people: the interval in the cell of its number, and texts as whole numbers."""
    columns = dict(finding.columns)
    visible = {name: value for name, value in columns.items() if not name.startswith("added") and name != "advice"}
    whole = {name: round(value) if isinstance(value, float) else value for name, value in visible.items()}
    added = [columns.get(name) for name in ("added", "added_low", "added_high")]
    texts = (
        f"{added[0]:+.0f} [{added[1]:+.0f}, {added[2]:+.0f}]"
        if all(isinstance(number, float) for number in added)
        else ""
    )
    estimate = {"value": finding.estimate.short(), "why": finding.estimate.why}
    return {**whole, **estimate, "judges add": texts, "advice": columns.get("advice", "")}


class CalibrationResult(TableGroup):
    """A judge compared with people: the verdict, and the tables that it rests on."""

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
        """Everything about the calibration as one record that can be stored."""
        self.sections: list[CalibrationTable] = build_calibration_tables(calibration)
        """All tables in the order in which they are printed."""
        if anchoring:
            rows, _ = finding_rows(anchoring)
            self.sections.append(CalibrationTable("help", "What its marks do to people who see them", rows))
        tables = {section.key: functools.partial(_section_table, section) for section in self.sections}
        super().__init__(
            tables,
            title=f"{calibration.judge}: {calibration.verdict}",
            notes=calibration.notes,
            signature=str(calibration.signature),
        )

    @property
    def verdict(self) -> Verdict:
        """Whether the judge can replace people, by fixed rules."""
        return self.calibration.verdict

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels for which the judge agrees with people no less than people with each other."""
        return self.calibration.labels

    @property
    def paragraph(self) -> str:
        """The verdict and its reasons in plain words."""
        return self.calibration.paragraph

    @property
    def contract(self) -> JudgeContract:
        """The uses that the judge is valid for, and how long."""
        return self.record.contract

    @property
    def agreement(self) -> Findings:
        """Agreement of people, of the judge with people, and the difference."""
        return Findings(self.calibration.agreement, title="Agreement with people", protocol=self.protocol)

    def findings(self) -> list[Finding]:
        """Return the agreement of people and of the judge by label, which is what `plot` draws."""
        return select_figure_findings(self.calibration)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the agreement of people and of the judge by label, as `Result.plot` does."""
        return Findings(self.findings(), title=self.title, protocol=self.protocol).plot(path)

    def to_html(self) -> str:
        """Return the calibration as one page, which needs no script and no network."""
        stale = stale_conditions(self.contract, self.calibration.binding, self.contract.made, {})
        return calibration_page(self.calibration, stale)

    def save(self, folder: str | Path) -> Path:
        """Write the calibration and the contract into a study's folder, and return the path of the contract.

        The server and `annotate` read them there.
        """
        if not Path(folder).is_dir():
            raise ParameterError(f"{folder} is not a folder, so a contract cannot be kept there", parameter="folder")
        name = f"{self.record.judge.replace('/', '-')}.json"
        path = Path(folder)
        for kind, content in ((CALIBRATIONS_FOLDER, self.record), (CONTRACTS_FOLDER, self.contract)):
            path = Path(folder) / kind / name
            path.parent.mkdir(exist_ok=True)
            write_file(path, content.model_dump_json(indent=1))
        return path


def _section_table(section: CalibrationTable) -> Table:
    return Table(section.rows, title=section.title)


class RoundsResult(TableGroup):
    """The first and the last pass of annotators over the same texts: changes to marks, and agreement."""

    def __init__(self, comparison: PassComparison) -> None:
        self.comparison = comparison
        tables: dict[str, Callable[[], Result]] = {
            "marks": lambda: Table(
                frame_rows(comparison.marks) if len(comparison.marks) > 1 else [], title="What became of the marks"
            ),
            "agreement": lambda: Findings(comparison.agreement, title="Agreement of the same people on the same texts"),
        }
        super().__init__(tables, title="What became of the marks", notes=comparison.notes)
        self.signature = self.agreement.signature

    @property
    def marks(self) -> Table:
        """Marks kept, changed, withdrawn and added, by annotator; empty where no text was annotated twice."""
        return self._table_as("marks", Table)

    @property
    def agreement(self) -> Findings:
        """Krippendorff's alpha before and after, and the difference."""
        return self._table_as("agreement", Findings)
