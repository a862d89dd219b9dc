"""Tests of a Scarecrow study on Mechanical Turk at the paper's size, with one text per HIT."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from finecomb import protocols
from finecomb.collection import access_storage, arrivals_storage, pay
from finecomb.collection.database.store import Store
from finecomb.core.records import Document, Recruitment, Settings
from finecomb.core.study import StudyItem
from finecomb.server.auth import CSRF_HEADER
from tests.databases import Client, FakeClock
from tests.onboarding_client import complete_onboarding

SCARECROW = protocols.load("scarecrow")
TURK = Recruitment(platform="mturk", batch=1)
TEXTS = 1308


@pytest.fixture
def recruitment() -> Recruitment:
    return TURK


@pytest.fixture
def items(recruitment: Recruitment) -> list[StudyItem]:
    texts = [
        Document(
            id=f"t{n}", text=f"The {n}th ferry left at nine with a goat and a letter.", meta={"model": f"m{n % 7}"}
        )
        for n in range(TEXTS)
    ]
    settings = Settings(
        protocols=(SCARECROW.id,), annotators=10, recruitment=recruitment, price=3.5, base_pay=40, skip=("training",)
    )
    return [settings, SCARECROW, *texts]


def accept_hit(store: Store, hit: int, client: Client | None = None, worker: str = "A1WORKER") -> Client:
    """Accept a HIT and start, as one worker."""
    client = client or Client(store)
    asked = {
        "workerId": worker,
        "assignmentId": f"ASSIGN{hit}",
        "hitId": f"HIT{hit}",
        "turkSubmitTo": "https://workersandbox.mturk.com",
    }
    answer = client.post(f"/api/join/{access_storage.get_open_link_token(store)}", params=asked)
    assert answer.status_code == 200, answer.text
    client.headers[CSRF_HEADER] = answer.json()["csrf"]
    return client


def get_ending(client: Client) -> Any:
    return client.get("/api/me").json()["ending"]


def compute_earnings(store: Store) -> list[pay.Earnings]:
    with store.database.read_transaction() as transaction:
        arrivals = arrivals_storage.read_all_arrivals(store, transaction)
    return pay.compute_earnings(store.read_study(), arrivals, store.head.protocol)


def pay_file_rows(store: Store, form: pay.PayFileFormat) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(pay.format_pay_file(form, compute_earnings(store)))))


def qualify_worker(store: Store, clock: FakeClock) -> Client:
    """Complete the qualification in the first HIT, as one worker."""
    client = accept_hit(store, 1)
    clock.now += 60
    complete_onboarding(client, SCARECROW)
    return client


def test_one_person_does_three_hits_and_each_is_counted(store: Store, clock: FakeClock) -> None:
    client = qualify_worker(store, clock)
    documents, codes = [], []
    for hit in (1, 2, 3):
        if hit > 1:
            accept_hit(store, hit, client)
        clock.now += 200
        task = client.next_task()
        client.submit_without_errors(task["id"])
        documents.append(task["text"])
        assert client.post("/api/next").json()["why"] == "all-done"
        end = get_ending(client)
        assert (end["why"], end["more"], end["form"]["assignmentId"]) == ("done", True, f"ASSIGN{hit}")
        codes.append(end["code"])
        clock.now += 60
    assert len(set(documents)) == len(set(codes)) == 3
    assert len({one.id for one in store.read_annotators()}) == 1
    ledger = [
        (row["place"], row["session"], row["texts"], row["for"], row["amount"]) for row in pay_file_rows(store, "tasks")
    ]
    assert ledger == [
        *((f"HIT{hit}", f"ASSIGN{hit}", "1", "texts", "3.50") for hit in (1, 2, 3)),
        ("HIT3", "ASSIGN3", "0", "taking part", "40.00"),
    ]
    (bonus,) = pay_file_rows(store, "mturk")
    assert (bonus["BonusAmount"], bonus["Reason"], bonus["AssignmentId"]) == ("40.00", "taking part", "ASSIGN3")
    (person,) = compute_earnings(store)
    assert (person.total, person.bonus_owed) == (50.5, 40)


def test_the_same_hit_gives_no_second_text_and_what_was_sent_in_stays(store: Store, clock: FakeClock) -> None:
    client = qualify_worker(store, clock)
    task = client.next_task()
    clock.now += 100
    client.submit_without_errors(task["id"])
    accept_hit(store, 1, client)  # opened again
    assert client.post("/api/next").json()["task"] is None
    code, answer = client.finish(task["id"], verb="reopen")
    assert (code, answer["code"]) == (403, "not-allowed")
    assert "finished task" in answer["say"]


def test_a_hit_that_is_given_back_is_gone_on_with_in_the_next(store: Store, clock: FakeClock) -> None:
    client = qualify_worker(store, clock)
    task = client.next_task()
    clock.now += 10
    accept_hit(store, 2, client)
    clock.now += 10
    assert client.next_task()["id"] == task["id"]
    client.submit_without_errors(task["id"])
    assert get_ending(client)["form"]["assignmentId"] == "ASSIGN2"
    clock.now += 10
    accept_hit(store, 1, client)
    clock.now += 10
    assert client.next_task()["id"] != task["id"]


@pytest.mark.parametrize("recruitment", [Recruitment(platform="mturk", batch=3, reward=5)])
def test_what_the_platform_does_not_pay_is_owed_as_a_bonus(store: Store, clock: FakeClock) -> None:
    client = qualify_worker(store, clock)
    for _ in range(3):
        clock.now += 50
        client.submit_without_errors(client.next_task()["id"])
    assert get_ending(client)["why"] == "done"
    clock.now += 10
    accept_hit(store, 2, client)
    clock.now += 50
    client.submit_without_errors(client.next_task()["id"])
    assert get_ending(client) is None
    (person,) = compute_earnings(store)
    assert (person.pay, person.rewarded, person.bonus_owed, person.unbatched_text_count) == (54, 5, 49, 1)


def test_a_batch_without_a_platform_is_refused() -> None:
    with pytest.raises(ValueError, match="'batch' requires a platform"):
        Recruitment(batch=3)
