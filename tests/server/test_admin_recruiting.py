"""What researchers see of the people who came: signs, scores, pay; and who may see and change it."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import finecomb as fc
from finecomb.core.protocol import Protocol, Work
from finecomb.core.records import (
    PHASES,
    Annotation,
    Annotator,
    Attempt,
    Document,
    Mark,
    Qualified,
    Recruitment,
    Settings,
)
from finecomb.core.span import Span
from finecomb.core.study import Item, Study
from finecomb.people import pay
from finecomb.people.arrivals import Arrival, ArrivalSource
from finecomb.people.pay import Earned, cost, earned, mturk_bonuses, pay_csv, prolific_bonuses, safe
from finecomb.people.progress import Bonus
from finecomb.people.signals import signals
from finecomb.server.researchers.recruitment import attempts_of, router
from finecomb.store import access, researcher_actions
from finecomb.store.store import Store
from tests.databases import Client

TURING = fc.protocol("turing").model_copy(update={"work": Work(texts=2), "conditions": ()})
SCARECROW = fc.protocol("scarecrow")
TEXT = "word " * 200


# --- what is noticed ---------------------------------------------------------------------------------------------


def rated(n: int, who: str = "a", rating: int = 1, why: str = "", seconds: float = 60) -> Annotation:
    answers: dict[str, Any] = {"rating": rating} | ({"why": why} if why else {})
    return Annotation(
        id=f"{who}{n}",
        document=f"d{n}",
        annotator=who,
        protocol=TURING.id,
        answers=answers,
        active_seconds=seconds,
    )


def study(*work: Annotation, settings: Settings | None = None, **about: Any) -> Study:
    documents = [Document(id=f"d{n}", text=TEXT) for n in range(9)]
    ids = dict.fromkeys([each.annotator for each in work] + ["a", "b"])
    who = [Annotator(id=id, kind="human", **about) for id in ids]
    return Study.from_items([settings or Settings(), TURING, SCARECROW, *documents, *who, *work])


def signs(found: Study, *came: Arrival) -> dict[str, list[str]]:
    return {who: [each.sign for each in every] for who, every in signals(found, came).items()}


def test_ordinary_work_is_not_noticed() -> None:
    work = [rated(n, rating=1 + n % 4, why=f"Reason number {n} is about the pier") for n in range(6)]
    assert signs(study(*work), Arrival("a", 0, ArrivalSource(device="x", address="y"))) == {}


@pytest.mark.parametrize(("seconds", "expected"), [(2.0, True), (11.9, True), (12.1, False), (60.0, False)])
def test_two_hundred_words_take_more_than_twelve_seconds(seconds: float, expected: bool) -> None:
    found = signals(study(rated(0, seconds=seconds), rated(1)), [])
    assert bool(found) == expected
    if expected:
        assert found["a"][0].say == (
            f"1 of 2 texts handed in faster than anybody reads: d0, 200 words, in {seconds:.0f} s."
        )


def test_the_same_answer_twice_or_by_two_people_is_noticed() -> None:
    why = "The pier is too odd for that"
    assert signs(study(rated(0, why=why), rated(1, why=why.upper()))) == {"a": ["copied"]}
    assert signs(study(rated(0, why=why), rated(1, "b", why=why))) == {"a": ["shared"], "b": ["shared"]}
    assert signs(study(rated(0, why="so odd"), rated(1, why="so odd"))) == {}  # short ones happen


def test_five_equal_ratings_are_noticed_and_four_are_not() -> None:
    assert signs(study(*(rated(n) for n in range(5)))) == {"a": ["alike"]}
    assert signs(study(*(rated(n) for n in range(4)))) == {}


@pytest.mark.parametrize(
    ("share", "count", "expected"), [(0.7, 2, ["broad"]), (1, 13, ["broad"]), (1, 1, []), (0.6, 9, [])]
)
def test_marks_over_most_of_a_tests_text_are_noticed(share: float, count: int, expected: list[str]) -> None:
    asked = fc.protocol("accuracy")
    assert asked.qualification is not None
    exercise = asked.qualification.parts[0].exercises[0]
    span = Span(0, round(share * len(exercise.text)))
    quotes = (exercise.text[: span.end],)
    marks = tuple(Mark(id=f"m{n}", spans=(span,), quotes=quotes, label="number") for n in range(count))
    document = f"{asked.id}/{exercise.name}"
    tested = Annotation(
        id="t",
        document=document,
        annotator="a",
        protocol=asked.id,
        phase="qualification",
        marks=marks,
        active_seconds=900,
    )
    found = Study.from_items([Settings(), asked, Annotator(id="a", kind="human"), tested])
    assert signs(found).get("a", []) == expected


def test_one_browser_with_two_names_is_noticed_and_an_address_is_called_weak() -> None:
    one, two = (
        ArrivalSource("prolific", "w1", device="x", address="y"),
        ArrivalSource("prolific", "w2", device="x", address="y"),
    )
    found = signals(study(), [Arrival("a", 0, one), Arrival("b", 1, two)])
    assert {who: [each.sign for each in every] for who, every in found.items()} == {
        "a": ["browser", "address"],
        "b": ["browser", "address"],
    }
    assert found["a"][0].say == "The same browser signed in as b too."
    assert found["a"][1].weak
    assert "this alone says little" in found["a"][1].say


def test_nobody_shares_what_is_not_known() -> None:
    assert signs(study(), Arrival("a", 0, ArrivalSource()), Arrival("b", 0, ArrivalSource())) == {}


def test_many_sign_ins_and_several_sessions_are_noticed() -> None:
    assert signs(study(), *(Arrival("a", n, ArrivalSource(device="x")) for n in range(11))) == {"a": ["often"]}
    assert signs(study(), *(Arrival("a", n, ArrivalSource(device=f"x{n}")) for n in range(4))) == {"a": ["often"]}
    twice = [Arrival("a", n, ArrivalSource("mturk", "w", session=f"s{n}")) for n in range(2)]
    assert signs(study(), *twice) == {"a": ["again"]}


# --- money -------------------------------------------------------------------------------------------------------

PRICED = Settings(price=0.5, base_pay=1, fees=0.2, staff_minutes=90, staff_rate=40)


def test_pay_is_for_texts_handed_in_and_for_taking_part() -> None:
    draft = rated(5).model_copy(update={"id": "draft", "status": "draft", "active_seconds": None})
    found = earned(study(rated(0), rated(1), draft, settings=PRICED), [Arrival("b", 0, ArrivalSource())], TURING)
    a, b = found
    assert (a.stage, a.texts, a.minutes, a.pay, a.per_hour) == ("done", 2, 2, 2.0, 60.0)
    assert (b.stage, b.texts, b.pay, b.per_hour) == ("working", 0, 0, None)


def test_who_does_not_pass_is_paid_for_taking_part() -> None:
    failed = Qualified(protocol=SCARECROW.id, score=10, passed=False, attempts=(Attempt(round=0, score=10),))
    (one, _) = earned(study(settings=PRICED, qualification=failed), [], SCARECROW)
    assert SCARECROW.qualification is not None
    assert SCARECROW.qualification.attempts == 1
    assert (one.stage, one.pay) == ("screened-out", 1)
    (other, _) = earned(study(settings=PRICED, qualification=failed), [], TURING)  # another protocol's test
    assert (other.stage, other.pay) == ("invited", 0)


def test_who_passes_and_finds_no_text_left_is_paid_for_taking_part() -> None:
    passed = Qualified(protocol=SCARECROW.id, score=95, passed=True, attempts=(Attempt(round=0, score=95),))
    (one, _) = earned(study(settings=PRICED, qualification=passed), [Arrival("a", 0, ArrivalSource())], SCARECROW)
    assert (one.stage, one.texts, one.pay) == ("working", 0, 1)


def test_time_on_pages_counts() -> None:
    steps = [{"step": "survey", "protocol": TURING.id, "seconds": 60}, {"step": "consent", "protocol": TURING.id}]
    (one, _) = earned(study(rated(0), meta={"steps": steps}), [], TURING)
    assert one.minutes == 2


def person(who: str = "a", worker: str = "w1", amount: float = 0, reason: str = "", pay: float = 2) -> Earned:
    return Earned(who, worker, "s1", "done", False, 2, 30.0, pay, Bonus(amount, reason))


def test_cost_is_pay_and_bonus_with_fees_and_staff() -> None:
    found = cost(PRICED, [person(amount=1, reason="well done"), person("b", pay=4), person("c", pay=0)])
    assert (found.pay, found.bonus, found.staff) == (6, 1, 60)
    assert found.fees == pytest.approx(1.4)
    assert found.total == pytest.approx(68.4)
    assert found.per_hour == pytest.approx(7)  # of 6 and 8; who is not paid does not count
    assert cost(Settings(), []).per_hour is None


def test_files_for_platforms() -> None:
    everybody = [person(amount=1.255, reason="=careful, work"), person("b", "w2"), person("c", "", amount=3)]
    assert prolific_bonuses(everybody) == "w1,1.26\n"
    assert mturk_bonuses(everybody).splitlines()[1] == 'w1,s1,1.26,"\'=careful, work"'
    rows = list(csv.DictReader(io.StringIO(pay_csv(everybody))))
    assert rows[0] == {
        "worker": "w1",
        "session": "s1",
        "annotator": "a",
        "status": "done",
        "texts": "2",
        "minutes": "30.0",
        "pay": "2.00",
        "bonus": "1.26",
        "reason": "'=careful, work",
        "per_hour": "6.51",
    }


@given(st.text())
def test_no_cell_is_a_formula(cell: str) -> None:
    assert safe(cell)[:1] not in ("=", "+", "-", "@", "\t", "\r") or not cell
    assert safe(cell).endswith(cell)


# --- attempts ----------------------------------------------------------------------------------------------------


def test_attempts_are_shown_exercise_by_exercise() -> None:
    assert SCARECROW.qualification is not None
    part = next(each for each in SCARECROW.qualification.parts if each.exercises)
    asked = next(each for each in SCARECROW.qualification.parts if each.choices)
    exercise, choice = part.exercises[0], asked.choices[0]
    span = exercise.spans()[0]
    found = Mark(
        id="hit", spans=(span,), quotes=(exercise.text[span.start : span.end],), label=exercise.solutions[0].label
    )
    far = Mark(id="far", spans=(Span(0, 1),), quotes=(exercise.text[:1],), label="technical-jargon")
    tested = {"annotator": "a", "protocol": SCARECROW.id, "phase": "qualification"}
    work = [
        Annotation(id="1", document=f"{SCARECROW.id}/{exercise.name}", marks=(found, far), **tested),
        Annotation(id="2", document=f"{SCARECROW.id}/{choice.name}", answers={"answer": choice.answer}, **tested),
    ]
    graded = Qualified(protocol=SCARECROW.id, score=60, passed=True, attempts=(Attempt(round=0, score=60),))
    (attempt,) = attempts_of(study(*work, qualification=graded), "a")
    assert (attempt.phase, attempt.attempt, attempt.score, attempt.passed) == ("qualification", 1, 60, True)
    first, second = attempt.exercises
    assert (first.found, first.missed, first.extra) == (1, len(exercise.solutions) - 1, 1)
    assert (second.points, second.chosen, second.right) == (asked.points, str(choice.answer), str(choice.answer))


# --- over HTTP ---------------------------------------------------------------------------------------------------

PID = {"PROLIFIC_PID": "5f1aaa", "STUDY_ID": "st1", "SESSION_ID": "se1"}


@pytest.fixture
def items() -> list[Item]:
    recruited = Recruitment(platform="prolific")
    settings = PRICED.model_copy(update={"skip": PHASES, "recruitment": recruited, "protocols": (TURING.id,)})
    documents = [Document(id=f"d{n}", text=TEXT) for n in range(3)]
    return [settings, TURING, *documents]


@pytest.fixture
def worker(store: Store) -> str:
    """Somebody from Prolific who hands in two texts with a poor reason."""
    client = Client(store)
    joined = client.post(f"/api/join/{access.open_token(store)}", params=PID).json()
    client.headers["X-Finecomb-Token"] = joined["csrf"]
    for _ in range(2):
        task = client.next()["id"]
        code, answer = client.save(task, "answers", {"answers": {"rating": 1, "why": "good"}}, active=30)
        assert code == 200, answer
        assert client.finish(task, active=30)[0] == 200
    return str(joined["annotator"])


@pytest.fixture
def editor(store: Store) -> Client:
    return Client(store).researching("editor", "ed")


def get(client: Client, path: str, **asked: str) -> Any:
    answer = client.get(f"/api/admin/{path}", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_who_may_do_what(store: Store, worker: str) -> None:
    annotator, viewer, editor = Client(store), Client(store).researching("viewer"), Client(store).researching("editor")
    looks = [("recruiting", {}), ("attempts", {"id": worker}), ("screen", {})]
    changes = [("annotation/kept", {"rules": ["vague"]}), ("annotator/bonus", {"amount": 1, "reason": "r"})]
    (piece, *_) = get(editor, "annotator", id=worker)["pieces"]
    ids = {"annotation/kept": piece["annotation"], "annotator/bonus": worker}
    for path, asked in looks:
        assert annotator.get(f"/api/admin/{path}", params=asked).status_code == 401
        assert viewer.get(f"/api/admin/{path}", params=asked).status_code == 200
    for path, body in changes:
        assert viewer.put(f"/api/admin/{path}", params={"id": ids[path]}, json=body).status_code == 403
        assert editor.put(f"/api/admin/{path}", params={"id": ids[path]}, json=body).status_code == 200
    assert viewer.get("/api/admin/pay").status_code == 403
    assert editor.get("/api/admin/pay").status_code == 200
    routes = {(method, route.path) for route in router.routes for method in route.methods}  # type: ignore[attr-defined]
    named = {("GET", path) for path, _ in looks} | {("PUT", path) for path, _ in changes} | {("GET", "pay")}
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
    assert get(editor, "audit")[0]["did"] == "set bonus"
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
    assert one["pay"] == 2  # what was handed in is paid, also when it does not count


def test_the_other_pages_work_where_nothing_is_marked(worker: str, editor: Client) -> None:
    """They asked for counts of marks, which a protocol of ratings does not have, and were refused."""
    overview = get(editor, "overview")
    assert overview["agreement"]["why"] == "nothing is marked in this protocol"
    (one,) = overview["people"]
    assert (one["progress"]["done"], one["marks"]["value"], one["look"]) == (2, None, [])
    assert get(editor, "annotator", id=worker)["person"]["progress"]["done"] == 2
    (row, *_) = get(editor, "documents")["rows"]
    assert get(editor, "document", id=row["id"])["id"] == row["id"]


def test_unknown_names_are_said_in_words(editor: Client) -> None:
    assert "No annotator is called" in editor.get("/api/admin/attempts", params={"id": "nobody"}).json()["say"]
    kept = editor.put("/api/admin/annotation/kept", params={"id": "nothing"}, json={"rules": ["vague"]})
    assert "no annotation has the id" in kept.json()["say"]


def test_money_is_rounded_half_up() -> None:
    assert [pay.money(each) for each in (0.005, 0.015, 1.005, 2)] == ["0.01", "0.02", "1.01", "2.00"]


def test_a_protocol_without_a_price_costs_nothing(store: Store) -> None:
    assert isinstance(TURING, Protocol)
    store.change_now(researcher_actions.set_settings, "tests", store.head.settings.model_copy(update={"price": None}))
    assert pay.cost(store.head.settings, []).pay == 0
