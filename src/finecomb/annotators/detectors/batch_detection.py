"""Marking of many texts by an engine: from a frame of documents to frames of annotations, marks and units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from finecomb.annotators.detectors.base import BATCH_SIZE, Detector, detect
from finecomb.core import frames
from finecomb.core.errors import FinecombError, param, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Exclusion
from finecomb.core.study_checks import placement_problems, protocol_problems
from finecomb.engine.partitions import Executor, PartitionStore, Tables, rows_per_partition

RESULT_TABLES = ("annotations", "marks", "units")
INVALID_DOCUMENT = "is no valid document"
_MAX_DOCUMENTS_READ = 10_000  # documents in memory at a time, beside those that are being marked


@dataclass(frozen=True, slots=True)
class DocumentMarking:
    """A detector as work that can be sent to other processes, each of which makes it once."""

    name: str
    make: Callable[[Protocol, Any], Detector]
    protocol: Protocol
    options: Any
    uses_all_cores: bool = False
    """Whether the detector keeps all cores busy by itself, as a neural model does."""

    def __call__(self, documents: pl.DataFrame) -> Tables:
        """What it marks in each document; one that it fails at is set aside with the reason."""
        detector = self._cached_detector()  # what goes wrong here is no text's fault, and ends the run
        return _tables(
            [row for batch in documents.iter_slices(BATCH_SIZE) for row in self._annotate_batch(batch, detector)]
        )

    def _annotate_batch(self, documents: pl.DataFrame, detector: Detector) -> list[Annotation]:
        try:
            texts = list(frames.iter_documents(documents))
            return [self._validate_annotation(*pair) for pair in zip(texts, detect(texts, detector), strict=True)]
        except Exception:  # whatever a detector may raise; each text alone tells which one it was
            return [self._annotate_row(row, detector) for row in documents.iter_slices(1)]

    def _annotate_row(self, row: pl.DataFrame, detector: Detector) -> Annotation:
        try:
            (document,) = frames.iter_documents(row)
        except Exception as error:  # the study was written by another program, and nobody has checked it yet
            return self.exclude_document(row["id"][0], f"{INVALID_DOCUMENT}: {_describe_error(error)}")
        try:
            (annotation,) = detect([document], detector)
            return self._validate_annotation(document, annotation)
        except Exception as error:  # set aside, so that one text does not keep the others from being marked
            return self.exclude_document(document.id, _describe_error(error))

    def _validate_annotation(self, document: Document, annotation: Annotation) -> Annotation:
        """The annotation, or the document set aside where what the detector says does not fit text or protocol."""
        checks = (*placement_problems(annotation, document), *protocol_problems(annotation, self.protocol))
        problem = next((message for level, message in checks if level == "error"), "")
        return self.exclude_document(document.id, f"the detector's own mistake: {problem}") if problem else annotation

    def _cached_detector(self) -> Detector:
        if not _DETECTOR_CACHE or _DETECTOR_CACHE[0][0] != self:
            _DETECTOR_CACHE[:] = [(self, self.make(self.protocol, self.options))]  # models are large, and a run has one
        return _DETECTOR_CACHE[0][1]

    def exclude_document(self, document: str, reason: str) -> Annotation:
        """The annotation of a document that could not be marked."""
        return Annotation(
            id=f"{document}/{self.name}",
            document=document,
            annotator=self.name,
            protocol=self.protocol.id,
            status="excluded",
            excluded=Exclusion(by=self.name, reason=f"set aside: {reason}"),
        )

    def exclude_lost_document(self, row: pl.DataFrame, reason: str) -> Tables:
        """The results for a document that no process survived."""
        return _tables([self.exclude_document(row["id"][0], reason)])


_DETECTOR_CACHE: list[tuple[DocumentMarking, Detector]] = []
"""The one detector of this process, with the work it was made for."""


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {shorten(str(error), 200)}"


def _tables(annotations: Sequence[Annotation]) -> Tables:
    rows = {
        "annotations": [frames.annotation_row(annotation) for annotation in annotations],
        "marks": [frames.mark_row(mark, annotation) for annotation in annotations for mark in annotation.marks],
        "units": [frames.unit_row(unit, annotation) for annotation in annotations for unit in annotation.units],
    }
    return {name: frames.build_frame(frames.FRAMES[name], rows[name]) for name in RESULT_TABLES}


@dataclass(frozen=True, slots=True)
class MarkedCorpus:
    """The partitions of a finished run, in the order of the documents."""

    store: PartitionStore
    names: Sequence[str]

    def table(self, name: str) -> pl.LazyFrame:
        """All rows of annotations, marks or units."""
        return self.store.table(self.names, name)

    def is_valid(self) -> bool:
        """Whether every document turned out valid and every id of a mark is there once."""
        invalid = pl.col("excluded").str.json_path_match("$.reason").str.starts_with(f"set aside: {INVALID_DOCUMENT}")
        any_invalid = self.table("annotations").select(invalid.any()).collect().item()
        different, total = self.table("marks").select(pl.col("id").n_unique(), total=pl.len()).collect().row(0)
        return not any_invalid and different == total

    def annotations(self) -> Iterator[Annotation]:
        """Every annotation as a record, a partition at a time."""
        for name in self.names:
            yield from frames.iter_annotations(*(self.store.table([name], table).collect() for table in RESULT_TABLES))


def mark_corpus(
    documents: pl.LazyFrame,
    marking: DocumentMarking,
    signature: str,
    spread: Executor,
    watch: Callable[[Iterator[int], int], Iterable[int]],
) -> MarkedCorpus:
    """Mark every document of a frame, spread out as `spread` says.

    `watch` sees how many documents each finished partition has, and is told how many there are.
    """
    count = int(documents.select(pl.len()).collect().item())
    run = spread.start_run(marking, marking.exclude_lost_document, signature)
    for _ in watch(run.run_partitions(_slices(documents, rows_per_partition(count))), count):
        pass
    corpus = MarkedCorpus(run.store, run.names)
    _require_marked_text(corpus, marking.name)
    return corpus


def _slices(documents: pl.LazyFrame, rows: int) -> Iterator[pl.DataFrame]:
    """A frame in slices of so many rows; several are read at a time, since a file is slow to be opened often."""
    offset, read = 0, rows * max(1, _MAX_DOCUMENTS_READ // rows)
    while len(part := documents.slice(offset, read).collect()):
        yield from part.iter_slices(rows)
        offset += read


def _require_marked_text(corpus: MarkedCorpus, detector: str) -> None:
    """Where the detector failed at every text, the fault is not in the texts."""
    reasons = (
        corpus.table("annotations")
        .select(reason=pl.col("excluded").str.json_path_match("$.reason"))
        .unique()
        .head(2)
        .collect()["reason"]
        .to_list()
    )
    if len(reasons) == 1 and str(reasons[0] or "").startswith("set aside: "):
        corpus.store.remove()
        reason = reasons[0].removeprefix("set aside: ")
        raise FinecombError(f"{param('detector', detector)}: failed at every text: {reason}")
