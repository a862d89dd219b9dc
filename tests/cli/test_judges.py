from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import finecomb as fc
from finecomb.statistics.judges.calibration_record import CalibrationRecord
from finecomb.statistics.judges.validity import JudgeContract
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer
from tests.statistics.judges.judge_studies import make_crowd_study, make_judge_study, simulate_annotator
from tests.statistics.judges.test_counterfactual_validation import gold
from tests.test_cli import refused, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("judges") / "study"
    fc.write(make_crowd_study(40), place)
    return place


def result(*words: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*words, "--json").stdout)
    assert set(found) == {"table", "signature", "notes"}
    return found


def test_calibrate_answers_first_and_keeps_a_contract(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    output = run(
        "calibrate", folder, "--judge", "judge", "--draws", "50", "--no-gamma", "--html", page, "--keep"
    ).stdout
    assert output.startswith("judge: too few texts to decide. 40 texts were annotated by the judge and two people")
    assert "Simple baselines" in output
    assert "Alternative annotator test, by person" in output
    contract = JudgeContract.model_validate_json((folder / "contracts" / "judge.json").read_text())
    assert contract.texts == 40
    assert contract.paragraph in output
    record = CalibrationRecord.model_validate_json((folder / "calibrations" / "judge.json").read_text())
    assert record.contract == contract
    assert "<svg" in page.read_text()
    assert run("check", folder).exit_code == 0


def test_calibrate_as_rows(folder: Path) -> None:
    found = result("calibrate", folder, "--judge", "judge", "--draws", "20", "--levels", "token", "--no-gamma")
    assert found["table"][0]["section"] == "answer"
    assert {"agreement", "chair", "test", "bias", "found"} <= {row["section"] for row in found["table"]}


def test_tables_of_judges_go_where_they_are_asked_to(folder: Path, tmp_path: Path) -> None:
    """`--format` and `--table-out` were taken and ignored."""
    table = tmp_path / "estimate.csv"
    output = run("estimate", folder, "--judge", "judge", "--format", "csv", "--table-out", table).stdout
    assert output.strip() == table.read_text().strip()
    assert output.startswith("measure,")
    options = ("--judge", "judge", "--draws", "20", "--levels", "token", "--no-gamma", "--format", "markdown")
    assert run("calibrate", folder, *options).stdout.startswith("**Agreement with people (alpha)")
    assert run("calibrate", folder, *options[:-1], "csv").stdout.startswith("people,")


def test_estimate_says_what_the_judge_is_worth(folder: Path) -> None:
    found = result("estimate", folder, "--judge", "judge", "--measure", "count,coverage")
    assert [row["method"] for row in found["table"]] == ["people alone", "with judges"] * 2
    assert found["table"][0]["worth"] == 40
    assert "people alone" in " ".join(run("estimate", folder, "--judge", "judge").stdout.split())


def test_a_language_model_is_validated_by_reading_what_gold_corrects(tmp_path: Path) -> None:
    """One that marks every number of a text marks the corrected ones too; nothing is asked twice."""
    fc.write(gold("Nine gulls and nine terns."), tmp_path / "study")

    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        content = body["messages"][-1]["content"].lower()
        quotes = [word for word in ("ten", "nine", "two", "four") if f"{word} " in content]
        around = {"before": "", "after": "", "label": "number"}
        said = [word.capitalize() if word.capitalize() in body["messages"][-1]["content"] else word for word in quotes]
        return ScriptedAnswer(json.dumps({"marks": [{"quote": word, **around} for word in said]}))

    with ScriptedServer(script) as server:
        words = ("validate", tmp_path / "study", "--judge", "m", "--base-url", server.url, "--draws", "10")
        table = result(*words)["table"]
        assert len(server.requests) == 3
        result(*words)
        assert len(server.requests) == 3
    rows = {row["measure"]: row["value"] for row in table if row["label"] == "any"}
    assert rows == {"found": 1, "vanished": 0, "stayed": 1, "still marked": 1, "marks per reference": 1}


def test_a_model_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    fc.write(gold(), tmp_path / "study")
    with ScriptedServer(lambda body, number: ScriptedAnswer("no", 400)) as server:
        message = refused("validate", tmp_path / "study", "--judge", "m", "--base-url", server.url, "--attempts", "1")
        shots = refused("validate", tmp_path / "study", "--judge", "m", "--base-url", server.url, "--shots", "1")
    assert "m did not annotate 2 of 2 texts" in message
    assert "--shots must be 0 for validation" in shots


def test_a_reply_that_cannot_be_read_needs_another_request(tmp_path: Path) -> None:
    fc.write(gold(), tmp_path / "study")
    with ScriptedServer(lambda body, number: ScriptedAnswer("no marks here")) as server:
        message = refused("validate", tmp_path / "study", "--judge", "m", "--base-url", server.url)
    assert "its reply could not be read); change --seed or --max-tokens" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("calibrate", "--judge", "nobody"), "annotator 'nobody' has no submitted annotations"),
        (("calibrate", "--judge", "judge", "--score", "rmse"), "requires --question"),
        (("calibrate", "--judge", "judge", "--score", "char-f1", "--question", "q"), "compares marks"),
        (("calibrate", "--judge", "judge", "--levels", "tokn"), "did you mean 'token'"),
        (("validate", "--judge", "boxscor"), "did you mean 'boxscore'"),
        (("validate", "--judge", "gpt"), "or a model with --base-url"),
        (("validate", "--judge", "boxscore", "--temperature", "1"), "--temperature applies only to language models"),
        (("validate", "--judge", "boxscore", "--gold", "p0"), "no mark of p0 has a correction"),
        (("estimate", "--judge", "judge", "--strata", "topic"), "no document has the meta field 'topic'"),
        (("estimate", "--judge", "judge", "--measure", "cuont"), "did you mean 'count'"),
    ],
)
def test_mistakes_are_told_in_one_line(folder: Path, words: tuple[str, ...], message: str) -> None:
    assert message in refused(words[0], folder, *words[1:])


def test_systems_without_a_shared_prompt_are_compared(tmp_path: Path) -> None:
    """A difference between unpaired systems has no `worth`, which ended in a KeyError."""
    metas = {f"d{at:03}": {"model": "ab"[at % 2]} for at in range(24)}
    people, judge = simulate_annotator(24, 1), simulate_annotator(24, 2)
    fc.write(make_judge_study({"p0": people, "judge": judge}, {"judge": "llm"}, metas), tmp_path / "study")
    output = run("estimate", tmp_path / "study", "--judge", "judge", "--by", "model").stdout
    assert "count difference" in output
    assert "a - b" in output
