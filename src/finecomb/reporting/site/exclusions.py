"""Annotations excluded from the numbers of a report: counts, reasons, and the study with them included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from finecomb.core.frames import parse_json_object
from finecomb.core.study import Study
from finecomb.reporting.figures.figure_model import format_count_with_noun

_MAX_REASONS = 3


def finished_annotations(study: Study) -> pl.DataFrame:
    """Return submitted annotations, including those excluded later."""
    return study.annotations.filter((pl.col("status") != "draft") & (pl.col("phase") == "work"))


def count_exclusion_reasons(study: Study) -> Counter[str]:
    """Count excluded annotations by reason; the reason for excluding the annotator, if any, takes precedence."""
    people = {
        id: parse_json_object(why)["reason"] for id, why in study.annotators.select("id", "excluded").iter_rows() if why
    }
    rows = finished_annotations(study).select("annotator", "status", "excluded").iter_rows()
    return Counter(
        str(people.get(annotator) or parse_json_object(why).get("reason") or "").strip() or "without a reason"
        for annotator, status, why in rows
        if annotator in people or why or status == "excluded"
    )


def describe_exclusions(study: Study) -> str:
    """Summarise exclusions, most frequent reasons first: `9 of 331 annotations: 6 much too fast, 3 by request`."""
    reasons = count_exclusion_reasons(study).most_common()
    named, others = reasons[:_MAX_REASONS], sum(count for _, count in reasons[_MAX_REASONS:])
    words = [f"{count:,} {reason}" for reason, count in named] + ([f"{others:,} for other reasons"] if others else [])
    total = sum(count for _, count in reasons)
    return f"{total:,} of {format_count_with_noun(len(finished_annotations(study)), 'annotation')}: {', '.join(words)}"


def restore_excluded(study: Study, kinds: Sequence[str]) -> Study:
    """Return the study with all excluded work of annotators of these kinds included; drafts remain drafts."""
    chosen = study.annotators.filter(pl.col("kind").is_in(list(kinds)))["id"]
    none = pl.lit(None, pl.String)
    is_chosen = pl.col("annotator").is_in(chosen.implode()) & (pl.col("status") != "draft")
    return replace(
        study,
        annotators=study.annotators.with_columns(
            excluded=pl.when(pl.col("id").is_in(chosen.implode())).then(none).otherwise(pl.col("excluded"))
        ),
        annotations=study.annotations.with_columns(
            status=pl.when(is_chosen).then(pl.lit("submitted")).otherwise(pl.col("status")),
            excluded=pl.when(is_chosen).then(none).otherwise(pl.col("excluded")),
        ),
    )
