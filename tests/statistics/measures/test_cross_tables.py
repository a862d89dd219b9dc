from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from finecomb.core.study import Study
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.measures.cross_tables import cross_tabulate, pivot_findings
from finecomb.statistics.selection.view import view
from tests.statistics.measures.measure_studies import LABELS, MarkedWords, make_measure_study, single_estimate

TEXT = "one two three four five six seven eight nine ten"


def topics() -> Study:
    rng = np.random.default_rng(0)
    rates = {"sport": (3, 1, 0), "news": (1, 1, 2)}
    texts = {f"{topic}{number}": TEXT for topic in rates for number in range(20)}
    meta = {id: {"topic": id.rstrip("0123456789"), "top_p": 0.9, "temperature": int(id[-1]) % 2} for id in texts}
    read: list[tuple[str, str, list[MarkedWords]]] = []
    for id in texts:
        counts = rng.poisson(rates[str(meta[id]["topic"])])
        own: list[MarkedWords] = [(label, 0, 1) for label, n in zip(LABELS, counts, strict=True) for _ in range(n)]
        read.append((id, "p", own))
    return make_measure_study(texts, read, meta)


@pytest.mark.parametrize("normalise", ["column", "label"])
def test_shares_are_the_measure_over_its_sum(normalise: Literal["column", "label"]) -> None:
    selection = view(topics())
    plain = pivot_findings(
        [each for each in measure(selection, by=["topic"]) if each.columns["label"] != "any"], "label", "topic"
    )
    table = plain.select("news", "sport").to_numpy()
    expected = table / table.sum(axis=0 if normalise == "column" else 1, keepdims=True)
    found = (
        pivot_findings(cross_tabulate(selection, "topic", normalise=normalise), "label", "topic")
        .select("news", "sport")
        .to_numpy()
    )
    assert found == pytest.approx(expected)


def test_shares_have_intervals_around_them() -> None:
    findings = cross_tabulate(view(topics()), "topic", "count")
    estimate = single_estimate(findings, label="a", topic="sport")
    assert estimate.low < estimate.value < estimate.high
    assert estimate.signature["normalise"] == "column"


def test_a_topic_without_marks_has_no_shares() -> None:
    study = make_measure_study({"d": TEXT}, [("d", "p", [])], {"d": {"topic": "x"}})
    assert single_estimate(cross_tabulate(view(study)), label="a").why == "no marks, so there are no shares"


def test_one_document_gives_shares_without_intervals() -> None:
    study = make_measure_study({"d": TEXT}, [("d", "p", [("a", 0, 1)])], {"d": {"topic": "x"}})
    estimate = single_estimate(cross_tabulate(view(study)), label="a")
    assert (estimate.value, estimate.why) == (1, "fewer than two documents, so there is no interval")


def test_decoding_settings_become_a_grid() -> None:
    grid = pivot_findings(measure(view(topics()), by=["top_p", "temperature"], detail="any"), "temperature", "top_p")
    assert grid.columns == ["temperature", "0.9"]
    assert grid["temperature"].to_list() == ["0", "1"]
    assert grid["0.9"].null_count() == 0
