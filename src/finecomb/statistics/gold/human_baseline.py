"""Human baseline for judges: leave-one-out scores of single annotators against the gold standard of the others.

A judge does not have to be perfect, only about as good as a person. On each text, one annotator is left out, the others
are merged into gold, and the omitted annotator is scored against this gold. All annotators of a text are left out in
turn, and sums are pooled (micro-averaged).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import polars as pl

from finecomb.core.results import Signature
from finecomb.core.study import Study
from finecomb.statistics.gold.gold_merge import merge_into_gold
from finecomb.statistics.gold.scores import (
    MatchName,
    Score,
    build_score,
    score_judges_against_gold,
)
from finecomb.statistics.inference.resampling import Floats
from finecomb.statistics.selection.view import ANY_LABEL, View

SINGLE_ANNOTATOR_NAME = "one person"
_MAX_MERGED_TEXTS = (
    2000  # texts merged again without one annotator; in larger studies, fewer annotators per text are left out in turn
)


def single_annotator_baseline(
    view: View, texts: Collection[str], standard: Study | None = None, match: MatchName = "optimal", draws: int = 1000,
    seed: int = 0,
) -> Score | None:  # fmt: skip
    """Compute recall and precision of single annotators on `texts` against the other annotators or `standard`.

    Return None if no text has three annotators, since the gold of the others needs two annotators. With a `standard`,
    one annotator is enough. Intervals resample texts. In a large study, not all annotators of a text are left out in
    turn, and the selection rotates from text to text.
    """
    people = view.restrict_to_documents(pl.Series("document", list(texts), pl.String))
    rows = people.study.annotations.select("id", "document")
    # The offset by text rotates the order, so that a limited number of turns still uses different annotators.
    place = pl.col("document").rank("dense") + pl.int_range(pl.len()).over("document")
    turn = (place % pl.len().over("document")).alias("turn")
    turns = rows.with_columns(turn).filter(pl.len().over("document") >= (1 if standard else 3))
    sums: dict[str, Floats] = {}
    for number in range(_turn_count(turns)):
        person = people.study.filter_annotations(pl.col("id").is_in(turns.filter(turn=number)["id"].implode()))
        others = people.study.filter_annotations(~pl.col("id").is_in(person.annotations["id"].implode()))
        truth = standard or merge_into_gold(replace(people, study=others)).study
        for document, amounts in _score_sums_by_document(truth, person, match).items():
            sums[document] = sums.get(document, 0) + amounts
    if not sums:
        return None
    table = np.stack(list(sums.values()))[None]  # (1, documents, 4)
    signature = Signature.from_fields(
        statistic=SINGLE_ANNOTATOR_NAME,
        against="gold" if standard else "the other people",
        match=match,
        **people.fields,
        turns=_turn_count(turns),
        documents=len(sums),
        draws=draws,
        seed=seed,
    )
    columns = {"judge": SINGLE_ANNOTATOR_NAME, "label": ANY_LABEL, "match": match}
    return build_score(table[0], columns, signature)


def _turn_count(turns: pl.DataFrame) -> int:
    texts = max(1, turns["document"].n_unique())
    longest = turns.group_by("document").len()["len"].max() if len(turns) else 0
    return min(int(str(longest)), max(1, _MAX_MERGED_TEXTS // texts))


def _score_sums_by_document(truth: Study, person: Study, match: MatchName) -> dict[str, Floats]:
    """Return the counts of gold, predicted, matched and right marks for each text annotated by both sides."""
    # One common name makes the annotators of different texts a single judge.
    named = pl.lit(SINGLE_ANNOTATOR_NAME).alias("annotator")
    annotator = person.annotators.head(1).with_columns(id=named)
    judge = replace(
        person,
        annotators=annotator,
        annotations=person.annotations.with_columns(named),
        marks=person.marks.with_columns(named),
        units=person.units.with_columns(named),
    )
    comparison = score_judges_against_gold(
        truth, judge, match, by=(), judges=(SINGLE_ANNOTATOR_NAME,), unread="leave-out", draws=0
    ).judged[0]
    return dict(zip(comparison.judge.documents, comparison.sums[0], strict=True))
