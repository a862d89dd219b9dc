from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from finecomb.core.study import Study
from finecomb.statistics.measures.annotation_measures import measure
from finecomb.statistics.measures.cross_tables import cross_tabulate, pivot
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
    seen = view(topics())
    plain = pivot([each for each in measure(seen, by=["topic"]) if each.columns["label"] != "any"], "label", "topic")
    table = plain.select("news", "sport").to_numpy()
    expected = table / table.sum(axis=0 if normalise == "column" else 1, keepdims=True)
    found = (
        pivot(cross_tabulate(seen, "topic", normalise=normalise), "label", "topic").select("news", "sport").to_numpy()
    )
    assert found == pytest.approx(expected)


def test_shares_have_intervals_around_them() -> None:
    found = cross_tabulate(view(topics()), "topic", "count")
    one = single_estimate(found, label="a", topic="sport")
    assert one.low < one.value < one.high
    assert one.signature["normalise"] == "column"


def test_a_topic_without_marks_has_no_shares() -> None:
    study = make_measure_study({"d": TEXT}, [("d", "p", [])], {"d": {"topic": "x"}})
    assert single_estimate(cross_tabulate(view(study)), label="a").why == "no marks to take a share of"


def test_one_document_gives_shares_without_intervals() -> None:
    study = make_measure_study({"d": TEXT}, [("d", "p", [("a", 0, 1)])], {"d": {"topic": "x"}})
    found = single_estimate(cross_tabulate(view(study)), label="a")
    assert (found.value, found.why) == (1, "fewer than two documents, so no interval")


def test_decoding_settings_become_a_grid() -> None:
    grid = pivot(measure(view(topics()), by=["top_p", "temperature"], detail="any"), "temperature", "top_p")
    assert grid.columns == ["temperature", "0.9"]
    assert grid["temperature"].to_list() == ["0", "1"]
    assert grid["0.9"].null_count() == 0
