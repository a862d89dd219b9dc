"""Tests of annotator routes from the link to a submitted text: content, storage and rejected requests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from finecomb.collection import researcher_actions_storage
from finecomb.collection.database import tables
from finecomb.collection.database.store import Store
from finecomb.core.records import Annotation, Settings
from finecomb.core.study import StudyItem
from finecomb.core.study_checks import check_study
from tests.databases import Client, FakeClock, demo_items


def mark_body(task: Any, start: int = 0, end: int = 5, label: str | None = "grammar-usage", **more: Any) -> Any:
    words: dict[str, Any] = {"spans": [[start, end]], "quotes": [task["text"][start:end]], "label": label}
    return words | {"answers": {}, "antecedent": None, "made_from": [], "alternatives": []} | more


def read_stored_annotation(store: Store, task: str) -> Annotation:
    (found,) = store.read_annotations(tables.annotation.c.id == task)
    return found


def complete_mark(task: Any, **more: Any) -> Any:
    return mark_body(task, answers={"severity": 2, "explanation": "because"}, **more)


def test_what_is_marked_is_what_the_study_holds(client: Client, clock: FakeClock) -> None:
    task = client.join_study().next_task()
    assert client.save(task["id"], "marks/m1", complete_mark(task)) == (200, {"change": _any, "version": 1})
    clock.now += 30
    code, answer = client.finish(task["id"], active=20)
    assert (code, answer["version"]) == (200, 0)
    found = read_stored_annotation(client.store, task["id"])
    assert found.marks[0].quotes == (task["text"][:5],)
    assert found.marks[0].answers == {"severity": 2, "explanation": "because"}
    assert (found.status, found.active_seconds, found.seconds) == ("submitted", 20, 30)
    assert found.submitted == datetime.fromtimestamp(clock.now, UTC)
    assert check_study(client.store.read_study()) == []


class _Any:
    def __eq__(self, other: object) -> bool:
        return True


_any = _Any()


def test_the_same_change_counts_once_and_is_answered_alike(client: Client) -> None:
    task = client.join_study().next_task()
    first = client.save(task["id"], "marks/m1", mark_body(task), change="c1")
    assert client.save(task["id"], "marks/m1", mark_body(task), change="c1") == first
    client.save(task["id"], "marks/m1", mark_body(task, end=7), base=1, change="c2")
    assert client.save(task["id"], "marks/m1", mark_body(task), change="c1") == first
    assert read_stored_annotation(client.store, task["id"]).marks[0].spans[0].end == 7


def test_two_windows_conflict_and_the_stored_entry_is_shown(client: Client) -> None:
    task = client.join_study().next_task()
    client.save(task["id"], "marks/m1", mark_body(task), change="here")
    code, answer = client.save(task["id"], "marks/m1", mark_body(task, end=9), base=0, change="there")
    assert (code, answer["code"]) == (409, "conflict")
    assert answer["stored"] == {"id": "m1", "version": 1, "body": mark_body(task)}
    code, _ = client.save(task["id"], "marks/m1", mark_body(task, end=9), base=1, change="there again")
    assert code == 200


def test_an_older_save_does_not_bring_a_deleted_mark_back(client: Client) -> None:
    task = client.join_study().next_task()
    client.save(task["id"], "marks/m1", mark_body(task), change="made")
    assert client.save(task["id"], "marks/m1", None, base=1, change="gone")[1]["version"] == 2
    code, answer = client.save(task["id"], "marks/m1", mark_body(task, end=9), base=1, change="late")
    assert (code, answer["stored"]) == (409, {"id": "m1", "version": 2, "body": None})
    assert client.save(task["id"], "marks/m1", mark_body(task), change="made")[1]["version"] == 1
    assert read_stored_annotation(client.store, task["id"]).marks == ()
    assert client.get(f"/api/tasks/{task['id']}").json()["marks"] == []
    assert client.save(task["id"], "marks/m1", mark_body(task), base=2)[1]["version"] == 3


def test_a_task_comes_back_as_it_was_left(client: Client) -> None:
    task = client.join_study().next_task()
    earlier = {"spans": [[0, 3]], "quotes": [task["text"][:3]]}
    otherwise = [[{**earlier, "label": "incoherent"}]]
    body = complete_mark(task, antecedent=earlier, alternatives=otherwise) | {"label": "redundant"}
    client.save(task["id"], "marks/m1", body)
    (saved,) = read_stored_annotation(client.store, task["id"]).marks
    assert [(member.label, member.quotes) for reading in saved.alternatives for member in reading] == [
        ("incoherent", (task["text"][:3],))
    ]
    client.save(task["id"], "answers", {"answers": {"cannot_judge": "too short"}})
    again = client.next_task()
    assert again["id"] == task["id"]
    assert again["marks"] == [{"id": "m1", "version": 1, "body": body}]
    assert again["answers"]["body"] == {"answers": {"cannot_judge": "too short"}, "no_errors": False}


@pytest.mark.parametrize(
    ("entry", "body", "says"),
    [
        ("marks/m", {"spans": [[0, 5]], "quotes": ["wrong"], "label": "redundant"}, "differs from the text at"),
        ("marks/m", {"spans": [[0, 10**6]], "quotes": ["x"], "label": "redundant"}, "ends after the text"),
        ("marks/m", {"spans": [["meta", 0, 1]], "quotes": ["x"], "label": "redundant"}, "Span on 'meta'"),
        ("marks/m", {"spans": [[0, 0]], "quotes": [""], "label": "redundent"}, "did you mean 'redundant'"),
        ("marks/m", {"spans": [[0, 0]], "quotes": ["", ""], "label": "redundant"}, "1 spans but 2 quotes"),
        ("marks/m", {"spans": [[4, 4], [1, 1]], "quotes": ["", ""], "label": "redundant"}, "must be in text order"),
        ("marks/m", {"spans": [], "quotes": [], "label": "redundant"}, "spans"),
        (
            "marks/m",
            {"spans": [[0, 0]], "quotes": [""], "label": None}
            | {"alternatives": [[{"spans": [[0, 5]], "quotes": ["wrong"], "label": "redundant"}]]},
            "differs from the text at",
        ),
        ("marks/m", {"spans": [[0, 0]], "quotes": [""], "label": "redundant", "votes": 3}, "votes"),
        ("marks/m", {"spans": [[0, 0]], "quotes": [""], "label": None, "answers": {"severity": 9}}, "'severity'"),
        ("marks/m", {"spans": [[0, 0]], "quotes": [""], "label": None, "made_from": ["x"]}, "not offered"),
        ("marks/m", {"spans": [[0, 0]], "quotes": ["\0"], "label": None}, "NUL"),
        ("marks/%20", {"spans": [[0, 0]], "quotes": [""], "label": None}, "id"),
        ("units/0-5", {"answers": {}}, "no such part"),
        ("decisions/x", {"decision": "accepted"}, "the suggestion does not exist"),
        ("answers", {"no_errors": "perhaps"}, "no_errors"),
    ],
)
def test_what_does_not_fit_text_or_protocol_is_refused(client: Client, entry: str, body: Any, says: str) -> None:
    task = client.join_study().next_task()
    code, answer = client.save(task["id"], entry, body)
    assert (code, answer["code"]) == (422, "refused")
    assert says in answer["say"]
    assert read_stored_annotation(client.store, task["id"]).marks == ()


def test_a_mark_id_in_use_elsewhere_is_refused(store: Store) -> None:
    one, other = Client(store).join_study(), Client(store).join_study()
    first, second = one.next_task(), other.next_task()
    assert one.save(first["id"], "marks/same", mark_body(first))[0] == 200
    assert other.save(second["id"], "marks/same", mark_body(second))[1]["code"] == "refused"


def test_nothing_is_handed_in_half_done(client: Client) -> None:
    task = client.join_study().next_task()
    assert client.finish(task["id"])[1]["missing"] == ["answers/text: no_errors"]
    client.save(task["id"], "marks/m1", mark_body(task, label="redundant"))
    code, answer = client.finish(task["id"])
    assert (code, answer["code"]) == (409, "incomplete")
    assert answer["missing"] == [f"marks/m1: {what}" for what in ("antecedent", "severity", "explanation")]
    client.save(task["id"], "marks/m1", None, base=1)
    client.submit_without_errors(task["id"])
    assert read_stored_annotation(client.store, task["id"]).meta["no_errors"] is True


def test_handing_in_twice_is_once_and_opening_again_is_not_undone_by_an_old_one(client: Client) -> None:
    task = client.join_study().next_task()
    client.save(task["id"], "answers", {"no_errors": True})
    assert (
        client.finish(task["id"], change="f")
        == client.finish(task["id"], change="f")
        == (200, {"change": "f", "version": 0})
    )
    assert client.save(task["id"], "marks/m1", mark_body(task))[1]["code"] == "finished"
    assert client.finish(task["id"], verb="reopen")[0] == 200
    client.finish(task["id"], change="f")
    assert read_stored_annotation(client.store, task["id"]).status == "draft"
    assert client.save(task["id"], "marks/m1", mark_body(task))[0] == 200


def test_somebody_elses_task_is_not_there(store: Store) -> None:
    owner, thief = Client(store).join_study(), Client(store).join_study()
    task = owner.next_task()
    for answer in (thief.get(f"/api/tasks/{task['id']}"), thief.get("/api/tasks/..%2f..%2fetc%2fpasswd")):
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert thief.save(task["id"], "marks/m1", mark_body(task))[1]["code"] == "not-found"
    assert thief.finish(task["id"])[1]["code"] == "not-found"
    assert read_stored_annotation(store, task["id"]).marks == ()


def test_the_browsers_clock_does_not_matter(client: Client, clock: FakeClock) -> None:
    task = client.join_study().next_task()
    clock.now += 10
    client.save(task["id"], "marks/m1", mark_body(task), active=1e9)
    assert read_stored_annotation(client.store, task["id"]).active_seconds == 10
    clock.now += 10
    client.save(task["id"], "marks/m2", mark_body(task), active=3)
    assert read_stored_annotation(client.store, task["id"]).active_seconds == 10


# --- leases, states and exclusion --------------------------------------------------------------------------------


class TestOneAnnotatorEach:
    @pytest.fixture
    def items(self) -> list[StudyItem]:
        settings, *rest = demo_items()
        assert isinstance(settings, Settings)
        return [settings.model_copy(update={"annotators": 1, "lease": 10}), *rest[:2]]

    def test_an_abandoned_text_goes_to_somebody_else_and_its_draft_is_kept(
        self, store: Store, clock: FakeClock
    ) -> None:
        slow, quick = Client(store).join_study(), Client(store).join_study()
        task = slow.next_task()
        slow.save(task["id"], "marks/m1", mark_body(task))
        assert quick.post("/api/next").json()["why"] == "none-now"
        clock.now += 601
        taken = quick.next_task()
        assert taken["text"] == task["text"]
        code, answer = slow.save(task["id"], "marks/m2", mark_body(task))
        assert (code, answer["code"]) == (409, "lease-over")
        assert slow.post("/api/next").json()["why"] == "none-now"
        assert len(slow.get(f"/api/tasks/{task['id']}").json()["marks"]) == 1
        quick.submit_without_errors(taken["id"])
        assert slow.post("/api/next").json()["why"] == "all-done"

    def test_a_text_in_which_nothing_is_done_goes_to_somebody_else_early(self, store: Store, clock: FakeClock) -> None:
        idle, busy = Client(store).join_study(), Client(store).join_study()
        task = idle.next_task()
        for _ in range(3):
            clock.now += 49  # viewing it repeatedly does not extend the lease
            assert idle.next_task()["id"] == task["id"]
            assert busy.post("/api/next").json()["why"] == "none-now"
        clock.now += 4
        assert busy.next_task()["text"] == task["text"]

    def test_a_text_in_which_something_was_done_is_kept_for_the_whole_lease(
        self, store: Store, clock: FakeClock
    ) -> None:
        slow, quick = Client(store).join_study(), Client(store).join_study()
        task = slow.next_task()
        slow.save(task["id"], "marks/m1", mark_body(task))
        clock.now += 599
        assert quick.post("/api/next").json()["why"] == "none-now"

    def test_an_expired_lease_is_renewed_while_nobody_took_the_text(self, client: Client, clock: FakeClock) -> None:
        task = client.join_study().next_task()
        clock.now += 10_000
        assert client.save(task["id"], "marks/m1", mark_body(task))[0] == 200
        clock.now += 10_000
        assert client.next_task()["id"] == task["id"]

    def test_excluded_work_frees_its_place_and_coming_back_takes_it(self, store: Store) -> None:
        one, other = Client(store).join_study(), Client(store).join_study()
        task = one.next_task()
        one.submit_without_errors(task["id"])
        assert other.post("/api/next").json()["why"] == "none-now"
        store.run_study_change_sync(researcher_actions_storage.exclude_annotation, "ann", task["id"], "too fast")
        assert read_stored_annotation(store, task["id"]).excluded is not None
        assert one.finish(task["id"], verb="reopen")[1]["code"] == "not-allowed"
        assert other.post("/api/next").json()["task"]["text"] == task["text"]
        store.run_study_change_sync(researcher_actions_storage.restore_annotation, "ann", task["id"])
        assert read_stored_annotation(store, task["id"]).excluded is None

    def test_an_excluded_annotator_gets_and_changes_nothing(self, client: Client) -> None:
        task = client.join_study().next_task()
        who = client.get("/api/me").json()["annotator"]
        client.store.run_study_change_sync(researcher_actions_storage.exclude_annotator, "ann", who, "a robot")
        assert client.save(task["id"], "marks/m1", mark_body(task))[1]["code"] == "not-allowed"
        assert client.post("/api/next").json()["why"] == "ended"
        client.store.run_study_change_sync(researcher_actions_storage.restore_annotator, "ann", who)
        assert client.save(task["id"], "marks/m1", mark_body(task))[0] == 200


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_a_study_that_stands_still_takes_and_gives_nothing(client: Client, state: Any) -> None:
    task = client.join_study().next_task()
    client.store.run_study_change_sync(researcher_actions_storage.set_study_status, "ann", state)
    code, answer = client.save(task["id"], "marks/m1", mark_body(task))
    assert (code, answer["code"]) == (423, state)
    assert client.finish(task["id"])[1]["code"] == state
    assert client.post("/api/next").json() == {"task": None, "page": None, "why": state}
    assert client.get("/api/me").json()["state"] == state
    client.store.run_study_change_sync(researcher_actions_storage.set_study_status, "ann", "open")
    assert client.save(task["id"], "marks/m1", mark_body(task))[0] == 200


def test_a_pilot_gives_out_the_first_texts_and_says_so(client: Client) -> None:
    client.store.run_study_change_sync(researcher_actions_storage.set_study_status, "ann", "pilot")
    client.join_study()
    first = [document.text for document in client.store.read_study().iter_documents()][:5]
    for _ in range(5):
        task = client.next_task()
        assert task["text"] in first
        client.submit_without_errors(task["id"])
        assert read_stored_annotation(client.store, task["id"]).meta["pilot"] is True
    assert client.post("/api/next").json()["why"] == "all-done"
    assert client.get("/api/me").json()["ending"]["code"]


def test_the_list_of_texts_grows_and_ends_with_a_code(client: Client) -> None:
    client.join_study()
    me = client.get("/api/me").json()
    assert (me["of"], me["tasks"], me["ending"]) == (16, [], None)
    for number in range(1, 17):
        task = client.next_task()
        assert task["number"] == number
        client.submit_without_errors(task["id"])
    me = client.get("/api/me").json()
    assert [(task["number"], task["status"]) for task in me["tasks"]] == [(n, "submitted") for n in range(1, 17)]
    assert (me["of"], me["ending"]["why"], len(me["ending"]["code"])) == (16, "done", 8)
    assert client.post("/api/next").json()["why"] == "all-done"


def test_a_new_version_of_the_protocol_starts_anew_and_old_work_stays(client: Client) -> None:
    task = client.join_study().next_task()
    client.save(task["id"], "marks/m1", mark_body(task))
    old = client.store.head.protocol
    client.store.run_study_change_sync(
        researcher_actions_storage.add_and_activate_protocol, "ann", old.model_copy(update={"version": "3"})
    )
    assert client.get("/api/me").json()["guide"]["id"] == f"{old.name}@3"
    assert client.get("/api/me").json()["tasks"] == []
    assert client.next_task()["id"] != task["id"]
    assert client.save(task["id"], "marks/m2", mark_body(task, 1))[0] == 200
    assert read_stored_annotation(client.store, task["id"]).protocol == old.id
