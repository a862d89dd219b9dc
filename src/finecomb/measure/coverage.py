"""Span coverage: the share of a text's tokens that its marks cover."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.estimate import Estimate, Signature
from finecomb.core.span import TEXT, Offsets, Span, token_range
from finecomb.core.study import Study
from finecomb.core.tokens import tokenizer
from finecomb.measure.bootstrap import interval, ratio


def offsets_by_document(study: Study, tokens: str) -> dict[str, Offsets]:
    """Token offsets of every document's text."""
    tokenize = tokenizer(tokens)
    return {id: tokenize(text) for id, text in study.documents.select("id", "text").iter_rows()}


def covered_tokens(
    study: Study, offsets: Mapping[str, Offsets], label: str | None = None, overlap: Literal["add", "union"] = "add"
) -> pl.DataFrame:
    """One row per annotation: annotation, document, covered, tokens. Annotations without marks count 0.

    `add` counts a token once per mark (Scarecrow), `union` once; the spans of one mark never count a token twice.
    """
    spans = study.spans.filter(pl.col("part") == TEXT)
    if label is not None:
        spans = spans.filter(pl.col("label") == label)
    per_owner: dict[str, dict[str, list[tuple[int, int]]]] = {}
    for annotation, mark, document, start, end in spans.select(
        "annotation", "mark", "document", "start", "end"
    ).iter_rows():
        owner = mark if overlap == "add" else ""
        places = per_owner.setdefault(annotation, {}).setdefault(owner, [])
        places.append(token_range(Span(start, end), offsets[document]))
    covered = {id: sum(_distinct(ranges) for ranges in owners.values()) for id, owners in per_owner.items()}
    ids, documents = study.annotations["id"], study.annotations["document"]
    return pl.DataFrame(
        {
            "annotation": ids,
            "document": documents,
            "covered": [covered.get(id, 0) for id in ids],
            "tokens": [len(offsets[id]) for id in documents],
        },
        schema={"annotation": pl.String, "document": pl.String, "covered": pl.Int64, "tokens": pl.Int64},
    )


def _distinct(ranges: list[tuple[int, int]]) -> int:
    """How many tokens lie in any of the half-open ranges."""
    total = reach = 0
    for first, last in sorted(ranges):
        total += max(0, last - max(first, reach))
        reach = max(reach, last)
    return total


def coverage(
    study: Study,
    label: str | None = None,
    tokens: str = "words",
    overlap: Literal["add", "union"] = "add",
    draws: int = 1000,
    seed: int = 0,
) -> Estimate:
    """Tokens covered / tokens of each annotation, averaged over annotations, with an interval over documents.

    Dou et al. (2022), section 6. Texts without tokens are left out. NaN when nobody has read anything.
    """
    rows = covered_tokens(study, offsets_by_document(study, tokens), label, overlap).filter(pl.col("tokens") > 0)
    signature = Signature.of(
        statistic="coverage",
        label=label or "any",
        overlap=overlap,
        tokens=tokens,
        protocol="+".join(study.protocols),
        annotations=len(rows),
        documents=rows["document"].n_unique(),
        draws=draws,
        seed=seed,
    )
    if rows.is_empty():
        return Estimate(math.nan, math.nan, math.nan, signature, "no annotations")
    per = rows.group_by("document", maintain_order=True).agg(
        (pl.col("covered") / pl.col("tokens")).sum(), pl.len().alias("n")
    )
    sums = per.select("covered", pl.col("n").cast(pl.Float64)).to_numpy()
    low, high = interval(sums, _ratio, draws, np.random.default_rng(seed))
    return Estimate(float(_ratio(sums.sum(axis=0)[None])[0]), low, high, signature)


def _ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return ratio(sums[:, 0], sums[:, 1])
