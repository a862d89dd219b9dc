"""What was left out of a report's numbers: how much, why, and the study with it put back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from finecomb.core.frames import parse_json_object
from finecomb.core.study import Study
from finecomb.reporting.figures.figure_model import format_count

_MAX_REASONS = 3


def finished_annotations(study: Study) -> pl.DataFrame:
    """Annotations that somebody finished, also those that were left out later."""
    return study.annotations.filter((pl.col("status") != "draft") & (pl.col("phase") == "work"))


def count_exclusion_reasons(study: Study) -> Counter[str]:
    """Why annotations are not in the numbers, with how many of them; the person's reason goes before the text's."""
    return Counter(_exclusion_reasons(study))


def _exclusion_reasons(study: Study) -> Iterator[str]:
    people = {
        id: parse_json_object(why)["reason"] for id, why in study.annotators.select("id", "excluded").iter_rows() if why
    }
    for annotator, status, why in finished_annotations(study).select("annotator", "status", "excluded").iter_rows():
        if annotator in people or why or status == "excluded":
            yield str(people.get(annotator) or parse_json_object(why).get("reason") or "").strip() or "without a reason"


def describe_exclusions(study: Study) -> str:
    """`9 annotations of 331: 6 much too fast, 3 by request`; the most frequent reasons first."""
    reasons = count_exclusion_reasons(study).most_common()
    named, others = reasons[:_MAX_REASONS], sum(count for _, count in reasons[_MAX_REASONS:])
    words = [f"{count:,} {reason}" for reason, count in named] + ([f"{others:,} for other reasons"] if others else [])
    total = sum(count for _, count in reasons)
    return f"{format_count(total, 'annotation')} of {len(finished_annotations(study)):,}: {', '.join(words)}"


def restore_excluded(study: Study, kinds: Sequence[str]) -> Study:
    """The study as it would be if nothing of annotators of these kinds had been left out; drafts stay drafts."""
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
