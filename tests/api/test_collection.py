"""Collection from Python: the numbers that the commands print, refusals in Python's words, and short reprs."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path
from typing import Any

import httpx2 as httpx
import polars as pl
import pytest
from typer.testing import CliRunner

import finecomb as fc
from finecomb import formats, protocols
from finecomb.api.collection import (
    audit,
    backup,
    draw_audit,
    exercise,
    forget,
    links,
    pay,
    preview,
    rehearse,
    repair,
    restore,
    screen,
    serve,
    verify_backup,
)
from finecomb.api.planned_tests import parse_planned_test
from finecomb.cli import app
from finecomb.core.errors import FinecombError, ParameterError
from finecomb.core.protocol_yaml import format_yaml
from finecomb.core.records import Annotation, Annotator, Design, Document, Settings
from finecomb.core.results import Result
from finecomb.core.study import Study, StudyItem

TURING = protocols.load("turing")


def printed_json(*words: object) -> dict[str, Any]:
    result = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def assert_short(result: Result) -> None:
    assert len(repr(result).splitlines()) <= 15
    assert len(repr(result)) <= 2000
    assert result._repr_html_().startswith("<")


@pytest.fixture
def served(tmp_path: Path) -> Path:
    """A study with a database, in which two annotators have personal links."""
    fc.write(fc.demo(readers=2), tmp_path / "demo")
    links(tmp_path / "demo", new=1, name="ann")
    return tmp_path / "demo"


@pytest.fixture
def suspicious() -> Study:
    work = [
        Annotation(
            id=f"w{n}",
            document="d",
            annotator=who,
            protocol=TURING.id,
            answers={"rating": 1, "why": "good"},
            meta={"kept": kept},
        )
        for n, (who, kept) in enumerate([("ann", []), ("bea", ["too-short"])])
    ]
    people = [Annotator(id=id, kind="human") for id in ("ann", "bea")]
    return Study.from_items([Settings(), TURING, Document(id="d", text="The ferry left at dawn."), *people, *work])


@pytest.fixture
def designed() -> Study:
    """A study with a design of two cells and two planned tables."""
    design = Design.model_validate(
        {
            "people": 12,
            "texts": 1,
            "pay": 2,
            "currency": "EUR",
            "cross": {"condition": ["none", "examples"], "model": "m", "domain": "news"},
        }
    )
    texts = [
        Document(id=id, text=f"The ferry {id} left at nine with a goat.", meta={"domain": "news", "model": model})
        for id, model in (("a", "human"), ("b", "m"))
    ]
    planned = ("test --what scores --by condition", "stats --by cell.condition")
    items: list[StudyItem] = [Settings(protocols=(TURING.id,), design=design, planned=planned), TURING, *texts]
    return Study.from_items(items)


def test_pay_reads_a_database_or_a_study_and_writes_what_it_returns(served: Path, tmp_path: Path) -> None:
    table = pay(served, output=tmp_path / "pay.csv")
    assert (tmp_path / "pay.csv").read_text() == table.csv
    assert (tmp_path / "pay.csv").stat().st_mode & 0o077 == 0
    assert table.find(annotator="ann").status == "invited"
    assert len(pay(fc.demo(readers=2))) == 2
    assert pay(str(served), form="prolific").csv == ""
    assert_short(table)
    with pytest.raises(ParameterError, match=r"^unknown form 'paypal'; choose one of pay, tasks, prolific, mturk"):
        pay(served, form="paypal")
    with pytest.raises(ParameterError, match=r"^db=mysql: expected postgresql://.*; omit db to use"):
        pay(served, db="mysql")


def test_screen_gives_what_the_command_prints(suspicious: Study, tmp_path: Path) -> None:
    fc.write(suspicious, tmp_path / "study.jsonl")
    screening, command = screen(suspicious), printed_json("screen", tmp_path / "study.jsonl")
    assert screening.to_dicts() == command["table"]
    assert screening.people.to_dicts() == command["people"]
    assert screening.notes == ("1 suggestion omitted, because a researcher decided to keep the work",)
    assert screen(tmp_path / "study.jsonl") == screening
    assert len(screen(pl.DataFrame({"id": ["a"], "text": ["One lake."]}))) == 0
    assert_short(screening)


def test_forget_counts_then_removes(served: Path) -> None:
    copy = backup(served)
    found = forget(served, dry_run=True)
    assert {row.data: row.records for row in found} == {
        "worker id": 0,
        "arrival": 0,
        "session": 0,
        "personal link": 2,
        "name": 1,
    }
    with pytest.raises(ParameterError, match=r"unknown annotator 'anna'; did you mean 'ann'"):
        forget(served, annotator="anna")
    assert forget(served, annotator="ann").find(data="personal link").records == 1
    removed = forget(served)
    assert removed.find(data="personal link").records == 1
    assert removed.backups == (copy,)
    assert str(copy) in removed.notes[0]
    assert forget(served).is_empty
    assert_short(removed)


def test_an_audit_is_drawn_judged_and_estimated(tmp_path: Path) -> None:
    drawn = draw_audit(fc.demo(), per_label=2, by="model", auditors=1)
    plan = drawn.study.settings.audit
    assert plan is not None
    assert sorted(row.mark for row in drawn) == list(plan.marks)
    assert_short(drawn)
    formats.save_records(fc.demo().items(), tmp_path / "demo")
    result = CliRunner().invoke(
        app,
        ["audit", str(tmp_path / "demo"), "--per-label", "2", "--auditors", "1", "-o", str(tmp_path / "audit")],
    )
    assert result.exit_code == 0, result.output
    assert fc.read(tmp_path / "audit") == drawn.study
    with pytest.raises(FinecombError, match=r"no mark has been judged yet"):
        audit(drawn.study)
    with pytest.raises(FinecombError, match=r"is already an audit"):
        draw_audit(drawn.study)
    document_by_mark = {row.mark: row.document for row in drawn}
    verdicts = [
        Annotation(
            id=f"v{n}",
            document=document_by_mark[mark],
            annotator="eve",
            protocol="audit@1",
            about=mark,
            answers={"verdict": "legitimate" if n % 3 else "not-legitimate"},
        )
        for n, mark in enumerate(plan.marks)
    ]
    judged = Study.from_items([*drawn.study.items(), Annotator(id="eve", kind="human"), *verdicts])
    fc.write(judged, tmp_path / "judged")
    findings, command = audit(judged, draws=20), printed_json("audit", tmp_path / "judged", "--draws", 20)
    assert findings.judged_count == findings.drawn_count == len(plan.marks)
    shown = [row["value"] for row in command["table"]]
    assert [row.value for row in findings.rows()] == pytest.approx(
        [float("nan") if v is None else v for v in shown], nan_ok=True
    )
    assert_short(findings)


def test_an_exercise_is_a_protocol_that_can_be_written(tmp_path: Path) -> None:
    made = exercise(fc.demo(), ["harbour-b", "harbour-c"], to="test", pass_=0.5)
    assert made.protocol.qualification is not None
    assert made.protocol.qualification.pass_at == 50
    assert [row.errors for row in made] == [7, 5]
    (tmp_path / "own.yaml").write_text(made.to_yaml(), encoding="utf-8")
    assert protocols.load(str(tmp_path / "own.yaml")) == made.protocol
    assert_short(made)
    with pytest.raises(ParameterError, match=r"^pass_ and precision require to=test"):
        exercise(fc.demo(), "harbour-b", precision=0.5)
    with pytest.raises(ParameterError, match=r"name another annotator with gold$"):
        exercise(fc.demo(), "harbour-b", gold="nobody")
    with pytest.raises(ParameterError, match=r"precision must be at most 1, found 2"):
        exercise(fc.demo(), "harbour-b", to="test", precision=2)


def test_a_backup_is_verified_and_restored(served: Path, tmp_path: Path) -> None:
    copy = backup(served, output=tmp_path / "monday.db")
    assert copy == tmp_path / "monday.db"
    report = verify_backup(copy)
    assert report.sealed
    assert len(report) == 1
    assert_short(report)
    with pytest.raises(ParameterError, match=r"pass force to replace it"):
        restore(copy, served)
    assert restore(copy, served, force=True) is not None
    assert restore(copy, tmp_path / "elsewhere.db") is None
    assert fc.read(tmp_path / "elsewhere.db") == fc.read(copy)
    with pytest.raises(FinecombError, match=r"file not found"):
        restore(tmp_path / "nothing.db", served)


def test_a_sound_database_needs_no_repair(served: Path) -> None:
    report = repair(served)
    assert list(report) == []
    assert report.backup is report.aside is None
    assert_short(report)


def test_links_are_rows(served: Path) -> None:
    made = links(str(served), new=1, name=["ann", "bea"], public_url="https://study.test/")
    assert [row.annotator for row in made][:2] == ["ann", "bea"]
    assert all(row.link.startswith("https://study.test/join/") for row in made)
    assert_short(made)
    with pytest.raises(
        ParameterError, match=r"^no recipient is given; pass new=3 for three new annotators, or name=ann$"
    ):
        links(served)
    with pytest.raises(ParameterError, match=r"^researcher=NAME cannot be combined"):
        links(served, researcher="owner", new=1)
    with pytest.raises(FinecombError, match=r"unknown researcher 'bob'"):
        links(served, researcher="bob")


def test_a_trial_run_has_the_power_that_the_command_prints(designed: Study, tmp_path: Path) -> None:
    skill, calls = ["none=0.15", "examples=0.9"], list[tuple[int, int | None]]()
    trial = rehearse(designed, skill=skill, runs=3, output=tmp_path / "kept", progress=lambda *step: calls.append(step))
    assert trial.is_filled
    assert fc.read(tmp_path / "kept") == trial.study
    assert calls[-1] == (3, 3)
    assert {row.runs for row in trial.power} == {3}
    fc.write(designed, tmp_path / "study")
    flags = [word for each in skill for word in ("--skill", each)]
    assert trial.to_dicts() == printed_json("rehearse", tmp_path / "study", *flags)["table"]
    text = CliRunner().invoke(app, ["rehearse", str(tmp_path / "study"), *flags, "--runs", "3"]).stdout
    _, table = text.split("Power of the planned tests")
    powers = [line.split()[-4] for line in table.splitlines() if line.startswith("test --what")]
    assert powers == [f"{row.power:.3f}" for row in trial.power]
    assert_short(trial)
    assert_short(trial.power)


def test_a_trial_run_works_inside_an_event_loop(designed: Study) -> None:
    async def run() -> int:
        return len(rehearse(designed, arrivals=2, runs=0).visits)

    assert asyncio.run(run()) == 2


def test_a_trial_run_refuses_what_it_cannot_do(designed: Study, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"pass the number of participants with arrivals$"):
        rehearse(fc.demo())
    with pytest.raises(ParameterError, match=r"^skill=good: expected a share"):
        rehearse(designed, skill="good")
    with pytest.raises(ParameterError, match=r"rejected must be at most 0.95, found 1"):
        rehearse(designed, rejected=1)
    with pytest.raises(ParameterError, match=r"already exists; choose another name or pass force"):
        rehearse(designed, output=tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("test --whaat scores", "unrecognized arguments: --whaat"),
        ("test --what nonsense", "invalid choice: 'nonsense'"),
        ("tset", "is not a supported command"),
    ],
)
def test_a_planned_test_that_cannot_be_read_is_an_error(line: str, message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        parse_planned_test(line)


def test_a_planned_test_that_cannot_be_made_is_a_note(designed: Study) -> None:
    trial = rehearse(designed, arrivals=2, runs=0)
    power = trial.compute_power(2, planned=["test --what scores --by nothing", "test --what coders --label x"])
    assert list(power) == []
    assert "planned 'test --what scores --by nothing': " in power.notes[0]
    assert "label does not apply to coders" in power.notes[1]
    assert parse_planned_test("measure --by model") is None
    read = parse_planned_test("test -w systems -m count --each-label --where a=b --where c=d --draws 5 --json -p x")
    assert read is not None
    assert read.options == {"measure": "count", "each_label": True, "draws": 5}
    assert read.selection == {"where": ["a=b", "c=d"], "protocol": "x"}


def test_a_study_is_served_in_the_background_and_stopped(tmp_path: Path) -> None:
    fc.write(fc.demo(readers=2), tmp_path / "demo")
    with serve(tmp_path / "demo", port=0) as server:
        address, _, token = server.links["annotators"].partition("/join/")
        assert address == server.url
        assert httpx.post(f"{address}/api/join/{token}").json()["annotator"] == "reader-3"
        assert "Sign in" in httpx.get(server.links["researchers"]).text
        assert "serving" in repr(server)
        assert len(repr(server).splitlines()) <= 15
        assert "/join/" in server._repr_html_()
        with pytest.raises(FinecombError, match=r"served"):
            serve(tmp_path / "demo", port=0)
    assert "stopped" in repr(server)
    server.stop()  # a second time changes nothing
    serve(tmp_path / "demo", port=0).stop()  # the lock and the database were released


def test_a_server_waits_until_another_thread_stops_it(tmp_path: Path) -> None:
    fc.write(fc.demo(readers=2), tmp_path / "demo")
    server = serve(tmp_path / "demo", port=0)
    threading.Timer(0.3, server.stop).start()
    server.wait()
    assert not server.is_running


def test_a_study_is_served_inside_an_event_loop(tmp_path: Path) -> None:
    fc.write(fc.demo(readers=2), tmp_path / "demo")

    async def run() -> int:
        with serve(tmp_path / "demo", port=0) as server:
            return (await asyncio.to_thread(httpx.get, server.links["researchers"])).status_code

    assert asyncio.run(run()) == 200


def test_a_protocol_is_previewed_by_name_and_by_file(tmp_path: Path) -> None:
    with preview("snac", port=0, skip=["training", "qualification"]) as server:
        assert server.title.startswith("snac@2: ")
        address, _, token = server.links["preview"].partition("/join/")
        assert httpx.post(f"{address}/api/join/{token}").status_code == 200
    (tmp_path / "own.yaml").write_text(format_yaml(protocols.load("snac")), encoding="utf-8")
    with preview(tmp_path / "own.yaml", port=0) as server:
        assert "reloads when the file is saved" in server.title
        assert httpx.get(server.links["preview"]).status_code == 200


def test_what_cannot_be_served_is_refused(tmp_path: Path) -> None:
    fc.write(fc.demo(readers=2), tmp_path / "demo")
    with pytest.raises(ParameterError, match=r"^workers=2: .* with db=postgresql://.*, or omit workers$"):
        serve(tmp_path / "demo", workers=2)
    with pytest.raises(ParameterError, match=r"^log_format=xml: expected text or json$"):
        serve(tmp_path / "demo", log_format="xml")
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ParameterError, match=r"use port to select another port, or 0 for any free port$"),
    ):
        serve(tmp_path / "demo", port=taken.getsockname()[1])
    with pytest.raises(ParameterError, match=r"^skip=trainng: expected one of .*did you mean 'training'"):
        preview("snac", skip="trainng")
