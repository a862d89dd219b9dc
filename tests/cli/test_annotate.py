from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from finecomb import formats
from finecomb.cli import app
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.records import Document, ModelSettings, Settings
from finecomb.protocols import load
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer

MARK = {
    "quote": "the the",
    "before": "saw",
    "after": "sea.",
    "label": "grammar-usage",
    "severity": 1,
    "explanation": "x",
}
REPLY = json.dumps({"marks": [MARK]})


@pytest.fixture
def study(tmp_path: Path) -> Path:
    documents = [Document(id=f"d{number}", text=f"On day {number} they saw the the sea.") for number in range(4)]
    folder = tmp_path / "study"
    formats.save_records([Settings(protocols=("scarecrow@2",)), load("scarecrow"), *documents], folder)
    return folder


def run(*arguments: object) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_model_is_added_to_a_study_and_a_second_run_changes_nothing(study: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(REPLY)) as server:
        first = run("annotate", study, "--model", "m", "--base-url", server.url, "--price", "1,2", "--budget", "1")
        files = {file.name: file.read_bytes() for file in study.glob("*.jsonl")}
        run("annotate", study, "--model", "m", "--base-url", server.url, "--price", "1,2", "--budget", "1")
        assert len(server.requests) == 4
    assert "4 marks in 4 texts by m" in first.stdout
    assert files == {file.name: file.read_bytes() for file in study.glob("*.jsonl")}
    whole = formats.read(study)
    assert whole.marks["label"].to_list() == ["grammar-usage"] * 4
    assert whole.annotators["kind"].to_list() == ["llm"]


def test_models_of_the_study_are_known_by_name(study: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(REPLY)) as server:
        settings = formats.read(study).settings
        models = {"judge-1": ModelSettings(model="big-model", base_url=server.url, temperature=0.5)}
        formats.folder.write_settings(settings.model_copy(update={"models": models}), [], study)
        run("annotate", study, "--model", "judge-1", "--limit", "1", "--trust-endpoint")
        assert (server.requests[0]["model"], server.requests[0]["temperature"]) == ("big-model", 0.5)
    assert formats.read(study).annotators["id"].to_list() == ["judge-1"]


def test_marks_are_verified_on_request(study: Path) -> None:
    question = load("audit").document_questions[0]

    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        judged = "TO BE JUDGED" in body["messages"][-1]["content"]
        return ScriptedAnswer(json.dumps({"answers": {question.name: question.values[0]}}) if judged else REPLY)

    with ScriptedServer(script) as server:
        run("annotate", study, "--model", "m", "--base-url", server.url, "--limit", "2", "--verify", "same")
    whole = formats.read(study)
    audits = [each for each in whole.iter_annotations() if each.protocol == "audit@1"]
    assert len(audits) == 2
    assert all(each.about for each in audits)


def test_a_dry_run_sends_nothing_and_shows_the_cost(study: Path) -> None:
    result = run(
        "annotate",
        study,
        "--model",
        "m",
        "--base-url",
        "http://127.0.0.1:9/v1",
        "--price",
        "1,2",
        "--dry-run",
        "--json",
    )
    row = json.loads(result.stdout)["table"][0]
    assert row["calls"] == 4
    assert 0 < row["likely cost"] < row["most it can cost"]
    assert not (study / "runs").exists()
    shown = run("annotate", study, "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--dry-run").stdout
    assert "On day 0 they saw the the sea." in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", "1"], "--budget requires --price IN,OUT"),
        (["--price", "cheap"], "expected IN,OUT"),
        (["--temperature", "9"], "--temperature: "),
    ],
)
def test_bad_options_are_one_line(study: Path, options: list[str], message: str) -> None:
    with pytest.raises(FinecombError) as error:
        run("annotate", study, "--model", "m", "--base-url", "http://127.0.0.1:9/v1", *options)
    assert message in error.value.format_message(format_as_flag)


def test_another_prompt_under_the_same_name_is_refused(study: Path, tmp_path: Path) -> None:
    template = tmp_path / "mine.txt"
    template.write_text("Look at {{text}}", encoding="utf-8")
    with ScriptedServer(lambda body, number: ScriptedAnswer(REPLY)) as server:
        run("annotate", study, "--model", "m", "--base-url", server.url, "--limit", "1")
        with pytest.raises(FinecombError, match=r"already has annotations with other settings \(prompt"):
            run("annotate", study, "--model", "m", "--base-url", server.url, "--prompt", template)
        run(
            "annotate",
            study,
            "--model",
            "m",
            "--base-url",
            server.url,
            "--prompt",
            template,
            "--name",
            "m-2",
            "--limit",
            "1",
        )
    assert formats.read(study).annotators["id"].to_list() == ["m", "m-2"]


def test_samples_merge_into_gold(study: Path, tmp_path: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(REPLY)) as server:
        run("annotate", study, "--model", "m", "--base-url", server.url, "--samples", "3")
    run("gold", study, "--kind", "llm", "-o", tmp_path / "gold")
    assert set(formats.read(tmp_path / "gold").marks["votes"].to_list()) >= {3}


def test_prompts_are_shown_and_exported(tmp_path: Path) -> None:
    assert "New person not introduced" in run("prompts", "show", "snac").stdout
    file = tmp_path / "mine.txt"
    run("prompts", "export", file)
    assert "{{labels}}" in file.read_text(encoding="utf-8")
    with pytest.raises(FinecombError, match="already exists"):
        run("prompts", "export", file)


@pytest.mark.long
def test_an_interrupted_run_leaves_a_sound_study_and_no_key_in_the_process_list(study: Path) -> None:
    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        return ScriptedAnswer(REPLY, wait=0 if number < 2 else 60)

    with ScriptedServer(script) as server:
        arguments = ["annotate", str(study), "--model", "m", "--base-url", server.url, "--key-env", "FINECOMB_TEST_KEY"]
        code = "from finecomb.cli import main; main()"
        environment = {**os.environ, "FINECOMB_TEST_KEY": "sk-verysecret"}
        child = subprocess.Popen(
            [sys.executable, "-c", code, *arguments, "--concurrency", "1"], env=environment, stderr=subprocess.PIPE
        )
        while len(server.requests) < 3 and child.poll() is None:
            time.sleep(0.05)
        assert b"verysecret" not in Path(f"/proc/{child.pid}/cmdline").read_bytes()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert b"interrupted; run the same command again to resume" in errors
    assert len(formats.read(study).annotations) == 2
