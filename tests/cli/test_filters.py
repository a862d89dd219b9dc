from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from finecomb import demo, formats
from finecomb.api.parameters import select_part
from finecomb.cli import app
from finecomb.core.errors import FinecombError
from finecomb.core.frames import meta_entry

RUNNER = CliRunner()
HUMAN_OR_SMALL = 'model == "human" or (model == "comb-small" and topic != missing)'


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "demo"
    formats.save_records(demo(readers=2).items(), path)
    return path


def run(*arguments: object) -> str:
    result = RUNNER.invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_human_texts_stand_beside_machines_at_one_setting(study: Path) -> None:
    text = run("measure", study, "-m", "count", "--where", HUMAN_OR_SMALL, "--draws", "0", "--json")
    assert {row["model"] for row in json.loads(text)["table"]} == {"human", "comb-small"}


def test_a_condition_selects_the_same_for_every_command(study: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    assert "8 texts" in run("select", study, "-o", part, "--where", HUMAN_OR_SMALL)
    chosen = formats.read(part)
    assert set(chosen.documents.select(meta_entry("model"))["model"]) == {"human", "comb-small"}
    assert set(chosen.annotations["document"]) <= set(chosen.documents["id"])
    for command in (
        ("measure", "-m", "count", "--draws", "0"),
        ("agree", "-m", "two-agree", "--draws", "0"),
        ("test", "--measure", "count", "--draws", "10"),
        ("gold", "--table", "errors"),
        ("score", "--match", "optimal", "--draws", "0"),
        ("stats",),
    ):
        name, *options = command
        with_condition = json.loads(run(name, study, *options, "--json", "--where", HUMAN_OR_SMALL))["table"]
        of_the_part = json.loads(run(name, part, *options, "--json"))["table"]
        assert [_numbers(row) for row in with_condition] == [_numbers(row) for row in of_the_part], name


def _numbers(row: dict[str, object]) -> dict[str, object]:
    return {name: cell for name, cell in row.items() if name != "signature"}


def test_convert_and_show_select_too(study: Path, tmp_path: Path) -> None:
    run("convert", study, tmp_path / "part", "--where", "model=human")
    assert len(formats.read(tmp_path / "part").documents) == 4
    machine = formats.read(study).documents.filter(meta_entry("model") != "human")["id"][0]
    with pytest.raises(FinecombError, match="unknown document ID"):
        run("show", study, machine, "--where", 'model == "human"')


def test_marks_that_are_dropped_leave_no_row_of_zeros(study: Path) -> None:
    text = run("measure", study, "-m", "count", "--drop", "redundant", "--by", "none", "--draws", "0", "--json")
    assert "redundant" not in {row["label"] for row in json.loads(text)["table"]}
    part = run("measure", study, "-m", "count", "--drop", "redundant:1", "--by", "none", "--draws", "0", "--json")
    assert "redundant" in {row["label"] for row in json.loads(part)["table"]}


def test_drop_is_for_every_command(study: Path, tmp_path: Path) -> None:
    run("select", study, "-o", tmp_path / "part", "--drop", "grammar-usage:1")
    marks = formats.read(tmp_path / "part").marks.filter(pl.col("label") == "grammar-usage")
    assert len(marks)
    assert not marks["answers"].str.contains('"severity":1').any()


def test_critics_read_no_marks_that_could_be_dropped(study: Path) -> None:
    with pytest.raises(FinecombError, match="--drop redundant omits marks, but critics read texts only"):
        run("criticize", study, study, "--drop", "redundant")


def test_select_needs_something_to_go_by(study: Path, tmp_path: Path) -> None:
    with pytest.raises(FinecombError, match="requires where or drop"):
        run("select", study, "-o", tmp_path / "part")


def test_conditions_on_marks_keep_annotations(study: Path) -> None:
    whole = formats.read(study)
    part = select_part(whole, ['label == "redundant"'])
    assert len(part.annotations) == len(whole.annotations)
    assert set(part.marks["label"]) == {"redundant"}


def test_conditions_on_documents_hold_without_annotations() -> None:
    whole = demo()
    unread = whole.filter_annotations(pl.lit(value=False))
    assert len(select_part(unread, ["model=human"]).documents) == 4


def test_one_row_for_everything(study: Path) -> None:
    text = run("measure", study, "-m", "count", "--by", "none", "--draws", "0", "--json")
    rows = [row for row in json.loads(text)["table"] if row["label"] == "any"]
    assert len(rows) == 1
    assert "model" not in rows[0]
