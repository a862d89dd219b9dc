"""Detectors that only say whether a sentence is coherent: surprisal, entity grid, and classifiers of made-up errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finecomb.annotators.detectors.boosting import BoostedTrees, BoostingSettings, fit_trees
from finecomb.annotators.detectors.coherence.entity_grid import EntityGrid, fit_entity_grid
from finecomb.annotators.detectors.coherence.features import (
    POSITIONAL,
    SentenceFacts,
    extract_sentence_facts,
    feature_matrix,
    last_sentence_features,
    sentence_features,
)
from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence, parse_narratives
from finecomb.annotators.detectors.coherence.narrative import ANY_ERROR, Narrative
from finecomb.annotators.detectors.coherence.sentence_scores import (
    Bools,
    Floats,
    TextScores,
    best_threshold,
    fit_mixture,
    mix_log_odds,
    sentence_only_scores,
)
from finecomb.annotators.detectors.coherence.surprisal import SurprisalScorer, TokenSurprisals, sentence_surprisals
from finecomb.annotators.detectors.coherence.synthetic_errors import (
    NegativeKind,
    SyntheticExample,
    example_text,
    synthetic_examples,
)
from finecomb.annotators.detectors.model_folder import DetectorCard, StoredModel
from finecomb.core.errors import ParameterError, param

_MIN_SLOPE = 0.01
"""The least that one standard deviation of a score adds to the log odds."""


@dataclass(frozen=True)
class ScoreCalibration:
    """How a raw score, higher for a worse sentence, becomes a chance; and from which chance on a sentence is marked."""

    mixture: Floats
    """Slope and constant of the log odds."""
    threshold: float

    @classmethod
    def from_scores(cls, scores: Floats, truth: Bools) -> ScoreCalibration:
        """From scores of dev sentences: the threshold with the highest F1 there.

        A higher score never means a lower chance, whatever dev says: that is what the score was made for.
        """
        scale = float(scores.std()) or 1.0
        centred = (scores - scores.mean()) / scale
        slope, constant = fit_mixture(centred[:, None], truth, ridge=1e-3)
        slope = max(float(slope), _MIN_SLOPE)
        mixture = np.array([slope / scale, float(constant) - slope * float(scores.mean()) / scale])
        return cls(mixture, best_threshold(mix_log_odds(scores[:, None], mixture), truth))

    def __call__(self, scores: Floats) -> TextScores:
        """Chances of the sentences of a text."""
        return sentence_only_scores(mix_log_odds(scores.reshape(-1, 1), self.mixture))

    @property
    def thresholds(self) -> dict[str, float]:
        """By label; the only one is `any`."""
        return {ANY_ERROR: self.threshold}

    def to_settings(self) -> dict[str, Any]:
        """For storage."""
        return {"mixture": self.mixture.tolist(), "threshold": self.threshold}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> ScoreCalibration:
        """From storage."""
        return cls(np.array(settings["mixture"], dtype=np.float64), float(settings["threshold"]))


def _incoherence_targets(texts: Sequence[Narrative]) -> Bools:
    return np.concatenate([text.targets(())[:, -1] for text in texts])


@dataclass(frozen=True)
class SurprisalModel:
    """Marks sentences that a language model finds unlikely."""

    model: str
    whole: bool
    """Whether a sentence's score is the sum over its tokens, and not the mean."""
    calibration: ScoreCalibration

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Scores of every text."""
        return self.score_surprisals(texts, SurprisalScorer.from_pretrained(self.model)(texts))

    def score_surprisals(self, texts: Sequence[Narrative], surprisals: Sequence[TokenSurprisals]) -> list[TextScores]:
        """Scores of texts whose surprisals are known."""
        pairs = zip(texts, surprisals, strict=True)
        return [self.calibration(sentence_surprisals(text, nats, self.whole)) for text, nats in pairs]

    def to_stored(self, card: DetectorCard) -> StoredModel:
        """For a folder."""
        return StoredModel(card, {"model": self.model, "whole": self.whole, **self.calibration.to_settings()})

    @classmethod
    def from_stored(cls, stored: StoredModel) -> SurprisalModel:
        """From a folder."""
        settings = stored.settings
        return cls(settings["model"], settings["whole"], ScoreCalibration.from_settings(settings))


def fit_surprisal(
    model: str, whole: bool, dev: Sequence[Narrative], surprisals: Sequence[TokenSurprisals]
) -> SurprisalModel:
    """The threshold from dev texts; nothing else is learnt."""
    scores = [sentence_surprisals(text, nats, whole) for text, nats in zip(dev, surprisals, strict=True)]
    return SurprisalModel(model, whole, ScoreCalibration.from_scores(np.concatenate(scores), _incoherence_targets(dev)))


@dataclass(frozen=True)
class EntityGridModel:
    """Marks sentences whose entities change roles in unusual ways."""

    grid: EntityGrid
    calibration: ScoreCalibration

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Scores of every text."""
        return self.score_parses(list(parse_narratives(texts, "entity-grid")))

    def score_parses(self, texts: Sequence[Sequence[ParsedSentence]]) -> list[TextScores]:
        """Scores of texts that have been parsed."""
        return [self.calibration(-self.grid(sentences)) for sentences in texts]

    def to_stored(self, card: DetectorCard) -> StoredModel:
        """For a folder."""
        return StoredModel(card, self.calibration.to_settings(), {"transitions": self.grid.transitions})

    @classmethod
    def from_stored(cls, stored: StoredModel) -> EntityGridModel:
        """From a folder."""
        return cls(EntityGrid(stored.arrays["transitions"]), ScoreCalibration.from_settings(stored.settings))


