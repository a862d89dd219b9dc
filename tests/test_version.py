"""Tests of the version in signatures: releases, wheels of a commit, and source checkouts, also linked ones."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from finecomb import version
from finecomb.core.results import Signature
from finecomb.version import __version__, signature_version

GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


@pytest.fixture(autouse=True)
def _fresh_cache() -> Iterator[None]:
    signature_version.cache_clear()
    yield
    signature_version.cache_clear()


def git(folder: Path, *words: str) -> str:
    return subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def place_package(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = root / "src" / "finecomb"
    package.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(version, "__file__", str(package / "version.py"))
    return package


def commit_project(root: Path, name: str = "finecomb") -> str:
    root.mkdir(exist_ok=True)
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n', encoding="utf-8")
    git(root, "add", "pyproject.toml")
    git(root, "commit", "--quiet", "--message=Begin")
    return git(root, "rev-parse", "HEAD")


@pytest.mark.parametrize("state", ["loose", "packed", "detached", "worktree"])
def test_a_checkout_names_its_commit_however_git_stores_it(
    state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "checkout"
    commit = commit_project(root)
    if state == "packed":
        git(root, "pack-refs", "--all")
    elif state == "detached":
        git(root, "checkout", "--quiet", "--detach")
    elif state == "worktree":
        root = tmp_path / "linked"
        git(tmp_path / "checkout", "worktree", "add", "--quiet", "-b", "other", str(root))
    place_package(root, monkeypatch)
    assert signature_version() == f"{__version__}+g{commit[:7]}.dev"


def test_a_checkout_that_moves_on_changes_the_signature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_project(tmp_path)
    place_package(tmp_path, monkeypatch)
    before = Signature.from_fields(statistic="alpha")
    signature_version.cache_clear()
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message=Go on")
    after = Signature.from_fields(statistic="alpha")
    assert before["version"] != after["version"]


@pytest.mark.parametrize(
    ("written", "shown"), [("", ""), ("1a2b3c4\n", "+g1a2b3c4"), ("1a2b3c4.dirty", "+g1a2b3c4.dirty")]
)
def test_a_wheel_shows_the_commit_that_was_written_when_it_was_built(
    written: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_project(tmp_path)
    (place_package(tmp_path, monkeypatch) / "_commit.txt").write_text(written, encoding="ascii")
    assert signature_version() == __version__ + shown


def test_the_repository_of_another_project_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_project(tmp_path, name="my-study")
    place_package(tmp_path, monkeypatch)
    assert signature_version() == __version__
    (tmp_path / "pyproject.toml").unlink()
    assert signature_version() == __version__


def test_a_repository_that_cannot_be_read_leaves_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_project(tmp_path)
    (tmp_path / ".git" / "HEAD").write_bytes(b"ref: refs/heads/nowhere")
    place_package(tmp_path, monkeypatch)
    assert signature_version() == __version__
