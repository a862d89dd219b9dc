"""The seal of a study in Parquet: sealed files are read as they are, changed ones are checked again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import finecomb as fc
from finecomb.annotators.simulated.demo_study import build_demo_study
from finecomb.core.errors import FinecombError
from finecomb.core.stored_marks import StoredMarks
from finecomb.formats import convert, is_sealed_parquet
from finecomb.formats.parquet_seal import SEAL_FILE
from tests.test_cli import run


@pytest.fixture(scope="module")
def kept_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo study in Parquet, converted and so sealed, and beside it the folder that it was made from."""
    folder = tmp_path_factory.mktemp("sealed")
    fc.write(fc.Study.from_items(build_demo_study(3, 0)), folder / "demo")
    convert(folder / "demo", folder / "demo.parquet")
    return folder / "demo.parquet"


@pytest.fixture
def study(kept_study: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    for name in ("demo", "demo.parquet"):
        shutil.copytree(kept_study.with_name(name), tmp_path / name)
    return tmp_path / "demo.parquet"


def test_a_sealed_study_is_the_one_that_records_give(study: Path) -> None:
    assert is_sealed_parquet(study)
    sealed = fc.read(study)
    (study / SEAL_FILE).unlink()
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
    (study / SEAL_FILE).write_text(content)
    assert not is_sealed_parquet(study)
    assert len(fc.read(study).marks) > 10


def test_another_version_checks_again(study: Path) -> None:
    stored = json.loads((study / SEAL_FILE).read_text())
    (study / SEAL_FILE).write_text(json.dumps({**stored, "finecomb": "0.0.0"}))
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


TABLES = [
    ["stats"],
    ["measure"],
    ["measure", "--by", "none", "--overlap", "union", "--measure", "coverage,score,severity,span-length,fraction"],
    ["measure", "--by", "annotator,model", "--back-off", "group"],
    ["measure", "--where", 'model == "human"'],
    ["measure", "--labels", "redundant"],
    ["agree"],
    ["agree", "--measure", "alpha,alpha-mean,kappa-fleiss,two-agree", "--level", "sentence"],
    ["score", "--gold", "PERSON", "--match", "overlap"],
]


@pytest.mark.parametrize("words", TABLES, ids=" ".join)
def test_a_study_read_in_parts_gives_the_same_numbers(
    kept_study: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    person = str(fc.read(kept_study).annotations["annotator"][0])
    words = [word.replace("PERSON", person) for word in words]
    whole = run(words[0], kept_study.with_name("demo"), *words[1:], "--json").stdout
    monkeypatch.setattr("finecomb.core.study.DOCUMENTS_PER_PART", 6)
    assert run(words[0], kept_study, *words[1:], "--json").stdout == whole


@pytest.mark.parametrize("words", [["stats"], ["measure"], ["measure", "--where", "topic != missing"], ["agree"]])
def test_marks_of_a_large_sealed_study_are_never_in_memory_all_at_once(
    kept_study: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, sizes = StoredMarks.read, list[int]()

    def watched(stored: StoredMarks, annotations: pl.DataFrame) -> pl.DataFrame:
        sizes.append(annotations["document"].n_unique())
        return read(stored, annotations)

    monkeypatch.setattr("finecomb.core.study.DOCUMENTS_PER_PART", 6)
    monkeypatch.setattr(StoredMarks, "read", watched)
    run(words[0], kept_study, *words[1:])
    assert max(sizes, default=0) <= 6


def test_select_copies_marks_a_batch_at_a_time(
    kept_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("finecomb.core.stored_marks.BATCH_SIZE", 50)
    monkeypatch.setattr(StoredMarks, "read", lambda *_: pytest.fail("all marks were read"))
    words = ["--where", 'severity >= 2 and quote contains "a"', "--drop", "grammar-usage"]
    run("select", kept_study, "-o", tmp_path / "quick.parquet", *words)
    monkeypatch.undo()
    run("select", kept_study.with_name("demo"), "-o", tmp_path / "slow.parquet", *words)
    quick, slow = fc.read(tmp_path / "quick.parquet"), fc.read(tmp_path / "slow.parquet")
    assert quick == slow
    assert 0 < len(quick.marks) < len(fc.read(kept_study).marks)
