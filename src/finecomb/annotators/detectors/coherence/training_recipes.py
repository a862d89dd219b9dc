"""Training recipes of the SNaC detectors, which prepare all texts once and then fit each split."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from finecomb.annotators.detectors.boosting import BoostingSettings
from finecomb.annotators.detectors.coherence import sentence_verdicts
from finecomb.annotators.detectors.coherence.embedded_detector import (
    CoherenceModel,
    CoherenceSettings,
    fit_coherence_model,
    prepare_texts,
)
from finecomb.annotators.detectors.coherence.features import sentence_features
from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence, parse_narratives
from finecomb.annotators.detectors.coherence.narrative import ANY_ERROR_LABEL, Narrative, TextSplit, build_narrative
from finecomb.annotators.detectors.coherence.options import (
    NO_MODEL,
    CoherenceOptions,
    EntityGridOptions,
    SequenceOptions,
    SurprisalOptions,
    SyntheticOptions,
)
from finecomb.annotators.detectors.coherence.sentence_scores import Floats, TextScores, best_f1_threshold
from finecomb.annotators.detectors.coherence.sequences import SequenceModel, SequenceSettings, fit_sequence_model
from finecomb.annotators.detectors.coherence.surprisal import SurprisalScorer
from finecomb.annotators.detectors.coherence.tagger import TaggerSettings
from finecomb.annotators.detectors.model_folder import DetectorCard, StoredModel
from finecomb.annotators.model_loading import load_pretrained
from finecomb.core.errors import param
from finecomb.core.records import Document
from finecomb.core.text_hash import hash_text


class StorableScorer(typing.Protocol):
    """A fitted sentence model that can be stored."""

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Return the scores of each text."""
        ...

    def to_stored(self, card: DetectorCard) -> StoredModel:
        """Convert the model to its stored form."""
        ...


@dataclass(frozen=True)
class FittedScorer:
    """A model fitted to one split."""

    scorer: StorableScorer
    thresholds: Mapping[str, float]
    scores: list[TextScores]
    """Scores of the test texts."""


class Recipe(typing.Protocol):
    """A training method. `labels` is empty for detectors that only judge whether a sentence is coherent."""

    labels: tuple[str, ...]

    def __call__(self, split: TextSplit) -> FittedScorer:
        """Fit a model to the training and dev texts of a split, and score its test texts."""
        ...


class CoherenceTrainer:
    """Training of the default coherence detector."""

    def __init__(self, texts: Sequence[Narrative], options: CoherenceOptions, labels: Sequence[str]) -> None:
        self.labels = tuple(labels) if options.spans else ()
        surprisal = "" if options.surprisal == NO_MODEL else options.surprisal
        tagger = TaggerSettings(options.encoder, epochs=options.epochs, seed=options.seed)
        self.settings = CoherenceSettings(
            self.labels,
            None if options.encoder == NO_MODEL else tagger,
            BoostingSettings(seed=options.seed),
            surprisal,
            options.segments,
        )
        if self.settings.tagger:
            # A missing model is reported before the slow preparation.
            load_pretrained("AutoModel", options.encoder, "coherence")
        self.texts = prepare_texts(list(texts), surprisal)

    def __call__(self, split: TextSplit) -> FittedScorer:
        """Fit trees, encoder, mixture and thresholds to a split."""
        model: CoherenceModel = fit_coherence_model(self.texts, split, self.settings)
        return FittedScorer(model, model.thresholds, model.score_prepared([self.texts[index] for index in split.test]))


class SurprisalTrainer:
    """Training of the surprisal detector."""

    labels: tuple[str, ...] = ()

    def __init__(self, texts: Sequence[Narrative], options: SurprisalOptions, labels: Sequence[str]) -> None:
        self.texts, self.options = list(texts), options
        self.nats = SurprisalScorer.from_pretrained(options.model)(self.texts)

    def __call__(self, split: TextSplit) -> FittedScorer:
        """Fit the threshold to a split."""
        dev, test = ([self.texts[index] for index in part] for part in (split.dev, split.test))
        nats = [self.nats[index] for index in split.dev]
        model = sentence_verdicts.fit_surprisal(self.options.model, self.options.per == "sentence", dev, nats)
        return FittedScorer(
            model,
            model.calibration.thresholds,
            model.score_surprisals(test, [self.nats[index] for index in split.test]),
        )


