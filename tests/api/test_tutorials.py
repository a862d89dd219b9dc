"""Tutorials in Python alone: the numbers are those that their commands print.

Each test writes the files of a page, runs its commands and doctests in one folder, and calls the functions in another
folder on studies that Python made. Tables, signatures, notes, LaTeX, figures and report pages must be equal.

Left out are steps that need a browser (`preview`), a server (`serve`, recruitment and the researchers' page) or a
language model (`annotate`). `validate` is mentioned without a command that can be run, since the demo study has no
corrections.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import finecomb as fc
from finecomb.reporting.site.report_results import StudyReport
from tests.test_cli import run
from tests.test_docs import COMMANDS, DOCS, blocks, commands_of, run_doctest, write_files


class Tutorial:
    """A page whose commands run in the folder `commands`; Python works in the folder `python`."""

    def __init__(self, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.page = (DOCS / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
        self.commands, self.python, self._monkeypatch = folder / "commands", folder / "python", monkeypatch
        for path in (self.commands, self.python):
            path.mkdir()
            write_files(self.page, path)
        self.outputs: dict[str, str] = {}
        names: dict[str, Any] = {}
        for block in blocks(self.page):
            if block.is_doctest:
                with monkeypatch.context() as context:
                    context.chdir(self.commands)
                    run_doctest(block, name, names)
            elif block.runs:
                shown = [
                    command for command in commands_of(block) if not "".join(command.expected).startswith("finecomb:")
                ]
                lines = [command.words for command in shown]  # without those that are refused on purpose
                self.outputs |= {words: self.run(words) for words in lines if words.startswith("finecomb ")}
        monkeypatch.chdir(self.python)

    def run(self, words: str) -> str:
        """Return what a command prints in the folder of commands; as JSON where it has that and writes no table."""
        _, name, *arguments = shlex.split(words)
        has_json = any("--json" in flag.opts for flag in COMMANDS[name].params)
        with self._monkeypatch.context() as context:
            context.chdir(self.commands)
            json_flag = [] if {"--json", "--table-out"} & {*arguments} or not has_json else ["--json"]
            result = run(name, *arguments, *json_flag)
        assert result.exit_code == 0, words
        return result.stdout

    def answer(self, words: str) -> dict[str, Any]:
        """Return the JSON of a command of the page, or of one that its prose mentions."""
        answer: dict[str, Any] = json.loads(self.outputs[words] if words in self.outputs else self.run(words))
        return answer

    def assert_same_files(self, *names: str) -> None:
        for name in names:
            assert (self.commands / name).read_bytes() == (self.python / name).read_bytes(), name


def defined_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells that hold something: JSON writes null or an empty string where Python has NaN or no column."""
    is_nan = {name: isinstance(cell, float) and math.isnan(cell) for name, cell in row.items()}
    return {name: cell for name, cell in row.items() if cell is not None and cell != "" and not is_nan[name]}


def assert_same_table(rows: Sequence[Mapping[str, Any]], result: fc.Result, common: str | None = None) -> None:
    """Compare rows of JSON with a result; `common` is the part of all signatures that JSON states once, if known."""
    python_rows = result.to_dicts()
    assert python_rows
    assert len(rows) == len(python_rows)
    for printed, returned in zip(map(defined_cells, rows), map(defined_cells, python_rows), strict=True):
        own, full = printed.pop("signature", ""), returned.pop("signature", "")
        assert printed == pytest.approx(returned)
        assert common is None or {*own.split("|"), *common.split("|")} - {""} == {*full.split("|")} - {""}


def assert_same_result(answer: Mapping[str, Any], result: fc.Result) -> None:
    assert_same_table(answer["table"], result, answer["signature"])
    assert answer["signature"] == result.signature
    assert answer["notes"] == list(result.notes)


def rows_of_table(answer: Mapping[str, Any], name: str, column: str = "table") -> list[dict[str, Any]]:
    """Return the rows of one of the tables that a command prints, without the column that names it."""
    rows = [dict(row) for row in answer["table"] if row[column] == name]
    return [{key: cell for key, cell in row.items() if key != column} for row in rows]


