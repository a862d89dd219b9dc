"""Tests of the recruitment page: scores, pay, suggestions and permissions."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from finecomb.collection import access_storage, pay, researcher_actions_storage
from finecomb.collection.database.store import Store
from finecomb.core.protocol import Protocol
from finecomb.core.records import (
    ONBOARDING_PHASES,
    Annotation,
    Attempt,
    Document,
    Mark,
    QualificationRecord,
    Recruitment,
)
from finecomb.core.span import Span
from finecomb.core.study import StudyItem
from finecomb.server.researchers.recruitment import practice_attempts, router
from tests.collection.rating_studies import PRICED_SETTINGS, SCARECROW, TEXT, TURING, make_rating_study
from tests.databases import Client

# --- attempts ----------------------------------------------------------------------------------------------------


def test_attempts_are_shown_exercise_by_exercise() -> None:
    assert SCARECROW.qualification is not None
    part = next(each for each in SCARECROW.qualification.parts if each.exercises)
    asked = next(each for each in SCARECROW.qualification.parts if each.choices)
    exercise, choice = part.exercises[0], asked.choices[0]
    span = exercise.solution_spans()[0]
    found = Mark(
        id="hit", spans=(span,), quotes=(exercise.text[span.start : span.end],), label=exercise.solutions[0].label
    )
    far = Mark(id="far", spans=(Span(0, 1),), quotes=(exercise.text[:1],), label="technical-jargon")
    tested = {"annotator": "a", "protocol": SCARECROW.id, "phase": "qualification"}
    work = [
        Annotation(id="1", document=f"{SCARECROW.id}/{exercise.name}", marks=(found, far), **tested),
        Annotation(id="2", document=f"{SCARECROW.id}/{choice.name}", answers={"answer": choice.answer}, **tested),
    ]
    graded = QualificationRecord(protocol=SCARECROW.id, score=60, passed=True, attempts=(Attempt(round=0, score=60),))
    (attempt,) = practice_attempts(make_rating_study(*work, qualification=graded), "a")
    assert (attempt.phase, attempt.attempt, attempt.score, attempt.passed) == ("qualification", 1, 60, True)
    first, second = attempt.exercises
    assert (first.found, first.missed, first.extra) == (1, len(exercise.solutions) - 1, 1)
    assert (second.points, second.chosen, second.right) == (asked.points, str(choice.answer), str(choice.answer))


# --- over HTTP ---------------------------------------------------------------------------------------------------

PID = {"PROLIFIC_PID": "5f1aaa", "STUDY_ID": "st1", "SESSION_ID": "se1"}


@pytest.fixture
def items() -> list[StudyItem]:
    recruited = Recruitment(platform="prolific")
    settings = PRICED_SETTINGS.model_copy(
        update={"skip": ONBOARDING_PHASES, "recruitment": recruited, "protocols": (TURING.id,)}
    )
    documents = [Document(id=f"d{n}", text=TEXT) for n in range(3)]
    return [settings, TURING, *documents]


@pytest.fixture
def worker(store: Store) -> str:
    """Prolific worker who submits two texts with a poor explanation."""
    client = Client(store)
    joined = client.post(f"/api/join/{access_storage.get_open_link_token(store)}", params=PID).json()
    client.headers["X-Finecomb-Token"] = joined["csrf"]
    for _ in range(2):
        task = client.next_task()["id"]
        code, answer = client.save(task, "answers", {"answers": {"rating": 1, "why": "good"}}, active=30)
        assert code == 200, answer
        assert client.finish(task, active=30)[0] == 200
    return str(joined["annotator"])


@pytest.fixture
def editor(store: Store) -> Client:
    return Client(store).sign_in_researcher("editor", "ed")


def get(client: Client, path: str, **asked: str) -> Any:
    answer = client.get(f"/api/admin/{path}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_who_may_do_what(store: Store, worker: str) -> None:
    annotator, viewer, editor = (
        Client(store),
        Client(store).sign_in_researcher("viewer"),
        Client(store).sign_in_researcher("editor"),
    )
    looks = [("recruiting", {}), ("attempts", {"id": worker}), ("screen", {}), ("screen/people", {}), ("design", {})]
    changes: list[tuple[str, Any]] = [
        ("annotation/kept", {"rules": ["vague"]}),
        ("annotator/bonus", {"amount": 1, "reason": "r"}),
        ("screen/decisions", {}),
    ]
    (piece, *_) = get(editor, "annotator", id=worker)["pieces"]
    ids = {"annotation/kept": piece["annotation"], "annotator/bonus": worker, "screen/decisions": ""}
    for path, asked in looks:
        assert annotator.get(f"/api/admin/{path}", params=asked).status_code == 401
        assert viewer.get(f"/api/admin/{path}", params=asked).status_code == 200
    for path, body in changes:
        assert viewer.put(f"/api/admin/{path}", params={"id": ids[path]}, json=body).status_code == 403
        assert editor.put(f"/api/admin/{path}", params={"id": ids[path]}, json=body).status_code == 200
    assert viewer.get("/api/admin/pay").status_code == 403
    assert editor.get("/api/admin/pay").status_code == 200
    routes = {(method, route.path) for route in router.routes for method in route.methods}  # type: ignore[attr-defined]
    assert viewer.put("/api/admin/design/reopen", json={"reopen": True}).status_code == 403
    assert editor.put("/api/admin/design/reopen", json={"reopen": True}).status_code == 404  # there is no design
    assert viewer.post("/api/admin/design/bonus", params={"cell": "c"}).status_code == 403
    assert editor.post("/api/admin/design/bonus", params={"cell": "c"}).status_code == 409
    named = {("GET", path) for path, _ in looks} | {("PUT", path) for path, _ in changes} | {("GET", "pay")}
    named |= {("PUT", "design/reopen"), ("POST", "design/bonus")}
    assert routes == {(method, f"/api/admin/{path}") for method, path in named}


def test_the_page_has_everybody_and_no_worker_ids(store: Store, worker: str, editor: Client) -> None:
    page = get(editor, "recruiting")
    (one,) = page["people"]
    assert (one["id"], one["platform"], one["stage"], one["reached"], one["texts"]) == (
        worker,
        "prolific",
        "done",
        "work",
        2,
    )
    assert page["costs"]["total"] == pytest.approx((1 + 2 * 0.5) * 1.2 + 60)
    assert page["qualification"] is None
    for path in ("recruiting", "overview", "screen", "audit"):
        assert "5f1aaa" not in editor.get(f"/api/admin/{path}").text


def test_pay_files_name_workers_and_bonuses_are_written_down(worker: str, editor: Client) -> None:
    bonus = {"amount": 2.5, "reason": "careful"}
    assert editor.put("/api/admin/annotator/bonus", params={"id": worker}, json=bonus).status_code == 200
    answer = editor.get("/api/admin/pay")
    assert "pay.csv" in answer.headers["content-disposition"]
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert (row["worker"], row["session"], row["pay"], row["bonus"]) == ("5f1aaa", "se1", "2.00", "2.50")
    assert editor.get("/api/admin/pay", params={"form": "prolific"}).text == "5f1aaa,2.50\n"
    assert [line["did"] for line in get(editor, "audit")[:3]] == ["took a pay file", "took a pay file", "set bonus"]
    assert get(editor, "annotator", id=worker)["meta"]["bonus"]["by"] == "ed"
    gone = editor.put("/api/admin/annotator/bonus", params={"id": worker}, json={"amount": 0})
    assert gone.status_code == 200
    assert "bonus" not in get(editor, "annotator", id=worker)["meta"]


@pytest.mark.parametrize("bonus", [{"amount": 1}, {"amount": -1, "reason": "r"}, {"amount": 1e9, "reason": "r"}])
def test_a_bonus_needs_a_reason_and_a_sensible_amount(worker: str, editor: Client, bonus: dict[str, Any]) -> None:
    assert editor.put("/api/admin/annotator/bonus", params={"id": worker}, json=bonus).status_code == 422


def test_a_suggestion_can_be_kept_or_followed(worker: str, editor: Client) -> None:
    first, second = get(editor, "screen")
    assert (first["rule"], first["evidence"], first["kept"]) == ("too-short", "good", False)
    where = {"id": first["annotation"]}
    assert editor.put("/api/admin/annotation/kept", params=where, json={"rules": ["too-short"]}).status_code == 200
    assert [each["kept"] for each in get(editor, "screen")] == [True, False]
    aside = editor.put(
        "/api/admin/annotation/excluded", params={"id": second["annotation"]}, json={"reason": "too short"}
    )
    assert aside.status_code == 200
    assert [each["annotation"] for each in get(editor, "screen")] == [first["annotation"]]
    assert [each["did"] for each in get(editor, "audit")[:2]] == ["excluded annotation", "kept annotation"]
    (one,) = get(editor, "recruiting")["people"]
    assert one["pay"] == 2  # submitted work is paid, even when it does not count


def test_many_suggestions_are_decided_at_once_or_not_at_all(store: Store, worker: str, editor: Client) -> None:
    first, second = get(editor, "screen")
    (person,) = get(editor, "screen/people")
    assert (person["annotator"], person["texts"], person["suggested"]) == (worker, 2, 2)
    keep = {first["annotation"]: ["too-short"]}
    wrong = {"exclude": [second["annotation"], "no-such"], "keep": keep, "reason": "too short"}
    assert editor.put("/api/admin/screen/decisions", json=wrong).status_code == 422
    assert [one["kept"] for one in get(editor, "screen")] == [False, False]
    right = {"exclude": [second["annotation"]], "keep": keep, "reason": "too short"}
    assert editor.put("/api/admin/screen/decisions", json=right).status_code == 200
    assert [(one["annotation"], one["kept"]) for one in get(editor, "screen")] == [(first["annotation"], True)]
    away = {"exclude_annotators": [worker], "reason": "copied everything"}
    assert editor.put("/api/admin/screen/decisions", json=away).status_code == 200
    assert store.read_annotators()[0].excluded is not None


def test_the_other_pages_work_where_nothing_is_marked(worker: str, editor: Client) -> None:
    """Pages about marks failed for a protocol of ratings."""
    overview = get(editor, "overview")
    assert overview["agreement"]["why"] == "this protocol has no marks"
    (one,) = overview["people"]
    assert (one["progress"]["done"], one["marks"]["value"], one["look"]) == (2, None, [])
    assert get(editor, "annotator", id=worker)["person"]["progress"]["done"] == 2
    (row, *_) = get(editor, "documents")["rows"]
    assert get(editor, "document", id=row["id"])["id"] == row["id"]


def test_unknown_names_are_said_in_words(editor: Client) -> None:
    assert "Unknown annotator" in editor.get("/api/admin/attempts", params={"id": "nobody"}).json()["say"]
    kept = editor.put("/api/admin/annotation/kept", params={"id": "nothing"}, json={"rules": ["vague"]})
    assert "unknown annotation" in kept.json()["say"]


def test_a_protocol_without_a_price_costs_nothing(store: Store) -> None:
    assert isinstance(TURING, Protocol)
    store.run_study_change_sync(
        researcher_actions_storage.update_settings, "tests", store.head.settings.model_copy(update={"price": None})
    )
    assert pay.study_cost_so_far(store.head.settings, []).pay == 0
