"""A report that is interrupted leaves the earlier report, or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.errors import FinecombError
from finecomb.reporting.site import report_folder


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_interrupted_report_blocks_nothing_and_mixes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    study, output = fc.demo(readers=2), tmp_path / "report"
    with monkeypatch.context() as patch:
        patch.setattr(report_folder, "_datasheet_files", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fc.report(study, output=output, draws=20)
    assert list(tmp_path.iterdir()) == []
    fc.report(study, output=output, draws=20)
    (output / "CNAME").write_text("study.example.org")
    before = content_of(output)
    with monkeypatch.context() as patch:
        patch.setattr(report_folder, "_text_page_files", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fc.report(study, output=output, draws=30)
    assert content_of(output) == before
    abandoned = tmp_path / ".report.999999.part"  # as a killed command leaves it
    abandoned.mkdir()
    fc.report(study, output=output, draws=30)
    assert json.loads((output / "report.json").read_text())["draws"] == 30
    assert (output / "CNAME").read_text() == "study.example.org"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


@pytest.mark.parametrize("content", ["[" * 100_000, "{}", "[]", '{"figures": {}}', "\udcff"])
def test_a_manifest_that_is_none_is_one_line(tmp_path: Path, content: str) -> None:
    fc.report(fc.demo(readers=2), output=tmp_path / "report", draws=20)
    (tmp_path / "report" / "report.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(FinecombError, match=r"report\.json: .*write the report again"):
        fc.report(tmp_path / "report", verify=True)
