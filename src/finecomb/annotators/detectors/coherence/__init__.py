"""Detectors of coherence errors after SNaC (Goyal, Li and Durrett 2022); docs/detect/coherence.md describes them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from finecomb.annotators.detectors.base import Detector, DetectorTraining, Factory, FittedDetector, detector_signature
from finecomb.annotators.detectors.coherence.options import (
    CoherenceOptions,
    EntityGridOptions,
    SentenceDetectorOptions,
    SequenceOptions,
    SurprisalOptions,
    SyntheticOptions,
)
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation
from finecomb.core.study import Study

_REQUIRED_INPUT = "a text in English"


def _recipe_and_model(name: str) -> tuple[Any, Any]:
    """The recipe and the stored model's class of a detector; what they import is heavy, so not before it is needed."""
    from finecomb.annotators.detectors.coherence import embedded_detector, sentence_verdicts, training_recipes

    return {
        "coherence": (training_recipes.CoherenceRecipe, embedded_detector.CoherenceModel),
        "surprisal": (training_recipes.SurprisalRecipe, sentence_verdicts.SurprisalModel),
        "entity-grid": (training_recipes.EntityGridRecipe, sentence_verdicts.EntityGridModel),
        "synthetic": (training_recipes.SyntheticRecipe, sentence_verdicts.SyntheticModel),
        "transformer": (training_recipes.SequenceRecipe, training_recipes.SequenceScorer),
    }[name]


def _make_training(name: str, options: type, real: bool = False) -> DetectorTraining:
    def fit(study: Study, gold: Sequence[Annotation], annotator: str, values: Any) -> FittedDetector:
        from finecomb.annotators.detectors.coherence.training import fit_sentence_detector

        return fit_sentence_detector(name, _recipe_and_model(name)[0], study, gold, values)

    return DetectorTraining(options, fit, real)


def _make_detector(name: str, protocol: Protocol, values: SentenceDetectorOptions) -> Detector:
    """The detector of that name with the weights that the options name."""
    from finecomb.annotators.detectors.coherence.narrative import ANY_ERROR
    from finecomb.annotators.detectors.coherence.sentence_detector import SentenceDetector
    from finecomb.annotators.detectors.model_folder import read_model_folder

    stored = read_model_folder(values.weights, name)
    scorer = _recipe_and_model(name)[1].from_stored(stored)
    labels = tuple(stored.settings.get("labels", ()))
    stored_thresholds = stored.settings.get("thresholds", {ANY_ERROR: stored.settings.get("threshold", 0.5)})
    chosen = stored_thresholds if values.threshold is None else dict.fromkeys(stored_thresholds, values.threshold)
    signature = detector_signature(name, protocol, values, fitted=stored.card.signature.replace("|", ";"))
    return SentenceDetector(
        name,
        protocol,
        scorer,
        labels,
        chosen,
        signature,
        fitted_texts=stored.card.fitted_texts,
        segments=stored.settings.get("segments", True),
    )


def _make_factory(name: str, title: str, options: type, real: bool = False) -> Factory:
    make = functools.partial(_make_detector, name)  # unlike a function in here it can be sent to other processes
    training = _make_training(name, options, real)
    return Factory(name, title, _REQUIRED_INPUT, "snac", "detector", SentenceDetectorOptions, make, training)


SNAC_DETECTORS = (
    _make_factory(
        "coherence", "coherence errors of stories, by features and a small fine-tuned encoder", CoherenceOptions
    ),
    _make_factory("surprisal", "sentences that a causal language model finds unlikely", SurprisalOptions),
    _make_factory("entity-grid", "sentences whose entities change roles in unusual ways", EntityGridOptions, real=True),
    _make_factory(
        "synthetic", "sentences like those whose context was damaged on purpose", SyntheticOptions, real=True
    ),
    _make_factory("transformer", "coherence errors by any Hugging Face model, in SNaC's format", SequenceOptions),
)
