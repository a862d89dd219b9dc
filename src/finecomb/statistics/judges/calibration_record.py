"""Calibration records: JSON stored in the study folder and shown on the researcher's page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime

from finecomb.core.records import Record
from finecomb.core.results import Estimate, Finding
from finecomb.statistics.judges.alt_test import AltTest
from finecomb.statistics.judges.calibration import Calibration, verdict_sentence
from finecomb.statistics.judges.replacement import ReplacementTest
from finecomb.statistics.judges.validity import JudgeContract, Verdict

CALIBRATIONS_FOLDER = "calibrations"
"""Folder within a study that stores calibrations, one file per judge."""


class RecordedEstimate(Record):
    """Value with its interval; None if undefined, with the reason in `why`."""

    value: float | None
    low: float | None = None
    high: float | None = None
    why: str = ""
    signature: str = ""

    @classmethod
    def from_estimate(cls, estimate: Estimate) -> RecordedEstimate:
        """Build the record of an estimate, with None instead of NaN."""
        return cls(
            value=finite_or_none(estimate.value), low=finite_or_none(estimate.low),
            high=finite_or_none(estimate.high), why=estimate.why,
            signature=str(estimate.signature),
        )  # fmt: skip


def finite_or_none(number: object) -> float | None:
    """Return the value as a float, or None if it is NaN or infinite."""
    return float(number) if isinstance(number, int | float) and math.isfinite(number) else None


class RecordedComparison(Record):
    """Agreement by one measure: between people, between judge and people, and the difference."""

    level: str
    measure: str
    label: str
    """Label, or `any` for all labels together."""
    people: RecordedEstimate
    judge: RecordedEstimate
    difference: RecordedEstimate
    verdict: str


class RecordedContest(Record):
    """Comparison of one person with the judge in the alternative annotator test."""

    person: str
    items: int
    texts: int
    advantage: RecordedEstimate
    """Share of items on which the judge is at least as close to the other people as this person."""
    p: float | None
    wins: bool
    why: str = ""


class RecordedOmission(Record):
    """Person left out of the test, with the reason."""

    person: str
    why: str


class RecordedTest(Record):
    """Alternative annotator test of the judge."""

    epsilon: float
    needed: int
    """Number of people against whom the judge must win."""
    wins: int
    winning_rate: RecordedEstimate
    advantage: RecordedEstimate
    people: tuple[RecordedContest, ...]
    left_out: tuple[RecordedOmission, ...] = ()

    @classmethod
    def from_alt_test(cls, test: AltTest) -> RecordedTest:
        """Build the record of an alternative annotator test."""
        return cls(
            epsilon=test.epsilon,
            needed=test.required_win_count,
            wins=test.win_count,
            winning_rate=RecordedEstimate.from_estimate(test.rate),
            advantage=RecordedEstimate.from_estimate(test.chance),
            people=tuple(
                RecordedContest(
                    person=person.person,
                    items=person.items,
                    texts=person.texts,
                    advantage=RecordedEstimate.from_estimate(person.advantage),
                    p=finite_or_none(person.p),
                    wins=person.wins,
                    why=person.why,
                )
                for person in test.people
            ),
            left_out=tuple(RecordedOmission(person=person, why=why) for person, why in test.left_out),
        )


class RecordedBaseline(Record):
    """Agreement of a simple baseline with people, and the judge's agreement minus it."""

    name: str
    agreement: RecordedEstimate
    difference: RecordedEstimate
    beaten: bool


class RecordedReplacement(Record):
    """Comparison of the judge with people and simple baselines that decides the verdict."""

    people: RecordedEstimate
    """Alpha between two people."""
    judge: RecordedEstimate
    """Alpha between the judge and a person."""
    ratio: RecordedEstimate
    """Judge's alpha divided by people's, with a 90% interval."""
    margin: float
    human_f1: float | None
    """F1 between two people; None for answers."""
    noninferior: bool
    baselines: tuple[RecordedBaseline, ...]
    reason: str = ""
    """Reason why the data cannot decide."""

    @classmethod
    def from_test(cls, test: ReplacementTest) -> RecordedReplacement:
        """Build the record of a replacement test."""
        record = RecordedEstimate.from_estimate
        return cls(
            people=record(test.people), judge=record(test.judge), ratio=record(test.ratio), margin=test.margin,
            human_f1=finite_or_none(test.human_f1), noninferior=test.is_noninferior,
            baselines=tuple(
                RecordedBaseline(
                    name=baseline.name, agreement=record(baseline.agreement), difference=record(baseline.difference),
                    beaten=baseline.is_beaten,
                )
                for baseline in test.baselines
            ),
            reason=test.undecided_reason,
        )  # fmt: skip


class RecordedBias(Record):
    """Judge marks per human mark, by label."""

    label: str
    ratio: RecordedEstimate


class RecordedShare(Record):
    """Share of people's marks that the judge finds, for one subset of the marks."""

    part: str
    """Type of subset: `all`, `length`, `place`, `label`, `system`, or `characters` for the overlap with gold."""
    value: str
    share: RecordedEstimate


class RecordedProbe(Record):
    """Result of one reliability probe."""

    probe: str
    what: str
    measure: str
    annotator: str
    effect: RecordedEstimate


