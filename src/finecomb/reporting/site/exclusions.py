"""What was left out of a report's numbers: how much, why, and the study with it put back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from finecomb.core.frames import entries
from finecomb.core.study import Study
from finecomb.reporting.figures.figure_model import counted

_MOST_REASONS = 3


def handed_in(study: Study) -> pl.DataFrame:
    """Annotations that somebody finished, also those that were left out later."""
    return study.annotations.filter((pl.col("status") != "draft") & (pl.col("phase") == "work"))


def left_out_reasons(study: Study) -> Counter[str]:
    """Why annotations are not in the numbers, with how many of them; the person's reason goes before the text's."""
    return Counter(_reasons(study))


def _reasons(study: Study) -> Iterator[str]:
    people = {id: entries(why)["reason"] for id, why in study.annotators.select("id", "excluded").iter_rows() if why}
    for annotator, status, why in handed_in(study).select("annotator", "status", "excluded").iter_rows():
        if annotator in people or why or status == "excluded":
            yield str(people.get(annotator) or entries(why).get("reason") or "").strip() or "without a reason"


def reasons_in_words(study: Study) -> str:
    """`9 annotations of 331: 6 much too fast, 3 by request`; the most frequent reasons first."""
    reasons = left_out_reasons(study).most_common()
    named, others = reasons[:_MOST_REASONS], sum(count for _, count in reasons[_MOST_REASONS:])
    words = [f"{count:,} {reason}" for reason, count in named] + ([f"{others:,} for other reasons"] if others else [])
    total = sum(count for _, count in reasons)
    return f"{counted(total, 'annotation')} of {len(handed_in(study)):,}: {', '.join(words)}"


def put_back(study: Study, kinds: Sequence[str]) -> Study:
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
