"""Reports and reproductions, called from Python and compared with what the commands print."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import polars as pl
import pytest

import finecomb as fc
from finecomb.api.reports import report, reproduce
from finecomb.core.errors import FinecombError, ParameterError
from finecomb.core.notes import ParameterNote
from finecomb.reporting.site.report_inputs import split_export_targets
from finecomb.reporting.site.report_results import StudyChanges, StudyReport
from tests.api.test_corpora import assert_short
from tests.test_cli import refused, run


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "study"
    fc.write(fc.demo(), folder)
    return folder


def test_a_report_says_what_the_command_prints(demo: Path, tmp_path: Path) -> None:
    printed = run("report", demo, "-o", tmp_path / "one", "--draws", "20")
    pages: list[tuple[int, int | None]] = []
    result = report(demo, output=tmp_path / "two", draws=20, progress=lambda done, total: pages.append((done, total)))
    assert isinstance(result, StudyReport)
    assert result.sentence in printed.stdout
    assert f"{len(result)} figures, {result.counts}" in printed.stdout
    assert pages[-1] == (17, 17)  # 16 texts and their list
    for name in ("index.html", "report.json", "datasheet.md"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert [str(note) for note in result.sharing_notes] == [
        "the report contains texts and marks without a licence; add one with licence",
        (
            "the report, including data/, contains the names of annotators; "
            "anonymous replaces them with reader-1, reader-2, ..."
        ),
    ]
    assert all(isinstance(note, ParameterNote) for note in result.sharing_notes)
    assert "without a licence; add one with --licence" in printed.stderr
    assert_short(result)
    verified = report(str(tmp_path / "two"), verify=True)
    assert "all numbers match the data" in repr(verified)


def test_a_study_from_memory_is_reported(tmp_path: Path) -> None:
    async def work() -> int:
        made = report(fc.demo(), output=tmp_path / "report", draws=20, anonymous=True, licence="CC0-1.0")
        return len(made.notes)

    assert asyncio.run(work()) == 0
    assert "Saltby" in (tmp_path / "report" / "report.json").read_text()


def test_texts_of_a_data_frame_are_reported(tmp_path: Path) -> None:
    frame = pl.DataFrame([{"id": "a", "text": "One lake."}, {"id": "b", "text": "Two lakes."}])
    assert isinstance(report(frame, output=tmp_path / "report", draws=0), StudyReport)
    with pytest.raises(FinecombError, match=r"^compare requires submitted annotations in both studies$"):
        report(frame, compare=frame, output=tmp_path / "changes", draws=0)


def test_changes_are_findings(demo: Path, tmp_path: Path) -> None:
    printed = run("report", demo, "--compare", demo, "-o", tmp_path / "one", "--draws", "20").stdout
    changes = report(demo, compare=fc.read(demo), output=tmp_path / "two", draws=20)
    assert isinstance(changes, StudyChanges)
    assert f"{len(changes)} differences" in printed
    assert (tmp_path / "one" / "index.html").read_bytes() == (tmp_path / "two" / "index.html").read_bytes()
    assert {row.value for row in changes.rows()} == {0.0}
    assert_short(changes)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        (
            {"export": "jpg"},
            "export=jpg is not supported; use png, pdf or a folder (SVG figures and CSV tables are always written)",
        ),
        (
            {"export": "report", "output": "report"},
            "export=report is the folder of the report; use a folder other than output",
        ),
        ({"with_": "notes.txt"}, "with_=notes.txt: expected a .json or .csv file written with json or table_out"),
        ({"with_": "nowhere.json"}, "with_=nowhere.json: cannot be read (No such file or directory)"),
        (
            {"compare": "x", "licence": "MIT"},
            "compare cannot be used with against, with_, export, licence or anonymous",
        ),
        ({"compare": "x", "where": "model=gpt2"}, "where does not apply to compare; omit it"),
        ({"verify": True, "by": "model"}, "by does not apply to verify; omit it"),
    ],
)
def test_a_report_refuses_what_cannot_be(demo: Path, keywords: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        report(demo, **keywords)  # type: ignore[arg-type]
    assert str(error.value) == message


def test_an_export_folder_is_not_a_file_and_may_be_named_after_a_format(demo: Path, tmp_path: Path) -> None:
    taken = tmp_path / "figures"
    taken.write_text("notes")
    with pytest.raises(ParameterError) as error:
        report(demo, output=tmp_path / "report", export=str(taken))
    assert str(error.value) == f"export={taken} is a file; expected png, pdf or a folder"
    folder = tmp_path / "svg"
    assert split_export_targets(["png", str(folder)], tmp_path / "report") == (["png"], [folder])


def test_only_a_report_is_verified(demo: Path) -> None:
    with pytest.raises(FinecombError, match=r"is not a report; verify requires a folder written by `finecomb report`$"):
        report(demo, verify=True)
    assert "--verify requires a folder" in refused("report", demo, "--verify")
    with pytest.raises(ParameterError, match="verify requires the folder of a report"):
        report(fc.demo(), verify=True)


def test_a_reproduction_gives_what_the_command_prints(demo: Path, tmp_path: Path) -> None:
    words = ("--only", "Table 6", "--only", "Figure 16", "--draws", "0")
    printed = json.loads(run("reproduce", "scarecrow", demo, "-o", tmp_path / "one", *words, "--json").stdout)
    calls: list[tuple[int, int | None]] = []
    for study in (demo, fc.read(demo)):
        result = reproduce(
            "scarecrow", study, only=["Table 6", "Figure 16"], draws=0, output=tmp_path / "two",
            progress=lambda done, total: calls.append((done, total)),
        )  # fmt: skip
        assert result.to_dicts() == printed["table"]
        assert list(result.notes) == printed["notes"]
    assert calls == [(1, 2), (2, 2)] * 2
    assert result.made_count == 1
    assert (tmp_path / "one" / "index.html").read_bytes() == (tmp_path / "two" / "index.html").read_bytes()
    assert_short(result)


def test_a_reproduction_refuses_what_cannot_be(demo: Path) -> None:
    with pytest.raises(ParameterError, match=r"^audit does not apply to clark; it applies to scarecrow$"):
        reproduce("clark", demo, audit=demo)
    with pytest.raises(FinecombError, match="unknown paper 'clerk'; did you mean 'clark'"):
        reproduce("clerk", demo)