class RecordedCost(Record):
    """Time and cost of the judge or of people."""

    who: str
    texts: int
    confirmed: int
    """Number of errors that another annotator marked as well."""
    seconds: float | None
    cost: float | None
    seconds_per_error: float | None
    cost_per_error: float | None

    @classmethod
    def from_row(cls, row: Mapping[str, object]) -> RecordedCost:
        """Build the record of a row of `cost_per_confirmed_error_rows`."""
        return cls(
            who=str(row["who"]), texts=int(str(row["texts read"])),
            confirmed=int(str(row["errors that others marked too"])),
            seconds=finite_or_none(row["seconds"]), cost=finite_or_none(row["cost"]),
            seconds_per_error=finite_or_none(row["seconds per error"]),
            cost_per_error=finite_or_none(row["cost per error"]),
        )  # fmt: skip


class RecordedWorth(Record):
    """Estimate of marks per text, with the number of texts that people alone would need for the same variance."""

    method: str
    value: RecordedEstimate
    read: int
    texts: int
    worth: float | None
    added: float | None = None
    """Number of these texts that the judge adds."""
    added_low: float | None = None
    added_high: float | None = None
    advice: str = ""

    @classmethod
    def from_finding(cls, finding: Finding) -> RecordedWorth:
        """Build the record of an estimate of marks per text."""
        columns = finding.columns
        numbers = {name: finite_or_none(columns.get(name)) for name in ("worth", "added", "added_low", "added_high")}
        return cls(
            method=str(columns["method"]), value=RecordedEstimate.from_estimate(finding.estimate),
            read=int(str(columns["read"])), texts=int(str(columns["texts"])), advice=str(columns.get("advice", "")),
            **numbers,
        )  # fmt: skip


class RecordedScore(Record):
    """Recall, precision and F1 against gold."""

    label: str
    recall: RecordedEstimate
    precision: RecordedEstimate
    f1: RecordedEstimate


class CalibrationRecord(Record):
    """Stored calibration of one judge."""

    judge: str
    verdict: Verdict
    headline: str
    paragraph: str
    labels: tuple[str, ...]
    """Labels for which the judge's agreement is no less than that of people."""
    systems: tuple[str, ...]
    texts: int
    people: int
    agreement: tuple[RecordedComparison, ...]
    replacement: RecordedReplacement | None = None
    """Test that decides the verdict; None in calibrations stored by earlier versions."""
    test: RecordedTest
    bias: tuple[RecordedBias, ...]
    severity: RecordedEstimate | None
    found: tuple[RecordedShare, ...]
    probes: tuple[RecordedProbe, ...]
    costs: tuple[RecordedCost, ...]
    worth: tuple[RecordedWorth, ...]
    gold: tuple[RecordedScore, ...]
    contract: JudgeContract
    notes: tuple[str, ...]
    signature: str


def build_calibration_record(calibration: Calibration, made: datetime, days: int = 30) -> CalibrationRecord:
    """Build the record of a calibration that was made at a given time and is valid for `days` days."""
    record = RecordedEstimate.from_estimate
    comparisons: dict[tuple[str, ...], dict[str, Finding]] = {}
    for finding in calibration.agreement:
        key = tuple(str(finding.columns[name]) for name in ("level", "measure", "label"))
        comparisons.setdefault(key, {})[str(finding.columns["who"])] = finding
    agreement = []
    for (level, measure, label), sides in comparisons.items():
        estimates = {who: record(finding.estimate) for who, finding in sides.items()}
        verdict = str(sides["difference"].columns.get("verdict", ""))
        agreement.append(RecordedComparison(level=level, measure=measure, label=label, verdict=verdict, **estimates))
    severity = [finding for finding in calibration.bias if finding.columns["measure"] == "severity less people's"]
    probe_columns = ("probe", "what", "measure", "annotator")
    return CalibrationRecord(
        judge=calibration.judge, verdict=calibration.verdict, headline=calibration_headline(calibration),
        paragraph=calibration.paragraph, labels=calibration.labels, systems=calibration.systems,
        texts=calibration.texts, people=len(calibration.people), agreement=tuple(agreement),
        replacement=RecordedReplacement.from_test(calibration.replacement),
        test=RecordedTest.from_alt_test(calibration.test),
        bias=tuple(
            RecordedBias(label=str(finding.columns["label"]), ratio=record(finding.estimate))
            for finding in calibration.bias if finding not in severity
        ),
        severity=record(severity[0].estimate) if severity else None,
        found=tuple(
            RecordedShare(
                part=str(finding.columns["part"]), value=str(finding.columns["value of"]),
                share=record(finding.estimate),
            )
            for finding in calibration.found
        ),
        probes=tuple(
            RecordedProbe(
                **{name: str(finding.columns[name]) for name in probe_columns}, effect=record(finding.estimate)
            )
            for finding in calibration.probes
        ),
        costs=tuple(map(RecordedCost.from_row, calibration.costs)),
        worth=tuple(map(RecordedWorth.from_finding, calibration.worth)),
        gold=tuple(
            RecordedScore(
                label=str(row.columns["label"]), recall=record(row.recall), precision=record(row.precision),
                f1=record(row.f1),
            )
            for row in (calibration.scores.rows if calibration.scores else ())
        ),
        contract=calibration.build_contract(made, days), notes=calibration.notes, signature=str(calibration.signature),
    )  # fmt: skip


def calibration_headline(calibration: Calibration) -> str:
    """Return the verdict in one sentence."""
    return verdict_sentence(calibration.judge, calibration.verdict)
