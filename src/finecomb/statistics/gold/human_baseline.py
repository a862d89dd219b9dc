"""One person as the yardstick of judges: how the marks of a single reader fare against the other readers' gold.

A judge need not be right always, only about as often as a person. So a person is put in the judge's place: on each
text one reader is taken out, the others are merged into gold, and the one is scored against it. That is done for every
reader of a text in turn, and the sums are added up before dividing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import polars as pl

from finecomb.core.estimate import Signature
from finecomb.core.study import Study
from finecomb.statistics.gold.gold_merge import gold
from finecomb.statistics.gold.scores import Match, Score, bootstrap_score_ratios, build_score, score
from finecomb.statistics.inference.resampling import Floats
from finecomb.statistics.selection.view import ANY, View

SINGLE_ANNOTATOR = "one person"
_MAX_MERGED_TEXTS = 2000  # that are merged again with one reader less; of a larger study fewer readers take their turn


def single_annotator_baseline(
    view: View, texts: Collection[str], standard: Study | None = None, match: Match = "optimal", draws: int = 1000,
    seed: int = 0,
) -> Score | None:  # fmt: skip
    """Recall and precision of one person on `texts` against the others, or against a `standard` where one is given.

    None where no text has three readers, since gold of the others needs two. Intervals resample texts. In a study of
    many texts not everybody takes a turn on each of them; who does moves on from text to text.
    """
    people = view.restrict_to_documents(pl.Series("document", list(texts), pl.String))
    turns = _leave_one_out_turns(people.study, 1 if standard else 3)
    sums: dict[str, Floats] = {}
    for number in range(_turn_count(turns)):
        person = people.study.filter_annotations(pl.col("id").is_in(turns.filter(turn=number)["id"].implode()))
        others = people.study.filter_annotations(~pl.col("id").is_in(person.annotations["id"].implode()))
        truth = standard or gold(replace(people, study=others)).study
        for document, amounts in _score_sums_by_document(truth, person, match).items():
            sums[document] = sums.get(document, 0) + amounts
    if not sums:
        return None
    table = np.stack(list(sums.values()))[None]  # (1, documents, 4)
    signature = Signature.from_fields(
        statistic=SINGLE_ANNOTATOR, against="gold" if standard else "the other people", match=match, **people.fields,
        turns=_turn_count(turns), documents=len(sums), draws=draws, seed=seed,
    )  # fmt: skip
    columns = {"judge": SINGLE_ANNOTATOR, "label": ANY, "match": match}
    return build_score(table[0], bootstrap_score_ratios(table, draws, seed)[0], columns, signature)


def _leave_one_out_turns(study: Study, min_annotators: int) -> pl.DataFrame:
    """Which reader of each text takes which turn: id of the annotation, document, turn; texts with `least` readers."""
    rows = study.annotations.select("id", "document")
    place = pl.col("document").rank("dense") + pl.int_range(pl.len()).over("document")
    turn = (place % pl.len().over("document")).alias("turn")
    return rows.with_columns(turn).filter(pl.len().over("document") >= min_annotators)


def _turn_count(turns: pl.DataFrame) -> int:
    texts = max(1, turns["document"].n_unique())
    longest = turns.group_by("document").len()["len"].max() if len(turns) else 0
    return min(int(str(longest)), max(1, _MAX_MERGED_TEXTS // texts))


def _score_sums_by_document(truth: Study, person: Study, match: Match) -> dict[str, Floats]:
    """Gold, predicted, matched and right marks of each text that both have read."""
    named = pl.lit(SINGLE_ANNOTATOR).alias("annotator")
    annotator = person.annotators.head(1).with_columns(id=named)
    judge = replace(
        person,
        annotators=annotator,
        annotations=person.annotations.with_columns(named),
        marks=person.marks.with_columns(named),
        units=person.units.with_columns(named),
    )
    comparison = score(truth, judge, match, by=(), judges=(SINGLE_ANNOTATOR,), unread="leave-out", draws=0).judged[0]
    return dict(zip(comparison.judge.documents, comparison.sums[0], strict=True))
