"""Marking that can be interrupted: every annotation is written down as it comes, and found again by the next run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from finecomb.core.records import Annotation, Document
from finecomb.core.text_hash import text_hash
from finecomb.detect.base import Detector, detect


def journal_file(output: Path) -> Path:
    """Beside the study that will be written."""
    return output.with_name(f"{output.name}.unfinished.jsonl")


class MarkingJournal:
    """Annotations that a detector has made, in a file of lines; another detector's or another text's are not used."""

    def __init__(self, file: Path, signature: str) -> None:
        self.file, self.signature = file, signature
        self.entries = dict(self._read())

    def _read(self) -> Iterator[tuple[str, Annotation]]:
        if not self.file.is_file():
            return
        for line in self.file.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
                if row["signature"] == self.signature:
                    yield row["text"], Annotation.model_validate(row["annotation"])
            except (ValueError, KeyError, TypeError, ValidationError):
                continue  # the line that was being written when the run ended

    def annotations(self, documents: Iterable[Document], detector: Detector) -> Iterator[Annotation]:
        """An annotation of every document; those in the file are taken from there, all others are added to it."""
        everything = list(documents)
        hashes = {document.id: f"{document.id}/{text_hash(document.text)}" for document in everything}
        done = {id: self.entries[key] for id, key in hashes.items() if key in self.entries}
        rest = detect((document for document in everything if document.id not in done), detector)
        with self.file.open("a", encoding="utf-8") as file:
            for document in everything:
                annotation = done.get(document.id) or next(rest)
                if document.id not in done:
                    row = {"signature": self.signature, "text": hashes[document.id]}
                    file.write(json.dumps({**row, "annotation": json.loads(annotation.to_json())}) + "\n")
                    file.flush()
                yield annotation
