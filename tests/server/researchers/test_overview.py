"""Tests of the researcher pages against slow definitions over the records."""

from __future__ import annotations

import functools
import statistics
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import finecomb as fc
from finecomb.collection.screening import has_passed_attention_check
from finecomb.core.records import Annotation, Annotator, Document, Exclusion, Mark, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.server.researchers.annotator_table import AnnotatorTable, review_reasons_by_annotator
from finecomb.server.researchers.document_views import (
    MAX_DISPUTED_ALPHA,
    DocumentQuery,
    build_document_frame,
    build_document_list,
    build_document_page,
)
from finecomb.server.researchers.overview import annotations_per_day, build_overview
from finecomb.server.researchers.schema import AnnotatorRow, Figure, Overview, Quartiles, StudyProgress
from finecomb.server.researchers.snapshot import Snapshot, label_looks
from finecomb.statistics.agreement.agreement import agree as compute_agreement
from finecomb.statistics.measures.annotation_measures import measure as compute_measures
from finecomb.statistics.selection.view import Filters, view

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)


def make_snapshot(study: Study) -> Snapshot:
    return Snapshot(study, study.protocols["scarecrow@2"], "open", NOW)


def make_overview(study: Study) -> Overview:
    now = make_snapshot(study)
    return build_overview(now, AnnotatorTable(now))


@functools.cache
def demo_items(seed: int) -> tuple[StudyItem, ...]:
    return tuple(fc.demo(readers=4, seed=seed).items())


@st.composite
def studies_in_progress(draw: st.DrawFn) -> Study:
    """Draw the demo study in progress, with drafts, exclusions, missing texts and times."""
    items: list[StudyItem] = []
    for item in demo_items(draw(st.integers(0, 3))):
        if isinstance(item, Settings):
            item = item.model_copy(update={"annotators": draw(st.integers(1, 5)), "price": 0.5, "fees": 0.2})
        if isinstance(item, Annotator) and item.kind == "human" and draw(st.integers(0, 9)) == 0:
            item = item.model_copy(update={"excluded": Exclusion(by="ann", reason="copied")})
        if isinstance(item, Annotation) and item.annotator != "truth":
            fate = draw(st.sampled_from(["in", "in", "in", "draft", "excluded", "none"]))
            if fate == "none":
                continue
            status = {"in": "submitted", "draft": "draft", "excluded": "excluded"}[fate]
            when = NOW - timedelta(hours=draw(st.integers(1, 400)))
            item = item.model_copy(update={"status": status, "submitted": when, "active_seconds": item.seconds})
        items.append(item)
    return Study.from_items(items)


def counted_annotations(study: Study) -> list[Annotation]:
    """Return the annotations that count: submitted by people who are not excluded."""
    people = {each.id for each in study.iter_annotators() if each.kind == "human" and not each.excluded}
    return [each for each in study.iter_annotations() if each.annotator in people and each.status == "submitted"]


@settings(max_examples=12)
@given(studies_in_progress())
def test_progress_time_and_cost_equal_their_definitions(study: Study) -> None:
    page, work, most = make_overview(study), counted_annotations(study), study.settings.annotators or 0
    filled = {each.id: sum(one.document == each.id for one in work) for each in study.iter_documents()}
    assert page.annotations == StudyProgress(done=sum(min(k, most) for k in filled.values()), of=most * len(filled))
    times = [each.active_seconds or 0.0 for each in work]
    if times:
        assert page.active.median == pytest.approx(statistics.median(times))
        assert [page.active.lower, page.active.upper] == pytest.approx(list(np.quantile(times, [0.25, 0.75])))
    else:
        assert page.active == Quartiles(median=None, why="no times recorded yet", signature=page.active.signature)
    people = {each.id for each in study.iter_annotators() if each.kind == "human"}
    paid = [each for each in study.iter_annotations() if each.annotator in people and each.status != "draft"]
    assert page.spent == pytest.approx(0.5 * 1.2 * len(paid))  # excluded work was paid as well
    to_come = 0.5 * 1.2 * (page.annotations.of - page.annotations.done)
    assert page.pay_floor is None
    assert page.budget == pytest.approx(0.5 * 1.2 * len(paid) + to_come)
    assert page.drafts == sum(each.status == "draft" for each in study.iter_annotations())