class EntityGridTrainer:
    """Training of the entity grid detector."""

    labels: tuple[str, ...] = ()

    def __init__(self, texts: Sequence[Narrative], options: EntityGridOptions, labels: Sequence[str]) -> None:
        self.texts, self.real = list(texts), _CoherentTexts(options.texts, texts)
        self.parses = list(parse_narratives(self.texts, "entity-grid"))

    def __call__(self, split: TextSplit) -> FittedScorer:
        """Fit role transitions and the threshold to a split."""
        _, real = self.real.select_for_split(split, self.parses)
        dev, parses = [self.texts[index] for index in split.dev], [self.parses[index] for index in split.dev]
        model = sentence_verdicts.fit_entity_grid_model(real, dev, parses)
        return FittedScorer(
            model, model.calibration.thresholds, model.score_parses([self.parses[index] for index in split.test])
        )


class SyntheticTrainer:
    """Training of the synthetic error detector."""

    labels: tuple[str, ...] = ()

    def __init__(self, texts: Sequence[Narrative], options: SyntheticOptions, labels: Sequence[str]) -> None:
        self.texts, self.options, self.real = list(texts), options, _CoherentTexts(options.texts, texts)
        self.parses = list(parse_narratives(self.texts, "synthetic"))
        self.features = [sentence_features(text, rows) for text, rows in zip(self.texts, self.parses, strict=True)]

    def __call__(self, split: TextSplit) -> FittedScorer:
        """Fit trees and the threshold to a split."""
        texts, parses = self.real.select_for_split(split, self.parses)
        rows = sentence_verdicts.build_synthetic_rows(texts, parses, self.options.negatives, self.options.seed)
        dev, features = [self.texts[index] for index in split.dev], [self.features[index] for index in split.dev]
        model = sentence_verdicts.fit_synthetic(rows, self.options.negatives, dev, features, self.options.seed)
        return FittedScorer(
            model, model.calibration.thresholds, model.score_features([self.features[index] for index in split.test])
        )


class _CoherentTexts:
    """Texts that count as coherent: those of `--real` that are not test texts; without `--real`, the training texts."""

    def __init__(self, real: Sequence[str], texts: Sequence[Narrative]) -> None:
        self.texts = texts
        self.real = [build_narrative(Document(id=f"real{number}", text=text)) for number, text in enumerate(real)]
        self.parses = list(parse_narratives(self.real, param("real"))) if real else []

    def select_for_split(
        self, split: TextSplit, parses: Sequence[list[ParsedSentence]]
    ) -> tuple[list[Narrative], list[list[ParsedSentence]]]:
        """Return the coherent texts of a split with their parses."""
        if not self.real:
            return [self.texts[index] for index in split.train], [parses[index] for index in split.train]
        # A coherent text that is also a test text would leak into training.
        tested = {hash_text(self.texts[index].text) for index in split.test}
        indices = [index for index, text in enumerate(self.real) if hash_text(text.text) not in tested]
        return [self.real[index] for index in indices], [self.parses[index] for index in indices]


@dataclass(frozen=True)
class SequenceScorer:
    """A fine-tuned Hugging Face model with its thresholds."""

    model: SequenceModel
    thresholds: dict[str, float]

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Return the scores of each text."""
        return self.model(texts)

    def to_stored(self, card: DetectorCard) -> StoredModel:
        """Convert the model to its stored form."""
        settings = {name: getattr(self.model.settings, name) for name in SequenceSettings.__dataclass_fields__}
        return StoredModel(card, {**settings, "thresholds": self.thresholds}, weights=self.model.state())

    @classmethod
    def from_stored(cls, stored: StoredModel) -> SequenceScorer:
        """Rebuild the model from its stored form."""
        values: dict[str, Any] = {**stored.settings, "labels": tuple(stored.settings["labels"])}
        thresholds = values.pop("thresholds")
        return cls(SequenceModel.from_state(SequenceSettings(**values), stored.weights), thresholds)


class SequenceTrainer:
    """Fine-tuning of a Hugging Face model in the paper's format."""

    def __init__(self, texts: Sequence[Narrative], options: SequenceOptions, labels: Sequence[str]) -> None:
        self.texts = list(texts)
        self.labels = tuple(labels) if options.spans else ()
        self.settings = SequenceSettings(
            options.model, options.form, self.labels, epochs=options.epochs, seed=options.seed
        )

    def __call__(self, split: TextSplit) -> FittedScorer:
        """Fit the model and its thresholds to a split."""
        train, dev, test = ([self.texts[index] for index in part] for part in (split.train, split.dev, split.test))
        model = fit_sequence_model(train, self.settings)
        chances: Floats = np.concatenate([scores.sentences for scores in model(dev)])
        truth = np.concatenate([text.target_matrix(self.labels) for text in dev])
        names = [*self.labels, ANY_ERROR_LABEL]
        thresholds = {
            name: best_f1_threshold(chances[:, column], truth[:, column]) for column, name in enumerate(names)
        }
        return FittedScorer(SequenceScorer(model, thresholds), thresholds, model(test))
