from __future__ import annotations

import json
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.study import Study
from tests.test_cli import run


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo study; one reader went through it again and withdrew the first mark of each text."""
    demo = fc.demo(readers=3)
    again = [
        own.model_copy(
            update={
                "id": f"{own.id}/2",
                "round": 1,
                "marks": tuple(
                    mark.model_copy(update={"id": f"{mark.id}/2", "made_from": (mark.id,)}) for mark in own.marks[1:]
                ),
            }
        )
        for own in demo.submitted_work().iter_annotations()
        if own.annotator == "reader-1"
    ]
    folder = tmp_path_factory.mktemp("rounds") / "study"
    fc.write(Study.from_items([*demo.items(), *again]), folder)
    return folder


def test_both_passes_are_compared(twice: Path) -> None:
    found = json.loads(run("rounds", twice, "--draws", "20", "--json").stdout)
    marks = [row for row in found["table"] if row["table"] == "marks"]
    assert [row["annotator"] for row in marks] == ["reader-1", "all"]
    assert marks[0]["kept"] == marks[0]["after"] == marks[0]["before"] - marks[0]["withdrawn"] > 0
    agreement = [row for row in found["table"] if row["table"] == "agreement"]
    assert [row["pass"] for row in agreement] == ["before", "after", "difference"]
    assert all(row["value"] is None and row["why"] for row in agreement)  # one person only
    assert "rounds:first-and-last" in found["signature"]
    assert "Changes to marks between passes" in run("rounds", twice, "--draws", "20").stdout


def test_other_statistics_read_the_first_pass(twice: Path) -> None:
    def marks(*options: str) -> float:
        asked = ("--measure", "count", "-a", "reader-1", "--draws", "0", "--json", *options)
        rows = json.loads(run("measure", twice, *asked).stdout)["table"]
        return float(sum(row["value"] for row in rows if row["label"] == "any"))

    assert marks("--rounds", "last") < marks("--rounds", "first") == marks()


def test_one_pass_has_nothing_to_compare(tmp_path: Path) -> None:
    fc.write(fc.demo(readers=2), tmp_path / "once")
    assert "No annotator annotated a text a second time" in run("rounds", tmp_path / "once").stdout