def test_a_study_may_have_a_floor_and_a_budget() -> None:
    items = (
        item.model_copy(update={"price": 0.5, "pay_floor": 15.0, "budget": 80.0})
        if isinstance(item, Settings)
        else item
        for item in demo_items(0)
    )
    page = make_overview(Study.from_items(items))
    assert (page.pay_floor, page.budget) == (15, 80)


@settings(max_examples=12)
@given(studies_in_progress())
def test_models_add_up_to_the_whole(study: Study) -> None:
    page = make_overview(study)
    assert sum(row.progress.done for row in page.models) == page.annotations.done
    assert sum(len(row.teeth) for row in page.models) == page.documents == len(study.documents)
    assert all(list(row.teeth) == sorted(row.teeth, reverse=True) for row in page.models)


def test_figures_are_those_of_the_command_line() -> None:
    study = fc.demo()
    page, people = make_overview(study), view(study, Filters(protocol="scarecrow@2", kinds=("human",)))
    alphas = {each.columns["label"]: each.estimate for each in compute_agreement(people, ["alpha"])}
    assert page.agreement == Figure.from_estimate(alphas.pop("any"))
    assert {row.label: row.agreement for row in page.labels} == {k: Figure.from_estimate(v) for k, v in alphas.items()}
    rates = {
        each.columns["model"]: each.estimate
        for each in compute_measures(people, ["rate-1000"], ["model"], detail="any")
    }
    for row in page.models:
        assert row.rate.value == pytest.approx(rates[row.model].value / 10)
        assert row.rate.signature == str(rates[row.model].signature)


def test_a_study_without_work_is_undefined_in_words() -> None:
    page = make_overview(fc.demo().filter_annotations(pl.lit(value=False)))
    assert (page.agreement.value, page.agreement.why) == (None, "no annotations")
    assert (page.active.median, page.active.why) == (None, "no times recorded yet")
    assert (page.pace.value, page.pace.why) == (None, "no submissions in the last week")
    assert page.days is None
    assert {row.rate.why for row in page.models} == {"no annotations yet"}
    assert {each.agreement.why for each in page.people} == {"nothing submitted yet"}


def test_documents_without_a_model_are_one_row() -> None:
    items = [each.model_copy(update={"meta": {}}) if isinstance(each, Document) else each for each in fc.demo().items()]
    (row,) = make_overview(Study.from_items(items)).models
    assert row.model is None
    assert row.rate.value is not None
    assert len(row.teeth) == 16


@pytest.mark.parametrize(
    ("hours", "expected", "why"),
    [
        ([], None, "no submissions in the last week"),
        ([24 * 9], None, "no submissions in the last week"),
        ([0.5], None, "less than one hour of data so far"),
        ([48, 1], 1.0, ""),  # two in two days
        ([24 * 20, 24 * 6, 1], 2 / 7, ""),  # two in the last week
    ],
)
def test_pace_is_of_the_last_week(hours: list[float], expected: float | None, why: str) -> None:
    pace = annotations_per_day([NOW - timedelta(hours=each) for each in hours], NOW)
    assert pace.value == (None if expected is None else pytest.approx(expected))
    assert pace.why == why


# --- attention checks ---------------------------------------------------------------------------------------------


def make_annotation(*marks: tuple[int, int, str], **answers: str) -> Annotation:
    made = tuple(
        Mark(id=f"m{at}", spans=(Span(start, end),), quotes=("x" * (end - start),), label=label)
        for at, (start, end, label) in enumerate(marks)
    )
    return Annotation(id="a", document="d", annotator="who", protocol="p@1", marks=made, answers=answers)


