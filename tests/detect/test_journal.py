"""A run that is cut off goes on where it was; a changed text or detector is marked anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from finecomb.core.records import Annotation, Document
from finecomb.detect.base import BATCH, detect
from finecomb.detect.journal import MarkingJournal, journal_file

DOCUMENTS = [Document(id=f"d{number}", text=f"Text {number}.") for number in range(BATCH + 3)]


class CountingDetector:
    """Counts what it is given, and may fail at a document."""

    signature = "counting"

    def __init__(self, fails_at: str = "") -> None:
        self.calls: list[str] = []
        self.batches: list[int] = []
        self.fails_at = fails_at

    def __call__(self, document: Document) -> Annotation:
        return next(self.annotations([document]))

    def annotations(self, documents: Sequence[Document]) -> Iterator[Annotation]:
        self.batches.append(len(documents))
        for document in documents:
            if document.id == self.fails_at:
                raise KeyboardInterrupt
            self.calls.append(document.id)
            yield Annotation(id=f"{document.id}/c", document=document.id, annotator="c", protocol="snac@1")


def test_documents_come_in_batches_and_annotations_in_order() -> None:
    detector = CountingDetector()
    assert [annotation.document for annotation in detect(DOCUMENTS, detector)] == [
        document.id for document in DOCUMENTS
    ]
    assert detector.batches == [BATCH, 3]


def test_a_run_that_was_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    file = journal_file(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        list(MarkingJournal(file, "s").annotations(DOCUMENTS, CountingDetector("d5")))
    file.write_text(file.read_text() + '{"signature": "s", "tex', encoding="utf-8")
    second = CountingDetector()
    annotations = list(MarkingJournal(file, "s").annotations(DOCUMENTS, second))
    assert [annotation.document for annotation in annotations] == [document.id for document in DOCUMENTS]
    assert second.calls == [document.id for document in DOCUMENTS[5:]]


def test_another_detector_or_another_text_is_marked_anew(tmp_path: Path) -> None:
    file = journal_file(tmp_path / "out")
    list(MarkingJournal(file, "s").annotations(DOCUMENTS[:2], CountingDetector()))
    changed = [DOCUMENTS[0], Document(id="d1", text="Another text.")]
    for signature, calls in (("s", ["d1"]), ("other", ["d0", "d1"])):
        detector = CountingDetector()
        list(MarkingJournal(file, signature).annotations(changed, detector))
        assert detector.calls == calls
