"""Synthetic study with any number of marks, generated in batches of texts from a seed, as Parquet and as JSON lines.

Eleven annotators annotate each text of 104 words: ten people, and `truth` of kind gold. Each makes about three marks.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core import frames
from finecomb.core.records import Annotator, Settings
from finecomb.formats import folder
from finecomb.protocols import load_shipped

WORDS_PER_TEXT, LETTERS_PER_WORD, ANNOTATOR_COUNT, MARKS_PER_ANNOTATION, TEXTS_PER_BATCH = 104, 5, 10, 3, 2_000
SYLLABLES = "ba do ri mu ten la so pik ver an el ost un gra fi zu".split()
LEXICON = np.array([f"{first}{second}xxxxx"[:LETTERS_PER_WORD] for first in SYLLABLES for second in SYLLABLES])
ANNOTATOR_IDS = ("truth", *(f"reader-{number}" for number in range(1, ANNOTATOR_COUNT + 1)))


@dataclass(frozen=True, slots=True)
class Batch:
    """Batch of texts with their annotations and marks; `owners` are positions in `annotations`."""

    documents: list[str]
    texts: list[str]
    annotations: list[tuple[str, str, str]]
    owners: NDArray[np.int64]
    ids: list[str]
    labels: list[str]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    quotes: list[str]
    severities: NDArray[np.int64]


def iter_batches(marks: int, labels: list[str], seed: int = 0) -> Iterator[Batch]:
    """Yield batches of texts with about `marks` marks in total."""
    count = max(1, round(marks / (MARKS_PER_ANNOTATION * len(ANNOTATOR_IDS))))
    for first in range(0, count, TEXTS_PER_BATCH):
        yield _make_batch(
            range(first, min(first + TEXTS_PER_BATCH, count)), labels, np.random.default_rng([seed, first])
        )


def _make_batch(numbers: range, labels: list[str], rng: np.random.Generator) -> Batch:
    documents = [f"d{number:07}" for number in numbers]
    texts = [" ".join(words) for words in rng.choice(LEXICON, (len(numbers), WORDS_PER_TEXT))]
    annotations = [(f"{document}:{who}", document, who) for document in documents for who in ANNOTATOR_IDS]
    sizes = rng.integers(0, 2 * MARKS_PER_ANNOTATION + 1, len(annotations))
    owners = np.repeat(np.arange(len(annotations)), sizes)
    starts = rng.integers(0, WORDS_PER_TEXT - 8, len(owners)) * (LETTERS_PER_WORD + 1)
    ends = starts + rng.integers(1, 7, len(owners)) * (LETTERS_PER_WORD + 1) - 1
    places = [place for size in sizes for place in range(size)]
    ids = [f"{annotations[owner][0]}:{place}" for owner, place in zip(owners, places, strict=True)]
    spans = zip(owners, starts, ends, strict=True)
    quotes = [texts[owner // len(ANNOTATOR_IDS)][start:end] for owner, start, end in spans]
    drawn = [labels[number] for number in rng.integers(0, len(labels), len(owners))]
    severities = rng.integers(1, 4, len(owners))
    return Batch(documents, texts, annotations, owners, ids, drawn, starts, ends, quotes, severities)


def _batch_tables(batch: Batch, protocol: str) -> dict[str, pl.DataFrame]:
    owner = pl.DataFrame(batch.annotations, ["annotation", "document", "annotator"], orient="row")
    models = [f'{{"model":"m{int(id[1:]) % 5}"}}' for id in batch.documents]
    documents = pl.DataFrame({"id": batch.documents, "text": batch.texts, "meta": models})
    annotations = owner.rename({"annotation": "id"}).with_columns(
        protocol=pl.lit(protocol), round=pl.lit(0), phase=pl.lit("work"), status=pl.lit("submitted")
    )
    span = pl.struct(part=pl.lit("text"), start=pl.Series(batch.starts), end=pl.Series(batch.ends))
    marks = owner[batch.owners].with_columns(
        id=pl.Series(batch.ids),
        protocol=pl.lit(protocol),
        label=pl.Series(batch.labels),
        spans=pl.concat_list(span),
        quotes=pl.concat_list(pl.Series(batch.quotes)),
        answers=pl.concat_str(pl.lit('{"severity":'), pl.Series(batch.severities).cast(pl.String), pl.lit("}")),
        unlocated=pl.lit(""),
    )
    return {"documents": documents, "annotations": annotations, "marks": marks}


def _complete_columns(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Add the missing columns of a frame, as null or as empty lists."""
    wanted = frames.polars_schema(frames.COLUMNS_BY_FRAME[name])
    empty = {"references", "segments", "made_from"}
    absent = [
        (pl.lit([], kind) if column in empty else pl.lit(None, kind)).alias(column)
        for column, kind in wanted.items()
        if column not in table.columns
    ]
    return table.with_columns(absent).select(list(wanted)).cast(pl.Schema(wanted))