@pytest.mark.parametrize(
    ("own", "gold", "good"),
    [
        (make_annotation((2, 5, "redundant")), make_annotation((0, 3, "redundant")), True),
        (make_annotation((2, 5, "incoherent")), make_annotation((0, 3, "redundant")), False),
        (make_annotation((3, 5, "redundant")), make_annotation((0, 3, "redundant")), False),
        (make_annotation((0, 3, "redundant"), (7, 9, "incoherent")), make_annotation((0, 3, "redundant")), True),
        (make_annotation((0, 3, "redundant")), make_annotation((0, 3, "redundant"), (7, 9, "incoherent")), False),
        (make_annotation(), make_annotation(), True),
        (make_annotation((0, 3, "redundant")), make_annotation(), False),
        (make_annotation(rating="4"), make_annotation(rating="4"), True),
        (make_annotation(rating="1"), make_annotation(rating="4"), False),
        (make_annotation(), make_annotation(rating="4"), False),
    ],
)
def test_a_check_is_passed_when_gold_is_found(own: Annotation, gold: Annotation, good: bool) -> None:
    assert has_passed_attention_check(own, gold) is good


def test_checks_are_kept_out_of_results_and_counted_by_person() -> None:
    study = fc.demo()
    first = study.documents["id"][0]
    settings = study.settings.model_copy(update={"attention_checks": (first,)})
    items = [settings if isinstance(each, Settings) else each for each in study.items()]
    page = make_overview(Study.from_items(items))
    assert page.documents == 15
    assert "without:attention-checks" in page.agreement.signature
    gold = next(each for each in study.annotations_on(first) if each.annotator == "truth")
    for each in study.annotations_on(first):
        if each.annotator != "truth":
            person = next(one for one in page.people if one.id == each.annotator)
            assert person.checks == StudyProgress(done=int(has_passed_attention_check(each, gold)), of=1)
            assert ("checks" in person.look) is (not has_passed_attention_check(each, gold))


# --- people -------------------------------------------------------------------------------------------------------


def make_row(id: str, marks: float | None, agreement: float | None, texts: int = 9, failed: int = 0) -> AnnotatorRow:
    return AnnotatorRow(
        id=id,
        name=id,
        kind="human",
        progress=StudyProgress(done=texts, of=20),
        drafts=0,
        marks=Figure(value=marks),
        active=Quartiles(median=None),
        pay=None,
        agreement=Figure(value=agreement),
        checks=StudyProgress(done=0, of=failed),
        look=(),
    )


def test_whoever_has_less_than_half_of_the_median_is_looked_at() -> None:
    people = [
        make_row("a", 4, 0.6),
        make_row("b", 4.2, 0.5),
        make_row("c", 1.9, 0.24),
        make_row("new", 0.1, 0.1, texts=2),
    ]
    speeds = {"a": 10.0, "b": 12.0, "c": 4.9, "new": 0.1}
    found = review_reasons_by_annotator([*people, make_row("d", 4, 0.6, failed=1)], speeds | {"d": 10.0})
    assert found == {"a": (), "b": (), "c": ("fast", "few", "apart"), "new": (), "d": ("checks",)}


def test_two_people_are_too_few_to_compare() -> None:
    assert review_reasons_by_annotator([make_row("a", 4, 0.6), make_row("b", 0.1, 0.1)], {"a": 10.0, "b": 1.0}) == {
        "a": (),
        "b": (),
    }


def test_those_to_look_at_come_first() -> None:
    items: list[StudyItem] = []
    for item in fc.demo().items():
        if isinstance(item, Annotation) and item.annotator == "reader-4":
            item = item.model_copy(update={"marks": ()})
        items.append(item)
    page = make_overview(Study.from_items(items))
    assert page.people[0].id == "reader-4"
    assert page.people[0].look == ("few", "apart")
    assert [each.id for each in page.others] == ["truth"]