def test_three_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tutorial = Tutorial("three-systems", tmp_path, monkeypatch)
    created = fc.new("texts.csv", protocol="scarecrow", annotators=3)
    created.write("answers")
    printed = tutorial.outputs["finecomb new answers --protocol scarecrow --documents texts.csv --annotators 3"]
    assert printed == f"answers: {created.title}\nannotators: {created.announcement}\n"
    fc.merge("answers", "marks.csv", protocol="scarecrow").write("marked")
    tutorial.assert_same_files("answers/documents.jsonl", "marked/documents.jsonl", "marked/annotations.jsonl")
    assert tutorial.answer("finecomb check marked")["table"] == fc.check("marked").to_dicts()

    agreement = fc.agree("marked", measure="alpha", back_off="any")
    assert_same_result(tutorial.answer("finecomb agree marked --measure alpha --back-off any"), agreement)
    differences = fc.test("marked", measure="count")
    assert_same_result(tutorial.answer("finecomb test marked --measure count"), differences)
    plan = fc.power("marked", measure="count", difference=1)
    assert_same_result(tutorial.answer("finecomb power marked --measure count --difference 1"), plan)

    drop = "grammar-usage:1"
    words = "finecomb measure marked --measure count --by model"
    counts = fc.measure("marked", measure="count", by="model", drop=drop, sort="value")
    assert_same_result(tutorial.answer(f"{words} --grid --drop {drop} --sort value"), counts)
    [grid] = counts.pivots()
    assert [[*row.values()] for row in grid][-1] == pytest.approx(["any", 0.167, 1.417, 2.75], abs=5e-4)
    best = fc.measure("marked", measure="count", by="model", drop=drop, label="redundant", best=True)
    latex = (tutorial.commands / "table.tex").read_text(encoding="utf-8")
    assert best.pivots()[0].to_latex().rstrip() == latex.rstrip()
    assert latex.rstrip() in tutorial.page
    assert all(note in tutorial.page for note in best.notes)

    figure = fc.measure("marked", measure="count", by="model", drop=drop)
    assert_same_result(tutorial.answer(f"{words} --drop {drop} --plot count.svg --json"), figure)
    figure.plot("count.svg")
    report = fc.report("marked", output="report")
    assert isinstance(report, StudyReport)
    assert report.sentence in tutorial.outputs["finecomb report marked -o report"]
    tutorial.assert_same_files("count.svg", "report/methods.txt", "report/datasheet.md", "report/report.json")


def test_three_systems_without_a_study_folder(tmp_path: Path) -> None:
    """A result is passed on to the next function as it is."""
    page = (DOCS / "tutorials" / "three-systems.md").read_text(encoding="utf-8")
    write_files(page, tmp_path)
    created = fc.new(tmp_path / "texts.csv", protocol="scarecrow", annotators=3)
    simulated = fc.simulate(created, annotators=3, recall=0.6)
    assert not fc.check(simulated)
    assert f"{fc.agree(simulated, measure='alpha', back_off='any')[0].estimate.value:.3f}" == "0.296"
    assert fc.score(fc.gold(simulated), simulated, draws=0).find(judge="reader-1", label="any").gold > 0


@pytest.mark.long
def test_a_crowd_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tutorial = Tutorial("crowd-study", tmp_path, monkeypatch)
    created = fc.new("texts.csv", protocol="scarecrow", settings="settings.yaml")
    created.write("crowd")
    words = "finecomb new crowd --protocol scarecrow --documents texts.csv --settings settings.yaml"
    assert created.title in tutorial.outputs[words]
    tutorial.assert_same_files("crowd/documents.jsonl", "crowd/study.yaml")
    assert tutorial.answer("finecomb check crowd")["table"] == fc.check("crowd").to_dicts() == []

    pilot = fc.tour("pilot").study
    tutorial.assert_same_files("pilot/annotations.jsonl")
    plan = fc.power(pilot, measure="count", difference=1)
    assert_same_result(tutorial.answer("finecomb power pilot --measure count --difference 1"), plan)
    assert_same_result(tutorial.answer("finecomb agree pilot"), fc.agree(pilot))
    assert_same_result(tutorial.answer("finecomb agree pilot --who"), fc.agree(pilot, who=True))

    report = fc.report("pilot", output="report", anonymous=True)
    assert isinstance(report, StudyReport)
    assert report.sentence in tutorial.outputs["finecomb report pilot -o report --anonymous"]
    tutorial.assert_same_files("report/index.html", "report/report.json")
    assert fc.report("report", verify=True).title == tutorial.outputs["finecomb report report --verify"].rstrip()


