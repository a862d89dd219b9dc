from __future__ import annotations

from typing import Any

import pytest

import finecomb as fc
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Study
from finecomb.protocols import load
from finecomb.statistics.judges.calibration import CalibrationOptions, calibrate_against_people
from finecomb.statistics.judges.model_costs import cost_by_annotation, model_costs

TOKENS = {"state": "no errors", "calls": ["c"], "prompt_tokens": 1000, "completion_tokens": 50}


def judged(meta: dict[str, Any], settings: dict[str, Any]) -> Study:
    protocol = load("scarecrow")
    documents = [Document(id=f"d{number}", text="Words.") for number in range(2)]
    judge = Annotator(id="judge", kind="llm", meta={"settings": settings})
    work = [
        Annotation(id=f"{document.id}/judge", document=document.id, annotator="judge", protocol=protocol.id, meta=meta)
        for document in documents
    ]
    return Study.from_items([protocol, *documents, judge, *work])


def test_tokens_cost_what_the_run_was_told() -> None:
    (cost,) = model_costs(judged({"llm": TOKENS}, {"model": "m", "price": [2.0, 8.0]}))
    assert (cost.annotator, cost.texts, cost.sent, cost.received) == ("judge", 2, 2000, 100)
    assert cost.cost == pytest.approx(2 * (1000 * 2 + 50 * 8) / 1e6)


def test_tokens_without_a_price_are_told_and_nothing_is_made_up() -> None:
    (cost,) = model_costs(judged({"llm": TOKENS}, {"model": "m"}))
    assert (cost.sent, cost.cost) == (2000, None)


def test_a_cost_that_was_written_down_goes_before_tokens() -> None:
    study = judged({"llm": TOKENS, "cost": 0.5}, {"model": "m", "price": [2.0, 8.0]})
    assert cost_by_annotation(study) == {"d0/judge": 0.5, "d1/judge": 0.5}
    assert model_costs(study)[0].cost == 1.0


def test_who_counts_nothing_is_not_among_them() -> None:
    assert model_costs(judged({}, {})) == []
    assert model_costs(fc.demo()) == []


def test_calibration_knows_what_a_run_cost() -> None:
    """Only costs in `meta.cost` used to be known, not those of runs of the program."""
    study = fc.demo()
    judge = Annotator(id="judge", kind="llm", meta={"settings": {"price": [1.0, 1.0]}})
    work = [
        Annotation(id=f"{id}/judge", document=id, annotator="judge", protocol=study.protocol().id, meta={"llm": TOKENS})
        for id in study.documents["id"]
    ]
    rows = calibrate_against_people(
        Study.from_items([*study.items(), judge, *work]), "judge", CalibrationOptions(draws=20)
    ).costs
    assert rows[0]["cost"] == pytest.approx(16 * 1050 / 1e6)
