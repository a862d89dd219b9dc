"""Detectors of coherence errors after SNaC (Goyal, Li and Durrett 2022); see docs/detect/coherence.md."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from finecomb.annotators.detectors.base import (
    Detector,
    DetectorFactory,
    DetectorTraining,
    FittedDetector,
    detector_signature,
)
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


def _import_recipe_and_model(name: str) -> tuple[Any, Any]:
    """Return the training recipe and the model class of a detector.

    They are imported on demand because they load slowly.
    """
    from finecomb.annotators.detectors.coherence import embedded_detector, sentence_verdicts, training_recipes

    return {
        "coherence": (training_recipes.CoherenceTrainer, embedded_detector.CoherenceModel),
        "surprisal": (training_recipes.SurprisalTrainer, sentence_verdicts.SurprisalModel),
        "entity-grid": (training_recipes.EntityGridTrainer, sentence_verdicts.EntityGridModel),
        "synthetic": (training_recipes.SyntheticTrainer, sentence_verdicts.SyntheticModel),
        "transformer": (training_recipes.SequenceTrainer, training_recipes.SequenceScorer),
    }[name]


def _make_detector(name: str, protocol: Protocol, values: SentenceDetectorOptions) -> Detector:
    """Build a detector with the weights given in the options."""
    from finecomb.annotators.detectors.coherence.narrative import ANY_ERROR_LABEL
    from finecomb.annotators.detectors.coherence.sentence_detector import SentenceDetector
    from finecomb.annotators.detectors.model_folder import read_model_folder

    stored = read_model_folder(values.weights, name)
    scorer = _import_recipe_and_model(name)[1].from_stored(stored)
    labels = tuple(stored.settings.get("labels", ()))
    stored_thresholds = stored.settings.get("thresholds", {ANY_ERROR_LABEL: stored.settings.get("threshold", 0.5)})
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


def _make_detector_factory(name: str, title: str, options: type, real: bool = False) -> DetectorFactory:
    # A partial, because a nested function cannot be sent to other processes
    make = functools.partial(_make_detector, name)

    def fit(study: Study, gold: Sequence[Annotation], annotator: str, values: Any) -> FittedDetector:
        from finecomb.annotators.detectors.coherence.training import fit_sentence_detector

        return fit_sentence_detector(name, _import_recipe_and_model(name)[0], study, gold, values)

    training = DetectorTraining(options, fit, real)
    return DetectorFactory(name, title, _REQUIRED_INPUT, "snac", "detector", SentenceDetectorOptions, make, training)


COHERENCE = _make_detector_factory(
    "coherence",
    "coherence errors in stories, with engineered features and a small fine-tuned encoder",
    CoherenceOptions,
)
SURPRISAL = _make_detector_factory(
    "surprisal", "sentences that are unlikely under a causal language model", SurprisalOptions
)
ENTITY_GRID = _make_detector_factory(
    "entity-grid", "sentences whose entities change roles in unusual ways", EntityGridOptions, real=True
)
SYNTHETIC = _make_detector_factory(
    "synthetic", "sentences that resemble those with a damaged context", SyntheticOptions, real=True
)
TRANSFORMER = _make_detector_factory(
    "transformer", "coherence errors, with any Hugging Face model in SNaC's format", SequenceOptions
)
