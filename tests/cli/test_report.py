from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.records import Annotation, Annotator
from finecomb.statistics.judges.validity import CONTRACTS_FOLDER, JudgeBinding, JudgeContract
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer
from tests.test_cli import refused, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo study with a judge that marks nothing, and what was said of it."""
    place = tmp_path_factory.mktemp("report") / "study"
    study = fc.demo()
    silent = [
        Annotation(id=f"{id}/judge", document=id, annotator="judge", protocol=study.protocol().id)
        for id in study.documents["id"]
    ]
    fc.write(fc.Study.from_items([*study.items(), Annotator(id="judge", kind="llm"), *silent]), place)
    contract = JudgeContract(
        binding=JudgeBinding(judge="judge", protocol="scarecrow@2"), verdict="cannot be used for this", texts=16,
        people=5, epsilon=0.15, winning_rate=0, agreement=0, made=datetime.now(UTC), paragraph="It may not.",
    )  # fmt: skip
    (place / CONTRACTS_FOLDER).mkdir()
    (place / CONTRACTS_FOLDER / "judge.json").write_text(contract.model_dump_json())
    return place


def test_a_report_takes_what_others_wrote_and_is_verified_with_it(folder: Path, tmp_path: Path) -> None:
    """A report against a gold standard of its own was verified without it."""
    gold, table, report = tmp_path / "gold", tmp_path / "estimate.csv", tmp_path / "report"
    run("gold", folder, "--kind", "human", "--min-votes", "1", "-o", gold)
    run("estimate", folder, "--judge", "judge", "--table-out", table)
    options = ("--against", gold, "--with", table, "--licence", "CC0-1.0", "--draws", "20")
    output = run("report", folder, *options, "--export", tmp_path / "figures", "-o", report)
    assert "no licence" not in output.stderr
    assert "--anonymous" in output.stderr
    page = (report / "index.html").read_text()
    assert "cannot be used for this" in page
    assert "from with/estimate.csv" in page
    assert "CC0-1.0" in page
    assert "CC0-1.0" in (report / "datasheet.md").read_text()
    assert {file.suffix for file in (tmp_path / "figures").iterdir()} == {".csv", ".svg", ".png", ".pdf"}
    assert "all numbers match the data" in run("report", report, "--verify").stdout
    (report / "with" / "estimate.csv").write_text(table.read_text().replace("3", "4"))
    assert "with/estimate.csv differs from the file" in refused("report", report, "--verify")


def test_nobody_can_be_told_by_name(folder: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "study"
    study = fc.read(folder)
    text = "\n".join(item.model_dump_json() for item in study.items()).replace("reader-1", "Hawthorn")
    assert "Hawthorn" in text
    renamed.mkdir()
    for file in folder.glob("*.*"):
        (renamed / file.name).write_text(file.read_text().replace("reader-1", "Hawthorn"))
    (renamed / "protocols").mkdir()
    for file in (folder / "protocols").iterdir():
        (renamed / "protocols" / file.name).write_text(file.read_text())
    run("report", renamed, "--anonymous", "--draws", "20", "-o", tmp_path / "report")
    for file in (tmp_path / "report").rglob("*"):
        assert not file.is_file() or b"Hawthorn" not in file.read_bytes(), file


def test_raw_replies_of_runs_come_along_and_are_verified(tmp_path: Path) -> None:
    study, report = tmp_path / "study", tmp_path / "report"
    fc.write(fc.demo(), study)
    with ScriptedServer(lambda body, number: ScriptedAnswer('{"marks": [{"quote": "nowhere"}]}')) as server:
        run("annotate", study, "--model", "m", "--base-url", server.url, "--limit", "1")
    run("report", study, "--draws", "20", "-o", report)
    page = (report / "texts" / "1.html").read_text()
    assert "quote not located" in page
    assert "{&quot;marks&quot;: [{&quot;quote&quot;: &quot;nowhere&quot;}]}" in page
    run("report", report, "--verify")
    kept = report / "replies" / "replies.json"
    kept.write_text(kept.read_text().replace("nowhere", "somewhere"))
    assert "replies/replies.json differs from the file" in refused("report", report, "--verify")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--export", "jpg"),
            "--export jpg is not supported; use png, pdf or a folder (SVG figures and CSV tables are always written)",
        ),
        (("--with", "nowhere.json"), "nowhere.json: cannot be read"),
        (("--with", "notes.txt"), "expected a .json or .csv file"),
        (("--compare", "x", "--licence", "MIT"), "--compare cannot be used with"),
    ],
)
def test_what_cannot_be_shown_is_one_line(folder: Path, options: tuple[str, ...], message: str) -> None:
    assert message in refused("report", folder, *options)
