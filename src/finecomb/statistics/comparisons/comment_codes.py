"""Codes of evaluators' explanations: the share of each code, and the agreement of the coders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.study import Study, annotation_rows_with_groups
from finecomb.statistics.comparisons.human_or_machine import alpha_estimate_from_coincidences, coincidences_per_unit
from finecomb.statistics.inference.resampling import estimate_from_sums, ratio_or_nan
from finecomb.statistics.selection.view import Filters, View, view

CODES_QUESTION = "codes"
ShareDenominator = Literal["code", "comment"]


def comment_code_shares(
    study: Study,
    by: Sequence[str] = (),
    protocol: str = "comments",
    draws: int = 1000,
    seed: int = 0,
    per: ShareDenominator = "code",
) -> list[Finding]:
    """Estimate the share (%) of each code and group of codes among all assigned codes (Clark et al. 2021, Table 3).

    Codes in the protocol's `meta.left_out` (the group Null) do not count. An explanation may have several codes, and
    the codes of all coders count. `by` are fields of the explanation's author or text, e.g. condition. Intervals
    resample explanations. The value is NaN if no codes remain. With `per="comment"`, the denominator is the number of
    comments, including those whose codes are all left out. A comment then counts once per code, so shares can add up to
    more than 100.
    """
    coding = _all_comment_codings_view(study, protocol)
    named = (coding.protocol.meta if coding.protocol else {}).get("left_out", [])
    groups, left_out = _group_by_code(coding.protocol), [str(name) for name in named] if isinstance(named, list) else []
    explained = annotation_rows_with_groups(study, list(by)).select("annotation", *by).rename({"annotation": "about"})
    about = coding.study.annotations.select("about", annotation="id").join(explained, on="about", how="left")
    rows = _given_code_rows(coding, groups).filter(~pl.col("code").is_in(left_out)).join(about, on="annotation")
    codes = [code for code in groups if code not in left_out]
    if rows.is_empty():
        why = "no code was given apart from those left out"
        signature = Signature.from_fields(
            statistic="share-of-codes", **coding.fields, comments=0, draws=draws, seed=seed
        )
        undefined = Estimate(math.nan, math.nan, math.nan, signature, why)
        return [Finding({"measure": "% of codes", "level": "group"}, undefined)]
    parts = rows.partition_by(list(by), as_dict=True) if by else {(): rows}
    findings: list[Finding] = []
    for key in sorted(parts, key=lambda key: tuple(map(str, key))):
        columns = dict(zip(by, key, strict=True))
        fields = {**coding.fields, "by": "+".join(by) or None, "left_out": "+".join(left_out) or None}
        signature = Signature.from_fields(
            statistic="share-of-codes", per=per if per != "code" else None, **fields,
            comments=parts[key]["about"].n_unique(), draws=draws, seed=seed,
        )  # fmt: skip
        fits = [pl.col(name).eq_missing(pl.lit(value, pl.String)) for name, value in columns.items()]
        comments = about.filter(*fits).select("about").unique(maintain_order=True) if per == "comment" else None
        for level, names in (("group", [*dict.fromkeys(groups[code] for code in codes)]), ("code", codes)):
            findings += _code_share_findings({"level": level, **columns}, parts[key], names, signature, comments)
    return findings


def _code_share_findings(
    columns: dict[str, object],
    rows: pl.DataFrame,
    names: Sequence[str],
    signature: Signature,
    comments: pl.DataFrame | None = None,
) -> list[Finding]:
    """Estimate the share of each code or group of codes, among all codes or among `comments` if given."""
    column = str(columns["level"])
    counts = rows.group_by("about", maintain_order=True).agg(
        (pl.col(column) == name).sum().alias(name) for name in names
    )
    if comments is not None:
        counts = comments.join(counts, on="about", how="left", maintain_order="left").fill_null(0)
    table = counts.drop("about").to_numpy().astype(np.float64)
    table = table if comments is None else (table > 0).astype(np.float64)
    total = table.sum(axis=1) if comments is None else np.ones(len(table))
    measure, noun = ("% of codes", "codes") if comments is None else ("% of comments", "comments")
    findings = []
    for index, name in enumerate(names):
        sums = np.stack([table[:, index], total], axis=1)
        draws, seed = int(signature["draws"]), int(signature["seed"])
        estimate = estimate_from_sums(
            sums, lambda totals: 100 * ratio_or_nan(totals[:, 0], totals[:, 1]), draws, seed, signature
        )
        columns = {"measure": measure, **columns, "name": name, noun: int(table[:, index].sum())}
        columns |= {} if comments is None else {"of": len(table)}
        findings.append(Finding(columns, estimate))
    return findings


def coder_agreement(study: Study, protocol: str = "comments", draws: int = 1000, seed: int = 0) -> list[Finding]:
    """Compute Krippendorff's alpha of the coders on each code (assigned or not), and on all codes together.

    Intervals resample explanations. The value is NaN for a code that was never assigned, or if no explanation has two
    coders.
    """
    coding = _all_comment_codings_view(study, protocol)
    groups = _group_by_code(coding.protocol)
    coded = coding.study.annotations.group_by("about", maintain_order=True).agg(coders=pl.len())
    m = coded["coders"].to_numpy().astype(np.float64)
    rows = _given_code_rows(coding, groups).join(
        coding.study.annotations.select("about", annotation="id"), on="annotation"
    )
    observed = {}
    for code in groups:
        given = rows.filter(pl.col("code") == code).group_by("about").agg(k=pl.col("annotation").n_unique())
        counts = coded.join(given, on="about", how="left", maintain_order="left")["k"].fill_null(0)
        k = counts.to_numpy().astype(np.float64)
        # Number of coders who did not assign the code, and number who did
        observed[code] = coincidences_per_unit(np.stack([m - k, k], axis=1))
    signature = Signature.from_fields(
        statistic="alpha", distance="nominal", unit="comment x code", **coding.fields,
        annotators=coding.study.annotations["annotator"].n_unique(), comments=len(coded), draws=draws, seed=seed,
    )  # fmt: skip
    why = (
        "no explanation was coded by two coders"
        if (m < 2).all()
        else "the code was assigned to none or all of the explanations"
    )
    every = {"all codes": np.sum(list(observed.values()), axis=0), **observed}
    return [
        Finding({"measure": "alpha", "name": name}, alpha_estimate_from_coincidences(sums, signature, why))
        for name, sums in every.items()
    ]


def _all_comment_codings_view(study: Study, protocol: str) -> View:
    coding_view = view(study, Filters(protocol=protocol))
    codings = coding_view.study.filter_annotations(pl.col("about").is_not_null())
    if codings.annotations.is_empty():
        raise FinecombError(
            f"no submitted annotation with protocol {protocol!r} is about a comment; "
            "ask annotators to code comments first"
        )
    return View(codings, coding_view.protocol, coding_view.categories, coding_view.fields)


def _group_by_code(protocol: Protocol | None) -> dict[str, str]:
    """Return the group of each code, in the order of the protocol."""
    for question in protocol.document_questions if protocol else ():
        if question.name == CODES_QUESTION:
            return {str(option.value): option.group or str(option.value) for option in question.options}
    name = f"protocol {protocol.id}" if protocol else "the study"
    raise FinecombError(
        f"{name} has no document question {CODES_QUESTION!r} for the codes; use a protocol with this question"
    )


def _given_code_rows(coding: View, groups: dict[str, str]) -> pl.DataFrame:
    """Return one row per assigned code, with the columns annotation, code and group."""
    answers = coding.study.answers.filter((pl.col("of") == "annotation") & (pl.col("question") == CODES_QUESTION))
    return answers.select("annotation", code="text").with_columns(
        group=pl.col("code").replace_strict(groups, default=pl.col("code"), return_dtype=pl.String)
    )
