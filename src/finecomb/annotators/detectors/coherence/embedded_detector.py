"""The default detector of coherence errors: boosted trees on engineered features, and a small fine-tuned encoder."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from finecomb.annotators.detectors.boosting import BoostedTrees, BoostingSettings, fit_boosted_trees
from finecomb.annotators.detectors.coherence.entity_mentions import find_name_mentions, find_noun_mentions
from finecomb.annotators.detectors.coherence.features import feature_matrix, sentence_features
from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence, parse_narratives
from finecomb.annotators.detectors.coherence.narrative import ANY_ERROR_LABEL, Narrative, TextSplit
from finecomb.annotators.detectors.coherence.sentence_scores import (
    Bools,
    Floats,
    Ints,
    TextScores,
    best_f1_threshold,
    fit_mixture,
    logit,
    mixture_probabilities,
)
from finecomb.annotators.detectors.coherence.surprisal import SurprisalScorer, surprisal_features
from finecomb.annotators.detectors.coherence.tagger import SentenceTagger, TaggerSettings, fit_tagger
from finecomb.annotators.detectors.model_folder import DetectorCard, StoredModel
from finecomb.core.errors import FinecombError

log = logging.getLogger(__name__)
NAME = "coherence"


@dataclass(frozen=True, slots=True)
class CoherenceSettings:
    """Settings of the coherence detector."""

    labels: tuple[str, ...]
    """Labels to predict, empty for a model that only detects incoherent sentences."""
    tagger: TaggerSettings | None
    """Settings of the encoder, or None to use features alone."""
    trees: BoostingSettings = field(default_factory=BoostingSettings)
    surprisal: str = ""
    """Name of a causal language model whose surprisal is an additional feature, or an empty string."""
    segments: bool = True
    """True if the features use segment boundaries."""


@dataclass(frozen=True)
class PreparedText:
    """A text with its parse and features, which do not depend on fitting."""

    text: Narrative
    parse: list[ParsedSentence]
    features: list[dict[str, float]]


@dataclass(frozen=True)
class CoherenceModel:
    """A fitted coherence detector."""

    settings: CoherenceSettings
    columns: tuple[str, ...]
    trees: tuple[BoostedTrees, ...]
    """One tree model per label, and a last one for any error."""
    tagger: SentenceTagger | None
    mixtures: Floats
    """Weights that combine the models, (labels + 1, models + 1)."""
    thresholds: dict[str, float]

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Return the scores of each text."""
        return self.score_prepared(prepare_texts(texts, self.settings.surprisal))

    def score_prepared(self, texts: Sequence[PreparedText]) -> list[TextScores]:
        """Return the scores of texts that are already parsed."""
        tags = self.tagger([text.text for text in texts]) if self.tagger else None
        results = []
        for index, text in enumerate(texts):
            odds = [_tree_log_odds(self.trees, feature_matrix(text.features, self.columns))]
            odds += [logit(tags[index].sentences)] if tags else []
            chances = np.stack(
                [
                    mixture_probabilities(np.stack([part[:, row] for part in odds], axis=1), self.mixtures[row])
                    for row in range(len(self.trees))
                ],
                axis=1,
            )
            results.append(
                TextScores(chances, *token_scores(text, tags[index] if tags else None, self.settings.labels))
            )
        return results

    def to_stored(self, card: DetectorCard) -> StoredModel:
        """Convert the model to its stored form."""
        arrays = {
            f"{index}.{name}": array
            for index, trees in enumerate(self.trees)
            for name, array in trees.to_arrays().items()
        }
        settings = {**asdict(self.settings), "columns": list(self.columns), "thresholds": self.thresholds}
        weights = self.tagger.state() if self.tagger else {}
        return StoredModel(card, settings, {**arrays, "mixtures": self.mixtures}, weights)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> CoherenceModel:
        """Rebuild the model from its stored form."""
        values = dict(stored.settings)
        labels = tuple(values["labels"])
        tagger_settings = TaggerSettings(**values["tagger"]) if values["tagger"] else None
        settings = CoherenceSettings(
            labels, tagger_settings, BoostingSettings(**values["trees"]), values["surprisal"], values["segments"]
        )
        trees = tuple(
            BoostedTrees.from_arrays(
                {name: stored.arrays[f"{index}.{name}"] for name in ("base", "features", "thresholds", "leaves")}
            )
            for index in range(len(labels) + 1)
        )
        tagger = SentenceTagger.from_state(tagger_settings, labels, stored.weights) if tagger_settings else None
        return cls(settings, tuple(values["columns"]), trees, tagger, stored.arrays["mixtures"], values["thresholds"])


def prepare_texts(texts: Sequence[Narrative], surprisal: str = "") -> list[PreparedText]:
    """Parse texts and compute their features."""
    surprisals = SurprisalScorer.from_pretrained(surprisal)(texts) if surprisal else None
    rows = []
    for index, (text, parse) in enumerate(zip(texts, parse_narratives(texts, NAME), strict=True)):
        features = sentence_features(text, parse)
        more = surprisal_features(text, surprisals[index]) if surprisals else [{} for _ in features]
        rows.append(PreparedText(text, parse, [{**row, **extra} for row, extra in zip(features, more, strict=True)]))
    return rows


