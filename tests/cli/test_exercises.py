"""Exercises and tests from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import finecomb as fc
from finecomb import formats, protocols
from finecomb.cli import app
from finecomb.core.errors import FinecombError, format_as_flag


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    formats.save_records(fc.demo().items(), tmp_path / "demo")
    return tmp_path / "demo"


def text_with_errors(study: Path) -> str:
    gold = {one.id for one in fc.read(study).iter_annotators() if one.kind == "gold"}
    return next(one.document for one in fc.read(study).iter_annotations() if one.annotator in gold and one.marks)


def test_an_adjudicated_text_becomes_a_test_that_a_new_study_takes(demo: Path, tmp_path: Path) -> None:
    file, id = tmp_path / "own.yaml", text_with_errors(demo)
    words = ["exercise", str(demo), id, "--to", "test", "--pass", "0.5", "-o", str(file)]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "protocol scarecrow@2-own with 1 exercise" in result.output
    protocol = protocols.load(str(file))
    assert protocol.qualification is not None
    assert protocol.qualification.pass_at == 50
    (tmp_path / "texts.jsonl").write_text('{"id": "a", "text": "The ferry left."}\n', encoding="utf-8")
    made = ["new", str(tmp_path / "new"), "-p", str(file), "-d", str(tmp_path / "texts.jsonl")]
    assert CliRunner().invoke(app, made, catch_exceptions=False).exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "unknown text 'nothing'"),
        (["--pass", "0.5"], "--pass and --precision require --to test"),
        (["--gold", "nobody"], "has no submitted annotation by 'nobody'"),
    ],
)
def test_what_cannot_be_is_said(demo: Path, tmp_path: Path, words: list[str], message: str) -> None:
    id = [] if words == ["nothing"] else [text_with_errors(demo)]
    result = CliRunner().invoke(app, ["exercise", str(demo), *id, *words, "-o", str(tmp_path / "own.yaml")])
    assert isinstance(result.exception, FinecombError)
    assert message in result.exception.format_message(format_as_flag)  # as the command line prints it
