from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import finecomb as fc
from finecomb import formats, protocols
from finecomb.cli import app
from finecomb.core.records import Design, Document, Settings
from finecomb.core.study import Item

TURING = protocols.load("turing")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    design = Design.model_validate(
        {
            "people": 1,
            "texts": 1,
            "pay": 2,
            "currency": "EUR",
            "cross": {"condition": ["none", "examples"], "model": "m", "domain": "news"},
        }
    )
    texts = [
        Document(
            id=id, text=f"The ferry {id} left at nine with a goat and a letter.", meta={"domain": "news", "model": m}
        )
        for id, m in (("a", "human"), ("b", "m"))
    ]
    items: list[Item] = [Settings(protocols=(TURING.id,), design=design), TURING, *texts]
    formats.save(items, tmp_path / "study", "folder")
    return tmp_path / "study"


def test_a_rehearsal_fills_the_cells_says_the_cost_and_keeps_the_study(study: Path, tmp_path: Path) -> None:
    kept = tmp_path / "rehearsed"
    result = CliRunner().invoke(app, ["rehearse", str(study), "-o", str(kept)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "EUR 4.00" in result.output
    people = {one.cell: dict(one.factors) for one in fc.read(kept).iter_annotators()}
    assert people["examples/m/news"] == {"condition": "examples", "model": "m", "domain": "news"}
    assert set(people) == {"none/m/news", "examples/m/news"}
    table = CliRunner().invoke(app, ["stats", str(kept), "--by", "cell.condition", "--json"], catch_exceptions=False)
    groups = [row for row in json.loads(table.stdout)["table"] if row["table"] == "groups"]
    assert [(row["cell.condition"], row["annotations"]) for row in groups] == [("examples", 1), ("none", 1)]


def test_cells_that_are_not_full_at_the_end_are_an_exit_code(study: Path) -> None:
    result = CliRunner().invoke(app, ["rehearse", str(study), "--arrivals", "1", "--json"])
    assert result.exit_code == 1
    assert sorted(row["accepted"] for row in json.loads(result.stdout)["table"]) == [0, 1]


def test_a_skill_that_is_no_number_is_refused(study: Path) -> None:
    result = CliRunner().invoke(app, ["rehearse", str(study), "--skill", "examples=good"])
    assert "expected a share" in str(result.exception)


def test_a_design_that_no_text_can_fill_is_one_line_of_check(study: Path) -> None:
    file = study / "study.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("texts: 1", "texts: 7"), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(study)])
    assert result.exit_code == 1
    assert "cell none/m/news cannot be filled: 2 texts fit" in result.output


def test_new_leaves_phases_out(tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text('{"id": "a", "text": "The ferry left."}\n', encoding="utf-8")
    made = tmp_path / "made"
    begin = ["new", str(made), "-p", "scarecrow", "-d", str(tmp_path / "texts.jsonl")]
    result = CliRunner().invoke(app, [*begin, "--skip", "qualification,training"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert fc.read(made).settings.skip == ("training", "qualification")
    assert "did you mean 'training'" in str(CliRunner().invoke(app, [*begin, "--skip", "trainng"]).exception)
