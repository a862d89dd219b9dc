"""Tests of the second pass next to the marks of others, and of pairs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from finecomb import protocols
from finecomb.collection import researcher_actions_storage
from finecomb.collection.database import tables
from finecomb.collection.database.store import Store
from finecomb.core.records import ONBOARDING_PHASES, Document, Settings
from finecomb.core.study import StudyItem
from finecomb.core.study_checks import check_study
from tests.databases import Client, FakeClock, demo_items, new_study_location, open_test_store


@pytest.fixture
def items() -> list[StudyItem]:
    settings, *rest = demo_items()
    assert isinstance(settings, Settings)
    return [settings.model_copy(update={"annotators": 2}), *rest[:3]]


def mark_body(task: Any, start: int) -> Any:
    quote = task["text"][start : start + 4]
    answers = {"severity": 1, "explanation": f"at {start}"}
    return {"spans": [[start, start + 4]], "quotes": [quote], "label": "incoherent", "answers": answers}


def first_pass(client: Client, name: str, start: int) -> dict[str, str]:
    """Mark something in every text, and return the IDs of the marks by text."""
    made = {}
    while (now := client.post("/api/next").json())["task"]:
        task = now["task"]
        made[task["text"]] = f"{name}-{task['number']}"
        assert client.save(task["id"], f"marks/{made[task['text']]}", mark_body(task, start))[0] == 200
        assert client.finish(task["id"])[0] == 200
    return made


def start_second_pass(store: Store) -> None:
    store.run_study_change_sync(
        researcher_actions_storage.update_settings, "ann", store.head.settings.model_copy(update={"round": 1})
    )


def test_everybody_sees_their_texts_again_beside_the_others_marks(store: Store) -> None:
    one, other = Client(store).join_study(), Client(store).join_study()
    mine, theirs = first_pass(one, "mine", 0), first_pass(other, "theirs", 8)
    assert set(mine) == set(theirs)
    start_second_pass(store)
    assert one.get("/api/me").json()["ending"] is None
    assert one.get("/api/me").json()["of"] == len(mine) == 2
    task = one.next_task()
    assert (task["round"], task["number"], task["lease"]) == (1, 1, None)
    (own,), (offered,) = task["marks"], task["offered"]
    assert own["id"] != mine[task["text"]]
    assert own["body"] == mark_body(task, 0) | {"antecedent": None, "made_from": [], "alternatives": []}
    assert (offered["spans"], offered["answers"]["explanation"]) == ([[8, 12]], "at 8")
    assert "theirs" not in str(task)
    # change the own mark, accept the other's, submit
    changed = mark_body(task, 0) | {
        "label": "redundant",
        "antecedent": {"spans": [[0, 1]], "quotes": [task["text"][:1]]},
    }
    assert one.save(task["id"], f"marks/{own['id']}", changed, base=1)[0] == 200
    taken = mark_body(task, 8) | {"made_from": [offered["id"]]}
    assert one.save(task["id"], "marks/taken", taken)[0] == 200
    decided = {"decision": "accepted", "mark": "taken"}
    assert one.save(task["id"], f"decisions/{offered['id']}", decided)[0] == 200
    assert one.finish(task["id"])[0] == 200
    (kept,) = store.read_annotations(tables.annotation.c.id == task["id"])
    (before,) = store.read_annotations(tables.annotation.c.id == kept.made_from[0])
    assert [each.made_from for each in kept.marks] == [(mine[task["text"]],), (theirs[task["text"]],)]
    assert (before.round, before.annotator, before.marks[0].label) == (0, kept.annotator, "incoherent")
    assert (kept.round, kept.marks[0].label, kept.document) == (1, "redundant", before.document)
    assert check_study(store.read_study()) == []


def test_the_pass_is_over_when_every_text_was_looked_at_again(store: Store) -> None:
    one, other = Client(store).join_study(), Client(store).join_study()
    first_pass(one, "mine", 0)
    task = other.next_task()
    other.save(task["id"], "marks/theirs", mark_body(task, 8))
    other.finish(task["id"])
    start_second_pass(store)
    assert one.finish(task["id"])[1]["code"] == "not-found"
    again = one.next_task()  # only texts that both have annotated
    assert again["text"] == task["text"]
    assert one.post("/api/next").json()["task"]["id"] == again["id"]
    assert one.get("/api/me").json()["ending"] is None
    withdrawn = again["marks"][0]
    one.save(again["id"], f"marks/{withdrawn['id']}", None, base=1)
    assert one.finish(again["id"])[1]["missing"] == ["answers/text: no_errors"]
    one.submit_without_errors(again["id"])
    assert one.post("/api/next").json()["why"] == "all-done"
    assert one.get("/api/me").json()["ending"]["why"] == "done"
    assert one.finish(again["id"], verb="reopen")[0] == 200
    assert Client(store).join_study().post("/api/next").json()["why"] == "none-now"


def test_the_first_pass_is_not_opened_again(store: Store) -> None:
    one, other = Client(store).join_study(), Client(store).join_study()
    first_pass(one, "mine", 0)
    first_pass(other, "theirs", 8)
    task = one.get("/api/me").json()["tasks"][0]["id"]
    start_second_pass(store)
    assert "first pass has ended" in one.finish(task, verb="reopen")[1]["say"]
    (kept,) = store.read_annotations(tables.annotation.c.id == task)
    assert kept.status == "submitted"


def test_which_text_of_a_pair_comes_first_is_drawn_and_kept(tmp_path: Path) -> None:
    asked = protocols.load("preference")
    pairs = [
        Document(id=f"p{n}", text="", context={"prompt": "Write.", "a": f"one {n}", "b": f"two {n}"}) for n in range(12)
    ]
    items: list[StudyItem] = [Settings(protocols=(asked.id,), skip=ONBOARDING_PHASES), asked, *pairs]
    with open_test_store(new_study_location("sqlite", tmp_path), items, FakeClock()) as store:
        client = Client(store).join_study()
        for _ in range(12):
            task = client.next_task()
            assert client.get(f"/api/tasks/{task['id']}").json()["context"] == task["context"]
            assert list(task["context"]) == ["prompt", "first", "second"]
            assert (
                client.save(task["id"], "answers", {"answers": {"prefer": "a"}})[0] == 422
            )  # the identity of the texts is hidden
            assert client.save(task["id"], "answers", {"answers": {"prefer": "first"}})[0] == 200
            assert client.get(f"/api/tasks/{task['id']}").json()["answers"]["body"]["answers"] == {"prefer": "first"}
            assert client.finish(task["id"])[0] == 200
            (kept,) = store.read_annotations(tables.annotation.c.id == task["id"])
            assert task["context"]["first"].startswith("one" if kept.meta["shown_first"] == "a" else "two")
            assert kept.answers == {"prefer": kept.meta["shown_first"]}
        first = Counter(str(each.meta["shown_first"]) for each in store.read_study().iter_annotations())
        assert min(first["a"], first["b"]) >= 2
