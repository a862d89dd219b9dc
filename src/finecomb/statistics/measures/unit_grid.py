"""Tokens, characters, sentences, segments or whole texts of all documents laid end to end: no loop over marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.sentences import sentences
from finecomb.core.span import TEXT, Offsets
from finecomb.core.study import Study
from finecomb.core.text_parts import part_offsets
from finecomb.core.tokens import Tokenizer, tokenizer

Level = Literal["token", "char", "sentence", "segment", "document"]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class UnitGrid:
    """The units of every document on one line; document i has the units `bounds[i]` to `bounds[i + 1]`."""

    level: Level
    tokens: str
    """Name of the tokenizer, for signatures."""
    documents: tuple[str, ...]
    """Ids, in order."""
    bounds: Ints
    """(documents + 1,)"""
    starts: Ints
    """(units,): first code point of each unit on the line of all texts."""
    ends: Ints
    """(units,): one past the last."""
    origins: Ints
    """(documents,): where each text begins on that line."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def sizes(self) -> Ints:
        """(documents,): units of each."""
        return np.diff(self.bounds)

    def document_positions(self, documents: pl.Series) -> Ints:
        """Positions of documents given by id."""
        places = {id: place for place, id in enumerate(self.documents)}
        return np.array([places[id] for id in documents], dtype=np.int64)

    def unit_ranges(self, documents: Ints, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
        """Half-open ranges of the units that share a character with each span; empty for omissions."""
        first = np.searchsorted(self.ends, self.origins[documents] + starts, side="right")
        last = np.searchsorted(self.starts, self.origins[documents] + ends, side="left")
        return first, np.where(ends > starts, np.maximum(first, last), first)

    def sum_per_document(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums of `values`, (..., units), over the units of each document, (..., documents)."""
        total = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
        np.cumsum(values, axis=-1, out=total[..., 1:])
        difference: NDArray[np.float64] = total[..., self.bounds[1:]] - total[..., self.bounds[:-1]]
        return difference


def build_grid(study: Study, level: Level = "token", tokens: str = "words") -> UnitGrid:
    """Lay out the texts of a study's documents."""
    pieces = list(_unit_offsets(study, level, tokens))
    lengths = study.documents["text"].str.len_chars().to_numpy().astype(np.int64) + 1  # one apart: texts never touch
    origins = np.cumsum(lengths) - lengths
    sizes = np.array([len(piece) for piece in pieces], dtype=np.int64)
    flat = np.concatenate([*pieces, np.zeros((0, 2), dtype=np.int64)]) + np.repeat(origins, sizes)[:, None]
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    return UnitGrid(level, tokens, tuple(study.documents["id"]), bounds, flat[:, 0], flat[:, 1], origins)


def units_per_document(study: Study, level: Level = "token", tokens: str = "words") -> Ints:
    """Units of each document, (documents,), without laying them out."""
    return np.array([len(piece) for piece in _unit_offsets(study, level, tokens)], dtype=np.int64)


def _unit_offsets(study: Study, level: Level, tokens: str) -> Iterator[Offsets]:
    """The units of each document, counted from its beginning."""
    return (
        _segment_offsets(study)
        if level == "segment"
        else _split_texts(study.documents["text"], level, tokenizer(tokens))
    )


def _split_texts(texts: Iterable[str], level: Level, tokenize: Tokenizer) -> Iterator[Offsets]:
    cut: dict[str, Tokenizer] = {
        "token": tokenize,
        "char": _character_offsets,
        "sentence": sentences,
        "document": _whole_text_offsets,
    }
    return (cut[level](text) for text in texts)


def _character_offsets(text: str) -> Offsets:
    edges = np.arange(len(text) + 1, dtype=np.int64)
    return np.stack([edges[:-1], edges[1:]], axis=1)


def _whole_text_offsets(text: str) -> Offsets:
    return np.array([[0, len(text)]], dtype=np.int64)


def _segment_offsets(study: Study) -> Iterator[Offsets]:
    """Segments of each document; where it has none, as many sentences as the protocol of its annotations asks."""
    used = study.annotations.select("document", "protocol").unique()
    sizes = {id: study.protocols[name].work.sentences for id, name in used.iter_rows() if name in study.protocols}
    return (part_offsets(document, sizes.get(document.id, 3)) for document in study.iter_documents())


def locate_spans_on_grid(study: Study, grid: UnitGrid) -> pl.DataFrame:
    """One row per span on the text.

    Columns: annotation, mark, label, document (its position), first and last (units), votes, pooled.
    """
    kinds = study.annotators.select(pl.col("id").alias("annotator"), pooled=pl.col("kind") == "pooled")
    spans = study.spans.filter(pl.col("part") == TEXT).join(kinds, on="annotator", how="left", maintain_order="left")
    spans = spans.join(study.marks.select(mark="id", votes="votes"), on="mark", how="left", maintain_order="left")
    where = grid.document_positions(spans["document"])
    first, last = grid.unit_ranges(where, spans["start"].to_numpy(), spans["end"].to_numpy())
    return spans.select(
        "annotation",
        "mark",
        "label",
        document=pl.Series(where),
        first=pl.Series(first),
        last=pl.Series(last),
        votes=pl.col("votes").fill_null(1),
        pooled=pl.col("pooled").fill_null(value=False),
    )


def remove_range_overlaps(rows: pl.DataFrame, owner: Sequence[str]) -> pl.DataFrame:
    """Ranges without the parts that an earlier range of the same owner has covered already; empty ones are gone.

    So that summing `last - first` counts each unit once per owner.
    """
    ordered = rows.sort(*owner, "first", "last")
    reach = pl.col("last").cum_max().shift(1).over(*owner) if owner else pl.col("last").cum_max().shift(1)
    cut = ordered.with_columns(first=pl.max_horizontal("first", reach.fill_null(-1)))
    return cut.filter(pl.col("first") < pl.col("last"))


@dataclass(frozen=True, slots=True)
class UnitVotes:
    """How many of those who read a document marked each of its units; all that agreement on marks needs."""

    grid: UnitGrid
    categories: tuple[str, ...]
    marked: Ints
    """k, (categories, units)."""
    readers: Ints
    """m, (documents,): annotators who read the document; one who marked nothing still counts."""

    @property
    def annotators_per_unit(self) -> Ints:
        """Readers of each unit, (units,)."""
        return np.repeat(self.readers, self.grid.sizes)


def count_unit_votes(
    study: Study, grid: UnitGrid, categories: Sequence[str] | None, rows: pl.DataFrame | None = None
) -> UnitVotes:
    """Votes for each category, or with None for any mark at all (one row).

    An annotator's own overlapping marks of a category are one vote. Pooled data adds up the votes of its marks, at most
    as many as there were readers. `rows` are those of `placed`, where they are at hand.
    """
    rows = locate_spans_on_grid(study, grid) if rows is None else rows
    readers = annotators_per_document(study)
    names = tuple(categories) if categories is not None else ("any",)
    if categories is None:
        rows = rows.with_columns(label=pl.lit("any"))
    changes = np.zeros((len(names), len(grid) + 1), dtype=np.int64)
    single = remove_range_overlaps(rows.filter(~pl.col("pooled")), ["annotation", "label"]).with_columns(
        votes=pl.lit(1, pl.Int64)
    )
    both = pl.concat([single, rows.filter(pl.col("pooled")).select(single.columns)])
    row = both["label"].replace_strict({name: i for i, name in enumerate(names)}, default=-1, return_dtype=pl.Int64)
    is_category = row.to_numpy() >= 0
    at, amount = row.to_numpy()[is_category], both["votes"].to_numpy()[is_category]
    np.add.at(changes, (at, both["first"].to_numpy()[is_category]), amount)
    np.add.at(changes, (at, both["last"].to_numpy()[is_category]), -amount)
    k = np.cumsum(changes, axis=1)[:, :-1]
    return UnitVotes(grid, names, np.minimum(k, np.repeat(readers, grid.sizes)), readers)


def annotators_per_document(study: Study) -> Ints:
    """Annotators who read each document, (documents,); pooled ones count as many as they are."""
    annotations = study.annotations.select("document", n=pl.col("readers").fill_null(1))
    totals = dict(annotations.group_by("document").agg(pl.col("n").sum()).iter_rows())
    return np.array([totals.get(id, 0) for id in study.documents["id"]], dtype=np.int64)


def max_annotators_per_document(study: Study, level: Level = "token", tokens: str = "words") -> int:
    """The most readers that a document with any unit has; 0 without one."""
    readers = annotators_per_document(study)
    for count in np.unique(readers)[::-1]:
        texts = study.with_documents(study.documents.filter(pl.Series(readers == count)))
        if any(len(piece) for piece in _unit_offsets(texts, level, tokens)):
            return int(count)
    return 0
