"""Inferred alternatives: one mark by an annotator and several by another that correct the same error count as one.

"Smith had 20 points and 6 rebounds" can be corrected by changing the name or the two numbers (Thomson and Reiter 2020,
section 3.5.3). If annotators did not declare `alternatives`, they are inferred here. A mark gets the marks of another
annotator as its alternative if, within one sentence,

- it is the only mark of its annotator that no mark of the other overlaps,
- the other annotator has two or more such marks, all with one label that differs from the label of the single mark,
- and no further name occurs between the mark and the last of them: no other word starts with a capital letter.

The single mark is kept and the larger set becomes its alternative. Gold merging, agreement on items and scores then
count both as one error.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, did_you_mean, param
from finecomb.core.frames import encode_json_cell, parse_json_list, parse_spans
from finecomb.core.records import AlternativeMark
from finecomb.core.sentences import sentence_offsets
from finecomb.core.span import TEXT_PART, Span, most_overlapping_index
from finecomb.core.study import Study
from finecomb.statistics.selection.view import View

RepairMode = Literal["declared", "smallest"]
REPAIR_MODES: tuple[RepairMode, ...] = ("declared", "smallest")
AlternativeSets = Mapping[str, Sequence[tuple[AlternativeMark, ...]]]
"""Alternatives by mark ID: sets of marks that correct the same error as the mark."""
_CAPITALISED_WORD = re.compile(r"(?<!\w)[A-Z][\w'’-]*")


class _SentenceMark(NamedTuple):
    """A mark with one span on the text, and the position of its sentence."""

    id: str
    annotator: str
    label: str | None
    span: Span
    quote: str
    sentence: int


def apply_repair_mode(view: View, repairs: str) -> View:
    """Return the view unchanged (`declared`), or with inferred alternatives added to its marks (`smallest`)."""
    if repairs not in REPAIR_MODES:
        raise FinecombError(f"unknown repairs {repairs!r}{did_you_mean(repairs, REPAIR_MODES)}")
    if repairs == "declared":
        return view
    study = add_inferred_alternatives_to_study(view.study)
    return replace(view, study=study, fields={**view.fields, "repairs": repairs})


def reject_repairs_with_item_alignment(repairs: str, align: str) -> None:
    """Raise an error if alternatives are to be inferred for marks that are aligned by `item`."""
    if repairs == "smallest" and align == "item":
        raise FinecombError(
            f"{param('repairs', 'smallest')} cannot be used with {param('align', 'item')}; "
            f"use {param('align', 'overlap')}"
        )


def add_inferred_alternatives_to_study(study: Study) -> Study:
    """Add inferred alternatives to the marks of a study."""
    texts = dict(study.documents.select("id", "text").iter_rows())
    return replace(study, marks=add_mark_alternatives(study.marks, inferred_alternatives_by_mark(study.marks, texts)))


def add_mark_alternatives(marks: pl.DataFrame, sets: AlternativeSets) -> pl.DataFrame:
    """Add alternatives, given by mark ID, to a table of marks."""
    if not sets:
        return marks
    cells = [
        encode_json_cell((*parse_json_list(cell), *sets[id])) if id in sets else cell
        for id, cell in marks.select("id", "alternatives").iter_rows()
    ]
    return marks.with_columns(alternatives=pl.Series(cells, dtype=pl.String))


def inferred_alternatives_by_mark(marks: pl.DataFrame, texts: Mapping[str, str]) -> AlternativeSets:
    """Infer, for each mark, the distinct sets of another annotator's marks that correct the same error.

    `marks` has the columns id, document, annotator, label, spans and quotes. Only marks with exactly one span, which is
    in the text and not empty, are considered.
    """
    sets: dict[str, dict[str, tuple[AlternativeMark, ...]]] = {}
    columns = ("id", "annotator", "label", "spans", "quotes")
    for (document,), rows in marks.filter(pl.col("spans").list.len() == 1).group_by("document", maintain_order=True):
        text = texts.get(str(document), "")
        located = [(*row, parse_spans(row[3])[0]) for row in rows.select(columns).iter_rows()]
        located = [row for row in located if row[5].part == TEXT_PART and len(row[5])]
        edges = sentence_offsets(text) if len(located) > 2 else np.zeros((0, 2), dtype=np.int64)
        in_order = sorted(
            (
                _SentenceMark(id, annotator, label, span, quotes[0], most_overlapping_index(span, edges))
                for id, annotator, label, _, quotes, span in located
            ),
            key=lambda mark: (mark.span, mark.annotator, mark.id),
        )
        for single, others in _repair_pairs(in_order, text):
            choice = tuple(
                AlternativeMark(spans=(mark.span,), quotes=(mark.quote,), label=mark.label) for mark in others
            )
            sets.setdefault(single.id, {})[str(encode_json_cell(choice))] = choice
    return {id: list(choices.values()) for id, choices in sets.items()}


def _repair_pairs(marks: Sequence[_SentenceMark], text: str) -> Iterator[tuple[_SentenceMark, list[_SentenceMark]]]:
    """Yield each mark together with the marks of another annotator that correct the same error in the same sentence."""
    by_reader: dict[int, dict[str, list[_SentenceMark]]] = {}
    for mark in marks:
        by_reader.setdefault(mark.sentence, {}).setdefault(mark.annotator, []).append(mark)
    for readers in by_reader.values():
        for first, second in itertools.permutations(readers.values(), 2):
            unmatched, others = _non_overlapping_marks(first, second), _non_overlapping_marks(second, first)
            labels = {mark.label for mark in others}
            if len(unmatched) != 1 or len(others) < 2 or len(labels) != 1:
                continue
            single = unmatched[0]
            if single.label in labels or None in (single.label, *labels):
                continue
            spans = sorted([single.span, *(mark.span for mark in others)])
            gaps = (text[span.end : next_span.start] for span, next_span in itertools.pairwise(spans))
            if not any(map(_CAPITALISED_WORD.search, gaps)):
                yield single, others


def _non_overlapping_marks(marks: Sequence[_SentenceMark], others: Sequence[_SentenceMark]) -> list[_SentenceMark]:
    """Return the marks that no mark of `others` overlaps."""
    return [mark for mark in marks if not any(mark.span.overlap_length(other.span) for other in others)]
