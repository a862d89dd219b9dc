"""Tests of adaptive allocation from a database, one person after another."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from finecomb.collection import annotator_storage, assignment_storage, researcher_actions_storage, task_storage
from finecomb.collection.database.store import Store
from finecomb.collection.task_meta import TaskMeta
from finecomb.collection.task_storage import EntryEdit
from finecomb.core.protocol import Work
from finecomb.core.records import Allocation, Annotation, Annotator, Document, Mark, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.statistics.judges.estimates import estimate_means
from tests.databases import KINDS, FakeClock, new_study_location, open_test_store
from tests.statistics.judges.judge_studies import PROTOCOL

TEXT = " ".join(f"word{number:02}" for number in range(30))
SPREAD = {"calm": 0, "wild": 24}


def make_two_system_study(texts: int, work: Work | None = None, judges: int = 0, **settings: Any) -> list[StudyItem]:
    """Make a study of two systems: one with one error per text, one with none or very many."""
    protocol = PROTOCOL.model_copy(update={"work": work or Work()})
    allocation = settings.pop("allocation", Allocation(strata=("model",)))
    items: list[StudyItem] = [Settings(protocols=(protocol.id,), allocation=allocation, **settings), protocol]
    items += [Document(id=f"d{n}", text=TEXT, meta={"model": ("calm", "wild")[n % 2]}) for n in range(texts)]
    for judge in range(judges):
        items.append(Annotator(id=f"j{judge}", kind="llm"))
        items += [_annotation(f"j{judge}", n, 1 + (judge and n % 3)) for n in range(texts)]
    return items


def true_error_count(document: str) -> int:
    number = int(document[1:])
    return 1 if number % 2 == 0 else SPREAD["wild"] * (number % 4 == 1)


def make_marks(prefix: str, count: int) -> tuple[Mark, ...]:
    spans = [Span(7 * at, 7 * at + 6) for at in range(count)]
    return tuple(
        Mark(id=f"{prefix}-{at}", spans=(span,), quotes=(TEXT[span.start : span.end],), label="name")
        for at, span in enumerate(spans)
    )


def _annotation(name: str, number: int, count: int) -> Annotation:
    id = f"{name}-{number}"
    return Annotation(
        id=id,
        document=f"d{number}",
        annotator=name,
        protocol=PROTOCOL.id,
        status="submitted",
        marks=make_marks(id, count),
    )


def read_texts(store: Store, name: str, most: int = 1000) -> list[str]:
    """Annotate texts as one person, until no text is left or `most` texts are done."""
    documents: list[str] = []
    while len(documents) < most and (task := store.run_job_sync(assignment_storage.assign_next_task, name)).id:
        with store.database.read_transaction() as transaction:
            facts = task_storage.read_task_info(store, transaction, task.id)
        assert facts is not None
        for mark in make_marks(task.id, true_error_count(facts.document)):
            edit = EntryEdit(mark.id, "mark", mark.id, 0, mark.model_dump_json(exclude={"id"}), 0.0)
            assert store.run_job_sync(task_storage.save_entry_edit, task.id, facts, edit) == 1
        assert store.run_job_sync(task_storage.submit_task, task.id, facts, "f" + task.id, 0.0, lambda _: ()) == 0
        documents.append(facts.document)
    return documents


def add_annotator(store: Store) -> str:
    return store.run_job_sync(annotator_storage.create_annotator).id


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_the_stratum_that_varies_are_read_more_and_each_task_says_its_chance(
    kind: str, tmp_path: Path
) -> None:
    with open_test_store(
        new_study_location(kind, tmp_path), make_two_system_study(200, annotators=1), FakeClock()
    ) as store:
        for _ in range(6):
            read_texts(store, add_annotator(store), 10)
        study = store.read_study()
    facts = {one.document: TaskMeta.from_meta(one.meta) for one in study.iter_annotations()}
    assert len(facts) == 60
    counts = Counter(fact.stratum for fact in facts.values())
    assert counts["wild"] > 2 * counts["calm"] >= 10
    assert all(fact.chance is not None and 0 < fact.chance <= 1 for fact in facts.values())
    largest = {name: max(fact.inclusion or 0 for fact in facts.values() if fact.stratum == name) for name in counts}
    assert largest == {name: count / 100 for name, count in counts.items()}
    rows = estimate_means(study).findings
    assert [row.columns["method"] for row in rows] == ["people alone", "in fixed shares"]
    truth = np.mean([true_error_count(f"d{n}") for n in range(200)])
    for row in rows:
        assert row.columns["texts"] == 200
        assert row.estimate.low < truth < row.estimate.high
    read = [true_error_count(document) for document in facts]
    assert np.mean(read) > rows[0].estimate.value + 1  # the plain mean would be biased by the allocation


def test_a_drawn_text_gets_all_its_readers_before_another_is_drawn(tmp_path: Path) -> None:
    with open_test_store(
        new_study_location("sqlite", tmp_path), make_two_system_study(40, annotators=2), FakeClock()
    ) as store:
        first, second = add_annotator(store), add_annotator(store)
        assert read_texts(store, first, 6) != read_texts(store, first, 6)
        assert len(read_texts(store, second, 12)) == 12
        done = Counter(one.document for one in store.read_study().iter_annotations())
    assert set(done.values()) == {2}


def test_a_pilot_draws_from_all_texts_but_no_more_than_so_many(tmp_path: Path) -> None:
    with open_test_store(
        new_study_location("sqlite", tmp_path), make_two_system_study(40, annotators=2, pilot=4), FakeClock()
    ) as store:
        store.run_study_change_sync(researcher_actions_storage.set_study_status, "", "pilot")
        texts = [set(read_texts(store, add_annotator(store))) for _ in range(3)]
    assert len(texts[0]) == 4
    assert (texts[1], texts[2]) == (texts[0], set())
    assert texts[0] != {"d0", "d1", "d2", "d3"}


def test_attention_checks_come_all_the_same_and_are_no_texts_of_the_estimate(tmp_path: Path) -> None:
    items = make_two_system_study(40, Work(texts=12), annotators=1, attention_checks=("d38", "d39"))
    with open_test_store(new_study_location("sqlite", tmp_path), items, FakeClock()) as store:
        texts = [read_texts(store, add_annotator(store)) for _ in range(2)]
        study = store.read_study()
    assert all({"d38", "d39"} <= set(own) and len(own) == 14 for own in texts)
    assert estimate_means(study).findings[0].columns["texts"] == 38


def test_judges_who_disagree_cut_the_texts(tmp_path: Path) -> None:
    allocation = Allocation(judges=("j0", "j1"), parts=2)
    items = make_two_system_study(60, judges=2, annotators=1, allocation=allocation)
    with open_test_store(new_study_location("sqlite", tmp_path), items, FakeClock()) as store:
        read_texts(store, add_annotator(store), 20)
        study = store.read_study()
    strata = {one.meta["stratum"] for one in study.iter_annotations() if "stratum" in one.meta}
    assert strata == {"1", "2"}
    assert estimate_means(study, ["j0"]).findings[-1].columns["method"] == "with judges"


def test_strata_that_changed_since_are_said(tmp_path: Path) -> None:
    with open_test_store(
        new_study_location("sqlite", tmp_path), make_two_system_study(40, annotators=1), FakeClock()
    ) as store:
        read_texts(store, add_annotator(store), 20)
        items = list(store.read_study().items())
    changed = [
        item.model_copy(update={"meta": {"model": "calm"}}) if isinstance(item, Document) else item for item in items
    ]
    notes = estimate_means(Study.from_items(changed)).notes
    assert "were drawn from a stratum other than their current one" in notes[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quotas": {"calm": 3}}, "cannot be used together with quotas"),
        ({"allocation": Allocation(strata=("modle",))}, "did you mean 'model'"),
        ({"allocation": Allocation(judges=("gpt",))}, "'gpt' is not an annotator in the study"),
        ({"allocation": Allocation(strata=("model",), measure="answer:rating")}, "has no document question 'rating'"),
    ],
)
def test_an_allocation_that_cannot_work_is_refused(settings: dict[str, Any], message: str) -> None:
    assert message in " ".join(
        problem.message for problem in check_study(Study.from_items(make_two_system_study(8, **settings)))
    )
