"""CPU seconds per 1,000 sentences of the default coherence detector, for fitting and for marking.

Uses the first texts of SNaC with 500 sentences in total, or FINECOMB_SENTENCES. Writes the table of
docs/detect/coherence.md. Requires FINECOMB_DATA.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks._docs import markdown_table, write_table
from benchmarks.detect_snac import read_narratives
from finecomb.annotators.detectors.boosting import BoostingSettings
from finecomb.annotators.detectors.coherence.embedded_detector import (
    CoherenceModel,
    CoherenceSettings,
    fit_coherence_model,
    prepare_texts,
)
from finecomb.annotators.detectors.coherence.narrative import LABELS, Narrative, train_dev_split
from finecomb.annotators.detectors.coherence.options import DEV_SHARE
from finecomb.annotators.detectors.coherence.tagger import TaggerSettings
from finecomb.annotators.model_loading import DEFAULT_ENCODER, import_library

PAGE = "detect/coherence.md"


def main() -> None:
    place = os.environ.get("FINECOMB_DATA")
    if not place:
        sys.exit("set FINECOMB_DATA to the folder with the released data")
    import_library("torch", "benchmark").set_num_threads(1)
    texts = take_first_texts(read_narratives(Path(place)), int(os.environ.get("FINECOMB_SENTENCES", "500")))
    prepare_texts(texts[:1])  # load the parser before timing
    rows = [
        ["`--encoder none`", *seconds_per_1000_sentences(texts, None)],
        [
            f"with its encoder ({DEFAULT_ENCODER}, three rounds)",
            *seconds_per_1000_sentences(texts, TaggerSettings(DEFAULT_ENCODER)),
        ],
    ]
    heads = ["`coherence`", "fitted, seconds per 1,000 sentences", "marked, seconds per 1,000 sentences"]
    write_table(PAGE, "speed", markdown_table(heads, rows))


def take_first_texts(texts: list[Narrative], sentences: int) -> list[Narrative]:
    """Return the first texts that have at least the given number of sentences together."""
    counts = np.cumsum([len(text.sentences) for text in texts])
    return texts[: int(np.searchsorted(counts, sentences)) + 1]


def seconds_per_1000_sentences(texts: list[Narrative], tagger: TaggerSettings | None) -> list[str]:
    """Return CPU seconds per 1,000 sentences of fitting and of marking, both with grammar and features."""
    split = train_dev_split(texts, DEV_SHARE, np.random.default_rng(0))
    settings = CoherenceSettings(LABELS, tagger, BoostingSettings())
    models: list[CoherenceModel] = []
    fitting = _processor_seconds(lambda: models.append(fit_coherence_model(prepare_texts(texts), split, settings)))
    marking = _processor_seconds(lambda: models[0](texts))
    sentences = sum(len(text.sentences) for text in texts)
    return [f"{seconds / sentences * 1000:.0f}" for seconds in (fitting, marking)]


def _processor_seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
