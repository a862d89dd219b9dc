"""What readers went by: shares of the codes that coders gave to explanations, and how far the coders agree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Finding, Signature
from finecomb.core.protocol import Protocol
from finecomb.core.study import Study
from finecomb.statistics.comparisons.human_or_machine import alpha_estimate, unit_coincidences
from finecomb.statistics.inference.resampling import Sums, estimate_from_sums, ratio_or_nan
from finecomb.statistics.measures.study_counts import annotation_rows_with_groups
from finecomb.statistics.selection.view import Filters, View, view

QUESTION = "codes"
Per = Literal["code", "comment"]


def comment_codes(
    study: Study,
    by: Sequence[str] = (),
    protocol: str = "comments",
    draws: int = 1000,
    seed: int = 0,
    per: Per = "code",
) -> list[Finding]:
    """Shares, in %, of each code and group of codes among the codes given (Clark et al. 2021, Table 3).

    Codes in the protocol's `meta.left_out` (the group Null) do not count. An explanation may have several codes, and
    the codes of each coder count. `by` are fields of the explanation's author or text, e.g. condition. Intervals
    resample explanations. NaN where no code is left. With `per="comment"` the shares are of comments, also of those
    that only got codes left out: a comment counts once for a code, whoever gave it, so shares add up to more than 100.
    """
    coding = _all_comment_codings_view(study, protocol)
    groups, left_out = _group_by_code(coding.protocol), _excluded_codes(coding.protocol)
    about = _coding_rows(study, coding, by)
    rows = _given_code_rows(coding, groups).filter(~pl.col("code").is_in(left_out)).join(about, on="annotation")
    codes = [code for code in groups if code not in left_out]
    if rows.is_empty():
        return [Finding({"measure": "% of codes", "level": "group"}, _undefined_code_share(coding, draws, seed))]
    parts = rows.partition_by(list(by), as_dict=True) if by else {(): rows}
    findings: list[Finding] = []
    for key in sorted(parts, key=lambda key: tuple(map(str, key))):
        columns = dict(zip(by, key, strict=True))
        fields = {**coding.fields, "by": "+".join(by) or None, "left_out": "+".join(left_out) or None}
        signature = Signature.from_fields(
            statistic="share-of-codes",
            per=per if per != "code" else None,
            **fields,
            comments=parts[key]["about"].n_unique(),
            draws=draws,
            seed=seed,
        )
        comments = _coded_comments(about, columns) if per == "comment" else None
        for level, names in (("group", [*dict.fromkeys(groups[code] for code in codes)]), ("code", codes)):
            findings += _code_share_findings({"level": level, **columns}, parts[key], names, signature, comments)
    return findings


def _coded_comments(about: pl.DataFrame, columns: Mapping[str, object]) -> pl.DataFrame:
    """The comments of a group that were coded at all, each once."""
    fits = [pl.col(name).eq_missing(pl.lit(value, pl.String)) for name, value in columns.items()]
    return about.filter(*fits).select("about").unique(maintain_order=True)


def _undefined_code_share(coding: View, draws: int, seed: int) -> Estimate:
    signature = Signature.from_fields(statistic="share-of-codes", **coding.fields, comments=0, draws=draws, seed=seed)
    return Estimate(math.nan, math.nan, math.nan, signature, "no code was given, apart from those left out")


def _code_share_findings(
    columns: dict[str, object],
    rows: pl.DataFrame,
    names: Sequence[str],
    signature: Signature,
    comments: pl.DataFrame | None = None,
) -> list[Finding]:
    """Share of each name of one level; all from one table of explanations by names, of `comments` where given."""
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
    for at, name in enumerate(names):
        sums = np.stack([table[:, at], total], axis=1)
        draws, seed = int(signature["draws"]), int(signature["seed"])
        estimate = estimate_from_sums(
            sums, lambda totals: 100 * ratio_or_nan(totals[:, 0], totals[:, 1]), draws, seed, signature
        )
        columns = {"measure": measure, **columns, "name": name, noun: int(table[:, at].sum())}
        columns |= {} if comments is None else {"of": len(table)}
        findings.append(Finding(columns, estimate))
    return findings


def coder_agreement(study: Study, protocol: str = "comments", draws: int = 1000, seed: int = 0) -> list[Finding]:
    """Krippendorff's alpha of the coders on each code (given or not), and on all codes taken together.

    Intervals resample explanations. NaN where nobody gave the code, or no explanation has two coders.
    """
    coding = _all_comment_codings_view(study, protocol)
    groups = _group_by_code(coding.protocol)
    coded = coding.study.annotations.group_by("about", maintain_order=True).agg(coders=pl.len())
    m = coded["coders"].to_numpy().astype(np.float64)
    rows = _given_code_rows(coding, groups).join(
        coding.study.annotations.select("about", annotation="id"), on="annotation"
    )
    observed = {code: unit_coincidences(_code_vote_counts(coded, rows, code, m)) for code in groups}
    signature = Signature.from_fields(
        statistic="alpha", distance="nominal", unit="comment x code", **coding.fields,
        annotators=coding.study.annotations["annotator"].n_unique(), comments=len(coded), draws=draws, seed=seed,
    )  # fmt: skip
    why = "no explanation was coded by two" if (m < 2).all() else "nobody gave it, or everybody to everything"
    every = {"all codes": np.sum(list(observed.values()), axis=0), **observed}
    return [
        Finding({"measure": "alpha", "name": name}, alpha_estimate(sums, signature, why))
        for name, sums in every.items()
    ]


def _code_vote_counts(coded: pl.DataFrame, rows: pl.DataFrame, code: str, m: Sums) -> Sums:
    """How many coders of each explanation did not give the code, and did."""
    k = rows.filter(pl.col("code") == code).group_by("about").agg(k=pl.col("annotation").n_unique())
    coders = (
        coded.join(k, on="about", how="left", maintain_order="left")["k"].fill_null(0).to_numpy().astype(np.float64)
    )
    return np.stack([m - coders, coders], axis=1)


def _all_comment_codings_view(study: Study, protocol: str) -> View:
    whole = view(study, Filters(protocol=protocol))
    codings = whole.study.filter_annotations(pl.col("about").is_not_null())
    if codings.annotations.is_empty():
        raise FinecombError(f"no submitted annotation codes a comment under protocol {protocol!r}")
    return View(codings, whole.protocol, whole.categories, whole.fields)


def _group_by_code(protocol: Protocol | None) -> dict[str, str]:
    """Group of each code, in the order of the protocol."""
    for question in protocol.document_questions if protocol else ():
        if question.name == QUESTION:
            return {str(option.value): option.group or str(option.value) for option in question.options}
    raise FinecombError(f"the protocol has no document question {QUESTION!r}")


def _excluded_codes(protocol: Protocol | None) -> list[str]:
    named = (protocol.meta if protocol else {}).get("left_out", [])
    return [str(name) for name in named] if isinstance(named, list) else []


def _given_code_rows(coding: View, groups: dict[str, str]) -> pl.DataFrame:
    """One row per code given: annotation, code, group."""
    answers = coding.study.answers.filter((pl.col("of") == "annotation") & (pl.col("question") == QUESTION))
    return answers.select("annotation", code="text").with_columns(
        group=pl.col("code").replace_strict(groups, default=pl.col("code"), return_dtype=pl.String)
    )


def _coding_rows(study: Study, coding: View, by: Sequence[str]) -> pl.DataFrame:
    """One row per coding: annotation, about, and `by` of the explanation."""
    explained = annotation_rows_with_groups(study, list(by)).select("annotation", *by).rename({"annotation": "about"})
    return coding.study.annotations.select("about", annotation="id").join(explained, on="about", how="left")
