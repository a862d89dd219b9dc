"""The seal of a study in Parquet: sealed files are read as they are, changed ones are checked again."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import finecomb as fc
from finecomb.core.errors import FinecombError
from finecomb.formats import convert, is_sealed_parquet
from finecomb.formats.seal import NAME
from finecomb.report.demo import demo_items
from tests.test_cli import run


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """The demo study in Parquet, converted and so sealed."""
    fc.write(fc.Study.from_items(demo_items(3, 0)), tmp_path / "demo")
    convert(tmp_path / "demo", tmp_path / "demo.parquet")
    return tmp_path / "demo.parquet"


def test_a_sealed_study_is_the_one_that_records_give(study: Path) -> None:
    assert is_sealed_parquet(study)
    sealed = fc.read(study)
    (study / NAME).unlink()
    assert not is_sealed_parquet(study)
    assert sealed == fc.read(study) == fc.read(study.with_name("demo"))


def test_a_sealed_study_is_not_made_into_records(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finecomb.core.study.Study.from_items", lambda *_, **__: pytest.fail("records were made"))
    assert len(fc.read(study).marks) > 10


def test_whoever_changes_a_file_breaks_the_seal_and_errors_are_told(study: Path) -> None:
    file = study / "marks.parquet"
    table = pl.read_parquet(file)
    table.with_columns(label=pl.lit("no-such-label")).write_parquet(file)
    assert not is_sealed_parquet(study)
    with pytest.raises(FinecombError, match="no-such-label"):
        fc.read(study)


@pytest.mark.parametrize("content", ["", "[]", "{}", "{no json"])
def test_a_broken_seal_is_no_seal(study: Path, content: str) -> None:
    (study / NAME).write_text(content)
    assert not is_sealed_parquet(study)
    assert len(fc.read(study).marks) > 10


def test_another_version_checks_again(study: Path) -> None:
    stored = json.loads((study / NAME).read_text())
    (study / NAME).write_text(json.dumps({**stored, "finecomb": "0.0.0"}))
    assert not is_sealed_parquet(study)


@pytest.mark.parametrize("words", [["stats"], ["stats", "--where", "severity >= 2"], ["measure"], ["agree"]])
def test_commands_say_the_same_of_a_sealed_study(study: Path, words: list[str]) -> None:
    sealed, plain = (run(words[0], path, *words[1:], "--json").stdout for path in (study, study.with_name("demo")))
    assert sealed == plain


def test_a_part_of_a_sealed_study_is_written_without_records_and_sealed(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--where", "severity >= 2"]
    run("select", study.with_name("demo"), "-o", tmp_path / "slow.parquet", *words)
    with monkeypatch.context() as patch:
        patch.setattr("finecomb.core.study.Study.items", lambda _: pytest.fail("records were made"))
        run("select", study, "-o", tmp_path / "quick.parquet", *words)
    assert is_sealed_parquet(tmp_path / "quick.parquet")
    assert not is_sealed_parquet(tmp_path / "slow.parquet")
    assert fc.read(tmp_path / "quick.parquet") == fc.read(tmp_path / "slow.parquet")
