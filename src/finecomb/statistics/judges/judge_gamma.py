"""Gamma of people and of a judge: two people are drawn per text, and the judge is paired with one of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from finecomb.core.results import Finding, Signature
from finecomb.engine.seeds import seeded_generator
from finecomb.statistics.agreement.gamma.pooled_gamma import (
    measure_gamma_of_texts,
    pooled_gamma,
    undefined_gamma_reason,
)
from finecomb.statistics.agreement.gamma.text_gamma import GammaSettings
from finecomb.statistics.inference.resampling import estimate_with_interval, study_and_resample_weights
from finecomb.statistics.judges.judge_agreement import judge_and_people_findings
from finecomb.statistics.judges.text_values import PeopleAndJudges
from finecomb.statistics.selection.view import ANY_LABEL

MAX_TEXTS = 40
"""Maximum number of texts for gamma, drawn at random, because chance alignments are slow to compute."""
SAMPLES_PER_TEXT = 5
"""Number of chance samples per text."""


def judge_gamma(
    sides: PeopleAndJudges, judge: str, margin: float = 0.2, draws: int = 1000, seed: int = 0, texts: int = MAX_TEXTS
) -> list[Finding]:
    """Compute gamma of two people, of the judge and a person, and their difference on the same texts.

    Two people are drawn per text, and the judge is paired with one of them, so that both sides are pairs. Gamma is
    undefined without marks.
    """
    documents = list(sides.documents)
    if len(documents) <= texts:
        drawn_texts = documents
    else:
        places = seeded_generator(seed, "judge-gamma", "texts").permutation(len(documents))[:texts]
        drawn_texts = [documents[place] for place in sorted(places)]
    work = sides.seen.restrict_to_documents(pl.Series(drawn_texts))
    # Draw two people per text from its annotators
    readers: dict[str, list[str]] = {}
    rows = work.study.annotations.filter(pl.col("annotator").is_in(list(sides.people)))
    for document, name in rows.select("document", "annotator").unique().sort("document", "annotator").iter_rows():
        readers.setdefault(document, []).append(name)
    pairs = {}
    for text in drawn_texts:
        first, second = seeded_generator(seed, "judge-gamma", text).permutation(readers[text])[:2]
        pairs[text] = (str(first), str(second))
    annotations = work.study.annotations.select("id", "annotator", "document")
    chosen = {
        "people": _annotation_ids_of_pairs(annotations, pairs),
        "judge": _annotation_ids_of_pairs(annotations, {text: (judge, pair[0]) for text, pair in pairs.items()}),
    }
    weights = study_and_resample_weights(len(drawn_texts), draws, seed)
    settings = GammaSettings(samples=SAMPLES_PER_TEXT)
    measured = {
        who: measure_gamma_of_texts(
            replace(work, study=work.study.filter_annotations(pl.col("id").is_in(ids))), settings, seed
        )
        for who, ids in chosen.items()
    }
    values = {who: pooled_gamma(rows, weights, seed)[:, 0] for who, rows in measured.items()}
    why = next(
        (undefined_gamma_reason(rows, 0) for who, rows in measured.items() if not np.isfinite(values[who][0])), ""
    )
    fields = {"judge": judge, "people": len(sides.people), **sides.seen.fields, "who": None, "texts": len(drawn_texts)}
    fields |= {"samples": SAMPLES_PER_TEXT, "work": settings.work, "margin": margin, "draws": draws, "seed": seed}
    columns = {"level": "mark", "measure": "gamma", "label": ANY_LABEL}
    resampled = {**values, "difference": values["judge"] - values["people"]}
    estimates = {
        who: estimate_with_interval(
            float(drawn[0]),
            drawn[1:],
            Signature.from_fields(statistic="gamma", of=who, label=ANY_LABEL, **fields),
            why or "the expected disorder is 0",
        )
        for who, drawn in resampled.items()
    }
    excess = (values["judge"] - (1 - margin) * values["people"])[1:]
    is_defined = np.isfinite(excess)
    # a one-sided test of 5%
    low = float(np.quantile(excess[is_defined], 0.05)) if is_defined.any() else math.nan
    return judge_and_people_findings(columns, estimates, low)


def _annotation_ids_of_pairs(annotations: pl.DataFrame, pairs: Mapping[str, tuple[str, str]]) -> list[str]:
    return [id for id, name, document in annotations.iter_rows() if name in pairs.get(document, ())]
