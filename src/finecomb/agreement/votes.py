"""How many of those who read a text marked each token: all that agreement on binary marks needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.span import TEXT, Offsets, Span, token_range
from finecomb.core.study import Study


@dataclass(frozen=True, slots=True)
class Votes:
    """Votes on the tokens of one document."""

    document: str
    marked: NDArray[np.int64]
    """k, (tokens,): annotators who marked the token."""
    readers: int
    """m: annotators who read the document; one who marked nothing still counts."""


def token_votes(study: Study, offsets: Mapping[str, Offsets], label: str | None = None) -> list[Votes]:
    """Votes per document that anybody read, for one label or, with None, for any mark."""
    spans = study.spans.filter(pl.col("part") == TEXT)
    if label is not None:
        spans = spans.filter(pl.col("label") == label)
    per: dict[str, dict[str, NDArray[np.bool_]]] = {}
    for annotation, document, start, end in spans.select("annotation", "document", "start", "end").iter_rows():
        rows = per.setdefault(document, {})
        if annotation not in rows:
            rows[annotation] = np.zeros(len(offsets[document]), dtype=bool)
        first, last = token_range(Span(start, end), offsets[document])
        rows[annotation][first:last] = True
    readers = study.annotations.group_by("document", maintain_order=True).len()
    return [
        Votes(id, np.sum([*per.get(id, {}).values(), np.zeros(len(offsets[id]), dtype=np.int64)], axis=0), m)
        for id, m in readers.iter_rows()
    ]
