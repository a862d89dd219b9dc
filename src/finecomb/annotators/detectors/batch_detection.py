"""Detection on many texts in parallel, from a frame of documents to frames of annotations, marks and units."""

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

RESULT_TABLE_NAMES = ("annotations", "marks", "units")
INVALID_DOCUMENT = "invalid document"
_MAX_DOCUMENTS_PER_READ = 10_000  # held in memory, in addition to the documents being annotated


@dataclass(frozen=True, slots=True)
class DetectionTask:
    """A detector as a task for worker processes, each of which builds the detector once."""

    name: str
    make: Callable[[Protocol, Any], Detector]
    protocol: Protocol
    options: Any
    uses_all_cores: bool = False
    """True if the detector uses all cores itself, as a neural model does."""

    def __call__(self, documents: pl.DataFrame) -> Tables:
        """Annotate each document. Documents on which the detector fails are excluded with the reason."""
        if not _DETECTOR_CACHE or _DETECTOR_CACHE[0][0] != self:
            # Only one detector is kept, because models are large. An error here ends the run, as no text caused it.
            _DETECTOR_CACHE[:] = [(self, self.make(self.protocol, self.options))]
        detector = _DETECTOR_CACHE[0][1]
        annotations: list[Annotation] = []
        for batch in documents.iter_slices(BATCH_SIZE):
            try:
                texts = list(frames.iter_documents(batch))
                pairs = list(zip(texts, detect(texts, detector), strict=True))
                annotations += [self._validate_annotation(*pair) for pair in pairs]
            except Exception:  # a detector may raise anything; annotating the texts one by one shows which failed
                annotations += [self._annotate_row(row, detector) for row in batch.iter_slices(1)]
        return _build_annotation_tables(annotations)

    def _annotate_row(self, row: pl.DataFrame, detector: Detector) -> Annotation:
        try:
            (document,) = frames.iter_documents(row)
        except Exception as error:  # data written by other programs is not validated before this point
            return self.build_excluded_annotation(row["id"][0], f"{INVALID_DOCUMENT}: {_describe_error(error)}")
        try:
            (annotation,) = detect([document], detector)
            return self._validate_annotation(document, annotation)
        except Exception as error:  # excluded, so that one text does not stop the run
            return self.build_excluded_annotation(document.id, _describe_error(error))

    def _validate_annotation(self, document: Document, annotation: Annotation) -> Annotation:
        """Return the annotation, or an excluded one if it is not valid for the text or the protocol."""
        checks = (*placement_problems(annotation, document), *protocol_problems(annotation, self.protocol))
        problem = next((message for level, message in checks if level == "error"), "")
        if problem:
            return self.build_excluded_annotation(document.id, f"invalid output of the detector: {problem}")
        return annotation

    def build_excluded_annotation(self, document: str, reason: str) -> Annotation:
        """Build the excluded annotation of a document that could not be annotated."""
        return Annotation(
            id=f"{document}/{self.name}",
            document=document,
            annotator=self.name,
            protocol=self.protocol.id,
            status="excluded",
            excluded=Exclusion(by=self.name, reason=f"set aside: {reason}"),
        )

    def build_lost_document_tables(self, row: pl.DataFrame, reason: str) -> Tables:
        """Build the result tables for a document that crashed every worker process."""
        return _build_annotation_tables([self.build_excluded_annotation(row["id"][0], reason)])


_DETECTOR_CACHE: list[tuple[DetectionTask, Detector]] = []
"""The detector of this process, with the task it was built for."""


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {shorten(str(error), 200)}"


def _build_annotation_tables(annotations: Sequence[Annotation]) -> Tables:
    rows = {
        "annotations": [frames.annotation_row(annotation) for annotation in annotations],
        "marks": [frames.mark_row(mark, annotation) for annotation in annotations for mark in annotation.marks],
        "units": [frames.unit_row(unit, annotation) for annotation in annotations for unit in annotation.units],
    }
    return {name: frames.build_frame(frames.COLUMNS_BY_FRAME[name], rows[name]) for name in RESULT_TABLE_NAMES}


@dataclass(frozen=True, slots=True)
class MarkedCorpus:
    """The result tables of a finished run, as partitions in document order."""

    store: PartitionStore
    names: Sequence[str]

    def table(self, name: str) -> pl.LazyFrame:
        """Return all rows of annotations, marks or units."""
        return self.store.read_table(self.names, name)

    def is_valid(self) -> bool:
        """Return whether all documents were valid and all mark IDs are unique."""
        invalid = pl.col("excluded").str.json_path_match("$.reason").str.starts_with(f"set aside: {INVALID_DOCUMENT}")
        any_invalid = self.table("annotations").select(invalid.any()).collect().item()
        different, total = self.table("marks").select(pl.col("id").n_unique(), total=pl.len()).collect().row(0)
        return not any_invalid and different == total

    def iter_annotations(self) -> Iterator[Annotation]:
        """Yield all annotations as records, one partition at a time."""
        for name in self.names:
            yield from frames.iter_annotations(
                *(self.store.read_table([name], table).collect() for table in RESULT_TABLE_NAMES)
            )


def mark_corpus(
    documents: pl.LazyFrame,
    marking: DetectionTask,
    signature: str,
    spread: Executor,
    watch: Callable[[Iterator[int], int], Iterable[int]],
) -> MarkedCorpus:
    """Annotate all documents of a frame with the executor `spread`.

    `watch` receives an iterator over the document counts of finished partitions and the total number of documents.
    """
    count = int(documents.select(pl.len()).collect().item())
    run = spread.start_run(marking, marking.build_lost_document_tables, signature)
    rows = rows_per_partition(count)
    # Several partitions are read at once, because opening a file is slow.
    rows_per_read = rows * max(1, _MAX_DOCUMENTS_PER_READ // rows)
    partitions = (
        partition
        for offset in range(0, count, rows_per_read)
        for partition in documents.slice(offset, rows_per_read).collect().iter_slices(rows)
    )
    for _ in watch(run.run_partitions(partitions), count):
        pass
    corpus = MarkedCorpus(run.store, run.names)
    reasons = (
        corpus.table("annotations")
        .select(reason=pl.col("excluded").str.json_path_match("$.reason"))
        .unique()
        .head(2)
        .collect()["reason"]
        .to_list()
    )
    if len(reasons) == 1 and str(reasons[0] or "").startswith("set aside: "):
        corpus.store.remove_partitions()
        reason = reasons[0].removeprefix("set aside: ")
        raise FinecombError(f"{param('detector', marking.name)} failed on every text: {reason}")
    return corpus