def test_an_annotators_page_counts_what_they_did() -> None:
    study = fc.demo()
    now = make_snapshot(study)
    page = AnnotatorTable(now).annotator_page("reader-2")
    own = [each for each in study.iter_annotations() if each.annotator == "reader-2"]
    assert {each.annotation: each.marks for each in page.pieces} == {each.id: len(each.marks) for each in own}
    marks = [mark.label for each in own for mark in each.marks]
    assert {row.label: row.marks for row in page.labels if row.marks} == {
        name: marks.count(name) for name in set(marks)
    }
    assert sum(row.share.value or 0 for row in page.labels) == pytest.approx(1)
    assert page.agreement[0].label == "any"
    assert page.agreement[0].agreement == page.person.agreement


def test_an_excluded_annotator_keeps_a_page() -> None:
    items = [
        each.model_copy(update={"excluded": Exclusion(by="ann", reason="copied")})
        if isinstance(each, Annotator) and each.id == "reader-2"
        else each
        for each in fc.demo().items()
    ]
    page = AnnotatorTable(make_snapshot(Study.from_items(items))).annotator_page("reader-2")
    assert page.person.agreement == Figure(value=None, why="excluded")
    assert len(page.pieces) == 16


def test_notes_are_what_people_wrote_about_whole_texts() -> None:
    items: list[StudyItem] = []
    for item in fc.demo().items():
        if isinstance(item, Annotation) and item.id.endswith("/reader-1"):
            item = item.model_copy(update={"answers": {"cannot_judge": "not English", "score": 3}})
        items.append(item)
    notes = AnnotatorTable(make_snapshot(Study.from_items(items))).annotator_page("reader-1").notes
    assert {(each.question, each.text) for each in notes} == {("cannot_judge", "not English")}


# --- documents ----------------------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(studies_in_progress())
def test_rows_of_documents_equal_their_definitions(study: Study) -> None:
    now = make_snapshot(study)
    listed = build_document_list(build_document_frame(now), DocumentQuery())
    work = counted_annotations(study)
    for row, document in zip(listed.rows, study.iter_documents(), strict=True):
        own = [each for each in work if each.document == document.id]
        assert (row.id, row.model) == (document.id, document.meta["model"])
        assert (row.progress.done, row.marks) == (len(own), sum(len(each.marks) for each in own))
        alone = study.filter_annotations(
            (pl.col("document") == document.id) & pl.col("id").is_in([each.id for each in own])
        )
        alpha = compute_agreement(alone, ["alpha"], by_label=False)[0].estimate.value if own else np.nan
        assert row.alpha == (None if np.isnan(alpha) else pytest.approx(alpha))
        assert row.disputed is bool(row.alpha is not None and row.alpha < MAX_DISPUTED_ALPHA)


def test_documents_are_found_by_words_id_model_and_label() -> None:
    rows = build_document_frame(make_snapshot(fc.demo()))
    study = fc.demo()
    texts = {each.id: each for each in study.iter_documents()}
    some = next(iter(texts.values()))
    word = max(some.text.split(), key=len)
    by_word = {row.id for row in build_document_list(rows, DocumentQuery(search=word.upper())).rows}
    assert by_word == {id for id, each in texts.items() if word.lower() in f"{id}\n{each.text}".lower()}
    assert {row.id for row in build_document_list(rows, DocumentQuery(search=some.id)).rows} == {some.id}
    by_model = build_document_list(rows, DocumentQuery(model="human"))
    assert {row.id for row in by_model.rows} == {id for id, each in texts.items() if each.meta["model"] == "human"}
    people = study.marks.filter((pl.col("label") == "bad-math") & (pl.col("annotator") != "truth"))
    by_label = build_document_list(rows, DocumentQuery(label="bad-math"))
    assert {row.id for row in by_label.rows} == set(people["document"])
    assert build_document_list(rows, DocumentQuery(search="(?[")).total == 0  # searched literally, not as a pattern


