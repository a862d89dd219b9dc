"""Tests of filling a design over HTTP with accepted people, despite exclusions and people who leave."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from finecomb import protocols
from finecomb.collection import access_storage, annotator_storage, arrivals_storage, pay, researcher_actions_storage
from finecomb.collection.database.location import parse_location
from finecomb.collection.database.store import Store
from finecomb.core.records import Design, Document, Recruitment, Settings
from finecomb.core.study import StudyItem
from tests.databases import Client, FakeClock, open_test_store
from tests.onboarding_client import complete_onboarding

TURING = protocols.load("turing")
DESIGN = Design.model_validate(
    {
        "people": 2,
        "texts": 2,
        "pay": 1.25,
        "currency": "USD",
        "cells": [
            {"factors": {"condition": "none", "model": ["gpt2", "gpt3"], "domain": ["news"]}},
            {"factors": {"condition": "examples", "model": "gpt3", "domain": "news"}, "pay": 1.75},
        ],
    }
)
NAMES = ["none/gpt2/news", "none/gpt3/news", "examples/gpt3/news"]


@pytest.fixture
def items() -> list[StudyItem]:
    texts = [
        Document(id=f"{model}-{n}", text=f"Text {n} of {model}.", meta={"domain": "news", "model": model})
        for model in ("human", "gpt2", "gpt3")
        for n in range(3)
    ]
    return [Settings(protocols=(TURING.id,), design=DESIGN, lease=60), TURING, *texts]


def join(client: Client) -> str:
    """Join as a new person in a new browser, and return the ID, or an empty string when the study is full."""
    client.cookies.clear()
    try:
        client.join_study()
    except AssertionError:
        return ""
    return str(client.get("/api/me").json()["annotator"])


def rate_texts(client: Client, most: int = 99) -> int:
    """Complete all steps, rate up to `most` texts, and return the number of rated texts."""
    complete_onboarding(client, TURING)
    count = 0
    while count < most and (now := client.post("/api/next").json())["task"]:
        answers = {"answers": {"rating": 1, "why": "The middle sentence decided it for me."}}
        assert client.save(now["task"]["id"], "answers", answers)[0] == 200
        assert client.finish(now["task"]["id"])[0] == 200
        count += 1
    return count


def person_count_by_cell(store: Store, excluded: bool = False) -> Counter[str]:
    return Counter(one.cell for one in store.read_annotators() if bool(one.excluded) == excluded)


def fill_design(client: Client) -> int:
    """Add people until the study is full, and return how many took part."""
    count = 0
    while join(client):
        assert rate_texts(client) == 2
        count += 1
        assert count < 20
    return count


def test_every_cell_gets_its_people_and_then_nobody_is_let_in(client: Client, store: Store) -> None:
    assert fill_design(client) == 6
    assert person_count_by_cell(store) == dict.fromkeys(NAMES, 2)
    answer = client.get(f"/api/join/{_token(store)}")
    assert answer.status_code == 423
    assert "This study is full at the moment" in answer.json()["say"]
    assert len(store.read_annotators()) == 6


def _token(store: Store) -> str:
    from finecomb.collection import access_storage

    return access_storage.get_open_link_token(store)


def test_somebody_excluded_reopens_a_place_in_the_same_cell(client: Client, store: Store) -> None:
    fill_design(client)
    victim = next(one for one in store.read_annotators() if one.cell == NAMES[2])
    store.run_study_change_sync(researcher_actions_storage.exclude_annotator, "tests", victim.id, "copied the text")
    assert fill_design(client) == 1
    assert person_count_by_cell(store) == dict.fromkeys(NAMES, 2)
    assert person_count_by_cell(store, excluded=True) == {NAMES[2]: 1}


def test_the_cell_has_factors_and_only_its_texts_are_read(client: Client, store: Store) -> None:
    fill_design(client)
    study = store.read_study()
    models = {document.id: document.meta["model"] for document in study.iter_documents()}
    for one in study.iter_annotators():
        assert "/".join(one.factors.values()) == one.cell
        assert one.condition == one.factors["condition"]
        read = {models[done.document] for done in study.iter_annotations() if done.annotator == one.id}
        assert read <= {"human", one.factors["model"]}


def test_who_leaves_gives_the_place_back_and_may_return_while_it_is_free(
    client: Client, store: Store, clock: FakeClock
) -> None:
    leaver = join(client)
    session, csrf = dict(client.cookies), dict(client.headers)
    assert rate_texts(client, most=1) == 1
    assert fill_design(client) == 5  # the place is held
    clock.now += 3601
    assert fill_design(client) == 1
    client.cookies.clear()
    client.cookies.update(session)
    client.headers.update(csrf)
    assert client.get("/api/me").json()["annotator"] == leaver
    assert client.post("/api/next").json() == {"task": None, "page": None, "why": "none-now"}


def test_who_returns_while_the_place_is_free_goes_on(client: Client, clock: FakeClock) -> None:
    join(client)
    assert rate_texts(client, most=1) == 1
    clock.now += 3601
    assert client.post("/api/next").json()["task"]


def test_researchers_see_each_cell_fill(client: Client, store: Store) -> None:
    join(client)
    rate_texts(client, most=1)
    join(client)
    rate_texts(client)
    client.cookies.clear()
    page = client.sign_in_researcher().get("/api/admin/design").json()
    assert page["currency"] == "USD"
    assert [row["cell"] for row in page["cells"]] == NAMES
    assert sum(row["accepted"] for row in page["cells"]) == 1
    assert sum(row["working"] for row in page["cells"]) == 1
    assert sum(row["open"] for row in page["cells"]) == 4
    people = client.sign_in_researcher().get("/api/admin/recruiting").json()["people"]
    assert sorted(bool(person["cell"] in NAMES and person["came"]) for person in people) == [True, True]


def test_pay_is_that_of_the_cell_and_a_share_for_who_left(client: Client, store: Store) -> None:
    join(client)
    rate_texts(client, most=1)
    fill_design(client)
    earned = pay.compute_earnings(store.read_study(), (), TURING)
    by_cell = {one.id: one.cell for one in store.read_annotators()}
    half = [one.pay for one in earned if one.texts == 1]
    whole = {(by_cell[one.annotator], one.pay) for one in earned if one.texts == 2}
    assert half in ([0.625], [0.875])
    assert whole == {(NAMES[0], 1.25), (NAMES[1], 1.25), (NAMES[2], 1.75)}


def test_a_place_stays_closed_where_the_design_says_so_until_it_is_opened(client: Client, store: Store) -> None:
    fill_design(client)
    client.cookies.clear()
    editor = Client(store).sign_in_researcher("editor", "ed")
    assert editor.put("/api/admin/design/reopen", json={"reopen": False}).status_code == 200
    out = next(one for one in store.read_annotators() if one.cell == NAMES[1])
    store.run_job_sync(researcher_actions_storage.exclude_annotator, "r", out.id, "too fast")
    page = editor.get("/api/admin/design").json()
    assert not page["reopen"]
    assert [row["closed"] for row in page["cells"]] == [0, 1, 0]
    assert fill_design(client) == 0
    assert editor.put("/api/admin/design/reopen", json={"reopen": True}).status_code == 200
    assert fill_design(client) == 1
    assert person_count_by_cell(store) == Counter(dict.fromkeys(NAMES, 2))


def test_a_cell_below_the_floor_is_paid_once(client: Client, store: Store) -> None:
    join(client)
    rate_texts(client)
    client.cookies.clear()
    (person,) = store.read_annotators()
    steps: Any = person.meta["steps"]
    slow = [{**step, "seconds": 300} for step in steps]
    store.run_job_sync(
        annotator_storage.replace_annotator, person.model_copy(update={"meta": {**person.meta, "steps": slow}})
    )
    editor = Client(store).sign_in_researcher("editor", "ed")
    assert editor.patch("/api/admin/settings", json={"pay_floor": 12, "budget": 9}).status_code == 200
    page = editor.get("/api/admin/recruiting").json()
    (row,) = page["cells"]
    minutes = page["people"][0]["minutes"]
    assert (page["pay_floor"], page["budget"], row["cell"], row["people"]) == (12, 9, person.cell, 1)
    lacking = 12 * minutes / 60 - page["people"][0]["pay"]
    assert lacking <= row["lacking"] < lacking + 0.01
    asked = {"cell": person.cell}
    assert Client(store).sign_in_researcher("viewer").post("/api/admin/design/bonus", params=asked).status_code == 403
    assert editor.post("/api/admin/design/bonus", params=asked).json()["lacking"] == row["lacking"]
    (paid,) = editor.get("/api/admin/recruiting").json()["people"]
    assert paid["bonus"] == {"amount": row["lacking"], "reason": "adjustment for the time spent"}
    assert paid["per_hour"] >= 12
    again = editor.post("/api/admin/design/bonus", params=asked)
    assert (again.status_code, "paid already" in again.text) == (409, True)


def test_nobody_takes_part_twice_within_a_study(store: Store, client: Client) -> None:
    settings = store.head.settings.model_copy(update={"recruitment": Recruitment(platform="prolific")})
    store.run_study_change_sync(researcher_actions_storage.update_settings, "tests", settings)
    who: dict[str, Any] = {"PROLIFIC_PID": "p1", "STUDY_ID": "s", "SESSION_ID": "first"}
    answer = client.post(f"/api/join/{_token(store)}", params=who)
    client.headers["X-Finecomb-Token"] = answer.json()["csrf"]
    rate_texts(client)
    client.cookies.clear()
    again = client.post(f"/api/join/{_token(store)}", params=who | {"SESSION_ID": "second"})
    assert again.status_code == 403
    assert "only once" in again.json()["say"]


def test_nobody_takes_part_in_two_studies_that_are_kept_apart(store: Store, items: list[StudyItem]) -> None:
    """The other study is in the same database, and its people are recognised by their worker IDs."""
    from dataclasses import replace

    from finecomb.collection.arrivals import ArrivalSource
    from finecomb.collection.database.store import open_store

    apart = DESIGN.model_copy(update={"apart_from": (f"#{store.name}",)})
    settings = Settings(protocols=(TURING.id,), design=apart)
    other = open_store(replace(store.database.place, study="other"), [settings, *items[1:]], store.clock)
    try:
        worker = ArrivalSource(platform="mturk", worker="w1", session="a1")
        assert store.run_job_sync(arrivals_storage.sign_in_annotator, _token(store), worker)
        with pytest.raises(arrivals_storage.AlreadyParticipatedError):
            other.run_job_sync(arrivals_storage.sign_in_annotator, _token(other), replace(worker, session="a2"))
        assert other.run_job_sync(arrivals_storage.sign_in_annotator, _token(other), replace(worker, worker="w2"))
    finally:
        other.close()


def test_the_survey_decides_who_is_eligible(store: Store, client: Client) -> None:
    from finecomb.core.question import Question

    survey = (Question(name="adult", ask="Are you an adult?", scale="yes-no"),)
    asked = TURING.model_copy(update={"version": "9", "survey": survey})
    store.run_study_change_sync(researcher_actions_storage.add_and_activate_protocol, "tests", asked)
    design = DESIGN.model_copy(update={"eligible": {"adult": (True,)}})
    settings = store.head.settings.model_copy(update={"design": design})
    store.run_study_change_sync(researcher_actions_storage.update_settings, "tests", settings)
    who = join(client)
    page = client.post("/api/next").json()["page"]
    assert page["kind"] == "survey"
    assert not store.read_annotators()[-1].cell
    sent = {"change": "c1", "answers": {"adult": False}, "active": 1}
    assert client.put("/api/steps/survey", json=sent).status_code == 200
    assert client.post("/api/next").json()["why"] == "screened-out"
    assert not next(one for one in store.read_annotators() if one.id == who).cell
    join(client)
    client.post("/api/next")
    assert client.put("/api/steps/survey", json=sent | {"answers": {"adult": True}}).status_code == 200
    assert client.post("/api/next").json()["page"]["kind"] == "instructions"
    assert store.read_annotators()[-1].cell in NAMES


def test_the_overview_counts_the_texts_that_the_people_of_all_cells_read(store: Store, client: Client) -> None:
    assert join(client)
    rate_texts(client)
    page = Client(store).sign_in_researcher().get("/api/admin/overview").json()
    assert page["annotations"] == {"done": 2, "of": 12}
    assert page["budget"] == pytest.approx(8.5, abs=0.4)  # two people per cell, at 1.25, 1.25 and 1.75


def test_a_worker_whose_id_was_forgotten_elsewhere_is_still_known_there(tmp_path: Path, items: list[StudyItem]) -> None:
    turk = Recruitment(platform="mturk")
    settings, protocol, *texts = items
    assert isinstance(settings, Settings)
    first = settings.model_copy(update={"recruitment": turk})
    apart = DESIGN.model_copy(update={"apart_from": (str(tmp_path / "one" / "study.db"),)})
    second = first.model_copy(update={"design": apart})
    hit = {"workerId": "A1", "hitId": "H", "assignmentId": "S"}
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    where = parse_location(tmp_path / "one" / "study.db")
    with open_test_store(where, [first, protocol, *texts], FakeClock()) as store:
        assert (
            Client(store).post(f"/api/join/{access_storage.get_open_link_token(store)}", params=hit).status_code == 200
        )
        store.run_study_change_sync(arrivals_storage.forget_personal_data, "tests")
    with open_test_store(
        parse_location(tmp_path / "two" / "study.db"), [second, protocol, *texts], FakeClock()
    ) as store:
        answer = Client(store).post(f"/api/join/{access_storage.get_open_link_token(store)}", params=hit)
        assert "already taken part in this study or a related one" in answer.json()["say"]
        assert (
            Client(store)
            .post(f"/api/join/{access_storage.get_open_link_token(store)}", params=hit | {"workerId": "A2"})
            .is_success
        )
