"""Smallest repairs: one mark of a reader and several of another that put the same words right are one error.

"Smith had 20 points and 6 rebounds" is put right by another name or by two other numbers (Thomson and Reiter 2020,
section 3.5.3). Where readers did not say that their marks have `alternatives`, they are inferred here: a mark gets the
marks of another reader as its alternative when, within one sentence,

- it is the only mark of its reader that no mark of the other overlaps,
- the other has two or more such marks, all of one label, which is not that of the single mark,
- and between the mark and the last of them nobody else is named: no further word has a capital letter.

The smallest set stays the mark, the larger one is its alternative, and everything that reads alternatives (merging,
agreement on items, scores) takes both for one error.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.frames import json_cell, parse_json_list, parse_spans
from finecomb.core.records import AlternativeMark
from finecomb.core.sentences import sentences
from finecomb.core.span import TEXT, Span, most_overlapping_index
from finecomb.core.study import Study
from finecomb.statistics.selection.view import View

Repairs = Literal["declared", "smallest"]
REPAIRS: tuple[Repairs, ...] = ("declared", "smallest")
AlternativeSets = Mapping[str, Sequence[tuple[AlternativeMark, ...]]]
"""Sets of marks that each put right what a mark puts right, by the mark's id."""
_CAPITAL = re.compile(r"(?<!\w)[A-Z][\w'’-]*")


class _SentenceMark(NamedTuple):
    """A mark with one span on the text, and the sentence it is in."""

    id: str
    annotator: str
    label: str | None
    span: Span
    quote: str
    sentence: int


def apply_repair_mode(view: View, repairs: str) -> View:
    """The view as it is (`declared`), or with the alternatives that readers did not declare (`smallest`)."""
    if repairs not in REPAIRS:
        raise FinecombError(f"repairs are {' or '.join(REPAIRS)}, not {repairs!r}{did_you_mean(repairs, REPAIRS)}")
    if repairs == "declared":
        return view
    study = add_smallest_repairs_to_study(view.study)
    return replace(view, study=study, fields={**view.fields, "repairs": repairs})


def reject_repairs_with_item_alignment(repairs: str, align: str) -> None:
    """Refuse to infer what one error is where the source says it already."""
    if repairs == "smallest" and align == "item":
        raise FinecombError(
            "smallest repairs are for marks aligned by overlap: an `item` says already what one error is"
        )


def add_smallest_repairs_to_study(study: Study) -> Study:
    """A study whose marks have as alternatives the larger sets of others' marks that put the same words right."""
    texts = dict(study.documents.select("id", "text").iter_rows())
    return replace(study, marks=add_mark_alternatives(study.marks, smallest_repairs_by_mark(study.marks, texts)))


def add_mark_alternatives(marks: pl.DataFrame, sets: AlternativeSets) -> pl.DataFrame:
    """A frame of marks with further alternatives, by the mark's id."""
    if not sets:
        return marks
    cells = [
        json_cell((*parse_json_list(cell), *sets[id])) if id in sets else cell
        for id, cell in marks.select("id", "alternatives").iter_rows()
    ]
    return marks.with_columns(alternatives=pl.Series(cells, dtype=pl.String))


def smallest_repairs_by_mark(marks: pl.DataFrame, texts: Mapping[str, str]) -> AlternativeSets:
    """For single marks: the sets of another reader's marks that put the same words right, each once.

    `marks` has the columns id, document, annotator, label, spans and quotes.
    """
    sets: dict[str, dict[str, tuple[AlternativeMark, ...]]] = {}
    columns = ("id", "document", "annotator", "label", "spans", "quotes")
    for (document,), rows in marks.select(columns).group_by("document", maintain_order=True):
        text = texts.get(str(document), "")
        for single, others in _repair_pairs(_sentence_marks(rows.iter_rows(named=True), text), text):
            choice = tuple(_to_alternative_mark(mark) for mark in others)
            sets.setdefault(single.id, {})[str(json_cell(choice))] = choice
    return {id: list(choices.values()) for id, choices in sets.items()}


def _sentence_marks(rows: Iterable[dict[str, Any]], text: str) -> list[_SentenceMark]:
    """The marks with one span on the text, in text order."""
    single = [(row, parse_spans(row["spans"])) for row in rows if len(row["spans"]) == 1]
    on_text = [(row, spans[0]) for row, spans in single if spans[0].part == TEXT and len(spans[0])]
    edges = sentences(text) if len(on_text) > 2 else np.zeros((0, 2), dtype=np.int64)
    marks = [
        _SentenceMark(
            row["id"], row["annotator"], row["label"], span, row["quotes"][0], most_overlapping_index(span, edges)
        )
        for row, span in on_text
    ]
    return sorted(marks, key=lambda mark: (mark.span, mark.annotator, mark.id))


def _repair_pairs(marks: Sequence[_SentenceMark], text: str) -> Iterator[tuple[_SentenceMark, list[_SentenceMark]]]:
    """A single mark and a larger set of another reader that put the same words of one sentence right."""
    by_reader: dict[int, dict[str, list[_SentenceMark]]] = {}
    for mark in marks:
        by_reader.setdefault(mark.sentence, {}).setdefault(mark.annotator, []).append(mark)
    for readers in by_reader.values():
        for one, other in itertools.permutations(readers.values(), 2):
            rest, others = _non_overlapping_marks(one, other), _non_overlapping_marks(other, one)
            if len(rest) == 1 and _is_same_repair(rest[0], others, text):
                yield rest[0], others


def _non_overlapping_marks(marks: Sequence[_SentenceMark], others: Sequence[_SentenceMark]) -> list[_SentenceMark]:
    """The marks that none of the others overlaps."""
    return [mark for mark in marks if not any(mark.span.overlap_length(other.span) for other in others)]


def _is_same_repair(single: _SentenceMark, others: Sequence[_SentenceMark], text: str) -> bool:
    labels = {mark.label for mark in others}
    if len(others) < 2 or len(labels) != 1 or single.label in labels or None in (single.label, *labels):
        return False
    spans = sorted([single.span, *(mark.span for mark in others)])
    return not any(_CAPITAL.search(text[one.end : other.start]) for one, other in itertools.pairwise(spans))


def _to_alternative_mark(mark: _SentenceMark) -> AlternativeMark:
    return AlternativeMark(spans=(mark.span,), quotes=(mark.quote,), label=mark.label)
