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
        "it carries the study's texts and marks and names no licence for them (licence)",
        "people have their names in the study, also in data/ (anonymous makes them reader-1, reader-2, ...)",
    ]
    assert all(isinstance(note, ParameterNote) for note in result.sharing_notes)
    assert "names no licence for them (--licence)" in printed.stderr
    assert_short(result)
    verified = report(str(tmp_path / "two"), verify=True)
    assert "every number comes out again" in repr(verified)


def test_a_study_from_memory_is_reported(tmp_path: Path) -> None:
    async def work() -> int:
        made = report(fc.demo(), output=tmp_path / "report", draws=20, anonymous=True, licence="CC0-1.0")
        return len(made.notes)

    assert asyncio.run(work()) == 0
    assert "Saltby" in (tmp_path / "report" / "report.json").read_text()


def test_texts_of_a_data_frame_are_reported(tmp_path: Path) -> None:
    frame = pl.DataFrame([{"id": "a", "text": "One lake."}, {"id": "b", "text": "Two lakes."}])
    assert isinstance(report(frame, output=tmp_path / "report", draws=0), StudyReport)
    with pytest.raises(FinecombError, match=r"^compare: one of the two studies has no annotations to compare$"):
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
        ({"export": "jpg"}, "export=jpg: expected png, pdf or another folder; SVG is always there"),
        ({"with_": "notes.txt"}, "with_=notes.txt: expected a .json or .csv file, as json and table_out write them"),
        ({"with_": "nowhere.json"}, "with_=nowhere.json: cannot be read (No such file or directory)"),
        ({"compare": "x", "licence": "MIT"}, "compare does not go with against, with_, export, licence or anonymous"),
        ({"compare": "x", "where": "model=gpt2"}, "where does not apply to compare; leave it out"),
        ({"verify": True, "by": "model"}, "by does not apply to verify; leave it out"),
    ],
)
def test_a_report_refuses_what_cannot_be(demo: Path, keywords: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError) as error:
        report(demo, **keywords)  # type: ignore[arg-type]
    assert str(error.value) == message


def test_only_a_report_is_verified(demo: Path) -> None:
    with pytest.raises(FinecombError, match=r"is no report; verify takes the folder that `finecomb report` wrote$"):
        report(demo, verify=True)
    assert "--verify takes the folder" in refused("report", demo, "--verify")
    with pytest.raises(ParameterError, match="verify needs the folder of a report"):
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
    with pytest.raises(FinecombError, match="no paper is called 'clerk'; did you mean 'clark'"):
        reproduce("clerk", demo)
