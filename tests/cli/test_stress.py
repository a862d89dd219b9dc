from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from finecomb import formats
from finecomb.corpora.stress import corrupt_documents, metric_by_name, run_stress_trial
from finecomb.engine.engines import LocalEngine
from finecomb.engine.partitions import Executor
from tests.test_cli import refused, run

LINES = [
    {
        "id": f"t{number}",
        "text": f"In {1990 + number} Ann met Bob. They had {number + 2} plans. She was glad.",
        "references": [f"In {1990 + number} Ann met Bob. They had plans. She was glad."],
    }
    for number in range(8)
]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(map(json.dumps, LINES)))
    return file


def test_a_table_of_metrics_and_corruptions(texts: Path) -> None:
    output = run(
        "stress", texts, "--metric", "rouge1", "--corruption", "shuffled,numbers", "--json", "--draws", "50"
    ).output
    table = json.loads(output)
    assert [(row["metric"], row["corruption"], row["texts"]) for row in table["table"]] == [
        ("rouge1", "shuffled", 8),
        ("rouge1", "numbers", 8),
    ]
    assert table["table"][1]["value"] > 0
    assert [row["metric"] for row in table["ranks"]] == ["rouge1"]


def test_a_detector_is_a_metric(texts: Path) -> None:
    output = run(
        "stress", texts, "--metric", "detector:rules", "--corruption", "repeated", "--json", "--draws", "50"
    ).output
    (row,) = json.loads(output)["table"]
    assert row["value"] > 0  # it sees the repetition


def test_a_run_that_was_cut_off_goes_on_from_its_partitions(texts: Path, tmp_path: Path) -> None:
    words: list[str | Path] = [
        "stress",
        texts,
        "--metric",
        "rouge1",
        "--metric",
        "chrf",
        "--corruption",
        "repeated",
        "--json",
    ]
    expected = run(*words).stdout
    folder = tmp_path / "kept"
    spread = Executor.from_folder(LocalEngine(), folder)
    documents = list(formats.read(texts).iter_documents())
    run_stress_trial(corrupt_documents(documents, ["repeated"], 0), [metric_by_name("rouge1")], 0, 0, spread)
    result = run(*words, "--partitions", folder)
    assert result.stdout == expected
    assert "16 scores reused from an interrupted run" in result.stderr
    assert not folder.exists()


def test_metrics_that_see_all_texts_at_once_have_no_engine(texts: Path) -> None:
    message = refused("stress", texts, "--metric", "command:cat", "--engine", "ray")
    assert message == "--engine does not apply to command:cat; it applies to rouge1, rouge2, rougeL, bleu, chrf"


def test_any_command_is_a_metric(texts: Path, tmp_path: Path) -> None:
    program = tmp_path / "length.py"
    program.write_text("import json, sys\nfor line in sys.stdin:\n    print(-len(json.loads(line)['text']))\n")
    output = run(
        "stress", texts, "--metric", f"command:{sys.executable} {program}", "--corruption", "repeated", "--json"
    ).output
    assert json.loads(output)["table"][0]["value"] > 0


def test_what_other_metrics_found_is_kept_when_one_fails(texts: Path) -> None:
    words = [
        "--metric",
        f"command:{sys.executable} -c pass",
        "--metric",
        "rouge1",
        "--corruption",
        "shuffled",
        "--json",
    ]
    result = run("stress", texts, *words, "--draws", "20")
    assert result.exit_code == 1
    output = result.stdout
    assert [row["metric"] for row in json.loads(output)["table"]] == ["rouge1"]
    assert any(
        "expected 8 numbers, one per text, found 0; the metric has no rows" in note
        for note in json.loads(output)["notes"]
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metric", "rouge9"], "unknown metric 'rouge9'"),
        (["--corruption", "shufled"], "did you mean 'shuffled'"),
        (["--metric", "detector:"], "--metric detector requires a value"),
        (["--metric", "command:no-such-program-anywhere"], "cannot be run: No such file or directory"),
        (["--metric", f"command:{sys.executable} -c pass"], "expected 8 numbers, one per text, found 0"),
        (["--metric", "code:no_such_module:f"], "module 'no_such_module' is not installed"),
        (
            ["--where", "id == 't0'", "--corruption", "human"],
            "no text can be corrupted by human; `finecomb stress --help` lists",
        ),
    ],
)
def test_a_mistake_is_one_clear_line(texts: Path, words: list[str], message: str) -> None:
    assert message in refused("stress", texts, *words)
