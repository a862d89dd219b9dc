from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from finecomb.statistics.judges.calibration import CalibrationOptions, calibrate_against_people, find_alpha_estimate
from finecomb.statistics.judges.calibration_record import CalibrationRecord, RecordedEstimate, build_calibration_record
from tests.statistics.judges.judge_studies import make_crowd_study, make_judge_study, simulate_annotator

NOW = datetime(2026, 11, 1, tzinfo=UTC)
PROBE = {"judge~repeat": {"probe": "repeat", "probe_of": "judge"}, "judge": {"model": "mine"}}


@pytest.fixture(scope="module")
def record() -> CalibrationRecord:
    people = {f"p{at}": simulate_annotator(16, at) for at in range(3)}
    metas = {name: {"model": "mine" if at % 2 else "other"} for at, name in enumerate(simulate_annotator(16, 0))}
    whole = make_judge_study(
        {**people, "judge": simulate_annotator(16, 77), "judge~repeat": simulate_annotator(16, 78)},
        {"judge": "llm", "judge~repeat": "llm"}, metas, PROBE,
    )  # fmt: skip
    return build_calibration_record(calibrate_against_people(whole, "judge", CalibrationOptions(draws=20)), NOW, 14)


def test_a_record_is_the_same_after_it_was_kept(record: CalibrationRecord) -> None:
    assert CalibrationRecord.model_validate_json(record.model_dump_json()) == record
    assert record.contract.made == NOW
    assert record.contract.days == 14


def test_a_record_says_what_the_page_shows(record: CalibrationRecord) -> None:
    assert record.headline == "judge: too few texts to decide."
    assert record.replacement is not None
    assert record.replacement.reason.startswith("16 texts were annotated by the judge and two people")
    assert len(record.replacement.baselines) == 3
    assert (record.texts, record.people, record.systems) == (16, 3, ("mine", "other"))
    assert {row.measure for row in record.agreement} >= {"alpha", "f1", "gamma"}
    assert record.test.wins == sum(person.wins for person in record.test.people)
    assert record.bias[0].label == "any"
    assert {row.probe for row in record.probes} == {"repeat", "self"}
    assert [row.method for row in record.worth] == ["people alone", "in fixed shares", "with judges"]


def test_a_record_of_an_earlier_version_can_be_read(record: CalibrationRecord) -> None:
    stored = json.loads(record.model_dump_json(exclude={"replacement"})) | {"verdict": "may stand in"}
    read = CalibrationRecord.model_validate_json(json.dumps(stored))
    assert (read.verdict, read.replacement) == ("can replace people", None)


def test_undefined_numbers_are_null_with_a_reason() -> None:
    result = calibrate_against_people(
        make_crowd_study(9, judge={f"d{n:03}": [] for n in range(9)}), "judge", CalibrationOptions(draws=20)
    )
    record = build_calibration_record(result, NOW)
    share = next(row for row in record.agreement if row.label == "name" and row.measure == "one-vs-rest-precision")
    assert share.judge.value is None
    assert share.judge.why == "the judge never used this label"
    alpha = find_alpha_estimate(result.agreement, "judge")
    assert alpha is not None
    assert RecordedEstimate.from_estimate(alpha).signature.startswith("statistic:alpha")
