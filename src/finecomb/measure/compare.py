"""Do two systems differ? Any statistic of a document, compared between the systems that wrote the documents."""

from __future__ import annotations

import functools
import itertools
import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import polars as pl
from pydantic_core import from_json

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.frames import meta
from finecomb.measure.coverage import Overlap, covered
from finecomb.measure.grid import lay
from finecomb.measure.permutation import Correction, Tested, Values, adjusted, paired, unpaired
from finecomb.measure.view import ANY, View, answer

Pairing = Literal["auto", "yes", "no"]
PerDocument = Callable[[View], pl.DataFrame]
"""Columns `document` and `value`, one row per document; documents without a value are left out."""


def coverage_of(seen: View, tokens: str = "words", overlap: Overlap = "add") -> pl.DataFrame:
    """Mean over a document's annotations of the share of its tokens that are covered."""
    rows = covered(seen.study, lay(seen.study, "token", tokens), overlap).filter(pl.col("units") > 0)
    return _mean(rows.with_columns(value=pl.col("covered") / pl.col("units")))


def count_of(seen: View) -> pl.DataFrame:
    """Marks per annotation of each document."""
    return _mean(_counted(seen).with_columns(value=pl.col("marks").cast(pl.Float64)))


def rate_of(seen: View, tokens: str = "words") -> pl.DataFrame:
    """Marks per 100 tokens, averaged over a document's annotations."""
    grid = lay(seen.study, "token", tokens)
    units = pl.DataFrame(
        {"document": grid.documents, "units": grid.sizes}, schema={"document": pl.String, "units": pl.Int64}
    )
    rows = _counted(seen).join(units, on="document", how="left").filter(pl.col("units") > 0)
    return _mean(rows.with_columns(value=100 * pl.col("marks") / pl.col("units")))


def severity_of(seen: View) -> pl.DataFrame:
    """Sum of the severities of an annotation's marks, averaged over a document's annotations."""
    known = seen.study.marks.with_columns(value=answer("severity").cast(pl.Float64))
    missing = int(known["value"].null_count())
    if missing:
        raise FinecombError(f"{missing} of {len(known)} marks have no severity; compare counts, or drop those labels")
    sums = known.group_by("annotation").agg(pl.col("value").sum())
    read = seen.study.annotations.select("document", annotation="id")
    return _mean(read.join(sums, on="annotation", how="left").with_columns(pl.col("value").fill_null(0.0)))


def answer_of(name: str) -> PerDocument:
    """Mean over a document's annotations of a numeric answer, e.g. `rating`; who did not answer is left out."""

    def values(seen: View) -> pl.DataFrame:
        rows = seen.study.annotations.with_columns(value=answer(name).cast(pl.Float64, strict=False))
        return _mean(rows.filter(pl.col("value").is_not_null()))

    return values


def _counted(seen: View) -> pl.DataFrame:
    """One row per annotation: annotation, document, marks (0 too)."""
    own = seen.study.marks.group_by("annotation").agg(marks=pl.len())
    read = seen.study.annotations.select("document", annotation="id")
    return read.join(own, on="annotation", how="left").with_columns(pl.col("marks").fill_null(0))


