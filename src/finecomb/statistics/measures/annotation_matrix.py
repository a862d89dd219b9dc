"""A view as a measure reads it: one column per annotation, one row per mark, everything else in arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic_core import to_json

from finecomb.core.frames import json_entry
from finecomb.core.protocol import Protocol, Weight
from finecomb.core.study import Study
from finecomb.core.tokens import tokenizer
from finecomb.statistics.measures.numeric_answers import numeric_answer_expression, rank_by_word, severity_questions
from finecomb.statistics.measures.study_counts import annotation_rows_with_groups, group_sort_key
from finecomb.statistics.measures.unit_grid import (
    Ints,
    Level,
    UnitGrid,
    build_grid,
    locate_spans_on_grid,
    remove_range_overlaps,
)
from finecomb.statistics.selection.view import ANY, View

Overlap = Literal["add", "union"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AnnotationTable:
    """The annotations of a view side by side."""

    view: View
    rows: pl.DataFrame
    """One row per annotation: annotation, document, annotator and the `by` columns."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories, and `any` last for all together."""
        return (*(name for name in self.view.categories if name != ANY), ANY)

    def __len__(self) -> int:
        return len(self.rows)

    @functools.cached_property
    def document_positions(self) -> Ints:
        """Position of each annotation's document among those of the view, (annotations,)."""
        places = self.view.study.documents.select(document="id").with_row_index("place")
        rows = self.rows.select("document").join(places, on="document", how="left", maintain_order="left")
        return rows["place"].to_numpy().astype(np.int64)

    @functools.cached_property
    def annotator_positions(self) -> Ints:
        """A number for each annotation's annotator, (annotations,)."""
        return self.rows["annotator"].rank("dense").to_numpy().astype(np.int64) - 1

    def groups(self, by: Sequence[str]) -> list[tuple[dict[str, str | None], Ints]]:
        """The annotations of each combination of the `by` columns, in order; all of them without `by`."""
        if not by:
            return [({}, np.arange(len(self)))]
        parts = self.rows.select(*by, at=pl.int_range(pl.len())).partition_by(list(by), as_dict=True)
        keys = sorted(parts, key=group_sort_key)
        return [(dict(zip(by, key, strict=True)), parts[key]["at"].to_numpy()) for key in keys]


@dataclass(frozen=True)
class AnnotationMatrix(AnnotationTable):
    """The annotations of a view side by side, with what each marked. Arrays are made when asked for."""

    grid: UnitGrid
    antecedents: bool = False
    """Whether the earlier words that a mark refers to count as covered."""

    @functools.cached_property
    def unit_counts(self) -> Floats:
        """Tokens of the text that each annotation read, (annotations,)."""
        return self.grid.sizes[self.document_positions].astype(np.float64)

    @functools.cached_property
    def marks(self) -> pl.DataFrame:
        """One row per mark: mark, at (its annotation), category, answers."""
        at = self.rows.select("annotation", at=pl.int_range(pl.len()))
        places = {name: place for place, name in enumerate(self.labels)}
        category = pl.col("label").replace_strict(places, return_dtype=pl.Int64)
        marks = self.view.study.marks.select("annotation", "answers", mark="id", category=category)
        return marks.join(at, on="annotation", how="left", maintain_order="left").with_row_index("row")

    @functools.cached_property
    def grid_spans(self) -> pl.DataFrame:
        """Spans on the text by number instead of id: row (of the mark), at, category, first, last, pooled."""
        study = add_antecedent_spans(self.view.study) if self.antecedents else self.view.study
        numbers = self.marks.select("mark", "row", "at", "category")
        spans = locate_spans_on_grid(study, self.grid).select("mark", "first", "last", "pooled")
        return spans.join(numbers, on="mark", how="left").drop("mark")

    @functools.cached_property
    def mark_lengths(self) -> Floats:
        """Tokens that each mark covers, each once, (marks,); 0 for omissions and marks without a place on the text."""
        ranges = remove_range_overlaps(self.grid_spans, ["row"])
        return np.bincount(ranges["row"], ranges["last"] - ranges["first"], len(self.marks)).astype(np.float64)

    @functools.cached_property
    def severities(self) -> Floats:
        """Severity of each mark, (marks,), words by their order; NaN where it was not given or cannot be counted."""
        words = rank_by_word(severity_questions(self.view.protocol))
        answers = self.marks.select(severity=numeric_answer_expression(json_entry("answers", "severity"), words))[
            "severity"
        ]
        return answers.fill_null(np.nan).to_numpy()

    @functools.cached_property
    def explanation_lengths(self) -> Floats:
        """Tokens in the explanation of each mark, (marks,); 0 where there is none."""
        words = tokenizer(self.grid.tokens)
        fields = self.marks.select(json_entry("answers", "explanation"))["explanation"].fill_null("")
        lengths = {each: len(words(each)) for each in fields.unique()}
        return fields.replace_strict(lengths, return_dtype=pl.Float64).to_numpy()

    @functools.cached_property
    def mark_weights(self) -> Floats:
        """What each mark counts in the protocol's weighted score, (marks,); NaN where no weight fits."""
        protocol, labels = self.view.protocol, self.view.labels
        if protocol is None or not protocol.weights:
            return np.full(len(self.marks), np.nan)
        marked = self.view.marked_labels() if labels is None else labels
        rows = self.marks.select("mark", json_entry("answers", "severity"))
        rows = rows.join(marked, on="mark", how="left", maintain_order="left")
        return rows.select(weight=_weight_expression(protocol).fill_null(np.nan))["weight"].to_numpy()

    def sum_by_category(self, values: Floats | None = None) -> Floats:
        """Sums over the marks of each category and annotation, (labels, annotations); the last row is all of them."""
        cells = self.marks["category"].to_numpy() * len(self) + self.marks["at"].to_numpy()
        sums = np.bincount(cells, values, len(self.labels) * len(self)).reshape(len(self.labels), len(self))
        filled: Floats = sums.astype(np.float64)
        filled[-1] = filled.sum(axis=0)
        return filled

    def covered_unit_counts(self) -> Floats:
        """Tokens covered by the marks of each category and annotation, each once, (labels, annotations)."""
        ranges = remove_range_overlaps(self.grid_spans, ["at", "category"])
        cells = ranges["category"].to_numpy() * len(self) + ranges["at"].to_numpy()
        size = len(self.labels) * len(self)
        covered = np.bincount(cells, ranges["last"] - ranges["first"], size).reshape(len(self.labels), len(self))
        any_ = remove_range_overlaps(self.grid_spans, ["at"])
        covered[-1] = np.bincount(any_["at"], any_["last"] - any_["first"], len(self))
        return covered.astype(np.float64)


