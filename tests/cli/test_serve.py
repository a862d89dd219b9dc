"""serve, preview, links, backup, restore from the command line."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest
from typer.testing import CliRunner, Result

import finecomb as fc
from finecomb.cli import app
from finecomb.collection.database.location import DATABASE_FILENAME, is_postgres_url, parse_location
from finecomb.collection.database.store import open_store
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.formats import folder


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result


def refused(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert isinstance(result.exception, FinecombError), result.output
    return result.exception.format_message(format_as_flag)  # as the command line prints it


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    fc.write(fc.demo(readers=2), tmp_path / "demo")
    return tmp_path / "demo"


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", "from finecomb.cli import main; main()", *map(str, arguments), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_serve_prints_both_links_and_stops_cleanly(demo: Path) -> None:
    with started("serve", demo) as process:
        assert process.stdout is not None
        title, researchers, annotators, way, stop = (process.stdout.readline() for _ in range(5))
        each = fc.read(demo).settings.annotators
        assert title == f"Saltby: the demo study: 16 texts, {each} annotators per text, scarecrow@2\n"
        assert "Ctrl-C" in stop
        assert "instructions 15 min, then as many texts as you like" in way  # the demo leaves training and test out
        assert "pay not set" in way
        assert "Sign in" in httpx.get(researchers.split()[1]).text
        address, _, token = annotators.split()[1].partition("/join/")
        before = fc.read(demo).annotators.height
        assert httpx.post(f"{address}/api/join/{token}").json()["annotator"] == "reader-3"
        assert fc.read(demo).annotators.height == before + 1
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert errors.splitlines()[-1] == "Stopped. All work is saved."
    assert sorted(path.name for path in demo.glob(f"{DATABASE_FILENAME}*")) == [DATABASE_FILENAME]


def test_preview_shows_a_protocol_and_keeps_nothing() -> None:
    skipped = [part for phase in ("training", "qualification") for part in ("--skip", phase)]
    with started("preview", "snac", *skipped) as process:
        assert process.stdout is not None
        title, link, _ = (process.stdout.readline() for _ in range(3))
        assert title.startswith("snac@2: ")
        address, _, token = link.split()[1].partition("/join/")
        with httpx.Client(base_url=address) as client:
            client.headers["X-Finecomb-Token"] = client.post(f"/api/join/{token}").json()["csrf"]
            page = client.post("/api/next").json()["page"]
            assert page["kind"] == "instructions"
            client.put(f"/api/steps/{page['step']}", json={"change": "read"})
            task = client.post("/api/next").json()["task"]
        assert (task["phase"], bool(task["parts"])) == ("work", True)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def test_links_are_made_for_new_and_known_people(demo: Path) -> None:
    lines = run("links", demo, "--new", 2, "--name", "ann", "--public-url", "https://study.test/").stdout.splitlines()
    names = [line.split("\t")[0] for line in lines]
    assert names == ["ann", "reader-3", "reader-4"]
    assert all(line.split("\t")[1].startswith("https://study.test/join/") for line in lines)
    again = run("links", demo, "--name", "ann").stdout.split()
    assert again[0] == "ann"
    assert again[1] not in lines[0]
    assert "no recipient is given" in refused("links", demo)


def test_backup_and_restore(demo: Path, tmp_path: Path) -> None:
    assert "run `finecomb serve` on the study first" in refused("backup", demo)
    run("links", demo, "--new", 1)
    run("backup", demo, "-o", tmp_path / "monday.db")
    assert fc.read(tmp_path / "monday.db") == fc.read(demo)
    assert "already exists" in refused("backup", demo, "-o", tmp_path / "monday.db")
    run("links", demo, "--new", 1)
    assert "pass --force" in refused("restore", tmp_path / "monday.db", demo)
    assert "the previous database is kept in" in run("restore", tmp_path / "monday.db", demo, "--force").stderr
    assert fc.read(demo) == fc.read(tmp_path / "monday.db")
    assert "file not found" in refused("restore", tmp_path / "nothing.db", demo)
    named = run("backup", demo).stdout
    assert "study.backup-" in named


def test_what_cannot_be_served_is_said_in_words(demo: Path, tmp_path: Path) -> None:
    assert "file or folder not found" in refused("serve", tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "`finecomb new` creates one" in refused("serve", tmp_path / "empty")
    assert "expected postgresql://" in refused("serve", demo, "--db", "mysql://x/y")
    assert "did you mean 'training'?" in refused("preview", "audit", "--skip", "trainng")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        message = refused("serve", demo, "--port", taken.getsockname()[1])
    assert "use --port to select another port" in message
    assert "cannot be reached" in refused("serve", "postgresql://127.0.0.1:1/nothing")
    assert "cannot be reached" in refused("stats", "postgresql://127.0.0.1:1/nothing#x")


@pytest.mark.parametrize("command", [["serve"], ["stats"], ["backup"], ["check"], ["forget"], ["links", "--new", "1"]])
def test_the_password_of_a_database_is_not_printed(command: list[str]) -> None:
    place_ = "postgresql://ann:hunter2@127.0.0.1:1/nothing?password=hunter2#x"
    result = CliRunner().invoke(app, [*command, place_])
    assert result.exit_code != 0
    assert "hunter2" not in f"{result.output}{result.exception}"


def test_a_changed_text_next_to_the_database_is_reported_with_its_file(demo: Path) -> None:
    run("links", demo, "--new", 1)
    texts = (demo / "original" / "documents.jsonl").read_text(encoding="utf-8")
    (demo / "documents.jsonl").write_text(texts.replace("The ", "A ", 1), encoding="utf-8")
    (problem,) = fc.check(demo).warnings
    assert problem.where == str(demo / "documents.jsonl")
    assert "no command reads this file" in problem.message
    assert f"finecomb edit {demo} --documents {demo / 'documents.jsonl'}" in problem.message


@pytest.mark.parametrize(
    ("given", "url", "study"),
    [
        ("postgresql://ann:x@db.example:5432/lab#harbour", "postgresql+psycopg://ann:x@db.example:5432/lab", "harbour"),
        ("postgres://db/lab", "postgresql+psycopg://db/lab", ""),
        ("postgresql:///lab#a", "postgresql+psycopg:///lab", "a"),
        ("postgresql://u:@/lab?host=/run/pg#a", "postgresql+psycopg://u:@/lab?host=/run/pg", "a"),
    ],
)
def test_a_url_survives_being_a_path(given: str, url: str, study: str) -> None:
    for each in (given, Path(given)):
        assert is_postgres_url(each)
        assert (parse_location(each).url, parse_location(each).study) == (url, study)
    assert ":x@" not in str(parse_location(given))


def test_a_path_is_not_a_url() -> None:
    assert not is_postgres_url(Path("postgresql-notes/study"))
    assert parse_location(Path("a.db#b")) == parse_location("a.db#b")
    assert (parse_location("a.db#b").file, parse_location("a.db#b").study) == (Path("a.db"), "b")


def test_a_study_without_a_title_is_called_by_its_folder(tmp_path: Path) -> None:
    """It was called study, as its database is."""
    (tmp_path / "texts.csv").write_text("id,text\na,One lake.\n", encoding="utf-8")
    run("new", tmp_path / "lake", "-p", "likert", "-d", tmp_path / "texts.csv")
    with closing(
        open_store(parse_location(tmp_path / "lake" / DATABASE_FILENAME), list(folder.read_files(tmp_path / "lake")))
    ) as store:
        assert store.title == "lake"
