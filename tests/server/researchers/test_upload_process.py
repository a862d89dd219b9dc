"""Tests of reading uploaded files within limits, in a separate process."""

from __future__ import annotations

import io
import zipfile

import pytest

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.server.researchers import upload_process

LINES = [Document(id=f"d{n}", text=f"Text {n} " * 20) for n in range(200)]
LARGE = "\n".join(document.to_json() for document in LINES).encode()


def test_a_large_file_is_read_elsewhere_and_comes_back_the_same() -> None:
    documents, notes = upload_process.read_documents_in_subprocess(LARGE, "texts.jsonl", {}, ())
    assert (documents, notes) == (LINES, [])


def test_what_is_wrong_in_a_large_file_is_said() -> None:
    with pytest.raises(FinecombError, match=r"texts\.jsonl: IDs already exist in the study: 'd3'"):
        upload_process.read_documents_in_subprocess(LARGE, "texts.jsonl", {}, {"d3"})


def test_a_file_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_process, "MAX_READ_SECONDS", 0.01)
    with pytest.raises(FinecombError, match=r"texts\.jsonl: reading took longer than 0\.01 seconds"):
        upload_process.read_documents_in_subprocess(LARGE, "texts.jsonl", {}, ())


def test_a_workbook_that_unpacks_to_too_much_is_refused() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"<row/>" * 40_000_000)
    assert len(content.getvalue()) < 1_000_000
    with pytest.raises(FinecombError, match=r"unpacks to 240,000,000 bytes; the maximum is 200,000,000"):
        upload_process.read_documents_in_subprocess(content.getvalue(), "bomb.xlsx", {}, ())


def test_many_texts_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_process, "MAX_DOCUMENTS", 10)
    small = "\n".join(document.to_json() for document in LINES[:12]).encode()
    with pytest.raises(FinecombError, match="has 12 texts; the maximum per upload is 10"):
        upload_process.read_documents_in_subprocess(small, "texts.jsonl", {}, ())
