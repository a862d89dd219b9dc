"""A calibration as a record: what is kept in a study's folder and what the researcher's page shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from finecomb.core.estimate import Estimate, Finding
from finecomb.core.records import Record
from finecomb.statistics.judges.alt_test import AltTest, PersonResult
from finecomb.statistics.judges.calibration import Calibration
from finecomb.statistics.judges.validity import JudgeContract, Verdict

CALIBRATIONS_FOLDER = "calibrations"
"""Folder of a study in which calibrations are kept, one file for each judge."""


class RecordedEstimate(Record):
    """A number with its interval; None where it is undefined, and `why` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    why: str = ""
    signature: str = ""

    @classmethod
    def from_estimate(cls, estimate: Estimate) -> RecordedEstimate:
        """An estimate with None in place of NaN."""
        return cls(
            value=finite_or_none(estimate.value), low=finite_or_none(estimate.low),
            high=finite_or_none(estimate.high), why=estimate.why,
            signature=str(estimate.signature),
        )  # fmt: skip


def finite_or_none(number: object) -> float | None:
    """A number, or None where it is none or not finite."""
    return float(number) if isinstance(number, int | float) and math.isfinite(number) else None


class RecordedComparison(Record):
    """One measure of agreement: people among themselves, the judge with people, and the difference."""

    level: str
    measure: str
    label: str
    """`any` stands for all labels together."""
    people: RecordedEstimate
    judge: RecordedEstimate
    difference: RecordedEstimate
    verdict: str


class RecordedContest(Record):
    """One person beside the judge in the alternative annotator test."""

    person: str
    items: int
    texts: int
    advantage: RecordedEstimate
    """How often the judge is at least as close to the others as this person is."""
    p: float | None
    wins: bool
    why: str = ""


class RecordedOmission(Record):
    """Somebody who was left out of the test."""

    person: str
    why: str


class RecordedTest(Record):
    """The alternative annotator test."""

    epsilon: float
    needed: int
    """People against whom the judge must win."""
    wins: int
    winning_rate: RecordedEstimate
    advantage: RecordedEstimate
    people: tuple[RecordedContest, ...]
    left_out: tuple[RecordedOmission, ...] = ()


class RecordedBias(Record):
    """The judge's marks for one of a person's."""

    label: str
    ratio: RecordedEstimate


class RecordedShare(Record):
    """Share of people's marks that the judge finds, of one part of them."""

    part: str
    """`all`, `length`, `place`, `label`, `system`; `characters` for the overlap with gold."""
    value: str
    share: RecordedEstimate


class RecordedProbe(Record):
    """What one probe of the judge's reliability shows."""

    probe: str
    what: str
    measure: str
    annotator: str
    effect: RecordedEstimate


class RecordedCost(Record):
    """Time and money of one side."""

    who: str
    texts: int
    confirmed: int
    """Errors that somebody else marked too."""
    seconds: float | None
    cost: float | None
    seconds_per_error: float | None
    cost_per_error: float | None


class RecordedWorth(Record):
    """An estimate of marks per text, and how many texts people alone would have to read for the same variance."""

    method: str
    value: RecordedEstimate
    read: int
    texts: int
    worth: float | None
    added: float | None = None
    """How many of them are due to the judge."""
    added_low: float | None = None
    added_high: float | None = None
    advice: str = ""


class RecordedScore(Record):
    """Recall, precision and F1 against gold."""

    label: str
    recall: RecordedEstimate
    precision: RecordedEstimate
    f1: RecordedEstimate


class CalibrationRecord(Record):
    """All that is known of one judge beside people."""

    judge: str
    verdict: Verdict
    headline: str
    paragraph: str
    labels: tuple[str, ...]
    """Labels for which its agreement is no less than people's."""
    systems: tuple[str, ...]
    texts: int
    people: int
    agreement: tuple[RecordedComparison, ...]
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
    """The record of a calibration made at a moment; its contract holds for some days."""
    severity = [finding for finding in calibration.bias if finding.columns["measure"] == "severity less people's"]
    scores = calibration.scores.rows if calibration.scores else ()
    return CalibrationRecord(
        judge=calibration.judge,
        verdict=calibration.verdict,
        headline=calibration_headline(calibration),
        paragraph=calibration.paragraph,
        labels=calibration.labels,
        systems=calibration.systems,
        texts=calibration.texts,
        people=len(calibration.people),
        agreement=tuple(_record_comparisons(calibration.agreement)),
        test=_record_alt_test(calibration.test),
        bias=tuple(_record_label_bias(finding) for finding in calibration.bias if finding not in severity),
        severity=RecordedEstimate.from_estimate(severity[0].estimate) if severity else None,
        found=tuple(_record_found_share(finding) for finding in calibration.found),
        probes=tuple(_record_probe(finding) for finding in calibration.probes),
        costs=tuple(_record_cost(row) for row in calibration.costs),
        worth=tuple(_record_worth(finding) for finding in calibration.worth),
        gold=tuple(
            RecordedScore(
                label=str(row.columns["label"]),
                recall=RecordedEstimate.from_estimate(row.recall),
                precision=RecordedEstimate.from_estimate(row.precision),
                f1=RecordedEstimate.from_estimate(row.f1),
            )
            for row in scores
        ),
        contract=calibration.build_contract(made, days),
        notes=calibration.notes,
        signature=str(calibration.signature),
    )


