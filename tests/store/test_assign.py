"""Who gets which text: never too many, balanced, and the same for the same seed."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.protocol import Condition, Work
from finecomb.core.records import Document, Settings
from finecomb.core.study import Item
from finecomb.people import assignment_rules
from finecomb.people.assignment_rules import Counts, Plan
from finecomb.store import annotators, assignment, tasks
from finecomb.store.rows import Declined
from finecomb.store.store import Store
from tests.databases import KINDS, Clocked, new_place, opened
from tests.strategies import PROTOCOL

names = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
counts = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 4))


def plan(documents: Sequence[str], checks: Sequence[str] = ()) -> Plan:
    return Plan(documents, {each: [("model", "odd" if ord(each[0]) % 2 else "even")] for each in documents}, checks)


@given(names, counts, counts, names, st.integers(1, 3), st.integers(0, 5))
def test_the_choice_is_free_has_fewest_and_depends_on_the_seed_only(
    documents: list[str], submitted: dict[str, int], working: dict[str, int], mine: list[str], most: int, seed: int
) -> None:
    known, taken = plan(documents), Counts(submitted, working)
    free = assignment_rules.free(known, taken, most, mine, {}, documents)
    assert free == [each for each in documents if each not in mine and taken.of(each) < most]
    chosen = assignment_rules.choose(free, known, taken, mine, seed, "me")
    assert (chosen is None) == (not free)
    if chosen is not None:
        assert taken.of(chosen) == min(taken.of(each) for each in free)
        assert assignment_rules.choose(reversed(free), known, taken, mine, seed, "me") == chosen


def test_among_equals_the_annotators_strata_are_balanced() -> None:
    documents = ["a1", "a2", "a3", "b1", "b2", "b3"]
    mine: list[str] = []
    for _ in range(6):
        left = [each for each in documents if each not in mine]
        chosen = assignment_rules.choose(left, plan(documents), Counts({}, {}), mine, 0, "me")
        assert chosen is not None
        mine.append(chosen)
        ours = Counter(each[0] for each in mine)
        assert abs(ours["a"] - ours["b"]) <= 1


def test_a_full_stratum_is_left_out() -> None:
    documents = ["a1", "a2", "b1"]
    free = assignment_rules.free(plan(documents), Counts({"a1": 2}, {}), 5, [], {"odd": 2}, documents)
    assert free == ["b1"]


@given(st.integers(0, 100), st.integers(1, 40), st.integers(1, 3))
def test_everybody_gets_every_check_once_and_not_first(seed: int, texts: int, checks: int) -> None:
    known = plan([f"d{n}" for n in range(texts)], [f"check{n}" for n in range(checks)])
    given_: list[str] = []
    left = list(known.documents)
    while True:
        check = assignment_rules.check_due(known, given_, seed, "me", texts, last=not left)
        if check is None and not left:
            break
        given_.append(check or left.pop())
    assert Counter(given_) == Counter([*known.documents, *known.checks])
    assert given_[0] not in known.checks


@given(st.floats(0, 1), st.integers(0, 1000))
def test_the_blind_share_grows_with_its_size(share: float, seed: int) -> None:
    blind = [assignment_rules.is_blind(seed, f"d{n}", share) for n in range(200)]
    assert blind == [assignment_rules.is_blind(seed, f"d{n}", share) for n in range(200)]
    assert abs(sum(blind) / 200 - share) < 0.2
    assert not any(assignment_rules.is_blind(seed, f"d{n}", 0) for n in range(50))


# --- one setting for each person ---------------------------------------------------------------------------------

metas = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3),
    st.fixed_dictionaries(
        {}, optional={"domain": st.sampled_from(["news", "story"]), "model": st.sampled_from(["human", "m1", "m2"])}
    ),
    max_size=12,
)


@given(metas)
def test_texts_by_people_go_with_every_model_and_all_else_is_shared(documents: dict[str, dict[str, str]]) -> None:
    found = assignment_rules.settings(documents, ("domain", "model"))
    assert set(found) == set(documents)
    for id, meta in documents.items():
        domain, model = meta.get("domain", ""), meta.get("model", "")
        machines = {
            each.get("model", "")
            for each in documents.values()
            if each.get("domain", "") == domain and each.get("model") != "human"
        }
        expected = (machines or {"human"}) if model == "human" else {model}
        assert set(found[id]) == {(domain, each) for each in expected}
        assert len(set(found[id])) == len(found[id])


def test_the_setting_with_fewest_people_is_chosen_and_one_with_room_before_others() -> None:
    known = Plan(list("abcd"), {}, settings={"a": [("x",)], "b": [("x",)], "c": [("y",)], "d": [("x",), ("y",)]})
    assert assignment_rules.choose_setting("abcd", known, {("x",): 2, ("y",): 1}, 2, 0, "me") == ("y",)
    assert assignment_rules.choose_setting("abc", known, {("x",): 2, ("y",): 1}, 2, 0, "me") == ("x",)
    assert assignment_rules.choose_setting("", known, {}, 2, 0, "me") is None
    chosen = Counter(assignment_rules.choose_setting("abcd", known, {}, 2, seed, "me") for seed in range(200))
    assert min(chosen.values()) > 60


@given(st.integers(0, 50))
def test_each_text_of_a_pair_comes_first_about_as_often(seed: int) -> None:
    first = Counter(assignment_rules.first_of_pair(seed, f"reader-{n}", "d") for n in range(200))
    assert set(first) == {"a", "b"}
    assert min(first.values()) > 60


# --- in a database, by many at once ------------------------------------------------------------------------------


def study(documents: int, work: Work | None = None, conditions: Sequence[str] = (), **settings: Any) -> list[Item]:
    arms = tuple(Condition(name=name) for name in conditions)
    asked = PROTOCOL.model_copy(update={"work": work or Work(), "conditions": arms})
    texts = [Document(id=f"d{n}", text="x", meta={"model": "ab"[n % 2]}) for n in range(documents)]
    return [Settings(protocols=(asked.id,), **settings), asked, *texts]


def newcomers(store: Store, count: int) -> list[str]:
    return [store.do_now(annotators.new).id for _ in range(count)]


def finish(store: Store, task: str) -> int | Declined:
    with store.database.reading() as transaction:
        facts = tasks.facts(store, transaction, task)
    assert facts is not None
    return store.do_now(tasks.finish, task, facts, "f" + task, 0.0, lambda _: ())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_text_never_goes_to_more_people_than_it_should(kind: str, seed: int, tmp_path: Path) -> None:
    """Many ask at the same moment; some hand in, some walk away and their place is given to others."""
    clock, most = Clocked(), 2
    with opened(new_place(kind, tmp_path), study(4, annotators=most, lease=1), clock) as store:
        names = newcomers(store, 12)

        def ask(name: str) -> None:
            chance = random.Random(f"{seed}{name}")
            for _ in range(6):
                found = store.do_now(assignment.next_task, name)
                if found.id and chance.random() < 0.5:
                    assert finish(store, found.id) in (0, Declined("lease-over"))
                if chance.random() < 0.2:
                    clock.now += 61

        threads = [threading.Thread(target=ask, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done = Counter(each.document for each in store.study().iter_annotations() if each.status == "submitted")
        assert max(done.values(), default=0) <= most
        keys = [each.key for each in store.study().iter_annotations()]
        assert len(set(keys)) == len(keys)
        clock.now += 3600
        for name in newcomers(store, 8):
            while (found := store.do_now(assignment.next_task, name)).id:
                assert finish(store, found.id) == 0
        done = Counter(each.document for each in store.study().iter_annotations() if each.status == "submitted")
        assert done == {f"d{n}": most for n in range(4)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_person_gets_as_many_texts_as_the_protocol_says_and_all_checks(kind: str, tmp_path: Path) -> None:
    items = study(10, Work(texts=3), attention_checks=("d8", "d9"))
    with opened(new_place(kind, tmp_path), items, Clocked()) as store:
        (name,) = newcomers(store, 1)
        seen = []
        while (found := store.do_now(assignment.next_task, name)).id:
            with store.database.reading() as transaction:
                seen.append(tasks.facts(store, transaction, found.id))
                assert assignment.assignment_state(store, transaction, name).ahead == 5 - len(seen)
            assert finish(store, found.id) == 0
        assert found.why == "all-done"
        assert len([each for each in seen if each and each.document in ("d8", "d9")]) == 2
        assert len(seen) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_conditions_are_balanced_and_quotas_close_them(kind: str, tmp_path: Path) -> None:
    items = study(6, conditions=("plain", "trained"), quotas={"plain": 2, "a": 4}, strata=("model",))
    with opened(new_place(kind, tmp_path), items, Clocked()) as store:
        names = newcomers(store, 4)
        arms = {each.id: each.condition for each in store.annotators()}
        assert Counter(arms.values()) == {"plain": 2, "trained": 2}
        for name in names:
            while (found := store.do_now(assignment.next_task, name)).id:
                assert finish(store, found.id) == 0
        whole = store.study()
        by_arm = Counter(arms[each.annotator] for each in whole.iter_annotations())
        by_model = Counter(int(each.document[1:]) % 2 for each in whole.iter_annotations())
        assert by_arm["plain"] == 2
        assert by_model[0] <= 4


@pytest.mark.parametrize("kind", KINDS)
def test_everybody_keeps_to_one_setting_and_settings_fill_evenly(kind: str, tmp_path: Path) -> None:
    work = Work(texts=3, within=("domain", "model"), annotators=4)
    settings, asked, *_ = study(0, work, ("plain", "trained"))
    texts = [
        Document(id=f"{domain}-{model}-{n}", text="x", meta={"domain": domain, "model": model})
        for domain in ("news", "story")
        for model in ("human", "m1", "m2")
        for n in range(6)
    ]
    with opened(new_place(kind, tmp_path), [settings, asked, *texts], Clocked()) as store:
        seen: dict[str, set[str]] = {}
        for name in newcomers(store, 16):
            while (found := store.do_now(assignment.next_task, name)).id:
                with store.database.reading() as transaction:
                    facts = tasks.facts(store, transaction, found.id)
                assert facts is not None
                seen.setdefault(name, set()).add(facts.document)
                assert finish(store, found.id) == 0
            assert found.why == "all-done"
        access = {each.id: each for each in store.annotators()}
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
