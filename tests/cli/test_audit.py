"""An audit from end to end: drawn, served exactly as drawn, judged, and estimated in one command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import finecomb as fc
from finecomb import formats
from finecomb.cli import app
from finecomb.collection.database.location import DATABASE_FILENAME, parse_location
from finecomb.collection.database.store import open_store
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.study_checks import check_items
from finecomb.formats import folder
from tests.databases import Client


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def refused(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(result.exception, FinecombError), result.output
    return result.exception.format_message(format_as_flag)  # as the command line prints it


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    formats.save_records(fc.demo().items(), tmp_path / "demo")
    return tmp_path / "demo"


def test_exactly_the_drawn_marks_are_given_out_and_the_estimate_follows(demo: Path, tmp_path: Path) -> None:
    path = tmp_path / "audit"
    assert (
        "marks to judge, 1 auditor each"
        in run("audit", demo, "--per-label", 1, "--by", "model", "--auditors", 1, "-o", path).output
    )
    plan = fc.read(path).settings.audit
    assert plan is not None
    assert "no mark has been judged yet" in refused("audit", path)
    store = open_store(parse_location(path / DATABASE_FILENAME), check_items(folder.read_files(path)))
    try:
        client = Client(store).join_study()
        client.put("/api/steps/instructions", json={"change": "c"})
        client.post("/api/next")
        client.put("/api/steps/instructions", json={"change": "d"})
        about = set()
        while (now := client.post("/api/next").json())["task"]:
            task = now["task"]["id"]
            assert client.save(task, "answers", {"answers": {"verdict": "legitimate"}})[0] == 200
            assert client.finish(task)[0] == 200
        about = {one.about for one in store.read_study().iter_annotations() if one.about}
    finally:
        store.close()
    assert about == set(plan.marks)
    table = json.loads(run("audit", path, "--draws", 20, "--json").stdout)["table"]
    shares = [row["value"] for row in table if row["measure"] == "legitimate" and row["value"] is not None]
    assert shares
    assert shares == pytest.approx([1.0] * len(shares))
    assert {row["model"] for row in table} == {"comb-small", "comb-medium", "comb-large", "human"}


def test_options_that_do_not_apply_are_refused(demo: Path, tmp_path: Path) -> None:
    path = tmp_path / "audit"
    assert "is not an audit; draw a sample" in refused("audit", demo)
    assert "--draws applies to the estimate" in refused("audit", demo, "-o", path, "--draws", 5)
    run("audit", demo, "-o", path)
    assert "--per-label applies only when a sample is drawn" in refused("audit", path, "--per-label", 2)
    assert "is already an audit" in refused("audit", path, "-o", tmp_path / "again")


def test_a_drawn_mark_that_is_gone_is_one_line_of_check(demo: Path, tmp_path: Path) -> None:
    path = tmp_path / "audit"
    run("audit", demo, "-o", path)
    file = path / "study.yaml"
    first = fc.read(path).settings.audit.marks[0]  # type: ignore[union-attr]
    file.write_text(file.read_text(encoding="utf-8").replace(first, "no-such-mark", 1), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 1
    assert "audit: mark 'no-such-mark' is not in the study" in result.output
