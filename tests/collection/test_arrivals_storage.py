"""Where people came from: kept apart from the study, carried through backups, and forgotten on request."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from finecomb.collection import access_storage, arrivals_storage, audit_log_storage, researcher_actions_storage
from finecomb.collection.arrivals import Arrival, ArrivalSource
from finecomb.collection.database import backup, migrations, tables
from finecomb.collection.database.connection import Database
from finecomb.collection.database.location import StudyLocation, place
from finecomb.collection.database.store import Store, open_store, prepare, read_items
from finecomb.core.study import Study
from finecomb.core.study_checks import check
from tests.databases import KINDS, Client, Clocked, demo_items, new_place, opened, server

ANN = ArrivalSource("prolific", "5f1worker", "study1", "session1", "device1", "address1")


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> StudyLocation:
    return new_place(request.param, tmp_path)


@pytest.fixture
def store(where: StudyLocation) -> Iterator[Store]:
    with opened(where, demo_items(), Clocked()) as store:
        yield store


def enter(store: Store, came: ArrivalSource) -> str:
    made = store.do_now(arrivals_storage.enter, access_storage.open_token(store), came)
    assert made is not None
    with store.database.reading() as transaction:
        session = access_storage.session(store, transaction, made)
    assert session is not None
    return session.who


def all_of(store: Store) -> list[Arrival]:
    with store.database.reading() as transaction:
        return arrivals_storage.arrivals(store, transaction)


def kept(store: Store) -> arrivals_storage.PersonalData:
    with store.database.reading() as transaction:
        return arrivals_storage.personal_data(store, transaction)


def test_a_worker_is_the_same_annotator_from_another_device_once_let_go(store: Store) -> None:
    first = enter(store, ANN)
    with pytest.raises(arrivals_storage.OtherBrowserError):
        enter(store, replace(ANN, device="device2", session="session2"))
    store.do_now(arrivals_storage.release_browser, "tests", first)
    assert enter(store, replace(ANN, device="device2", session="session2")) == first
    assert enter(store, replace(ANN, worker="5f2worker")) != first
    assert enter(store, replace(ANN, platform="mturk")) != first  # ids of two platforms are two people
    assert [each.source.device for each in all_of(store) if each.annotator == first] == ["device1", "device2"]
    one = next(each for each in store.annotators() if each.id == first)
    assert one.platform == "prolific"


def test_worker_ids_are_in_no_record(store: Store) -> None:
    enter(store, ANN)
    said = "".join(item.to_json() for item in store.items())
    assert not any(each in said for each in ("5f1worker", "study1", "session1", "device1", "address1"))


def test_a_backup_carries_arrivals_and_puts_them_back(
    where: StudyLocation, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where what is replaced is kept
    enter(store, ANN)
    before = all_of(store)
    target = tmp_path / "copy.db"
    backup.back_up(store.database, target)
    store.do_now(arrivals_storage.forget, "tests")
    assert all_of(store) == []
    store.close()
    backup.restore(target, where, force=True)
    again = open_store(where)
    try:
        assert all_of(again) == before
    finally:
        again.close()


def test_forgetting_leaves_the_work_and_nothing_of_the_person(store: Store) -> None:
    ann, bea = enter(store, ANN), enter(store, replace(ANN, worker="5f2worker", device="device2"))
    store.do_now(researcher_actions_storage.make_links, "tests", 0, [ann])
    assert kept(store) == arrivals_storage.PersonalData(arrivals=2, workers=2, links=1, sessions=2)
    assert store.do_now(arrivals_storage.forget, "tests", [ann]) == arrivals_storage.PersonalData(1, 1, 1, 1)
    assert [each.annotator for each in all_of(store)] == [bea]
    assert {ann, bea} <= {each.id for each in store.annotators()}
    assert store.do_now(arrivals_storage.forget, "tests") == arrivals_storage.PersonalData(1, 1, 0, 1)
    assert kept(store) == arrivals_storage.PersonalData(0, 0, 0, 0)
    with store.database.reading() as transaction:
        lines = audit_log_storage.entries(store, transaction)
    assert [about for _, _, did, about in lines if did.startswith("forgot")] == [
        '{"annotators":"all"}',
        f'{{"annotators":["{ann}"]}}',
    ]
    assert not any("5f1worker" in about for *_, about in lines)


def test_forgetting_takes_names_from_people_links_and_the_log(store: Store) -> None:
    """Who was called by a name in a link has a number afterwards, with all of their work."""
    (link,) = store.do_now(researcher_actions_storage.make_links, "tests", 0, ["Maria Santos"])
    store.do_now(researcher_actions_storage.make_links, "tests", 1)
    reader = Client(store).joined(link.token)
    reader.nothing_found(task := reader.next()["id"])
    store.do_now(researcher_actions_storage.name_annotator, "tests", "Maria Santos", "Maria from Porto")
    store.do_now(researcher_actions_storage.revoke_links, "tests", "Maria Santos")
    assert kept(store).names == 1
    assert store.change_now(arrivals_storage.forget, "tests", ["Maria Santos"]).names == 1
    assert kept(store).names == 0
    (work,) = store.annotations(tables.annotation.c.id == task)
    assert work.annotator in {person.id for person in store.annotators()}
    assert work.annotator.startswith("reader-")
    with store.database.reading() as transaction:
        lines = audit_log_storage.entries(store, transaction)
    everything = str([lines, store.annotators(), list(store.study().iter_annotations())])
    assert "Maria" not in everything
    assert (
        len([did for _, _, did, _ in lines if did in ("made personal links", "named annotator", "revoked links")]) == 4
    )
    assert check(store.study()) == []


def test_researchers_stay_signed_in_when_annotators_are_forgotten(store: Store) -> None:
    token = store.do_now(researcher_actions_storage.invite, "tests", "ann", "owner")
    made = store.do_now(access_storage.follow_link, token, "researcher")
    store.do_now(arrivals_storage.forget, "tests")
    with store.database.reading() as transaction:
        assert access_storage.session(store, transaction, made or "") is not None


# --- the migration -----------------------------------------------------------------------------------------------


@pytest.fixture(params=KINDS)
def first_version(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyLocation:
    """A database of version 1 with a study, in a PostgreSQL database of its own."""
    monkeypatch.chdir(tmp_path)  # where copies of PostgreSQL databases go
    if request.param == "sqlite":
        where = place(tmp_path / "study.db")
    else:
        name = f"old_{uuid.uuid4().hex}"
        with Database(place(f"{server()}#x")).writing() as transaction:
            transaction.command("COMMIT")
            transaction.command(f"CREATE DATABASE {name}")
        where = place(f"{server().replace('/postgres?', f'/{name}?')}#study")
    database = Database(where)
    migrations.upgrade(database, "1")
    with database.writing() as transaction:
        values = {"name": "study", "state": "open", "settings": "{}", "imported": "{}", "secret": "s", "joining": 1}
        transaction.run(sa.insert(tables.study).values(**values))
    database.close()
    return where


def test_a_database_of_version_1_is_upgraded_after_a_backup(first_version: StudyLocation, tmp_path: Path) -> None:
    database = Database(first_version)
    saved = prepare(database)
    assert saved is not None
    assert saved.exists()
    assert prepare(database) is None
    assert migrations.current(database) == migrations.head() == "4"
    assert migrations.current(Database(place(saved))) == "1"
    database.close()
    with opened(first_version, demo_items(), Clocked()) as store:
        enter(store, ANN)
        assert len(all_of(store)) == 1
    assert len(Study.from_items(read_items(first_version)).documents) == 16
