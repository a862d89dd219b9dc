"""Tests of arrivals: stored separately from the study, kept in backups, and removed on request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from finecomb.collection import access_storage, arrivals_storage, audit_log_storage, researcher_actions_storage
from finecomb.collection.arrivals import Arrival, ArrivalSource
from finecomb.collection.database import backup, migrations, tables
from finecomb.collection.database.connection import Database
from finecomb.collection.database.location import StudyLocation, parse_location
from finecomb.collection.database.store import Store, migrate_database, open_store, read_study_records
from finecomb.core.study import Study
from finecomb.core.study_checks import check_study
from tests.databases import (
    KINDS,
    Client,
    FakeClock,
    demo_items,
    new_postgresql_database,
    new_study_location,
    open_test_store,
)

PROLIFIC_SOURCE = ArrivalSource("prolific", "5f1worker", "study1", "session1", "device1", "address1")


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> StudyLocation:
    return new_study_location(request.param, tmp_path)


@pytest.fixture
def store(where: StudyLocation) -> Iterator[Store]:
    with open_test_store(where, demo_items(), FakeClock()) as store:
        yield store


def sign_in_from(store: Store, came: ArrivalSource) -> str:
    made = store.run_job_sync(arrivals_storage.sign_in_annotator, access_storage.get_open_link_token(store), came)
    assert made is not None
    with store.database.read_transaction() as transaction:
        session = access_storage.find_session(store, transaction, made)
    assert session is not None
    return session.who


def read_arrivals(store: Store) -> list[Arrival]:
    with store.database.read_transaction() as transaction:
        return arrivals_storage.read_all_arrivals(store, transaction)


def count_stored_personal_data(store: Store) -> arrivals_storage.PersonalDataCounts:
    with store.database.read_transaction() as transaction:
        return arrivals_storage.count_personal_data(store, transaction)


def test_a_worker_is_the_same_annotator_from_another_device_once_let_go(store: Store) -> None:
    first = sign_in_from(store, PROLIFIC_SOURCE)
    with pytest.raises(arrivals_storage.DifferentBrowserError):
        sign_in_from(store, replace(PROLIFIC_SOURCE, device="device2", session="session2"))
    store.run_job_sync(arrivals_storage.unbind_browser, "tests", first)
    assert sign_in_from(store, replace(PROLIFIC_SOURCE, device="device2", session="session2")) == first
    assert sign_in_from(store, replace(PROLIFIC_SOURCE, worker="5f2worker")) != first
    assert (
        sign_in_from(store, replace(PROLIFIC_SOURCE, platform="mturk")) != first
    )  # IDs of two platforms are two people
    assert [each.source.device for each in read_arrivals(store) if each.annotator == first] == ["device1", "device2"]
    one = next(each for each in store.read_annotators() if each.id == first)
    assert one.platform == "prolific"


def test_worker_ids_are_in_no_record(store: Store) -> None:
    sign_in_from(store, PROLIFIC_SOURCE)
    said = "".join(item.to_json() for item in store.iter_records())
    assert not any(each in said for each in ("5f1worker", "study1", "session1", "device1", "address1"))


def test_a_backup_carries_arrivals_and_puts_them_back(
    where: StudyLocation, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the folder of the backup of replaced data
    sign_in_from(store, PROLIFIC_SOURCE)
    before = read_arrivals(store)
    target = tmp_path / "copy.db"
    backup.back_up_database(store.database, target)
    store.run_job_sync(arrivals_storage.forget_personal_data, "tests")
    assert read_arrivals(store) == []
    store.close()
    backup.restore_backup(target, where, force=True)
    again = open_store(where)
    try:
        assert read_arrivals(again) == before
    finally:
        again.close()


def test_forgetting_leaves_the_work_and_nothing_of_the_person(store: Store) -> None:
    ann, bea = (
        sign_in_from(store, PROLIFIC_SOURCE),
        sign_in_from(store, replace(PROLIFIC_SOURCE, worker="5f2worker", device="device2")),
    )
    store.run_job_sync(researcher_actions_storage.create_personal_links, "tests", 0, [ann])
    assert count_stored_personal_data(store) == arrivals_storage.PersonalDataCounts(
        arrivals=2, workers=2, links=1, sessions=2
    )
    assert store.run_job_sync(
        arrivals_storage.forget_personal_data, "tests", [ann]
    ) == arrivals_storage.PersonalDataCounts(1, 1, 1, 1)
    assert [each.annotator for each in read_arrivals(store)] == [bea]
    assert {ann, bea} <= {each.id for each in store.read_annotators()}
    assert store.run_job_sync(arrivals_storage.forget_personal_data, "tests") == arrivals_storage.PersonalDataCounts(
        1, 1, 0, 1
    )
    assert count_stored_personal_data(store) == arrivals_storage.PersonalDataCounts(0, 0, 0, 0)
    with store.database.read_transaction() as transaction:
        lines = audit_log_storage.read_latest_entries(store, transaction)
    assert [about for _, _, did, about in lines if did == "deleted worker IDs and names"] == [
        '{"annotators":"all"}',
        f'{{"annotators":["{ann}"]}}',
    ]
    assert not any("5f1worker" in about for *_, about in lines)


def test_forgetting_takes_names_from_people_links_and_the_log(store: Store) -> None:
    """A person named in a link has a number afterwards, with all their work."""
    (link,) = store.run_job_sync(researcher_actions_storage.create_personal_links, "tests", 0, ["Maria Santos"])
    store.run_job_sync(researcher_actions_storage.create_personal_links, "tests", 1)
    reader = Client(store).join_study(link.token)
    reader.submit_without_errors(task := reader.next_task()["id"])
    store.run_job_sync(researcher_actions_storage.set_display_name, "tests", "Maria Santos", "Maria from Porto")
    store.run_job_sync(researcher_actions_storage.revoke_annotator_links, "tests", "Maria Santos")
    assert count_stored_personal_data(store).names == 1
    assert store.run_study_change_sync(arrivals_storage.forget_personal_data, "tests", ["Maria Santos"]).names == 1
    assert count_stored_personal_data(store).names == 0
    (work,) = store.read_annotations(tables.annotation.c.id == task)
    assert work.annotator in {person.id for person in store.read_annotators()}
    assert work.annotator.startswith("reader-")
    with store.database.read_transaction() as transaction:
        lines = audit_log_storage.read_latest_entries(store, transaction)
    everything = str([lines, store.read_annotators(), list(store.read_study().iter_annotations())])
    assert "Maria" not in everything
    assert (
        len([did for _, _, did, _ in lines if did in ("made personal links", "named annotator", "revoked links")]) == 4
    )
    assert check_study(store.read_study()) == []


def test_researchers_stay_signed_in_when_annotators_are_forgotten(store: Store) -> None:
    token = store.run_job_sync(researcher_actions_storage.invite_researcher, "tests", "ann", "owner")
    made = store.run_job_sync(access_storage.sign_in_with_link, token, "researcher")
    store.run_job_sync(arrivals_storage.forget_personal_data, "tests")
    with store.database.read_transaction() as transaction:
        assert access_storage.find_session(store, transaction, made or "") is not None


# --- migration ---------------------------------------------------------------------------------------------------


@pytest.fixture(params=KINDS)
def first_version(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyLocation:
    """Yield a database of version 1 with a study, on PostgreSQL in its own database."""
    monkeypatch.chdir(tmp_path)  # the folder of backups of PostgreSQL databases
    if request.param == "sqlite":
        where = parse_location(tmp_path / "study.db")
    else:
        where = parse_location(f"{new_postgresql_database()}#study")
    database = Database(where)
    migrations.upgrade(database, "1")
    with database.write_transaction() as transaction:
        values = {"name": "study", "state": "open", "settings": "{}", "imported": "{}", "secret": "s", "joining": 1}
        transaction.execute(sa.insert(tables.study).values(**values))
    database.close()
    return where


def test_a_database_of_version_1_is_upgraded_after_a_backup(first_version: StudyLocation, tmp_path: Path) -> None:
    database = Database(first_version)
    saved = migrate_database(database)
    assert saved is not None
    assert saved.exists()
    assert migrate_database(database) is None
    assert migrations.current_version(database) == migrations.latest_version() == "4"
    assert migrations.current_version(Database(parse_location(saved))) == "1"
    database.close()
    with open_test_store(first_version, demo_items(), FakeClock()) as store:
        sign_in_from(store, PROLIFIC_SOURCE)
        assert len(read_arrivals(store)) == 1
    assert len(Study.from_items(read_study_records(first_version)).documents) == 16
