"""screen, pay and forget from the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import finecomb as fc
from finecomb.cli import app
from finecomb.collection import access_storage, arrivals_storage, researcher_actions_storage
from finecomb.collection.arrivals import Arrival, ArrivalSource
from finecomb.collection.database.location import StudyLocation, parse_location
from finecomb.collection.database.store import Store, open_store
from finecomb.core.records import Annotation, Annotator, Document, Settings
from finecomb.core.study import Study
from tests.cli.test_serve import refused, run
from tests.databases import KINDS, demo_items, new_study_location

WORKER = "5f1secretworker"


def fill(where: StudyLocation) -> None:
    """A study with one worker, who has a personal link as well."""
    store = open_store(where, demo_items())
    try:
        came = ArrivalSource("prolific", WORKER, "st1", "se1", "device1", "address1")
        assert store.run_job_sync(arrivals_storage.sign_in_annotator, access_storage.get_open_link_token(store), came)
        store.run_job_sync(researcher_actions_storage.create_personal_links, "tests", 0, ["reader-1"])
        store.run_job_sync(researcher_actions_storage.create_personal_links, "tests", 0, ["ann"])
    finally:
        store.close()


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A study as commands name it."""
    made = new_study_location(request.param, tmp_path)
    fill(made)
    return str(made.file) if made.file else f"{made.url.replace('+psycopg', '')}#{made.study}"


def came(where: str) -> list[Arrival]:
    store: Store = open_store(parse_location(where))
    try:
        with store.database.read_transaction() as transaction:
            return arrivals_storage.read_all_arrivals(store, transaction)
    finally:
        store.close()


def test_forget_says_what_it_will_remove_and_asks(where: str) -> None:
    asked = CliRunner().invoke(app, ["forget", where], input="n\n")
    assert asked.exit_code == 1
    assert "1 worker id, 1 arrival, 1 session, 2 personal links" in asked.output
    assert len(came(where)) == 1
    said = run("forget", where, "--yes").output
    assert "removed 1 worker id, 1 arrival, 1 session, 2 personal links" in said
    assert "backups" in said
    assert came(where) == []
    assert "0 worker ids" in run("forget", where).output  # nothing left to ask about


def test_forget_takes_some(where: str) -> None:
    assert (
        "removed 0 worker ids, 0 arrivals, 0 sessions, 1 personal link, 1 name"
        in run("forget", where, "--annotator", "ann", "--yes").output
    )
    assert len(came(where)) == 1
    assert "unknown annotator 'ann'" in refused("forget", where, "-a", "ann")  # but by a number now
    assert "unknown annotator 'reader-3'; did you mean 'reader-" in refused("forget", where, "-a", "reader-3")


def test_nothing_is_left_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    fill(parse_location(file))
    assert WORKER.encode() in file.read_bytes()
    run("forget", file, "--yes")
    every = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert not any(each in every for each in (WORKER.encode(), b"device1", b"address1"))


def test_pay_writes_a_file_for_its_owner_only(where: str, tmp_path: Path) -> None:
    target = tmp_path / "pay.csv"
    assert "2 people" in run("pay", where, "-o", target).output
    first, second = csv.DictReader(target.read_text().splitlines())
    assert (first["worker"], first["annotator"], first["status"]) == (WORKER, "reader-1", "working")
    assert (second["worker"], second["annotator"], second["status"]) == ("", "ann", "invited")
    assert target.stat().st_mode & 0o077 == 0
    assert "already exists" in refused("pay", where, "-o", target)
    run("pay", where, "-o", target, "--form", "prolific", "--force")
    assert target.read_text() == ""  # nobody has a bonus
    assert "choose one of pay, tasks, prolific, mturk" in refused(
        "pay", where, "-o", tmp_path / "x.csv", "--form", "paypal"
    )


def test_a_study_that_was_never_served_has_nothing_to_forget_or_pay(tmp_path: Path) -> None:
    fc.write(fc.demo(readers=2), tmp_path / "demo")
    assert "run `finecomb serve` on the study first" in refused("forget", tmp_path / "demo", "--yes")
    assert "run `finecomb serve` on the study first" in refused("pay", tmp_path / "demo", "-o", tmp_path / "pay.csv")


def test_screen_prints_a_table_and_changes_nothing(tmp_path: Path) -> None:
    turing = fc.protocol("turing")
    work = [
        Annotation(
            id=f"w{n}",
            document="d",
            annotator=who,
            protocol=turing.id,
            answers={"rating": 1, "why": "good"},
            meta={"kept": kept},
        )
        for n, (who, kept) in enumerate([("ann", []), ("bea", ["too-short"])])
    ]
    who = [Annotator(id=id, kind="human") for id in ("ann", "bea")]
    text = Document(id="d", text="The ferry left at dawn.")
    fc.write(Study.from_items([Settings(), turing, text, *who, *work]), tmp_path / "study.jsonl")
    before = (tmp_path / "study.jsonl").read_bytes()
    said = run("screen", tmp_path / "study.jsonl").output
    assert "too-short" in said
    assert "ann" in said
    assert "1 suggestion omitted, because" in said
    (row,) = json.loads(run("screen", tmp_path / "study.jsonl", "--json").stdout)["table"]
    assert row == {
        "annotator": "ann",
        "document": "d",
        "rule": "too-short",
        "question": "why",
        "reason": "has 1 word",
        "evidence": "good",
    }
    assert (tmp_path / "study.jsonl").read_bytes() == before