def test_a_metric_against_gold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tutorial = Tutorial("metric", tmp_path, monkeypatch)
    fc.tour("study")
    scores = fc.score("study", judge="reader-2", by="label")
    words = "finecomb score study --judge reader-2"
    assert_same_result(tutorial.answer(f"{words} --by label --plot reader-2.svg"), scores)
    scores.plot("reader-2.svg")
    tutorial.assert_same_files("reader-2.svg")
    by_rule, answer = fc.score("study", judge="reader-2", match="all"), tutorial.answer(f"{words} --match all")
    for name in ("rules", "ranks"):
        assert_same_table(rows_of_table(answer, name), by_rule.table(name))

    fc.convert("scores.csv", "rated")
    correlations = fc.test("rated", what="metrics", question="quality", by="model")
    words = "finecomb test rated --what metrics --question quality --by model"
    assert_same_result(tutorial.answer(words), correlations)

    merged, answer = fc.gold("study"), tutorial.answer("finecomb gold study --table all")
    for name in ("errors", "annotators", "confusion", "rates", "agreement"):
        assert_same_table(rows_of_table(answer, name), merged.table(name))


def test_a_judge_compared_with_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tutorial = Tutorial("llm-judge", tmp_path, monkeypatch)
    fc.tour("study")
    calibration = fc.calibrate("study", judge="reader-1")
    answer = tutorial.answer("finecomb calibrate study --judge reader-1 --plot judge.svg")
    sections = list(dict.fromkeys(row["section"] for row in answer["table"]))
    assert sections == [section.key for section in calibration.sections]
    for name in sections:
        assert_same_table(rows_of_table(answer, name, "section"), calibration.table(name))
    assert answer["notes"] == [calibration.paragraph, *calibration.notes]
    calibration.plot("judge.svg")
    tutorial.assert_same_files("judge.svg")
    means = fc.estimate(tutorial.commands / "partial", judge="reader-1", measure="count")
    assert_same_result(tutorial.answer("finecomb estimate partial --judge reader-1 --measure count"), means)


def test_importing_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tutorial = Tutorial("import", tmp_path, monkeypatch)
    names = ("document=Item", "text=Response", "annotator=Rater", "label=Category", "quote=Quote", "severity=Severity")
    columns = (*names, "explanation=Note", "prompt=Question", "model=System")
    fc.convert("errors.csv", "bridge", protocol="errors.yaml", map=columns)
    fc.convert("export.json", "walks", from_="label-studio")
    tutorial.assert_same_files("walks/documents.jsonl", "walks/annotations.jsonl")
    severities = fc.measure("bridge", measure="count,severity", by="model", back_off="any")
    words = "finecomb measure bridge --measure count,severity --by model --back-off any"
    assert_same_result(tutorial.answer(words), severities)
    fc.import_table("ola.csv", into="bridge", labels="Figure=wrong-number", no_row="read")
    tutorial.assert_same_files("bridge/annotations.jsonl")


def test_structural_differences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tutorial = Tutorial("structure", tmp_path, monkeypatch)
    corpora = [tutorial.commands / f"{name}.jsonl" for name in ("real", "good", "swapped", "looped")]
    criticism = fc.criticize(corpora[0], corpora[1:], set_=["labels=title"])
    p_values = {row["system"]: row["p_adjusted"] for row in criticism.to_dicts() if row["statistic"] == "nll"}
    assert p_values["good"] > 0.05
    assert max(p_values["swapped"], p_values["looped"]) < 0.05
