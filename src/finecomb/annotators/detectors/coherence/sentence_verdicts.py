"""Detectors that only judge whether a sentence is coherent: surprisal, entity grids and synthetic errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finecomb.annotators.detectors.boosting import BoostedTrees, BoostingSettings, fit_boosted_trees
from finecomb.annotators.detectors.coherence.entity_grid import EntityGrid, fit_entity_grid
from finecomb.annotators.detectors.coherence.features import (
    POSITIONAL_FEATURES,
    extract_sentence_facts,
    feature_matrix,
    last_sentence_features,
    sentence_features,
)
from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence, parse_narratives
from finecomb.annotators.detectors.coherence.narrative import ANY_ERROR_LABEL, Narrative
from finecomb.annotators.detectors.coherence.sentence_scores import (
    Bools,
    Floats,
    TextScores,
    best_f1_threshold,
    build_sentence_only_scores,
    fit_mixture,
    mixture_probabilities,
)
from finecomb.annotators.detectors.coherence.surprisal import SurprisalScorer, TokenSurprisals, sentence_surprisals
from finecomb.annotators.detectors.coherence.synthetic_errors import (
    NegativeKind,
    build_example_narrative,
    build_synthetic_examples,
)
from finecomb.annotators.detectors.model_folder import DetectorCard, StoredModel
from finecomb.core.errors import ParameterError, param

_MIN_SLOPE = 0.01
"""Minimum increase of the log odds per standard deviation of a score."""


@dataclass(frozen=True)
class ScoreCalibration:
    """A calibration of raw scores (higher is less coherent) to probabilities, with a decision threshold."""

    mixture: Floats
    """Slope and constant of the log odds."""
    threshold: float

    @classmethod
    def from_scores(cls, scores: Floats, truth: Bools) -> ScoreCalibration:
        """Fit the calibration to the scores of dev sentences, and select the threshold with the highest F1.

        The slope is always positive, because a higher score means less coherence by construction.
        """
        scale = float(scores.std()) or 1.0
        centred = (scores - scores.mean()) / scale
        slope, constant = fit_mixture(centred[:, None], truth, ridge=1e-3)
        slope = max(float(slope), _MIN_SLOPE)
        mixture = np.array([slope / scale, float(constant) - slope * float(scores.mean()) / scale])
        return cls(mixture, best_f1_threshold(mixture_probabilities(scores[:, None], mixture), truth))

    def __call__(self, scores: Floats) -> TextScores:
        """Return the calibrated scores of a text's sentences."""
        return build_sentence_only_scores(mixture_probabilities(scores.reshape(-1, 1), self.mixture))

    @property
    def thresholds(self) -> dict[str, float]:
        """Thresholds by label. The only label is `any`."""
        return {ANY_ERROR_LABEL: self.threshold}

    def to_settings(self) -> dict[str, Any]:
        """Return the calibration as JSON values for storage."""
        return {"mixture": self.mixture.tolist(), "threshold": self.threshold}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> ScoreCalibration:
        """Rebuild the calibration from stored values."""
        return cls(np.array(settings["mixture"], dtype=np.float64), float(settings["threshold"]))


def _incoherence_targets(texts: Sequence[Narrative]) -> Bools:
    return np.concatenate([text.target_matrix(())[:, -1] for text in texts])


@dataclass(frozen=True)
class SurprisalModel:
    """A detector of sentences that are unlikely under a language model."""

    model: str
    whole: bool
    """True if a sentence's score is the sum over its tokens instead of the mean."""
    calibration: ScoreCalibration

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Return the scores of each text."""
        return self.score_surprisals(texts, SurprisalScorer.from_pretrained(self.model)(texts))

    def score_surprisals(self, texts: Sequence[Narrative], surprisals: Sequence[TokenSurprisals]) -> list[TextScores]:
        """Return the scores of texts with known surprisals."""
        pairs = zip(texts, surprisals, strict=True)
        return [self.calibration(sentence_surprisals(text, nats, self.whole)) for text, nats in pairs]

    def to_stored(self, card: DetectorCard) -> StoredModel:
        """Convert the model to its stored form."""
        return StoredModel(card, {"model": self.model, "whole": self.whole, **self.calibration.to_settings()})

    @classmethod
    def from_stored(cls, stored: StoredModel) -> SurprisalModel:
        """Rebuild the model from its stored form."""
        settings = stored.settings
        return cls(settings["model"], settings["whole"], ScoreCalibration.from_settings(settings))


def fit_surprisal(
    model: str, whole: bool, dev: Sequence[Narrative], surprisals: Sequence[TokenSurprisals]
) -> SurprisalModel:
    """Fit the calibration and the threshold of the surprisal detector to dev texts."""
    scores = [sentence_surprisals(text, nats, whole) for text, nats in zip(dev, surprisals, strict=True)]
    return SurprisalModel(model, whole, ScoreCalibration.from_scores(np.concatenate(scores), _incoherence_targets(dev)))


@dataclass(frozen=True)
class EntityGridModel:
    """A detector of sentences with unusual transitions between the roles of entities."""

    grid: EntityGrid
    calibration: ScoreCalibration

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Return the scores of each text."""
        return self.score_parses(list(parse_narratives(texts, "entity-grid")))

    def score_parses(self, texts: Sequence[Sequence[ParsedSentence]]) -> list[TextScores]:
        """Return the scores of parsed texts."""
        return [self.calibration(-self.grid(sentences)) for sentences in texts]

    def to_stored(self, card: DetectorCard) -> StoredModel:
        """Convert the model to its stored form."""
        return StoredModel(card, self.calibration.to_settings(), {"transitions": self.grid.transitions})

    @classmethod
    def from_stored(cls, stored: StoredModel) -> EntityGridModel:
        """Rebuild the model from its stored form."""
        return cls(EntityGrid(stored.arrays["transitions"]), ScoreCalibration.from_settings(stored.settings))