def build_annotation_matrix(
    view: View, by: Sequence[str] = (), unit: Level = "token", tokens: str = "words", antecedents: bool = False
) -> AnnotationMatrix:
    """Lay out a view for measures."""
    return AnnotationMatrix(
        view, annotation_rows_with_groups(view.study, by), build_grid(view.study, unit, tokens), antecedents
    )


def add_antecedent_spans(study: Study) -> Study:
    """The study with the antecedents of every located mark among its spans."""
    both = pl.concat_list("spans", pl.col("antecedents").fill_null(pl.lit([], dtype=study.marks.schema["antecedents"])))
    located = pl.col("spans").list.len() > 0
    return replace(study, marks=study.marks.with_columns(pl.when(located).then(both).otherwise("spans").alias("spans")))


def back_off_labels_to_groups(view: View) -> View:
    """The view with labels backed off to their groups, where it still has labels."""
    protocol = view.protocol
    named = {name: protocol.find_label(name) for name in view.categories} if protocol else {}
    groups = {name: label.group for name, label in named.items() if label and label.group}
    categories = tuple(dict.fromkeys(groups.get(name, name) for name in view.categories))
    fields = {**view.fields, "back_off": "group"}
    labels = view.marked_labels() if view.labels is None else view.labels
    study = view.study.with_labels(pl.col("label").replace(groups))
    return replace(view, study=study, categories=categories, fields=fields, labels=labels)


def _weight_expression(protocol: Protocol) -> pl.Expr:
    """The first weight that fits; null when none does."""
    return pl.coalesce(
        [
            pl.when(_weight_applies_expression(weight)).then(pl.lit(weight.weight, pl.Float64))
            for weight in protocol.weights
        ]
    )


def _weight_applies_expression(weight: Weight) -> pl.Expr:
    """Whether a weight is meant for a mark with this label and severity."""
    fits = pl.lit(value=True)
    if weight.severity:
        values = [value if isinstance(value, str) else to_json(value).decode() for value in weight.severity]
        fits &= pl.col("severity").is_in(values).fill_null(value=False)
    if weight.labels:
        named = [_label_match_expression(pattern) for pattern in weight.labels]
        fits &= pl.any_horizontal(named).fill_null(value=False)
    return fits


def _label_match_expression(pattern: str) -> pl.Expr:
    label = pl.col("label")
    return label.str.starts_with(pattern[:-1]) if pattern.endswith("/*") else label == pattern