def test_the_list_comes_in_pages_with_the_counts_of_every_filter() -> None:
    rows = build_document_frame(make_snapshot(fc.demo()))
    pages = [build_document_list(rows, DocumentQuery(offset=at, limit=7)) for at in (0, 7, 14)]
    assert [len(each.rows) for each in pages] == [7, 7, 2]
    assert [row.id for each in pages for row in each.rows] == fc.demo().documents["id"].to_list()
    assert {each.total for each in pages} == {16}
    disputed = build_document_list(rows, DocumentQuery(show="disputed"))
    assert disputed.total == disputed.counts["disputed"] == sum(row.disputed for each in pages for row in each.rows)


def test_a_document_shows_everybody_people_first_and_gold_last() -> None:
    study = fc.demo()
    now = make_snapshot(study)
    id = study.documents["id"][0]
    page = build_document_page(now, build_document_frame(now), id)
    assert [each.annotator for each in page.readers] == [*(f"reader-{n}" for n in range(1, 6)), "truth"]
    own = {each.id: each for each in study.annotations_on(id)}
    for reader in page.readers:
        assert [mark.spans for mark in reader.marks] == [mark.spans for mark in own[reader.annotation].marks]
    assert page.answers["severity"] == (1, 2, 3)
    assert [look.flag for look in page.looks[:2]] == ["GU", "OP"]


def test_looks_of_several_protocols_are_each_there_once() -> None:
    names = [look.label for look in label_looks(fc.protocol("scarecrow"), fc.protocol("snac"))]
    assert names[-1] == ""
    assert len(names) == len(set(names)) == 1 + 10 + 7


@given(studies_in_progress())
def test_watched_means_count_the_first_reading_of_each_text(study: Study) -> None:
    work = [one for one in study.submitted_work().iter_annotations() if one.annotator != "truth"]
    first: dict[str, int] = {}
    for one in sorted(work, key=lambda one: (one.submitted or NOW, one.id)):
        first.setdefault(one.document, len(one.marks))
    share, marks = make_overview(study).watched
    assert (share.kind, marks.kind) == ("bounded", "counts")
    assert share.texts == marks.texts == len(first)
    if first:
        assert marks.figure.value == pytest.approx(statistics.mean(first.values()))
        assert share.figure.value == pytest.approx(statistics.mean(count > 0 for count in first.values()))
        assert marks.figure.low is None  # fewer than 30 texts
        assert marks.figure.why.startswith("at least 30 texts are needed")


def test_the_text_that_moved_a_figure_most_is_the_one_whose_absence_changes_it_most() -> None:
    study = fc.demo(readers=3)
    page, people = make_overview(study), make_snapshot(study).human_work
    whole = compute_agreement(people, ["alpha"], by_label=False, draws=0)[0].estimate.value
    documents = people.study.documents["id"]
    changes = {
        id: abs(
            compute_agreement(
                people.restrict_to_documents(documents.filter(documents != id)), ["alpha"], by_label=False, draws=0
            )[0].estimate.value
            - whole
        )
        for id in documents
    }
    assert page.moved["agreement"] == max(changes, key=lambda id: changes[id])
    for row in page.models:
        inside = people.study.documents.filter(pl.col("meta").str.json_path_match("$.model") == row.model)["id"]
        assert page.moved[f"model/{row.model}"] in set(inside)


def test_what_changed_since_yesterday_is_counted() -> None:
    study = fc.demo(readers=3)
    late = study.annotations["annotator"] == make_snapshot(study).human_work.study.annotations["annotator"][0]
    times = pl.Series([NOW - timedelta(hours=3 if each else 72) for each in late])
    moved = replace(study, annotations=study.annotations.with_columns(submitted=times))
    since, people = make_overview(moved).since, make_snapshot(moved).human_work.study
    recent = people.annotations.filter(pl.col("submitted") > NOW - timedelta(days=1))
    assert (since.annotations, since.people) == (len(recent), 1)
    assert since.marks == len(people.marks.filter(pl.col("annotation").is_in(recent["id"].implode())))
    assert since.agreement is not None
    assert make_overview(study).since.annotations == 0
