"""Every hostile case goes through the commands that read files: one line each, nothing runs, nothing leaks."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from finecomb.core.errors import FinecombError
from finecomb.server.researchers import upload_process
from tests.hostile.corpus import CASES

pytestmark = pytest.mark.nightly  # every case goes through fifteen commands, each a process of its own
COMMANDS: dict[str, list[str]] = {
    "stats": ["stats", "{path}"],
    "check": ["check", "{path}"],
    "convert": ["convert", "{path}", "{out}/converted"],
    "show": ["show", "{path}"],
    "measure": ["measure", "{path}", "--draws", "10"],
    "detect": ["detect", "{path}", "--detector", "rules"],
    "report": ["report", "{path}", "-o", "{out}/report", "--draws", "10"],
    "verify": ["report", "{path}", "--verify"],
    "repair": ["repair", "{path}"],
    "backup": ["backup", "{path}", "-o", "{out}/backup.db"],
    "restore": ["restore", "{path}", "{out}/restored"],
    "criticize": ["criticize", "{path}", "{path}", "--critic", "{path}"],
    "annotate": ["annotate", "{path}", "--model", "judge"],
    "weights": ["detect", "{path}", "--detector", "spans", "--weights", "{path}"],
    "preview": ["protocols", "check", "{path}"],
}
MAX_MEMORY_BYTES = 6_000_000_000
MAX_SECONDS = 90


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


def run_case(path: Path, words: list[str], out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "finecomb", *(word.format(path=path, out=out) for word in words)]
    return subprocess.run(
        command,
        cwd=path if path.is_dir() else path.parent,
        env={**os.environ, "AWS_SECRET_ACCESS_KEY": "TOP-SECRET-OF-ANOTHER-USER", "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=MAX_SECONDS,
        check=False,
        preexec_fn=limit_memory,
    )


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_case_is_refused_in_a_line_or_read_as_data(name: str, tmp_path: Path) -> None:
    problems = []
    for command, words in COMMANDS.items():
        folder = tmp_path / command
        folder.mkdir()
        path = CASES[name](folder / "case")
        try:
            result = run_case(path, words, folder)
        except subprocess.TimeoutExpired:
            problems.append(f"{command}: no answer within {MAX_SECONDS} seconds")
            continue
        text = result.stdout + result.stderr
        if result.returncode not in (0, 1, 2) or "Traceback" in text:
            problems.append(f"{command}: exit {result.returncode}: {text[-300:]}")
        if "TOP-SECRET" in text:
            problems.append(f"{command}: printed a secret")
        if (folder / "case" / "ran").exists():
            problems.append(f"{command}: ran code of the folder")
        if list(folder.rglob("escaped.txt")):
            problems.append(f"{command}: wrote outside its folder")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_upload_is_refused_in_a_line_or_read_as_data(name: str, tmp_path: Path) -> None:
    CASES[name](tmp_path / "case")
    for file in sorted((tmp_path / "case").rglob("*")):
        if not file.is_file():  # a browser uploads the content of regular files
            continue
        content = file.read_bytes()
        with suppress(FinecombError):
            upload_process.read_documents_in_subprocess(content, file.name, {}, ())
        with suppress(FinecombError):
            upload_process.read_protocol_in_subprocess(content, file.name)
    assert not (tmp_path / "case" / "ran").exists()
