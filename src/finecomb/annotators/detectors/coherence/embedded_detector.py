"""The embedded detector of coherence errors: boosted trees on engineered features, and a small fine-tuned encoder."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from finecomb.annotators.detectors.boosting import BoostedTrees, BoostingSettings, fit_trees
from finecomb.annotators.detectors.coherence.entity_mentions import names, nouns
from finecomb.annotators.detectors.coherence.features import feature_matrix, sentence_features
from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence, parse_narratives
from finecomb.annotators.detectors.coherence.narrative import ANY_ERROR, Narrative, TextSplit
from finecomb.annotators.detectors.coherence.sentence_scores import (
    Bools,
    Floats,
    Ints,
    TextScores,
    best_threshold,
    fit_mixture,
    logit,
    mix_log_odds,
)
from finecomb.annotators.detectors.coherence.surprisal import SurprisalScorer, surprisal_features
from finecomb.annotators.detectors.coherence.tagger import SentenceTagger, TaggerSettings, fit_tagger
from finecomb.annotators.detectors.model_folder import DetectorCard, StoredModel
from finecomb.core.errors import FinecombError
from finecomb.core.text_hash import text_hash

log = logging.getLogger(__name__)
NAME = "coherence"


@dataclass(frozen=True, slots=True)
class CoherenceSettings:
    """How the detector is made."""

    labels: tuple[str, ...]
    """Empty for a model that only says whether a sentence is coherent."""
    tagger: TaggerSettings | None
    """None for features alone."""
    trees: BoostingSettings = field(default_factory=BoostingSettings)
    surprisal: str = ""
    """A causal language model whose surprisal is a feature as well."""
    segments: bool = True
    """Whether it knows where segments begin."""


@dataclass(frozen=True)
class PreparedText:
    """A text with everything that does not depend on fitting."""

    text: Narrative
    parse: list[ParsedSentence]
    features: list[dict[str, float]]


@dataclass(frozen=True)
class CoherenceModel:
    """A fitted detector; see `TextScores` for what it gives."""

    settings: CoherenceSettings
    columns: tuple[str, ...]
    trees: tuple[BoostedTrees, ...]
    """One for each label, and the last for any."""
    tagger: SentenceTagger | None
    mixtures: Floats
    """(labels + 1, models + 1)."""
    thresholds: dict[str, float]

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Scores of every text."""
        return self.score_prepared(prepare_texts(texts, self.settings.surprisal))

    def score_prepared(self, texts: Sequence[PreparedText]) -> list[TextScores]:
        """Scores of texts that have been prepared."""
        tags = self.tagger([text.text for text in texts]) if self.tagger else None
        results = []
        for at, text in enumerate(texts):
            odds = [_tree_odds(self.trees, feature_matrix(text.features, self.columns))]
            odds += [logit(tags[at].sentences)] if tags else []
            chances = np.stack(
                [
                    mix_log_odds(np.stack([part[:, row] for part in odds], axis=1), self.mixtures[row])
                    for row in range(len(self.trees))
                ],
                axis=1,
            )
            results.append(TextScores(chances, *token_scores(text, tags[at] if tags else None, self.settings.labels)))
        return results

    def to_stored(self, card: DetectorCard) -> StoredModel:
        """For a folder."""
        arrays = {
            f"{at}.{name}": array for at, trees in enumerate(self.trees) for name, array in trees.to_arrays().items()
        }
        settings = {**asdict(self.settings), "columns": list(self.columns), "thresholds": self.thresholds}
        weights = self.tagger.state() if self.tagger else {}
        return StoredModel(card, settings, {**arrays, "mixtures": self.mixtures}, weights)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> CoherenceModel:
        """From a folder."""
        values = dict(stored.settings)
        labels = tuple(values["labels"])
        tagger_settings = TaggerSettings(**values["tagger"]) if values["tagger"] else None
        settings = CoherenceSettings(
            labels, tagger_settings, BoostingSettings(**values["trees"]), values["surprisal"], values["segments"]
        )
        trees = tuple(
            BoostedTrees.from_arrays(
                {name: stored.arrays[f"{at}.{name}"] for name in ("base", "features", "thresholds", "leaves")}
            )
            for at in range(len(labels) + 1)
        )
        tagger = SentenceTagger.from_state(tagger_settings, labels, stored.weights) if tagger_settings else None
        return cls(settings, tuple(values["columns"]), trees, tagger, stored.arrays["mixtures"], values["thresholds"])


def prepare_texts(texts: Sequence[Narrative], surprisal: str = "") -> list[PreparedText]:
    """Texts with grammar and features."""
    surprisals = SurprisalScorer.from_pretrained(surprisal)(texts) if surprisal else None
    rows = []
    for at, (text, parse) in enumerate(zip(texts, parse_narratives(texts, NAME), strict=True)):
        features = sentence_features(text, parse)
        more = surprisal_features(text, surprisals[at]) if surprisals else [{} for _ in features]
        rows.append(PreparedText(text, parse, [{**row, **extra} for row, extra in zip(features, more, strict=True)]))
    return rows


