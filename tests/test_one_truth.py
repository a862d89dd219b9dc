"""One study, one truth: what a command reports as written is what every later command, the server and Python read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import finecomb as fc
from finecomb.cli import app
from finecomb.collection.database.location import parse_location
from finecomb.collection.database.store import open_store
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.formats import folder
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer
from tests.databases import Client, postgresql_url

MARK = {"quote": "Saltby", "label": "redundant", "severity": 1, "explanation": "x"}


def answer(body: dict[str, Any], number: int) -> ScriptedAnswer:
    """Mark nothing with seed 0, and one word with every other seed."""
    return ScriptedAnswer(json.dumps({"marks": [_mark_first_word(body)] if body.get("seed") else []}))


def _mark_first_word(body: dict[str, Any]) -> dict[str, Any]:
    text = body["messages"][-1]["content"].rsplit("<text>", 1)[-1].strip()
    return {**MARK, "quote": text.split()[0]}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(answer) as running:
        yield running


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    fc.write(fc.demo(readers=2), tmp_path / "q")
    return tmp_path / "q"


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert isinstance(result.exception, FinecombError), result.output
    return result.exception.format_message(format_as_flag)


def serve_once(study: Path, **options: Any) -> None:
    fc.serve(study, port=0, **options).stop()


def marks_of(study: Path, annotator: str = "j") -> int:
    return len(fc.read(study).submitted_work().marks.filter(annotator=annotator))


def test_a_changed_judge_is_refused_and_replaced_on_request(demo: Path, server: ScriptedServer) -> None:
    """The commands read the old run of the judge after `annotate` had reported a new one."""
    judge = ("annotate", demo, "--model", "j", "--base-url", server.url)
    assert "0 marks in 16 texts by j" in run(*judge).stdout
    serve_once(demo)
    message = refused(*judge, "--seed", 5)
    assert all(word in message for word in ("seed", "--name", "--replace", "--only-missing"))
    assert marks_of(demo) == 0
    assert "16 marks in 16 texts by j" in run(*judge, "--seed", 5, "--replace").stdout
    assert marks_of(demo) == 16
    rows = json.loads(run("stats", demo, "--json").stdout)["table"]
    assert next(row for row in rows if row.get("annotator") == "j")["marks"] == 16


def test_only_missing_adds_texts_with_the_same_settings(demo: Path, server: ScriptedServer) -> None:
    judge = ("annotate", demo, "--model", "j", "--base-url", server.url, "--seed", 5)
    run(*judge, "--limit", 3)
    assert "other settings" in refused(*judge, "--temperature", 1, "--only-missing")
    assert "13 marks in 13 texts by j" in run(*judge, "--only-missing").stdout
    assert (marks_of(demo), len(server.requests)) == (16, 16)
    assert "none is missing" in refused(*judge, "--only-missing")


def test_the_earlier_run_stays_in_the_study_and_gold_made_of_it_stays_valid(demo: Path, server: ScriptedServer) -> None:
    judge = ("annotate", demo, "--model", "j", "--base-url", server.url)
    run(*judge, "--seed", 5)
    run("gold", demo, "--into", demo, "--annotator", "j", "--min-votes", 1)
    run(*judge, "--seed", 6, "--replace")
    study = fc.read(demo)
    earlier = next(annotator for annotator in study.iter_annotators() if annotator.id == "j~1")
    assert earlier.excluded is not None
    assert len(study.marks.filter(annotator="j~1")) == 16
    rows = {row.annotator: row for row in fc.list_runs(study)}
    assert rows["j"].status == "in force"
    assert rows["j~1"].status == f"replaced by {rows['j'].run}"
    assert rows["j"].settings == "seed 6"
    sources = {source for mark in study.iter_marks() for source in mark.made_from if source.startswith("j/")}
    assert sources <= set(study.marks["id"])
    assert fc.check(demo).errors == []
    run(*judge, "--seed", 5, "--replace")  # the replies of the first run are used again
    assert len(server.requests) == 32
    assert {"j", "j~1", "j~2"} <= set(fc.read(demo).annotators["id"])


def test_numbers_name_the_run(demo: Path, server: ScriptedServer) -> None:
    run("annotate", demo, "--model", "j", "--base-url", server.url, "--seed", 5)
    (row,) = fc.list_runs(demo)
    assert f"runs:{row.run}" in str(fc.measure(demo, kind="llm").signature)
    assert "runs:" not in str(fc.measure(demo).signature)


def test_the_same_replies_under_a_second_name_are_a_copy(demo: Path, server: ScriptedServer) -> None:
    for name in ("j", "k"):
        result = run("annotate", demo, "--model", "m", "--name", name, "--base-url", server.url, "--seed", 5)
    assert "marked as a copy of j" in result.stderr
    assert len(server.requests) == 16
    assert {row.annotator: row.status for row in fc.list_runs(demo)}["k"] == "copy of j"
    agreement = fc.agree(demo, kind=["human", "llm"], measure="two-agree", draws=0)
    assert "k is not counted: its replies are copies of those of j" in agreement.notes
    alone = fc.agree(fc.read(demo).where('annotator != "k"'), kind=["human", "llm"], measure="two-agree", draws=0)
    assert [row.value for row in agreement.rows()] == [row.value for row in alone.rows()]


def test_a_running_server_shows_what_a_command_writes(demo: Path, server: ScriptedServer, tmp_path: Path) -> None:
    serve_once(demo)
    store = open_store(parse_location(demo / "study.db"))
    try:
        client = Client(store).sign_in_researcher()
        page = "/api/admin/document?id=harbour-a"
        assert client.get(page).status_code == 200
        before = client.get(page).json()
        run("annotate", demo, "--model", "j", "--base-url", server.url, "--seed", 5)
        assert client.get(page).json() != before
        edited = tmp_path / "more.jsonl"
        edited.write_text('{"id": "extra", "text": "One more text."}\n', encoding="utf-8")
        assert "extra" not in store.assignment_plan().documents
        run("edit", demo, "--documents", edited)
        store.refresh_and_check_current()
        assert "extra" in store.assignment_plan().documents
    finally:
        store.close()


def test_serving_moves_the_files_and_convert_writes_them_again(demo: Path, tmp_path: Path) -> None:
    before = list(fc.read(demo).items())
    originals = {file.name: file.read_bytes() for file in demo.glob("*.jsonl")}
    serve_once(demo)
    assert {file.name: file.read_bytes() for file in (demo / "original").glob("*.jsonl")} == originals
    assert not list(demo.glob("*.jsonl"))
    assert list(fc.read(demo).items()) == before
    run("convert", demo, tmp_path / "files")
    assert list(fc.read(tmp_path / "files").items()) == before
    assert fc.check(demo).errors == []


def test_files_restored_next_to_the_database_are_reported_and_not_read(demo: Path) -> None:
    """A folder under version control gets its files back by a checkout."""
    serve_once(demo)
    for name in ("annotations.jsonl", "study.yaml"):
        (demo / name).write_bytes((demo / "original" / name).read_bytes())
    before = list(fc.read(demo).items())
    assert {Path(problem.where).name for problem in fc.check(demo).warnings} >= {"annotations.jsonl", "study.yaml"}
    (demo / "annotations.jsonl").write_text("", encoding="utf-8")
    serve_once(demo)
    assert list(fc.read(demo).items()) == before
    assert (demo / "annotations.jsonl").exists()


def served_by_an_earlier_version(demo: Path) -> None:
    """Make a database next to the files, as `serve` did."""
    open_store(parse_location(demo / "study.db"), folder.read_files(demo)).close()


def test_files_and_database_of_an_earlier_version_that_differ(demo: Path) -> None:
    served_by_an_earlier_version(demo)
    lines = (demo / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    record = json.loads(next(line for line in lines if json.loads(line).get("marks")))
    changed, added = {**record, "marks": []}, {**record, "id": "new", "annotator": "late", "marks": []}
    kept = [line for line in lines if json.loads(line)["id"] != record["id"]]
    text = "\n".join([*kept, json.dumps(changed), json.dumps(added)])
    (demo / "annotations.jsonl").write_text(f"{text}\n", encoding="utf-8")
    with (demo / "annotators.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "late", "kind": "human"}\n')
    before = list(fc.read(demo).items())
    messages = [problem.message for problem in fc.check(demo).warnings]
    assert any(record["id"] in message and "database, which is in force" in message for message in messages)
    assert any("'new' is not in the database yet" in message for message in messages)
    serve_once(demo)
    assert sorted(map(repr, fc.read(demo).items())) == sorted(map(repr, before))
    (conflict,) = (problem for problem in fc.check(demo).warnings if problem.where.endswith("conflicts.jsonl"))
    assert record["id"] in conflict.message
    run("merge", demo, demo / "original", "--into", demo, "--replace")
    study = fc.read(demo)
    (now,) = (
        annotation
        for annotation in study.submitted_work().iter_annotations()
        if (annotation.document, annotation.annotator) == (record["document"], record["annotator"])
    )
    assert now.marks == ()
    assert study.marks.filter(annotation=record["id"]).height == len(record["marks"])


def test_editing_an_annotated_text_keeps_its_annotations_with_the_old_text(demo: Path, tmp_path: Path) -> None:
    serve_once(demo)
    before = fc.read(demo)
    changed = [{"id": "harbour-a", "text": "Another text."}, {"id": "extra", "text": "A further text."}]
    planned = fc.edit(demo, documents=changed, dry_run=True)
    assert list(fc.read(demo).items()) == list(before.items())
    edits = fc.edit(demo, documents=changed)
    assert [tuple(row.values()) for row in edits] == [tuple(row.values()) for row in planned]
    count = before.annotations.filter(document="harbour-a").height
    assert [(row.id, row.change, row.annotations) for row in edits] == [
        ("harbour-a~2", "new version", count),
        ("extra", "added", 0),
    ]
    after = fc.read(demo)
    assert after.document("harbour-a").text == before.document("harbour-a").text
    assert after.document("harbour-a~2").text == "Another text."
    assert list(after.iter_annotations()) == list(before.iter_annotations())
    assert len(fc.edit(demo, documents=changed)) == 0


def test_editing_a_protocol_in_use_makes_a_new_version(demo: Path) -> None:
    study = fc.read(demo)
    (protocol,) = study.protocols.values()
    edits = fc.edit(demo, protocol=protocol.model_copy(update={"title": "Other"}))
    assert (edits[0].id, edits[0].earlier) == ("scarecrow@3", "scarecrow@2")
    after = fc.read(demo)
    assert after.settings.protocols == ("scarecrow@3", "scarecrow@2")
    assert list(after.iter_annotations()) == list(study.iter_annotations())


def test_editing_settings_changes_only_those_given(demo: Path, tmp_path: Path) -> None:
    serve_once(demo)
    before = fc.read(demo).settings
    (tmp_path / "s.yaml").write_text("annotators: 7\n", encoding="utf-8")
    run("edit", demo, "--settings", tmp_path / "s.yaml")
    assert fc.read(demo).settings == before.model_copy(update={"annotators": 7})


def test_merge_reports_what_convert_reports_and_refuses_unknown_labels(demo: Path, tmp_path: Path) -> None:
    text = fc.read(demo).document("harbour-a").text
    word = text.split()[0]
    table = tmp_path / "ben.csv"
    rows = [
        ("harbour-a", word, "redundant"),
        ("harbour-a", word, "redundant"),
        ("harbour-a", "no such words", "redundant"),
    ]
    lines = [f'{id},"{text}",{quote},{label},ben' for id, quote, label in rows]
    table.write_text("\n".join(["document,text,quote,label,annotator", *lines]), encoding="utf-8")
    converted = run("convert", table, tmp_path / "study", "-p", "scarecrow").stderr
    merged = run("merge", demo, table, "-o", tmp_path / "all").stderr
    assert converted.strip()
    for line in converted.splitlines():
        assert line.removeprefix("note: ").removeprefix("ben.csv: ") in merged
    table.write_text(table.read_text(encoding="utf-8").replace("redundant,ben", "redundent,ben"), encoding="utf-8")
    assert "did you mean 'redundant'" in refused("merge", demo, table, "-o", tmp_path / "typo")


def test_duplicate_marks_of_a_model_are_one_mark(demo: Path) -> None:
    def twice(body: dict[str, Any], number: int) -> ScriptedAnswer:
        mark = _mark_first_word(body)
        return ScriptedAnswer(json.dumps({"marks": [mark, mark]}))

    with ScriptedServer(twice) as server:
        run("annotate", demo, "--model", "j", "--base-url", server.url)
    assert marks_of(demo) == 16
    assert all(mark.meta["duplicates"] == 1 for mark in fc.read(demo).iter_marks() if mark.id.startswith("j/"))


def test_a_folder_served_from_postgresql_points_to_it(demo: Path, server: ScriptedServer) -> None:
    url = f"{postgresql_url()}#{demo.parent.name}"
    before = list(fc.read(demo).items())
    serve_once(demo, db=url)
    assert list(fc.read(demo).items()) == list(fc.read(url).items()) == before
    assert (demo / "study.url").exists()
    assert not (demo / "documents.jsonl").exists()
    serve_once(demo)  # without the URL
    run("annotate", demo, "--model", "j", "--base-url", server.url, "--seed", 5)
    assert len(fc.read(url).submitted_work().marks.filter(annotator="j")) == marks_of(demo) == 16
    with pytest.raises(fc.FinecombError, match="is stored in"):
        fc.serve(demo, port=0, db=f"{url}-other")


def test_a_backup_restored_into_a_folder_of_files_replaces_them(demo: Path, tmp_path: Path) -> None:
    fc.write(fc.demo(readers=1), tmp_path / "other")
    serve_once(tmp_path / "other")
    backup = fc.backup(tmp_path / "other", output=tmp_path / "b.db")
    fc.restore(backup, demo)
    assert list(fc.read(demo).items()) == list(fc.read(tmp_path / "other").items())
    assert (demo / "original" / "documents.jsonl").exists()
    assert not (demo / "documents.jsonl").exists()
