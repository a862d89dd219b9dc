from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import finecomb as fc
from tests.statistics.agreement.test_minimal_repairs import NAME, POINTS, REBOUNDS, STORY
from tests.statistics.gold.gold_studies import make_gold_study
from tests.test_cli import refused, run


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gold") / "study"
    fc.write(fc.demo(readers=3), folder)
    return folder


def result(*words: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*words, "--draws", "20", "--json").stdout)
    assert set(found) == {"table", "signature", "notes"}
    return found


def test_gold_is_written_and_every_command_reads_it(demo: Path, tmp_path: Path) -> None:
    target = tmp_path / "gold"
    output = run("gold", demo, "-o", target, "--draws", "20").stdout
    assert "Errors in gold" in output
    assert "to adjudicate (--table rest)" in output
    assert run("check", target).exit_code == 0
    for command in ("stats", "show", "measure"):
        assert run(command, target).exit_code == 0
    assert "gold" in run("stats", target).stdout
    found = result("score", target, demo, "--judge", "reader-1", "--match", "optimal")
    assert found["table"][0]["judge"] == "reader-1"


def test_every_table_of_gold(demo: Path) -> None:
    found = result("gold", demo, "--table", "all", "--subsets", "2")
    names = dict.fromkeys(row["table"] for row in found["table"])
    asked = ["errors", "annotators", "confusion", "rates", "agreement", "cost", "changes", "rest", "subsets"]
    assert list(names) == asked
    for row in found["table"]:
        assert row.get("value", 0) is not None or row["why"]
    assert "gold from 2 annotators" in run("gold", demo, "--subsets", "2", "--draws", "0").stdout.lower()


def test_score_has_the_columns_of_the_design(demo: Path) -> None:
    found = result("score", demo, "--match", "optimal", "--by", "label,model")
    wanted = ["label", "match", "gold", "predicted", "matched", "recall", "precision", "f1", "model", "why"]
    assert set(wanted) <= set(found["table"][0])
    assert "match:optimal" in found["signature"]
    for row in found["table"]:
        assert row["precision"] is not None or row["why"]


def test_every_table_of_score(demo: Path) -> None:
    found = result("score", demo, "--match", "optimal", "--table", "all")
    names = dict.fromkeys(row["table"] for row in found["table"])
    assert list(names) == ["scores", "kinds", "confusion", "compare", "disagreements"]
    one = result("score", demo, "--match", "optimal", "--table", "all", "--judge", "reader-1")
    assert "compare" not in {row["table"] for row in one["table"]}
    printed = run("score", demo, "--match", "optimal", "--judge", "reader-1", "--draws", "20").stdout
    assert "Scores against gold" in printed
    assert "[" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gold", "--table", "confusions"], "unknown table 'confusions'; did you mean 'confusion'"),
        (["gold", "--subsets", "9"], "the subset size must be at least 2 (the required votes)"),
        (["gold", "--align", "item"], "no mark has an `item`"),
        (["score", "--match", "task"], "use --match optimal"),
        (["score", "--judge", "reader-9"], "unknown annotator 'reader-9'; did you mean"),
        (
            ["score", "--table", "compare", "--judge", "reader-1", "--match", "exact"],
            "requires at least two judges, found 1",
        ),
        (["score", "--question", "ratng"], "question 'ratng' has no numeric answers"),
    ],
)
def test_mistakes_are_one_line(words: list[str], message: str, demo: Path) -> None:
    assert message in refused(words[0], demo, *words[1:])


@pytest.mark.long  # a file of 2,246 judgements and fifteen metrics
def test_scalar_metrics_are_correlated(data: Path) -> None:
    found = result("score", data / "frank" / "human_annotations.json", "--question", "factuality")
    assert {row["measure"] for row in found["table"]} == {"pearson", "spearman", "partial"}


@pytest.mark.long  # figures take seconds to load and to draw
def test_a_report_is_written(demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    printed = run("score", demo, "--judge", "reader-1", "--report", folder, "--draws", "20").stdout
    assert "index.html" in printed
    assert (folder / "precision-recall.svg").is_file()


def test_rates_have_systems_down_and_labels_across(demo: Path) -> None:
    options = ("gold", demo, "--table", "rates", "--draws", "0")
    grid = run(*options, "--grid", "--format", "csv").stdout.splitlines()
    long = json.loads(run(*options, "--json").stdout)["table"]
    cells = {(row["model"], row["label"]): row["value"] for row in long}
    header = grid[0].split(",")
    for line in grid[1:]:
        model, *values = line.split(",")
        assert [float(value) for value in values] == [cells[model, label] for label in header[1:]]
    assert "--grid requires --table rates" in refused("gold", demo, "--grid")


def test_one_name_or_two_numbers_are_one_error(tmp_path: Path) -> None:
    given = {("d", "gold"): [NAME], ("d", "p"): [NAME], ("d", "q"): [POINTS, REBOUNDS], ("d", "r"): []}
    fc.write(make_gold_study({"d": STORY}, given), tmp_path / "study")
    errors = {
        repairs: json.loads(run("gold", tmp_path / "study", "--repairs", repairs, "--table", "errors", "--json").stdout)
        for repairs in ("declared", "smallest")
    }
    assert [errors[repairs]["table"][-1]["errors"] for repairs in errors] == [0, 1]
    score = ("score", tmp_path / "study", "--judge", "q", "--draws", "0", "--json")
    rows = [json.loads(run(*score, *more).stdout)["table"][0] for more in ((), ("--repairs", "smallest"))]
    assert [row["matched"] for row in rows] == [0, 1]
