"""Tests of backups: verification, and restoration of valid ones only."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

import finecomb as fc
from finecomb.cli import app
from finecomb.collection.database import backup
from finecomb.collection.database.connection import Database
from finecomb.collection.database.location import DATABASE_FILENAME, parse_location
from finecomb.collection.database.serving_lock import hold_study_lock
from finecomb.core.errors import FinecombError
from tests.databases import KINDS, FakeClock, new_study_location, open_test_store


@pytest.fixture
def study(tmp_path: Path) -> Path:
    file = tmp_path / DATABASE_FILENAME
    with open_test_store(parse_location(file), list(fc.demo().items()), FakeClock()):
        pass
    return file


def run_command(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output + str(result.exception or "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_is_private_sealed_and_as_it_was_made(kind: str, tmp_path: Path) -> None:
    where, file = new_study_location(kind, tmp_path), tmp_path / "copy.db"
    with open_test_store(where, list(fc.demo().items()), FakeClock()) as store:
        backup.back_up_database(store.database, file)
    assert file.stat().st_mode & 0o777 == 0o600
    check = backup.verify_backup(file)
    assert check.sealed
    assert len(check.studies) == 1
    assert [path.name for path in tmp_path.glob(".copy*")] == []
    code, output = run_command("backup", "--verify", file)
    assert code == 0
    assert "unchanged since it was made" in output


def test_a_changed_backup_is_told_and_not_put_back(study: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    run_command("backup", study, "-o", file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE document SET body = replace(body, 'a', 'b') WHERE place = 0")
        connection.commit()
    code, output = run_command("backup", "--verify", file)
    assert code != 0
    assert "the file was modified after it was written at" in output
    before = study.read_bytes()
    code, output = run_command("restore", file, study, "--force")
    assert code != 0
    assert "the study is as it was before" in output
    assert str(file) in output
    assert study.read_bytes() == before


@pytest.mark.parametrize("damage", ["cut", "noise", "text", "empty", "other"])
def test_what_is_no_sound_backup_is_refused(study: Path, tmp_path: Path, damage: str) -> None:
    file = tmp_path / "copy.db"
    run_command("backup", study, "-o", file)
    content = bytearray(file.read_bytes())
    if damage == "other":
        file.unlink()
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("CREATE TABLE other (id)")
            connection.commit()
    else:
        middle = len(content) // 2
        content[middle : middle + 20_000] = b"\xff" * 20_000
        kinds = {"cut": content[:5000], "noise": content, "text": b"not a database at all" * 100, "empty": b""}
        file.write_bytes(bytes(kinds[damage]))
    before = study.read_bytes()
    assert run_command("backup", "--verify", file)[0] != 0
    assert run_command("restore", file, study, "--force")[0] != 0
    assert study.read_bytes() == before


def test_a_backup_of_a_later_version_is_refused(study: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    run_command("backup", study, "-o", file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'far-ahead'")
        connection.commit()
    with pytest.raises(FinecombError, match="the table version far-ahead is unknown; upgrade Finecomb"):
        backup.verify_backup(file)


def test_a_backup_without_a_version_is_not_taken_for_a_later_one(study: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    run_command("backup", study, "-o", file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM alembic_version")
        connection.commit()
    with pytest.raises(
        FinecombError, match=r"not a valid backup \(the version of its tables is missing\); use another backup$"
    ):
        backup.verify_backup(file)


def test_a_restored_study_carries_no_seal_and_its_replaced_one_is_private(study: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    run_command("backup", study, "-o", file)
    assert run_command("restore", file, study, "--force")[0] == 0
    with closing(sqlite3.connect(study)) as connection:
        assert not connection.execute("SELECT name FROM sqlite_master WHERE name = 'backup_seal'").fetchall()
    (replaced,) = tmp_path.glob("study.replaced-*.db")
    assert replaced.stat().st_mode & 0o777 == 0o600
    assert fc.read(study) == fc.demo()


def test_nothing_is_put_back_while_a_server_runs(study: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    run_command("backup", study, "-o", file)
    with hold_study_lock(parse_location(study), "serve"):
        code, output = run_command("restore", file, study, "--force")
    assert code != 0
    assert "in use by finecomb serve" in output
    assert run_command("restore", file, study, "--force")[0] == 0


_FILE_SIZE_LIMIT_SCRIPT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (66_000, 66_000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from finecomb.cli import main
sys.argv = ["finecomb", "backup", sys.argv[1], "-o", sys.argv[2]]
main()
"""


def test_a_backup_to_a_full_disk_leaves_nothing_half_made(study: Path, tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    target = tmp_path / "full"
    target.mkdir()
    command = [sys.executable, "-c", _FILE_SIZE_LIMIT_SCRIPT, str(study), str(target / "copy.db")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "cannot be written" in result.stderr
    assert "Traceback" not in result.stderr
    assert list(target.iterdir()) == []


def test_a_backup_made_before_there_were_seals_can_be_put_back(study: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    shutil.copy(study, file)
    assert backup.verify_backup(file).sealed == ""
    assert run_command("restore", file, study, "--force")[0] == 0


def test_verify_stands_alone(study: Path) -> None:
    code, output = run_command("backup", study, "--verify", study)
    assert code != 0
    assert "cannot be used together" in output


def test_every_backup_is_taken_from_one_moment(study: Path, tmp_path: Path) -> None:
    database = Database(parse_location(study), readonly=True)
    backup.back_up_database(database, tmp_path / "a.db")
    backup.back_up_database(database, tmp_path / "b.db")
    database.close()
    assert backup.verify_backup(tmp_path / "a.db").rows == backup.verify_backup(tmp_path / "b.db").rows
