"""Work for engines that goes wrong in known ways; other processes import it from here."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import Span
from finecomb.detect.marking import DocumentMarking, MarkedCorpus, mark_corpus
from finecomb.engine.engines import engine_named
from finecomb.protocols import load


@dataclass(frozen=True)
class MischiefOptions:
    """How slow the detector is, and where it writes down who worked."""

    seconds: float = 0.0
    diary: str = ""


class MischievousDetector:
    """Marks the first word; raises at `poison`, and dies at `death`."""

    signature = "mischief"

    def __init__(self, protocol: Protocol, options: MischiefOptions) -> None:
        self.protocol, self.options = protocol, options

    def __call__(self, document: Document) -> Annotation:
        time.sleep(self.options.seconds)
        if self.options.diary:
            with Path(self.options.diary).open("a", encoding="utf-8") as diary:
                diary.write(f"{os.getpid()} {document.id}\n")
        if "poison" in document.text:
            raise ValueError("this text is poisoned")
        if "death" in document.text:
            os._exit(1)
        word = document.text.split()[0]
        mark = Mark(id=f"{document.id}/m/0", label="grammar-usage", spans=(Span(0, len(word)),), quotes=(word,))
        return Annotation(
            id=f"{document.id}/m", document=document.id, annotator="m", protocol=self.protocol.id, marks=(mark,)
        )


def documents(count: int, **words: str) -> pl.LazyFrame:
    """Texts `d0`, `d1`, ...; `words` gives some of them others."""
    ids = [f"d{number}" for number in range(count)]
    none: dict[str, object] = {"context": None, "references": [], "segments": [], "data": None, "meta": None}
    rows = [{"id": id, "text": words.get(id, f"Text {id}."), **none} for id in ids]
    return pl.LazyFrame(rows)


def marked(engine: str, texts: pl.LazyFrame, folder: Path, options: MischiefOptions, workers: int = 2) -> MarkedCorpus:
    """What the detector marks in texts by an engine."""
    marking = DocumentMarking("m", MischievousDetector, load("scarecrow"), options)
    return mark_corpus(texts, marking, "mischief", engine_named(engine, workers), folder, lambda counts, _: counts)


def main() -> None:
    """Mark texts in a process of its own, as its arguments say; the fourth text is poisoned."""
    name, count, folder, seconds, diary = sys.argv[1:]
    poisoned = documents(int(count), d3="poison here")
    marked(name, poisoned, Path(folder), MischiefOptions(float(seconds), diary))