def _tree_log_odds(trees: Sequence[BoostedTrees], rows: Floats) -> Floats:
    """Return the log odds of each sentence and label, (sentences, labels + 1)."""
    return np.stack([model(rows) for model in trees], axis=1)


def token_scores(text: PreparedText, tags: TextScores | None, labels: Sequence[str]) -> tuple[Floats, Ints]:
    """Return token scores and offsets.

    The encoder provides the scores, except for names, whose boundaries the parse locates better. Without an encoder,
    all scores come from the features.
    """
    tokens, offsets = feature_token_scores(text, labels)
    if tags is None:
        return tokens, offsets
    # Tokens of the parse get the maximum over the overlapping tokens of the encoder, or 0 without overlap.
    begins = np.searchsorted(tags.offsets[:, 1], offsets[:, 0], side="right")
    ends = np.searchsorted(tags.offsets[:, 0], offsets[:, 1], side="left")
    tagged = np.zeros((len(offsets), tags.tokens.shape[1]))
    for index, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        if end > begin:
            tagged[index] = tags.tokens[begin:end].max(axis=0)
    for column, label in enumerate(labels):
        is_name = tokens[:, column] * np.array([label == "char"])
        first = 0
        for sentence in text.parse:
            rows = slice(first, first + len(sentence))
            if not 0 < is_name[rows].sum() < len(sentence):  # the parse has no new name to mark
                tokens[rows, column] = tagged[rows, column]
            first += len(sentence)
    return tokens, offsets


def feature_token_scores(text: PreparedText, labels: Sequence[str]) -> tuple[Floats, Ints]:
    """Return token scores from the features: new names without a description for `char`, definite nouns for `ref`."""
    known: set[str] = set()
    rows: list[Floats] = []
    offsets: list[tuple[int, int]] = []
    for sentence in text.parse:
        new = [name for name in find_name_mentions(sentence) if not name.words & known and name.kind == "person"]
        supposed = [
            noun
            for noun in find_noun_mentions(sentence)
            if noun.determiner in {"definite", "possessive"} and noun.lemma not in known
        ]
        places = {
            "char": [(name.start, name.end) for name in new],
            "ref": [(noun.start, noun.end) for noun in supposed],
        }
        for token in sentence:
            inside = [any(start <= token.start < end for start, end in places.get(label, ())) for label in labels]
            bare = [label not in places or not places[label] for label in labels]
            rows.append(np.where(bare, 1.0, np.array(inside, dtype=float)))
            offsets.append((token.start, token.end))
        known |= {word for name in find_name_mentions(sentence) for word in name.words} | {
            token.lemma for token in sentence
        }
    return np.array(rows).reshape(-1, len(labels)), np.array(offsets, dtype=np.int64).reshape(-1, 2)


# --- fitting -----------------------------------------------------------------------------------------------------


def fit_coherence_model(texts: Sequence[PreparedText], split: TextSplit, settings: CoherenceSettings) -> CoherenceModel:
    """Fit the trees and the encoder to a split's training texts, and the mixture and thresholds to its dev texts."""
    train, dev = ([texts[index] for index in part] for part in (split.train, split.dev))
    if not train or not dev:
        raise FinecombError(
            f"cannot split {len(texts)} texts into texts for training and for thresholds; add texts with gold "
            "annotations or use fewer folds"
        )
    columns = tuple(dict.fromkeys(name for text in train for row in text.features for name in row))
    truth = _target_matrix(train, settings.labels)
    rows = np.concatenate([feature_matrix(text.features, columns) for text in train])
    trees = tuple(fit_boosted_trees(rows, truth[:, column], settings.trees) for column in range(truth.shape[1]))
    tagger = fit_tagger([text.text for text in train], settings.labels, settings.tagger) if settings.tagger else None
    odds = [np.concatenate([_tree_log_odds(trees, feature_matrix(text.features, columns)) for text in dev])]
    if tagger:
        odds.append(logit(np.concatenate([scores.sentences for scores in tagger([text.text for text in dev])])))
    mixtures, thresholds = fit_mixtures_and_thresholds(odds, _target_matrix(dev, settings.labels), settings.labels)
    return CoherenceModel(settings, columns, trees, tagger, mixtures, thresholds)


def fit_mixtures_and_thresholds(
    odds: Sequence[Floats], truth: Bools, labels: Sequence[str]
) -> tuple[Floats, dict[str, float]]:
    """Fit mixtures (labels + 1, models + 1) and thresholds by label to the models' log odds (sentences, labels + 1)."""
    stacked = np.stack(odds, axis=-1)
    columns = range(truth.shape[1])
    mixtures = np.stack([fit_mixture(stacked[:, index], truth[:, index]) for index in columns])
    chances = [mixture_probabilities(stacked[:, index], mixtures[index]) for index in columns]
    return mixtures, {
        name: best_f1_threshold(chances[index], truth[:, index])
        for index, name in enumerate([*labels, ANY_ERROR_LABEL])
    }


def _target_matrix(texts: Sequence[PreparedText], labels: Sequence[str]) -> Bools:
    return np.concatenate([text.text.target_matrix(labels) for text in texts])