def fit_entity_grid_model(
    real: Sequence[Sequence[ParsedSentence]],
    dev: Sequence[Narrative],
    parses: Sequence[Sequence[ParsedSentence]],
) -> EntityGridModel:
    """Fit the role transitions to coherent texts, and the calibration and the threshold to dev texts."""
    grid = fit_entity_grid(real)
    scores = np.concatenate([-grid(sentences) for sentences in parses])
    return EntityGridModel(grid, ScoreCalibration.from_scores(scores, _incoherence_targets(dev)))


@dataclass(frozen=True)
class SyntheticModel:
    """A detector of sentences that resemble synthetic examples with a damaged context."""

    negatives: NegativeKind
    columns: tuple[str, ...]
    trees: BoostedTrees
    calibration: ScoreCalibration

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Return the scores of each text."""
        pairs = zip(texts, parse_narratives(texts, "synthetic"), strict=True)
        return self.score_features([sentence_features(text, sentences) for text, sentences in pairs])

    def score_features(self, features: Sequence[Sequence[Mapping[str, float]]]) -> list[TextScores]:
        """Return the scores of texts with known features."""
        return [self.calibration(self.trees(feature_matrix(rows, self.columns))) for rows in features]

    def to_stored(self, card: DetectorCard) -> StoredModel:
        """Convert the model to its stored form."""
        settings = {"negatives": self.negatives, "columns": list(self.columns), **self.calibration.to_settings()}
        return StoredModel(card, settings, self.trees.to_arrays())

    @classmethod
    def from_stored(cls, stored: StoredModel) -> SyntheticModel:
        """Rebuild the model from its stored form."""
        settings = stored.settings
        trees = BoostedTrees.from_arrays(stored.arrays)
        return cls(settings["negatives"], tuple(settings["columns"]), trees, ScoreCalibration.from_settings(settings))


@dataclass(frozen=True)
class SyntheticRows:
    """Features of synthetic examples, with the damaged ones flagged."""

    rows: list[dict[str, float]]
    damaged: Bools


def build_synthetic_rows(
    texts: Sequence[Narrative], parses: Sequence[Sequence[ParsedSentence]], negatives: NegativeKind, seed: int
) -> SyntheticRows:
    """Build features of synthetic examples, without sentence positions, which would reveal the damage."""
    by_text = {id(text): list(map(extract_sentence_facts, rows)) for text, rows in zip(texts, parses, strict=True)}
    examples = build_synthetic_examples(texts, negatives, np.random.default_rng(seed))
    rows = []
    for text, example in examples:
        short = build_example_narrative(text, example, len(example.context))
        facts = [by_text[id(text)][index] for index in (*example.context, example.sentence)]
        features = last_sentence_features(short, facts)
        rows.append({name: value for name, value in features.items() if name not in POSITIONAL_FEATURES})
    return SyntheticRows(rows, np.array([not example.coherent for _, example in examples], dtype=bool))


def fit_synthetic(
    real: SyntheticRows,
    negatives: NegativeKind,
    dev: Sequence[Narrative],
    features: Sequence[Sequence[Mapping[str, float]]],
    seed: int,
) -> SyntheticModel:
    """Fit trees to synthetic examples, and the calibration and the threshold to annotated dev texts."""
    if not real.rows:
        raise ParameterError(
            f"synthetic: no training example could be created; provide texts with several sentences, for example with"
            f" {param('real')}",
            parameter="real",
        )
    columns = tuple(real.rows[0])
    trees = fit_boosted_trees(feature_matrix(real.rows, columns), real.damaged, BoostingSettings(seed=seed))
    scores = np.concatenate([trees(feature_matrix(rows, columns)) for rows in features])
    return SyntheticModel(negatives, columns, trees, ScoreCalibration.from_scores(scores, _incoherence_targets(dev)))