def calibration_headline(calibration: Calibration) -> str:
    """The answer in one sentence."""
    answers = {
        "may stand in": f"{calibration.judge} may stand in for people.",
        "may help, may not stand in": f"{calibration.judge} may help, it may not stand in.",
        "may not be used for this": f"{calibration.judge} may not be used for this.",
    }
    return answers[calibration.verdict]


def _record_comparisons(agreement: Sequence[Finding]) -> Iterable[RecordedComparison]:
    rows: dict[tuple[str, str, str], dict[str, Finding]] = {}
    for finding in agreement:
        level, measure, label, who = (str(finding.columns[name]) for name in ("level", "measure", "label", "who"))
        rows.setdefault((level, measure, label), {})[who] = finding
    for (level, measure, label), sides in rows.items():
        estimates = {who: RecordedEstimate.from_estimate(finding.estimate) for who, finding in sides.items()}
        verdict = str(sides["difference"].columns.get("verdict", ""))
        yield RecordedComparison(level=level, measure=measure, label=label, verdict=verdict, **estimates)


def _record_alt_test(test: AltTest) -> RecordedTest:
    return RecordedTest(
        epsilon=test.epsilon,
        needed=test.required_win_count,
        wins=test.win_count,
        winning_rate=RecordedEstimate.from_estimate(test.rate),
        advantage=RecordedEstimate.from_estimate(test.chance),
        people=tuple(_record_contest(person) for person in test.people),
        left_out=tuple(RecordedOmission(person=person, why=why) for person, why in test.left_out),
    )


def _record_contest(person: PersonResult) -> RecordedContest:
    return RecordedContest(
        person=person.person, items=person.items, texts=person.texts,
        advantage=RecordedEstimate.from_estimate(person.advantage),
        p=finite_or_none(person.p), wins=person.wins, why=person.why,
    )  # fmt: skip


def _record_label_bias(finding: Finding) -> RecordedBias:
    return RecordedBias(label=str(finding.columns["label"]), ratio=RecordedEstimate.from_estimate(finding.estimate))


def _record_found_share(finding: Finding) -> RecordedShare:
    part, value = (str(finding.columns[name]) for name in ("part", "value of"))
    return RecordedShare(part=part, value=value, share=RecordedEstimate.from_estimate(finding.estimate))


def _record_probe(finding: Finding) -> RecordedProbe:
    names = ("probe", "what", "measure", "annotator")
    return RecordedProbe(
        **{name: str(finding.columns[name]) for name in names}, effect=RecordedEstimate.from_estimate(finding.estimate)
    )


def _record_cost(row: Mapping[str, object]) -> RecordedCost:
    return RecordedCost(
        who=str(row["who"]), texts=int(str(row["texts read"])),
        confirmed=int(str(row["errors that others marked too"])),
        seconds=finite_or_none(row["seconds"]), cost=finite_or_none(row["cost"]),
        seconds_per_error=finite_or_none(row["seconds per error"]),
        cost_per_error=finite_or_none(row["cost per error"]),
    )  # fmt: skip


def _record_worth(finding: Finding) -> RecordedWorth:
    columns = finding.columns
    return RecordedWorth(
        method=str(columns["method"]), value=RecordedEstimate.from_estimate(finding.estimate),
        read=int(str(columns["read"])),
        texts=int(str(columns["texts"])), worth=finite_or_none(columns.get("worth")),
        added=finite_or_none(columns.get("added")),
        added_low=finite_or_none(columns.get("added_low")), added_high=finite_or_none(columns.get("added_high")),
        advice=str(columns.get("advice", "")),
    )  # fmt: skip
