"""Units (tokens, characters, sentences, segments or texts) and marks of all documents as arrays, for fast counts."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic_core import to_json

from finecomb.core.frames import group_sort_key, json_entry
from finecomb.core.protocol import Weight
from finecomb.core.sentences import sentence_offsets
from finecomb.core.span import TEXT_PART, Offsets
from finecomb.core.study import Study, annotation_rows_with_groups
from finecomb.core.text_parts import part_offsets
from finecomb.core.tokens import Tokenizer, count_words, get_tokenizer
from finecomb.statistics.measures.numeric_answers import numeric_answer_expression, rank_by_word, severity_questions
from finecomb.statistics.selection.view import ANY_LABEL, View

UnitLevel = Literal["token", "char", "sentence", "segment", "document"]
OverlapMode = Literal["add", "union"]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class UnitGrid:
    """Units of all documents in one array. Document i has the units `bounds[i]` to `bounds[i + 1]` (exclusive)."""

    level: UnitLevel
    tokens: str
    """Name of the tokenizer, as it appears in signatures."""
    documents: dict[str, int]
    """Positions of the documents by ID, in order."""
    bounds: Ints
    """(documents + 1,): positions at which the units of each document start and end."""
    starts: Ints
    """(units,): offset of the first code point of each unit in the concatenated texts."""
    ends: Ints
    """(units,): offset after the last code point of each unit."""
    origins: Ints
    """(documents,): offset of each text in the concatenated texts."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def sizes(self) -> Ints:
        """Number of units per document, (documents,)."""
        return np.diff(self.bounds)

    def unit_ranges(self, spans: pl.DataFrame) -> tuple[Ints, Ints, Ints]:
        """Return, for each span, the position of its document, and its half-open range of units.

        A span shares a character with each unit of its range, which is empty for omissions. `spans` has the columns
        document, start and end.
        """
        documents = np.array([self.documents[id] for id in spans["document"]], dtype=np.int64)
        starts, ends = spans["start"].to_numpy(), spans["end"].to_numpy()
        first = np.searchsorted(self.ends, self.origins[documents] + starts, side="right")
        last = np.searchsorted(self.starts, self.origins[documents] + ends, side="left")
        return documents, first, np.where(ends > starts, np.maximum(first, last), first)

    def sum_per_document(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum `values`, (..., units), over the units of each document, (..., documents)."""
        total = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
        np.cumsum(values, axis=-1, out=total[..., 1:])
        difference: NDArray[np.float64] = total[..., self.bounds[1:]] - total[..., self.bounds[:-1]]
        return difference


def build_unit_grid(study: Study, level: UnitLevel = "token", tokens: str = "words") -> UnitGrid:
    """Build the unit grid of a study's documents."""
    pieces = list(_unit_offsets(study, level, tokens))
    lengths = (
        study.documents["text"].str.len_chars().to_numpy().astype(np.int64) + 1
    )  # a gap of one keeps spans of different texts from touching
    origins = np.cumsum(lengths) - lengths
    sizes = np.array([len(piece) for piece in pieces], dtype=np.int64)
    flat = np.concatenate([*pieces, np.zeros((0, 2), dtype=np.int64)]) + np.repeat(origins, sizes)[:, None]
    bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    documents = {id: position for position, id in enumerate(study.documents["id"])}
    return UnitGrid(level, tokens, documents, bounds, flat[:, 0], flat[:, 1], origins)


def units_per_document(study: Study, level: UnitLevel = "token", tokens: str = "words") -> Ints:
    """Count the units of each document, (documents,), without building a grid."""
    return np.array([len(piece) for piece in _unit_offsets(study, level, tokens)], dtype=np.int64)


def words_per_document(study: Study, tokens: str = "words") -> Ints:
    """Count the words of each document, (documents,); punctuation is not a word."""
    return np.array([count_words(text, tokens) for text in study.documents["text"]], dtype=np.int64)


def _unit_offsets(study: Study, level: UnitLevel, tokens: str) -> Iterator[Offsets]:
    """Yield the unit offsets of each document, relative to its start."""
    if level == "segment":
        return _segment_offsets(study)
    cut: dict[str, Tokenizer] = {
        "token": get_tokenizer(tokens),
        "char": _character_offsets,
        "sentence": sentence_offsets,
        "document": _whole_text_offsets,
    }
    return map(cut[level], study.documents["text"])


def _character_offsets(text: str) -> Offsets:
    edges = np.arange(len(text) + 1, dtype=np.int64)
    return np.stack([edges[:-1], edges[1:]], axis=1)


def _whole_text_offsets(text: str) -> Offsets:
    return np.array([[0, len(text)]], dtype=np.int64)


def _segment_offsets(study: Study) -> Iterator[Offsets]:
    """Yield the segments of each document or, without any, groups of sentences of the size in the protocol."""
    used = study.annotations.select("document", "protocol").unique()
    sizes = {id: study.protocols[name].work.sentences for id, name in used.iter_rows() if name in study.protocols}
    return (part_offsets(document, sizes.get(document.id, 3)) for document in study.iter_documents())


def locate_spans_on_grid(study: Study, grid: UnitGrid) -> pl.DataFrame:
    """Locate each span of a text on the grid, one row per span.

    Columns: annotation, mark, label, document (position), first and last (units), votes, pooled.
    """
    kinds = study.annotators.select(pl.col("id").alias("annotator"), pooled=pl.col("kind") == "pooled")
    spans = study.spans.filter(pl.col("part") == TEXT_PART).join(
        kinds, on="annotator", how="left", maintain_order="left"
    )
    spans = spans.join(study.marks.select(mark="id", votes="votes"), on="mark", how="left", maintain_order="left")
    documents, first, last = grid.unit_ranges(spans)
    return spans.select(
        "annotation",
        "mark",
        "label",
        document=pl.Series(documents),
        first=pl.Series(first),
        last=pl.Series(last),
        votes=pl.col("votes").fill_null(1),
        pooled=pl.col("pooled").fill_null(value=False),
    )


def remove_range_overlaps(rows: pl.DataFrame, owner: Sequence[str]) -> pl.DataFrame:
    """Trim ranges so that ranges of the same owner do not overlap, and drop empty ranges.

    The sum of `last - first` then counts each unit once per owner.
    """
    ordered = rows.sort(*owner, "first", "last")
    reach = pl.col("last").cum_max().shift(1).over(*owner) if owner else pl.col("last").cum_max().shift(1)
    cut = ordered.with_columns(first=pl.max_horizontal("first", reach.fill_null(-1)))
    return cut.filter(pl.col("first") < pl.col("last"))


@dataclass(frozen=True, slots=True)
class UnitVotes:
    """Number of annotators who marked each unit, from which agreement on marks can be computed."""

    grid: UnitGrid
    categories: tuple[str, ...]
    marked: Ints
    """k, (categories, units): number of annotators who marked each unit."""
    readers: Ints
    """m, (documents,): number of annotators of each document, including those without marks."""

    @property
    def annotators_per_unit(self) -> Ints:
        """Number of annotators per unit, (units,)."""
        return np.repeat(self.readers, self.grid.sizes)


def count_unit_votes(
    study: Study, grid: UnitGrid, categories: Sequence[str] | None, rows: pl.DataFrame | None = None
) -> UnitVotes:
    """Count the votes for each category, or for any mark (one row) if `categories` is None.

    Overlapping marks of one annotator and category are one vote. Pooled annotations add up the votes of their marks, up
    to their number of annotators. `rows` is the result of `locate_spans_on_grid`, if already computed.
    """
    rows = locate_spans_on_grid(study, grid) if rows is None else rows
    readers = annotators_per_document(study)
    names = tuple(categories) if categories is not None else ("any",)
    if categories is None:
        rows = rows.with_columns(label=pl.lit("any"))
    changes = np.zeros((len(names), len(grid.starts) + 1), dtype=np.int64)
    single = remove_range_overlaps(rows.filter(~pl.col("pooled")), ["annotation", "label"]).with_columns(
        votes=pl.lit(1, pl.Int64)
    )
    votes = pl.concat([single, rows.filter(pl.col("pooled")).select(single.columns)])
    row = votes["label"].replace_strict({name: i for i, name in enumerate(names)}, default=-1, return_dtype=pl.Int64)
    is_category = row.to_numpy() >= 0
    rows_of_votes, amount = row.to_numpy()[is_category], votes["votes"].to_numpy()[is_category]
    np.add.at(changes, (rows_of_votes, votes["first"].to_numpy()[is_category]), amount)
    np.add.at(changes, (rows_of_votes, votes["last"].to_numpy()[is_category]), -amount)
    k = np.cumsum(changes, axis=1)[:, :-1]
    # overlapping pooled marks can add up to more votes than there are annotators
    return UnitVotes(grid, names, np.minimum(k, np.repeat(readers, np.diff(grid.bounds))), readers)


def annotators_per_document(study: Study) -> Ints:
    """Count the annotators of each document, (documents,); a pooled annotation counts as its number of annotators."""
    annotations = study.annotations.select("document", n=pl.col("readers").fill_null(1))
    totals = dict(annotations.group_by("document").agg(pl.col("n").sum()).iter_rows())
    return np.array([totals.get(id, 0) for id in study.documents["id"]], dtype=np.int64)


def max_annotators_per_document(study: Study, level: UnitLevel = "token", tokens: str = "words") -> int:
    """Return the maximum number of annotators over documents that have units; 0 if no document has units."""
    readers = annotators_per_document(study)
    for count in np.unique(readers)[::-1]:
        texts = study.with_documents(study.documents.filter(pl.Series(readers == count)))
        if any(len(piece) for piece in _unit_offsets(texts, level, tokens)):
            return int(count)
    return 0


# --- annotations of a view -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnnotationTable:
    """Annotations of a view, with one row per annotation."""

    view: View
    rows: pl.DataFrame
    """Table of annotations: annotation, document, annotator and the `by` columns."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Categories of the view, followed by `any` for all marks."""
        return (*(name for name in self.view.categories if name != ANY_LABEL), ANY_LABEL)

    def __len__(self) -> int:
        return len(self.rows)

    @functools.cached_property
    def document_positions(self) -> Ints:
        """Position of each annotation's document within the view, (annotations,)."""
        positions = self.view.study.documents.select(document="id").with_row_index("place")
        rows = self.rows.select("document").join(positions, on="document", how="left", maintain_order="left")
        return rows["place"].to_numpy().astype(np.int64)

    @functools.cached_property
    def annotator_positions(self) -> Ints:
        """Number of each annotation's annotator, counted from 0, (annotations,)."""
        return self.rows["annotator"].rank("dense").to_numpy().astype(np.int64) - 1

    def groups(self, by: Sequence[str]) -> list[tuple[dict[str, str | None], Ints]]:
        """Return the positions of annotations per combination of the `by` columns, sorted; one group without `by`."""
        if not by:
            return [({}, np.arange(len(self)))]
        parts = self.rows.select(*by, at=pl.int_range(pl.len())).partition_by(list(by), as_dict=True)
        keys = sorted(parts, key=group_sort_key)
        return [(dict(zip(by, key, strict=True)), parts[key]["at"].to_numpy()) for key in keys]


@dataclass(frozen=True)
class AnnotationMatrix(AnnotationTable):
    """Annotations of a view with their marks. Arrays are computed on first use."""

    grid: UnitGrid
    antecedents: bool = False
    """True if units covered by the antecedents of a mark count as covered by the mark."""

    @functools.cached_property
    def marks(self) -> pl.DataFrame:
        """Table of marks: mark, at (position of its annotation), category, answers."""
        annotation_positions = self.rows.select("annotation", at=pl.int_range(pl.len()))
        position_by_label = {name: position for position, name in enumerate(self.labels)}
        category = pl.col("label").replace_strict(position_by_label, return_dtype=pl.Int64)
        marks = self.view.study.marks.select("annotation", "answers", mark="id", category=category)
        return marks.join(annotation_positions, on="annotation", how="left", maintain_order="left").with_row_index(
            "row"
        )

    @functools.cached_property
    def grid_spans(self) -> pl.DataFrame:
        """Table of spans on the text, with positions, not IDs: row (of the mark), at, category, first, last, pooled."""
        study = add_antecedent_spans(self.view.study) if self.antecedents else self.view.study
        numbers = self.marks.select("mark", "row", "at", "category")
        spans = locate_spans_on_grid(study, self.grid).select("mark", "first", "last", "pooled")
        return spans.join(numbers, on="mark", how="left").drop("mark")

    @functools.cached_property
    def mark_lengths(self) -> Floats:
        """Number of distinct units that each mark covers, (marks,); 0 for omissions and marks without a span."""
        ranges = remove_range_overlaps(self.grid_spans, ["row"])
        return np.bincount(ranges["row"], ranges["last"] - ranges["first"], len(self.marks)).astype(np.float64)

    @functools.cached_property
    def severities(self) -> Floats:
        """Severity of each mark, (marks,), with ordinal words as ranks; NaN where it is missing or not numeric."""
        words = rank_by_word(severity_questions(self.view.protocol))
        answers = self.marks.select(severity=numeric_answer_expression(json_entry("answers", "severity"), words))[
            "severity"
        ]
        return answers.fill_null(np.nan).to_numpy()

    @functools.cached_property
    def explanation_lengths(self) -> Floats:
        """Number of tokens in the explanation of each mark, (marks,); 0 without an explanation."""
        words = get_tokenizer(self.grid.tokens)
        fields = self.marks.select(json_entry("answers", "explanation"))["explanation"].fill_null("")
        lengths = {text: len(words(text)) for text in fields.unique()}
        return fields.replace_strict(lengths, return_dtype=pl.Float64).to_numpy()

    @functools.cached_property
    def mark_weights(self) -> Floats:
        """Weight of each mark in the protocol's weighted score, (marks,); NaN where no weight applies."""
        protocol, labels = self.view.protocol, self.view.labels
        if protocol is None or not protocol.weights:
            return np.full(len(self.marks), np.nan)
        marked = self.view.marked_labels() if labels is None else labels
        rows = self.marks.select("mark", json_entry("answers", "severity"))
        rows = rows.join(marked, on="mark", how="left", maintain_order="left")
        return rows.select(
            weight=pl.coalesce(
                [
                    pl.when(_weight_applies_expression(weight)).then(pl.lit(weight.weight, pl.Float64))
                    for weight in protocol.weights
                ]
            ).fill_null(np.nan)
        )["weight"].to_numpy()

    def sum_by_category(self, values: Floats | None = None) -> Floats:
        """Sum values over marks by category and annotation, (labels, annotations); the last row is for all marks."""
        shape = len(self.labels), len(self.rows)
        cells = self.marks["category"].to_numpy() * shape[1] + self.marks["at"].to_numpy()
        filled: Floats = np.bincount(cells, values, shape[0] * shape[1]).reshape(shape).astype(np.float64)
        filled[-1] = filled.sum(axis=0)
        return filled

    def count_covered_units_by_category(self) -> Floats:
        """Count the distinct units covered by marks of each category, per annotation, (labels, annotations)."""
        ranges = remove_range_overlaps(self.grid_spans, ["at", "category"])
        cells = ranges["category"].to_numpy() * len(self) + ranges["at"].to_numpy()
        size = len(self.labels) * len(self)
        covered = np.bincount(cells, ranges["last"] - ranges["first"], size).reshape(len(self.labels), len(self))
        any_ = remove_range_overlaps(self.grid_spans, ["at"])
        covered[-1] = np.bincount(any_["at"], any_["last"] - any_["first"], len(self))
        return covered.astype(np.float64)


def build_annotation_matrix(
    view: View, by: Sequence[str] = (), unit: UnitLevel = "token", tokens: str = "words", antecedents: bool = False
) -> AnnotationMatrix:
    """Build the annotation matrix of a view."""
    return AnnotationMatrix(
        view, annotation_rows_with_groups(view.study, by), build_unit_grid(view.study, unit, tokens), antecedents
    )


def add_antecedent_spans(study: Study) -> Study:
    """Add the spans of the antecedents of each located mark to the spans of the mark."""
    all_spans = pl.concat_list(
        "spans", pl.col("antecedents").fill_null(pl.lit([], dtype=study.marks.schema["antecedents"]))
    )
    located = pl.col("spans").list.len() > 0
    return replace(
        study, marks=study.marks.with_columns(pl.when(located).then(all_spans).otherwise("spans").alias("spans"))
    )


def _weight_applies_expression(weight: Weight) -> pl.Expr:
    """Build an expression that is true for marks whose label and severity match a weight of the protocol."""
    fits = pl.lit(value=True)
    if weight.severity:
        values = [value if isinstance(value, str) else to_json(value).decode() for value in weight.severity]
        fits &= pl.col("severity").is_in(values).fill_null(value=False)
    if weight.labels:
        matches = [_label_match_expression(pattern) for pattern in weight.labels]
        fits &= pl.any_horizontal(matches).fill_null(value=False)
    return fits


def _label_match_expression(pattern: str) -> pl.Expr:
    label = pl.col("label")
    return label.str.starts_with(pattern[:-1]) if pattern.endswith("/*") else label == pattern