def fit_entity_grid_model(
    real: Sequence[Sequence[ParsedSentence]],
    dev: Sequence[Narrative],
    parses: Sequence[Sequence[ParsedSentence]],
) -> EntityGridModel:
    """Transitions from real texts, the threshold from dev texts."""
    grid = fit_entity_grid(real)
    scores = np.concatenate([-grid(sentences) for sentences in parses])
    return EntityGridModel(grid, ScoreCalibration.from_scores(scores, _incoherence_targets(dev)))


@dataclass(frozen=True)
class SyntheticModel:
    """Marks sentences that look like those whose context was damaged on purpose."""

    negatives: NegativeKind
    columns: tuple[str, ...]
    trees: BoostedTrees
    calibration: ScoreCalibration

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Scores of every text."""
        pairs = zip(texts, parse_narratives(texts, "synthetic"), strict=True)
        return self.score_features([sentence_features(text, sentences) for text, sentences in pairs])

    def score_features(self, features: Sequence[Sequence[Mapping[str, float]]]) -> list[TextScores]:
        """Scores of texts whose features are known."""
        return [self.calibration(self.trees(feature_matrix(rows, self.columns))) for rows in features]

    def to_stored(self, card: DetectorCard) -> StoredModel:
        """For a folder."""
        settings = {"negatives": self.negatives, "columns": list(self.columns), **self.calibration.to_settings()}
        return StoredModel(card, settings, self.trees.to_arrays())

    @classmethod
    def from_stored(cls, stored: StoredModel) -> SyntheticModel:
        """From a folder."""
        settings = stored.settings
        trees = BoostedTrees.from_arrays(stored.arrays)
        return cls(settings["negatives"], tuple(settings["columns"]), trees, ScoreCalibration.from_settings(settings))


@dataclass(frozen=True)
class SyntheticRows:
    """Features of made-up examples and whether each was damaged."""

    rows: list[dict[str, float]]
    damaged: Bools


def build_synthetic_rows(
    texts: Sequence[Narrative], parses: Sequence[Sequence[ParsedSentence]], negatives: NegativeKind, seed: int
) -> SyntheticRows:
    """Examples from coherent texts; where sentences stand is left out, since it would give the damage away."""
    by_text = {id(text): list(map(extract_sentence_facts, rows)) for text, rows in zip(texts, parses, strict=True)}
    examples = synthetic_examples(texts, negatives, np.random.default_rng(seed))
    rows = [_example_features(text, by_text[id(text)], example) for text, example in examples]
    return SyntheticRows(rows, np.array([not example.coherent for _, example in examples], dtype=bool))


def _example_features(text: Narrative, facts: Sequence[SentenceFacts], example: SyntheticExample) -> dict[str, float]:
    short = example_text(text, example, len(example.context))
    features = last_sentence_features(short, [*(facts[at] for at in example.context), facts[example.sentence]])
    return {name: value for name, value in features.items() if name not in POSITIONAL}


def fit_synthetic(
    real: SyntheticRows,
    negatives: NegativeKind,
    dev: Sequence[Narrative],
    features: Sequence[Sequence[Mapping[str, float]]],
    seed: int,
) -> SyntheticModel:
    """Trees from made-up examples, the threshold from dev texts that people have read."""
    if not real.rows:
        raise ParameterError(
            f"synthetic: no example could be made; {param('real')} needs texts of several sentences each",
            parameter="real",
        )
    columns = tuple(real.rows[0])
    trees = fit_trees(feature_matrix(real.rows, columns), real.damaged, BoostingSettings(seed=seed))
    scores = np.concatenate([trees(feature_matrix(rows, columns)) for rows in features])
    return SyntheticModel(negatives, columns, trees, ScoreCalibration.from_scores(scores, _incoherence_targets(dev)))