def write_parquet_study(path: Path, marks: int, seed: int = 0) -> Path:
    """Write a study of Parquet tables with about `marks` marks."""
    protocol = load_shipped("scarecrow")
    labels = [label.name for label in protocol.labels]
    parts = path / "parts"
    parts.mkdir(parents=True)
    (path / "protocols").mkdir()
    folder.write_protocol(protocol, path)
    folder.write_settings(Settings(title=f"{marks:,} marks"), [protocol.id], path)
    for number, batch in enumerate(iter_batches(marks, labels, seed)):
        for name, table in _batch_tables(batch, protocol.id).items():
            _complete_columns(table, name).write_parquet(parts / f"{name}-{number:06}.parquet")
    for name in ("documents", "annotations", "marks"):
        pieces = pl.scan_parquet(sorted(parts.glob(f"{name}-*.parquet")))
        pieces.sink_parquet(path / f"{name}.parquet", row_group_size=20_000)
    shutil.rmtree(parts)
    people = [Annotator(id=id, kind="human" if id != "truth" else "gold") for id in ANNOTATOR_IDS]
    for name, rows in (("annotators", [frames.annotator_row(person) for person in people]), ("units", [])):
        frames.build_frame(frames.COLUMNS_BY_FRAME[name], rows).write_parquet(path / f"{name}.parquet")
    return path


def write_jsonl_study(path: Path, marks: int, seed: int = 0) -> Path:
    """Write the study as one file of JSON lines."""
    protocol = load_shipped("scarecrow")
    labels = [label.name for label in protocol.labels]
    with path.open("w", encoding="utf-8") as file:
        file.write(f'{{"settings":{Settings(protocols=(protocol.id,)).to_json()}}}\n')
        file.write(f'{{"protocol":{protocol.to_json()}}}\n')
        for batch in iter_batches(marks, labels, seed):
            for id, text in zip(batch.documents, batch.texts, strict=True):
                file.write(f'{{"document":{{"id":"{id}","text":"{text}","meta":{{"model":"m{int(id[1:]) % 5}"}}}}}}\n')
        for id in ANNOTATOR_IDS:
            kind = "human" if id != "truth" else "gold"
            file.write(f'{{"annotator":{{"id":"{id}","kind":"{kind}"}}}}\n')
        for batch in iter_batches(marks, labels, seed):
            file.writelines(_annotation_lines(batch, protocol.id))
    return path


def _annotation_lines(batch: Batch, protocol: str) -> Iterator[str]:
    columns = zip(batch.ids, batch.labels, batch.starts, batch.ends, batch.quotes, batch.severities, strict=True)
    marks = [
        f'{{"id":"{id}","label":"{label}","spans":[[{start},{end}]],"quotes":["{quote}"],'
        f'"answers":{{"severity":{severity}}}}}'
        for id, label, start, end, quote, severity in columns
    ]
    bounds = [0, *accumulate(np.bincount(batch.owners, minlength=len(batch.annotations)).tolist())]
    for number, (id, document, who) in enumerate(batch.annotations):
        own = ",".join(marks[bounds[number] : bounds[number + 1]])
        about = f'"id":"{id}","document":"{document}","annotator":"{who}","protocol":"{protocol}"'
        yield f'{{"annotation":{{{about},"status":"submitted","marks":[{own}]}}}}\n'