def _mean(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("document", maintain_order=True).agg(pl.col("value").mean())


def named(statistic: str | PerDocument, tokens: str = "words", overlap: Overlap = "add") -> tuple[str, PerDocument]:
    """A statistic by name (`answer:rating` is the mean of a numeric answer), or a function as it is."""
    known: dict[str, PerDocument] = {
        "coverage": functools.partial(coverage_of, tokens=tokens, overlap=overlap),
        "count": count_of,
        "rate": functools.partial(rate_of, tokens=tokens),
        "severity": severity_of,
    }
    if not isinstance(statistic, str):
        return getattr(statistic, "__name__", "own"), statistic
    kind, _, question = statistic.partition(":")
    if kind == "answer" and question:
        return statistic, answer_of(question)
    if statistic not in known:
        near = did_you_mean(statistic, [*known, "answer:NAME"])
        raise FinecombError(f"no statistic of a document is called {statistic!r}{near}")
    return statistic, known[statistic]


def compare(
    seen: View,
    by: str = "model",
    statistic: str | PerDocument = "coverage",
    labels: Sequence[str] = (ANY,),
    pairing: Pairing = "auto",
    key: str = "",
    correction: Correction = "holm",
    tokens: str = "words",
    overlap: Overlap = "add",
    draws: int = 10_000,
    seed: int = 0,
) -> list[Finding]:
    """Every two systems compared: difference of means over documents, interval, p, and p corrected for all rows.

    `statistic` is coverage, count, rate (marks per 100 tokens), severity, `answer:NAME`, or a function of a view.

    Systems are the values of `by`, document meta or an annotator's field. Documents are paired by `key` (a name of
    document meta; else `prompt_id`, else the text of the context `prompt`; the document itself where systems share
    documents, as when `by` is `condition`), and several of one system with the same key are averaged. With `auto` a
    comparison is paired when every key of one system is found in the other. NaN with fewer than two documents or pairs.
    """
    if pairing not in ("auto", "yes", "no"):
        raise FinecombError(f"pairing is auto, yes or no, not {pairing!r}")
    name, per_document = named(statistic, tokens, overlap)
    parts = [(str(group[by]), part) for group, part in seen.split([by]) if group[by] is not None]
    if len(parts) < 2:
        there = f"only {parts[0][0]!r}" if parts else "none"
        raise FinecombError(f"a comparison needs two systems; by {by} there is {there}")
    keys = _keys(seen, parts, key)
    rows = []
    for label in labels:
        values = {system: _keyed(per_document(_only(part, label)), keys) for system, part in parts}
        for a, b in itertools.combinations(values, 2):
            signature = Signature.of(
                statistic=f"compare:{name}", label=label, by=by, correction=correction, pairing=pairing,
                key=key or None, tokens=tokens if name in ("coverage", "rate") else None,
                overlap=overlap if name == "coverage" else None, **seen.fields,
                annotators=seen.study.annotations["annotator"].n_unique(), documents=len(seen.study.documents),
                draws=draws, seed=seed,
            )  # fmt: skip
            rng = np.random.default_rng([seed, zlib.crc32(f"{a}\x1f{b}\x1f{label}".encode())])
            columns: dict[str, object] = {"measure": name, "label": label, "a": a, "b": b}
            rows.append(_compared(columns, values[a], values[b], pairing, draws, rng, signature))
    return corrected(rows, correction)


def corrected(rows: Sequence[Finding], correction: Correction) -> list[Finding]:
    """The same findings with `p_adjusted`, their p corrected for how many they are."""
    p = np.array([_number(row.columns.get("p")) for row in rows], dtype=np.float64)
    return [
        replace(row, columns={**row.columns, "p_adjusted": float(each)})
        for row, each in zip(rows, adjusted(p, correction), strict=True)
    ]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _only(seen: View, label: str) -> View:
    if label == ANY:
        return seen
    if label not in seen.categories:
        raise FinecombError(f"no label is called {label!r}{did_you_mean(label, seen.categories)}")
    return replace(seen, study=replace(seen.study, marks=seen.study.marks.filter(pl.col("label") == label)))


def _keys(seen: View, parts: Iterable[tuple[str, View]], key: str) -> pl.DataFrame:
    """Columns document and key; key is null where the document has none."""
    texts = seen.study.documents
    shared = pl.concat([part.study.documents["id"] for _, part in parts]).is_duplicated().any()
    if shared and not key:
        return texts.select(document="id", key="id")
    if key:
        found = texts.select(pl.col("id").alias("document"), meta(key).alias("key"))
        if found["key"].null_count() == len(found):
            raise FinecombError(f"no document has the meta {key!r} to pair by")
        return found
    prompt = pl.col("context").map_elements(lambda text: from_json(text).get("prompt"), pl.String)
    return texts.select(pl.col("id").alias("document"), key=pl.coalesce(meta("prompt_id"), prompt))


def _keyed(values: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """Columns document, value and key, without undefined values."""
    rows = values.select("document", pl.col("value").cast(pl.Float64)).join(
        keys, on="document", how="left", maintain_order="left"
    )
    return rows.filter(pl.col("value").is_not_null() & pl.col("value").is_not_nan())


def _pairs(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """One row per shared key: the mean value of each system."""
    sides = [
        side.filter(pl.col("key").is_not_null()).group_by("key").agg(pl.col("value").mean().alias(name))
        for side, name in ((a, "a"), (b, "b"))
    ]
    return sides[0].join(sides[1], on="key").sort("key")


def _all_paired(a: pl.DataFrame, b: pl.DataFrame) -> bool:
    """Whether every document of one of the two systems has its key in the other."""
    sides = [set(side["key"].to_list()) for side in (a, b)]
    return any(one and None not in one and one <= other for one, other in (sides, sides[::-1]))


def _compared(
    columns: dict[str, object],
    a: pl.DataFrame,
    b: pl.DataFrame,
    pairing: Pairing,
    draws: int,
    rng: np.random.Generator,
    signature: Signature,
) -> Finding:
    together = pairing == "yes" or (pairing == "auto" and _all_paired(a, b))
    pairs = _pairs(a, b)
    first, second = (
        (pairs[side].to_numpy() for side in "ab") if together else (each["value"].to_numpy() for each in (a, b))
    )
    tested = (paired if together else unpaired)(first, second, draws, rng)
    columns |= {
        "a_mean": _mean_of(first),
        "b_mean": _mean_of(second),
        "test": f"{'paired' if together else 'unpaired'} permutation{', exact' if tested.exact else ''}",
        "n": str(len(pairs)) if together else f"{len(a)}+{len(b)}",
        "p": tested.p,
    }
    return Finding(columns, _estimate(tested, together, signature))


def _mean_of(values: Values) -> float:
    return float(values.mean()) if len(values) else math.nan


def _estimate(tested: Tested, together: bool, signature: Signature) -> Estimate:
    why = ""
    if math.isnan(tested.p):
        why = "fewer than two prompts are shared" if together else "a system has fewer than two documents with a value"
        return Estimate(math.nan, math.nan, math.nan, signature, why)
    return Estimate(tested.difference, tested.low, tested.high, signature, why)
