"""A judge among people by gamma: two people drawn for each text, and the judge with one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.estimate import Finding, Signature
from finecomb.engine.seeds import seeded_generator
from finecomb.statistics.agreement.gamma.pooled_gamma import (
    measure_gamma_of_texts,
    pooled_gamma,
    undefined_gamma_reason,
)
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.inference.resampling import estimate_with_interval, study_and_resample_weights
from finecomb.statistics.judges.judge_agreement import difference_verdict
from finecomb.statistics.judges.text_values import PeopleAndJudges
from finecomb.statistics.selection.view import ANY, View

Floats = NDArray[np.float64]
MAX_TEXTS = 40
"""Texts of which gamma is computed, drawn at random where there are more: alignments of chance take long."""
SAMPLES_PER_TEXT = 5
"""Samples of chance for each text."""


def judge_gamma(
    sides: PeopleAndJudges, judge: str, margin: float = 0.1, draws: int = 1000, seed: int = 0, texts: int = MAX_TEXTS
) -> list[Finding]:
    """Gamma of two people, of judge and person, and their difference, over the same texts.

    On every text two of its people are drawn, and one of them for the judge, so that both sides are pairs. Undefined
    where nobody marked anything.
    """
    drawn = _draw_texts(sides, texts, seed)
    work = sides.seen.restrict_to_documents(pl.Series(drawn))
    pairs = _draw_annotator_pairs(work, sides.people, drawn, seed)
    annotations = work.study.annotations.select("id", "annotator", "document")
    chosen = {
        "people": _annotation_ids_of_pairs(annotations, pairs),
        "judge": _annotation_ids_of_pairs(annotations, {text: (judge, pair[0]) for text, pair in pairs.items()}),
    }
    weights = study_and_resample_weights(len(drawn), draws, seed)
    settings = GammaSettings(samples=SAMPLES_PER_TEXT)
    measured = {
        who: measure_gamma_of_texts(
            replace(work, study=work.study.filter_annotations(pl.col("id").is_in(ids))), settings, seed
        )
        for who, ids in chosen.items()
    }
    values = {who: pooled_gamma(rows, weights, seed)[:, 0] for who, rows in measured.items()}
    values["difference"] = values["judge"] - values["people"]
    why = next(
        (undefined_gamma_reason(rows, 0) for who, rows in measured.items() if not np.isfinite(values[who][0])), ""
    )
    fields = {"judge": judge, "people": len(sides.people), **sides.seen.fields, "who": None, "texts": len(drawn)}
    fields |= {"samples": SAMPLES_PER_TEXT, "work": settings.work, "margin": margin, "draws": draws, "seed": seed}
    return _gamma_findings(values, fields, why or "chance has no disorder", margin)


def _draw_texts(sides: PeopleAndJudges, max_texts: int, seed: int) -> list[str]:
    documents = list(sides.documents)
    if len(documents) <= max_texts:
        return documents
    places = seeded_generator(seed, "judge-gamma", "texts").permutation(len(documents))[:max_texts]
    return [documents[place] for place in sorted(places)]


def _draw_annotator_pairs(
    work: View, people: tuple[str, ...], texts: list[str], seed: int
) -> dict[str, tuple[str, str]]:
    """Two people who read each text."""
    readers: dict[str, list[str]] = {}
    rows = work.study.annotations.filter(pl.col("annotator").is_in(list(people)))
    for document, name in rows.select("document", "annotator").unique().sort("document", "annotator").iter_rows():
        readers.setdefault(document, []).append(name)
    pairs = {}
    for text in texts:
        first, second = seeded_generator(seed, "judge-gamma", text).permutation(readers[text])[:2]
        pairs[text] = (str(first), str(second))
    return pairs


def _annotation_ids_of_pairs(annotations: pl.DataFrame, pairs: Mapping[str, tuple[str, str]]) -> list[str]:
    return [id for id, name, document in annotations.iter_rows() if name in pairs.get(document, ())]


def _gamma_findings(
    values: Mapping[str, Floats], fields: Mapping[str, object], why: str, margin: float
) -> list[Finding]:
    columns = {"level": "mark", "measure": "gamma", "label": ANY}
    estimates = {
        who: estimate_with_interval(
            float(resampled[0]),
            resampled[1:],
            Signature.from_fields(statistic="gamma", of=who, label=ANY, **fields),
            why,
        )
        for who, resampled in values.items()
    }
    verdict = difference_verdict(estimates, False, margin)
    return [
        *(Finding({**columns, "who": who}, estimates[who]) for who in ("people", "judge")),
        Finding({**columns, "who": "difference", "verdict": verdict}, estimates["difference"]),
    ]
