from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

import finecomb as fc
from finecomb.api.monitoring import (
    agreement_by_document,
    expiry_states,
    monitor_means,
    select_work_to_adjudicate,
)
from finecomb.core.study import Study


@pytest.fixture(scope="module")
def demo() -> Study:
    return fc.demo()


def test_agreement_of_a_document_is_that_of_a_study_with_this_document_alone(demo: Study) -> None:
    values = dict(agreement_by_document(fc.view(demo)).iter_rows())
    assert list(values) == demo.documents["id"].to_list()
    assert values["harbour-a"] is None  # no annotator marked it, so alpha is undefined
    for id in ["harbour-b", "harbour-c", "harbour-d"]:
        alone = fc.agree(demo, measure="alpha", where=f"document={id}", draws=0).find(label="any").value
        assert values[id] == pytest.approx(alone)


def test_agreement_is_null_with_one_annotator(demo: Study) -> None:
    work = fc.view(demo, fc.Filters(annotators=("reader-1",)))
    assert agreement_by_document(work)["alpha"].null_count() == len(work.study.documents)


def test_means_of_texts_are_monitored(demo: Study) -> None:
    findings = monitor_means(demo, fc.view(demo))
    assert [finding.columns["measure"] for finding in findings] == ["texts with an error", "marks per text"]


def test_adjudication_reads_the_last_pass_once_a_second_has_started(demo: Study) -> None:
    protocol = demo.protocol().id
    assert select_work_to_adjudicate(demo, protocol).fields["rounds"] is None
    again = dataclasses.replace(demo, settings=demo.settings.model_copy(update={"round": 1}))
    assert select_work_to_adjudicate(again, protocol).fields["rounds"] == "last"


def test_a_calibration_is_valid_until_its_days_have_passed(demo: Study) -> None:
    record = fc.calibrate(demo, "reader-1", gamma=False, draws=20).record
    assert "yes" not in {condition.state for condition in expiry_states(demo, record)}
    old = record.contract.model_copy(update={"made": datetime.now(UTC) - timedelta(days=31)})
    states = expiry_states(demo, record.model_copy(update={"contract": old}))
    assert [condition.state for condition in states if "days" in condition.condition] == ["yes"]
