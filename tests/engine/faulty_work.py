"""Work for engines that goes wrong in known ways, one of each kind; other processes import it from here."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from finecomb.annotators.detectors.batch_detection import DetectionTask, MarkedCorpus, mark_corpus
from finecomb.core import frames
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Mark
from finecomb.core.span import Span
from finecomb.corpora.critics import Markov, PointPosterior, Posterior, PriorCritic
from finecomb.corpora.critics.priors import SavedState
from finecomb.corpora.critics.scoring import score_documents
from finecomb.corpora.stress.metric_scoring import score_candidates
from finecomb.corpora.stress.stress_metrics import Candidate, Metric
from finecomb.engine.engines import LostItem, parse_engine
from finecomb.engine.partitions import Executor
from finecomb.protocols import load


@dataclass(frozen=True)
class FaultOptions:
    """How slow the work is, and where it writes down who worked."""

    seconds: float = 0.0
    diary: str = ""

    def inject_fault(self, id: str, text: str) -> None:
        """Take time, write it down; raise at `poison`, and die at `death`."""
        time.sleep(self.seconds)
        if self.diary:
            with Path(self.diary).open("a", encoding="utf-8") as diary:
                diary.write(f"{os.getpid()} {id}\n")
        if "poison" in text:
            raise ValueError("this text is poisoned")
        if "death" in text:
            os._exit(1)


class PicklingEngine:
    """Does the last item first, and sends work, items and results as other processes would get them."""

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        sent = pickle.loads(pickle.dumps(work))
        results = [pickle.dumps(sent(pickle.loads(pickle.dumps(item)))) for item in reversed(list(items))]
        yield from map(pickle.loads, reversed(results))


@dataclass
class InterruptedEngine:
    """Stops after some items, as when somebody presses Ctrl-C; notes what it was given."""

    most: int = 10**9
    items: list[Any] = field(default_factory=list)

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            if len(self.items) == self.most:
                raise KeyboardInterrupt
            self.items.append(item)
            yield work(item)


class LosingEngine:
    """Loses every item in which there is the text that kills."""

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for rows in items:
            yield LostItem("died") if "death" in rows["text"] else work(rows)


# --- a detector, a metric and a critic ---------------------------------------------------------------------------


class FaultyDetector:
    """Marks the first word; quotes another one at `lie`."""

    signature = "mischief"

    def __init__(self, protocol: Protocol, options: FaultOptions) -> None:
        self.protocol, self.options = protocol, options

    def __call__(self, document: Document) -> Annotation:
        self.options.inject_fault(document.id, document.text)
        word = document.text.split()[0]
        quote = "truth" if word == "lie" else word
        mark = Mark(id=f"{document.id}/m/0", label="grammar-usage", spans=(Span(0, len(word)),), quotes=(quote,))
        return Annotation(
            id=f"{document.id}/m", document=document.id, annotator="m", protocol=self.protocol.id, marks=(mark,)
        )


@dataclass(frozen=True)
class FaultyScore:
    """A number with many digits for each text."""

    options: FaultOptions

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        for candidate in candidates:
            self.options.inject_fault(candidate.document.id, candidate.text)
        return [sum(map(ord, candidate.text)) / 7 for candidate in candidates]


class FaultyCritic(PriorCritic):
    """States are the first letters of words."""

    name = "mischief"
    prior: Markov

    def __init__(self, options: FaultOptions) -> None:
        self.options = options
        self.prior = Markov.fit([("T", "d"), ("d", "T", "x")], ("T", "d", "x"), 1.0)

    @classmethod
    def fit(cls, real: Sequence[Document], rng: np.random.Generator) -> Self:
        return cls(FaultOptions())

    def project(self, document: Document) -> Posterior:
        self.options.inject_fault(document.id, document.text)
        return PointPosterior(tuple(word[0] if word[0] in "Td" else "x" for word in document.text.split()))

    def state(self) -> SavedState:
        return {"prior": self.prior.state()}


# --- what comes of texts -----------------------------------------------------------------------------------------


def make_texts(count: int, **words: str) -> pl.LazyFrame:
    """Texts `d0`, `d1`, ...; `words` gives some of them others."""
    ids = [f"d{number}" for number in range(count)]
    none: dict[str, object] = {"context": None, "references": [], "segments": [], "data": None, "meta": None}
    rows = [{"id": id, "text": words.get(id, f"Text {id}."), **none} for id in ids]
    return pl.LazyFrame(rows)


def to_documents(texts: pl.LazyFrame) -> list[Document]:
    """The same as records."""
    columns = {name: kind for name, (kind, _) in frames.DOCUMENT_COLUMNS.items()}
    return list(frames.iter_documents(texts.collect().cast(columns)))  # type: ignore[arg-type]


def mark_texts_by_engine(
    engine: str, texts: pl.LazyFrame, folder: Path, options: FaultOptions, workers: int = 2
) -> MarkedCorpus:
    """What the detector marks in texts by an engine."""
    return mark_texts(texts, Executor.from_folder(parse_engine(engine, workers), folder), options)


def mark_texts(texts: pl.LazyFrame, spread: Executor, options: FaultOptions) -> MarkedCorpus:
    """What the detector marks in texts."""
    marking = DetectionTask("m", FaultyDetector, load("scarecrow"), options)
    return mark_corpus(texts, marking, "mischief", spread, lambda counts, _: counts)


def detection_table(texts: pl.LazyFrame, spread: Executor, options: FaultOptions) -> pl.DataFrame:
    """Every text with the words marked in it."""
    corpus = mark_texts(texts, spread, options)
    rows = [
        (row.document, str([mark.quotes for mark in row.marks]), row.excluded.reason if row.excluded else None)
        for row in corpus.iter_annotations()
    ]
    return pl.DataFrame(rows, ["id", "result", "problem"], orient="row")


def scoring_table(texts: pl.LazyFrame, spread: Executor, options: FaultOptions) -> pl.DataFrame:
    """Every text with its number."""
    candidates = [Candidate(document.text, (), document) for document in to_documents(texts)]
    result = score_candidates(Metric("mischief", FaultyScore(options), by_text=True), candidates, spread)
    rows = [
        (candidate.document.id, repr(value), result.failures.get(place))
        for place, (candidate, value) in enumerate(zip(candidates, result.values.tolist(), strict=True))
    ]
    return pl.DataFrame(rows, {"id": pl.String, "result": pl.String, "problem": pl.String}, orient="row")


def criticism_table(texts: pl.LazyFrame, spread: Executor, options: FaultOptions) -> pl.DataFrame:
    """Every text with its Latent NLL and its states, those without one last."""
    result = score_documents(FaultyCritic(options), to_documents(texts), spread=spread)
    pairs = zip(result.ids, result.values.tolist(), result.points, strict=True)
    rows = [(id, f"{value!r} {point}", None) for id, value, point in pairs]
    rows += [(loss.id, "", loss.why) for loss in result.dropped]  # type: ignore[misc]
    return pl.DataFrame(rows, {"id": pl.String, "result": pl.String, "problem": pl.String}, orient="row")


@dataclass(frozen=True)
class WorkKind:
    """A kind of work on texts, whose result has the columns `id`, `result` and `problem`."""

    result: Callable[[pl.LazyFrame, Executor, FaultOptions], pl.DataFrame]
    rows: int
    """Of a partition."""


WORK_KINDS: Mapping[str, WorkKind] = {
    "detect": WorkKind(detection_table, 16),
    "stress": WorkKind(scoring_table, 64),
    "criticize": WorkKind(criticism_table, 16),
}
"""Every command whose partitions can be kept."""
PARTITION_COUNT = 10


def make_poisoned_texts(name: str) -> pl.LazyFrame:
    """Texts for ten partitions of a kind of work; the fourth is poisoned."""
    return make_texts(PARTITION_COUNT * WORK_KINDS[name].rows, d3="poison here")


def main() -> None:
    """Work on texts in a process of its own, as its arguments say, and print a digest of what came of it."""
    name, engine, folder, seconds, diary, workers = sys.argv[1:]
    spread = Executor.from_folder(parse_engine(engine, int(workers) or None), Path(folder))
    table = WORK_KINDS[name].result(make_poisoned_texts(name), spread, FaultOptions(float(seconds), diary))
    print(table.write_json())