def _tree_odds(trees: Sequence[BoostedTrees], rows: Floats) -> Floats:
    """(sentences, labels + 1)."""
    return np.stack([model(rows) for model in trees], axis=1)


def token_scores(text: PreparedText, tags: TextScores | None, labels: Sequence[str]) -> tuple[Floats, Ints]:
    """Where errors would be: by the encoder, but for names, whose edges grammar knows better; else by features."""
    tokens, offsets = feature_token_scores(text, labels)
    if tags is None:
        return tokens, offsets
    tagged = _project_token_scores(tags, offsets)
    for column, label in enumerate(labels):
        is_name = tokens[:, column] * np.array([label == "char"])
        first = 0
        for sentence in text.parse:
            rows = slice(first, first + len(sentence))
            if not 0 < is_name[rows].sum() < len(sentence):  # no name of its own to point at
                tokens[rows, column] = tagged[rows, column]
            first += len(sentence)
    return tokens, offsets


def _project_token_scores(tags: TextScores, offsets: Ints) -> Floats:
    """Scores of an encoder's tokens on other tokens: the highest of those that share a character, else 0."""
    first = np.searchsorted(tags.offsets[:, 1], offsets[:, 0], side="right")
    last = np.searchsorted(tags.offsets[:, 0], offsets[:, 1], side="left")
    none = np.zeros(tags.tokens.shape[1])
    pairs = zip(first.tolist(), last.tolist(), strict=True)
    rows = [tags.tokens[begin:end].max(axis=0) if end > begin else none for begin, end in pairs]
    return np.array(rows).reshape(len(offsets), -1) if len(rows) else np.zeros((0, len(none)))


def feature_token_scores(text: PreparedText, labels: Sequence[str]) -> tuple[Floats, Ints]:
    """Where errors would be by the features alone: bare names that are new for `char`, definite nouns for `ref`."""
    known: set[str] = set()
    rows: list[Floats] = []
    offsets: list[tuple[int, int]] = []
    for sentence in text.parse:
        new = [name for name in names(sentence) if not name.words & known and name.kind == "person"]
        supposed = [
            noun
            for noun in nouns(sentence)
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
        known |= {word for name in names(sentence) for word in name.words} | {token.lemma for token in sentence}
    return np.array(rows).reshape(-1, len(labels)), np.array(offsets, dtype=np.int64).reshape(-1, 2)


# --- fitting -----------------------------------------------------------------------------------------------------


def fit_coherence(texts: Sequence[PreparedText], split: TextSplit, settings: CoherenceSettings) -> CoherenceModel:
    """Trees and encoder from the split's training texts; mixture and thresholds from its dev texts."""
    train, dev = ([texts[at] for at in part] for part in (split.train, split.dev))
    if not train or not dev:
        raise FinecombError(
            f"{len(texts)} texts are too few to fit {NAME}: some are needed for thresholds; give 10 or more"
        )
    columns = tuple(dict.fromkeys(name for text in train for row in text.features for name in row))
    truth = _target_matrix(train, settings.labels)
    rows = np.concatenate([feature_matrix(text.features, columns) for text in train])
    trees = tuple(fit_trees(rows, truth[:, column], settings.trees) for column in range(truth.shape[1]))
    tagger = fit_tagger([text.text for text in train], settings.labels, settings.tagger) if settings.tagger else None
    return calibrate_model(settings, columns, trees, tagger, dev)


def calibrate_model(
    settings: CoherenceSettings,
    columns: tuple[str, ...],
    trees: tuple[BoostedTrees, ...],
    tagger: SentenceTagger | None,
    dev: Sequence[PreparedText],
) -> CoherenceModel:
    """The model whose mixture and thresholds are the best on dev texts."""
    truth = _target_matrix(dev, settings.labels)
    odds = [np.concatenate([_tree_odds(trees, feature_matrix(text.features, columns)) for text in dev])]
    if tagger:
        odds.append(logit(np.concatenate([scores.sentences for scores in tagger([text.text for text in dev])])))
    mixtures, thresholds = fit_mixtures(odds, truth, settings.labels)
    return CoherenceModel(settings, columns, trees, tagger, mixtures, thresholds)


def fit_mixtures(odds: Sequence[Floats], truth: Bools, labels: Sequence[str]) -> tuple[Floats, dict[str, float]]:
    """Mixtures (labels + 1, models + 1) and thresholds by label from each model's log odds (sentences, labels + 1)."""
    stacked = np.stack(odds, axis=-1)
    columns = range(truth.shape[1])
    mixtures = np.stack([fit_mixture(stacked[:, at], truth[:, at]) for at in columns])
    chances = [mix_log_odds(stacked[:, at], mixtures[at]) for at in columns]
    return mixtures, {name: best_threshold(chances[at], truth[:, at]) for at, name in enumerate([*labels, ANY_ERROR])}


def _target_matrix(texts: Sequence[PreparedText], labels: Sequence[str]) -> Bools:
    return np.concatenate([text.text.targets(labels) for text in texts])


def fitted_text_hashes(texts: Sequence[Narrative]) -> tuple[str, ...]:
    """Hashes of texts, for the card."""
    return tuple(text_hash(text.text) for text in texts)
