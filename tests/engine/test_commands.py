"""Every command with an engine, from the command line: one process, two of them and a Ray print the same."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer
import typer.main

from finecomb.cli.commands import app, load_commands
from tests.corpora.critics.test_sections import articles
from tests.test_cli import run

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "win32", reason="signals differ"),
    pytest.mark.filterwarnings("ignore"),
]
pytest.importorskip("ray")

COMMANDS = {
    "agree": [
        "agree",
        "study",
        "--measure",
        "gamma,gamma-texts,gamma-cat,gamma-k",
        "--gamma",
        "samples=4",
        "--gamma",
        "work=0.05",
    ],
    "criticize": [
        "criticize",
        "real.jsonl",
        "other.jsonl",
        "--critic",
        "sections,topics",
        "--set",
        "topics=4",
        "--set",
        "most=1",
    ],
    "detect": ["detect", "study", "--detector", "rules"],
    "stress": ["stress", "referenced.jsonl", "-m", "rougeL", "-m", "chrf", "-m", "detector:rules", "--draws", "50"],
    "test": ["test", "study", "--measure", "count", "--each-label", "--draws", "200"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study and three files of texts."""
    place = tmp_path_factory.mktemp("engines")
    run("demo", place / "study")
    for name, documents in (("real", articles(0, 90)), ("other", articles(1, 30, ("why", "what", "how", "so")))):
        lines = [json.dumps({"document": json.loads(document.to_json())}) for document in documents]
        (place / f"{name}.jsonl").write_text("\n".join(lines))
    rows = [{"id": article.id, "text": article.text, "references": [article.text[9:]]} for article in articles(2, 40)]
    (place / "referenced.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return place


def test_every_command_with_an_engine_is_here() -> None:
    load_commands()
    commands = typer.main.get_group(app).commands
    assert set(COMMANDS) == {
        name for name, command in commands.items() if any("--engine" in option.opts for option in command.params)
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_whoever_works_the_same_is_printed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    alone = run(*COMMANDS[name], "--workers", "1", "--json").stdout
    assert json.loads(alone)["table"]
    assert run(*COMMANDS[name], "--workers", "2", "--json").stdout == alone
    assert run(*COMMANDS[name], "--engine", "ray", "--workers", "2", "--json").stdout == alone
