"""Tests of task assignment from a database with many concurrent annotators."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from finecomb.collection import annotator_storage, assignment_storage, task_storage
from finecomb.collection.database.rows import RejectedChange
from finecomb.collection.database.store import Store
from finecomb.core.protocol import Condition, Work
from finecomb.core.records import Document, Settings
from finecomb.core.study import StudyItem
from tests.databases import KINDS, FakeClock, new_study_location, open_test_store
from tests.strategies import PROTOCOL

# --- concurrent annotators ---------------------------------------------------------------------------------------


def make_study(
    documents: int, work: Work | None = None, conditions: Sequence[str] = (), **settings: Any
) -> list[StudyItem]:
    arms = tuple(Condition(name=name) for name in conditions)
    asked = PROTOCOL.model_copy(update={"work": work or Work(), "conditions": arms})
    texts = [Document(id=f"d{n}", text="x", meta={"model": "ab"[n % 2]}) for n in range(documents)]
    return [Settings(protocols=(asked.id,), **settings), asked, *texts]


def add_annotators(store: Store, count: int) -> list[str]:
    return [store.run_job_sync(annotator_storage.create_annotator).id for _ in range(count)]


def submit_task(store: Store, task: str) -> int | RejectedChange:
    with store.database.read_transaction() as transaction:
        facts = task_storage.read_task_info(store, transaction, task)
    assert facts is not None
    return store.run_job_sync(task_storage.submit_task, task, facts, "f" + task, 0.0, lambda _: ())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_text_never_goes_to_more_people_than_it_should(kind: str, seed: int, tmp_path: Path) -> None:
    """Of many concurrent annotators, some submit and some leave, and their places go to others."""
    clock, most = FakeClock(), 2
    with open_test_store(new_study_location(kind, tmp_path), make_study(4, annotators=most, lease=1), clock) as store:
        names = add_annotators(store, 12)

        def ask(name: str) -> None:
            chance = random.Random(f"{seed}{name}")
            for _ in range(6):
                found = store.run_job_sync(assignment_storage.assign_next_task, name)
                if found.id and chance.random() < 0.5:
                    assert submit_task(store, found.id) in (0, RejectedChange("lease-over"))
                if chance.random() < 0.2:
                    clock.now += 61

        threads = [threading.Thread(target=ask, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done = Counter(each.document for each in store.read_study().iter_annotations() if each.status == "submitted")
        assert max(done.values(), default=0) <= most
        keys = [each.unique_key for each in store.read_study().iter_annotations()]
        assert len(set(keys)) == len(keys)
        clock.now += 3600
        for name in add_annotators(store, 8):
            while (found := store.run_job_sync(assignment_storage.assign_next_task, name)).id:
                assert submit_task(store, found.id) == 0
        done = Counter(each.document for each in store.read_study().iter_annotations() if each.status == "submitted")
        assert done == {f"d{n}": most for n in range(4)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_person_gets_as_many_texts_as_the_protocol_says_and_all_checks(kind: str, tmp_path: Path) -> None:
    items = make_study(10, Work(texts=3), attention_checks=("d8", "d9"))
    with open_test_store(new_study_location(kind, tmp_path), items, FakeClock()) as store:
        (name,) = add_annotators(store, 1)
        seen = []
        while (found := store.run_job_sync(assignment_storage.assign_next_task, name)).id:
            with store.database.read_transaction() as transaction:
                seen.append(task_storage.read_task_info(store, transaction, found.id))
                assert assignment_storage.read_assignment_state(store, transaction, name).ahead == 5 - len(seen)
            assert submit_task(store, found.id) == 0
        assert found.why == "all-done"
        assert len([each for each in seen if each and each.document in ("d8", "d9")]) == 2
        assert len(seen) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_conditions_are_balanced_and_quotas_close_them(kind: str, tmp_path: Path) -> None:
    items = make_study(6, conditions=("plain", "trained"), quotas={"plain": 2, "a": 4}, strata=("model",))
    with open_test_store(new_study_location(kind, tmp_path), items, FakeClock()) as store:
        names = add_annotators(store, 4)
        arms = {each.id: each.condition for each in store.read_annotators()}
        assert Counter(arms.values()) == {"plain": 2, "trained": 2}
        for name in names:
            while (found := store.run_job_sync(assignment_storage.assign_next_task, name)).id:
                assert submit_task(store, found.id) == 0
        whole = store.read_study()
        by_arm = Counter(arms[each.annotator] for each in whole.iter_annotations())
        by_model = Counter(int(each.document[1:]) % 2 for each in whole.iter_annotations())
        assert by_arm["plain"] == 2
        assert by_model[0] <= 4


@pytest.mark.parametrize("kind", KINDS)
def test_everybody_keeps_to_one_setting_and_settings_fill_evenly(kind: str, tmp_path: Path) -> None:
    work = Work(texts=3, within=("domain", "model"), annotators=4)
    settings, asked, *_ = make_study(0, work, ("plain", "trained"))
    texts = [
        Document(id=f"{domain}-{model}-{n}", text="x", meta={"domain": domain, "model": model})
        for domain in ("news", "story")
        for model in ("human", "m1", "m2")
        for n in range(6)
    ]
    with open_test_store(new_study_location(kind, tmp_path), [settings, asked, *texts], FakeClock()) as store:
        seen: dict[str, set[str]] = {}
        for name in add_annotators(store, 16):
            while (found := store.run_job_sync(assignment_storage.assign_next_task, name)).id:
                with store.database.read_transaction() as transaction:
                    facts = task_storage.read_task_info(store, transaction, found.id)
                assert facts is not None
                seen.setdefault(name, set()).add(facts.document)
                assert submit_task(store, found.id) == 0
            assert found.why == "all-done"
        access = {each.id: each for each in store.read_annotators()}
        assert all(len(each) == 3 for each in seen.values())
        for name, documents in seen.items():
            setting = access[name].meta["setting"]
            assert isinstance(setting, dict)
            for document in documents:
                domain, model, _ = document.split("-")
                assert domain == setting["domain"]
                assert model in ("human", setting["model"])
        cells = Counter((each.condition, str(each.meta["setting"])) for each in access.values())
        assert set(cells.values()) == {2}
        assert any(document.split("-")[1] == "human" for documents in seen.values() for document in documents)
