from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

import finecomb as fc
from finecomb.core.records import Annotator
from finecomb.core.study import Study
from finecomb.statistics.gold.gold_merge import merge_into_gold
from finecomb.statistics.gold.human_baseline import single_annotator_baseline
from finecomb.statistics.gold.scores import score_judges_against_gold
from finecomb.statistics.selection.view import Filters, View, view


@pytest.fixture(scope="module")
def people() -> View:
    return view(fc.demo(), Filters(kinds=("human",)))


def texts_of(people: View) -> list[str]:
    return people.study.documents["id"].to_list()


def test_it_is_every_person_scored_against_the_others(people: View) -> None:
    counts = [0.0, 0.0, 0.0, 0.0]
    for reader in people.study.annotations["annotator"].unique():
        others = merge_into_gold(
            replace(people, study=people.study.filter_annotations(pl.col("annotator") != reader))
        ).study
        row = score_judges_against_gold(others, people.study, by=(), judges=(reader,), draws=0).rows[0]
        counts = [
            total + new for total, new in zip(counts, (row.gold, row.predicted, row.matched, row.right), strict=True)
        ]
    person = single_annotator_baseline(people, texts_of(people), draws=50)
    assert person
    assert [person.gold, person.predicted, person.matched, person.right] == counts
    assert person.recall.value == pytest.approx(counts[2] / counts[0])
    assert person.recall.low < person.recall.value < person.recall.high
    assert person.columns["judge"] == "one person"


def test_against_a_standard_everybody_is_measured_by_that(people: View) -> None:
    whole = fc.demo()
    standard = whole.filter_annotations(pl.col("annotator") == "truth")
    standard = replace(standard, annotators=whole.annotators.filter(kind="gold"))
    readers = people.study.annotations["annotator"].unique().to_list()
    rows = [
        row
        for row in score_judges_against_gold(standard, whole, by=(), judges=readers, draws=0).rows
        if row.columns["label"] == "any"
    ]
    person = single_annotator_baseline(people, texts_of(people), standard, draws=20)
    assert person
    assert (person.gold, person.matched) == (sum(row.gold for row in rows), sum(row.matched for row in rows))


def test_only_the_texts_asked_for_count(people: View) -> None:
    few = single_annotator_baseline(people, texts_of(people)[:3], draws=20)
    assert few
    assert dict(few.recall.signature.fields)["documents"] == "3"


def test_two_readers_are_no_yardstick(people: View) -> None:
    pair = people.study.filter_annotations(pl.col("annotator").is_in(["reader-1", "reader-2"]))
    assert single_annotator_baseline(replace(people, study=pair), texts_of(people), draws=20) is None
    nobody = Study.from_items([fc.demo().protocol(), Annotator(id="a", kind="human")])
    assert single_annotator_baseline(view(nobody), [], draws=20) is None


def test_in_a_large_study_fewer_take_a_turn(people: View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finecomb.statistics.gold.human_baseline._MAX_MERGED_TEXTS", 32)
    person = single_annotator_baseline(people, texts_of(people), draws=20)
    assert person
    assert dict(person.recall.signature.fields)["turns"] == "2"
