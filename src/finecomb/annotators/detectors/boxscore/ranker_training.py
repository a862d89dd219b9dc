"""Training of the ranker on annotated texts, with cross-validation over games."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from finecomb.annotators.detectors.base import FittedDetector
from finecomb.annotators.detectors.boxscore.checker import NAME, BasisFilter, BoxScoreChecker, find_error_candidates
from finecomb.annotators.detectors.boxscore.claims import ErrorCandidate
from finecomb.annotators.detectors.boxscore.game import Game, parse_game
from finecomb.annotators.detectors.boxscore.ranker import (
    Ranker,
    best_f1_threshold,
    calibrate_ranker,
    error_counts_by_kind,
    fit_calibration_line,
    fit_ranker_weights,
    rate_candidates,
)
from finecomb.core.errors import FinecombError, param
from finecomb.core.options import option_field
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import TEXT_PART
from finecomb.core.study import Study
from finecomb.core.text_hash import hash_text
from finecomb.statistics.gold.scores import score_judges_against_gold

DEFAULT_FOLDS = 9
CALIBRATION_FOLDS = 3  # number of folds of games, and of folds of claim kinds
REPORTED_RATIOS = ("recall", "precision")
BASES: tuple[BasisFilter, ...] = ("all", "record")


@dataclass(frozen=True, slots=True)
class RankerOptions:
    """Options for training the ranker."""

    folds: int = option_field(DEFAULT_FOLDS, minimum=3)
    seed: int = option_field(0)
    references: bool = option_field(True)


def fit_ranker(study: Study, gold: Sequence[Annotation], annotator: str, options: RankerOptions) -> FittedDetector:
    """Fit the ranker to the annotated texts of a study, with scores on held-out games."""
    gold_marks = {annotation.document: annotation.marks for annotation in gold}
    texts = build_training_texts(study.iter_documents(), gold_marks)
    if options.references:
        texts += build_reference_texts(document for document in study.iter_documents() if document.id in gold_marks)
    if not texts:
        where = study.origin or "the study"
        raise FinecombError(
            f"{where}: no text has both a gold annotation and a box score in `data`; "
            f"create the study with {param('data', 'FILE')}"
        )
    folds, seed = options.folds, options.seed
    rows = cross_validation_rows(study, cross_validate(texts, folds, seed), annotator)
    used = {text.document for text in texts if not text.is_reference}
    hashes = [hash_text(document.text) for document in study.iter_documents() if document.id in used]
    ranker = replace(train_ranker(texts, folds, seed), fitted_texts=tuple(sorted(hashes)))
    signature = f"detector:{NAME}|texts:{len(used)}|folds:{folds}|seed:{seed}|threshold:{ranker.threshold}"
    return FittedDetector(ranker.to_json(), len(used), "Scores on held-out games", rows, signature)


@dataclass(frozen=True, slots=True)
class TrainingText:
    """A text with its error candidates and whether annotators marked each of them."""

    document: str
    game: str
    candidates: tuple[ErrorCandidate, ...]
    wrong: tuple[bool, ...]
    errors: int
    """Number of gold marks."""
    is_reference: bool = False
    """True for a human-written report about the same game, which is not annotated and never scored."""


def build_training_texts(documents: Iterable[Document], gold: Mapping[str, Sequence[Mark]]) -> list[TrainingText]:
    """Build training texts from the documents with a record and a gold annotation."""
    texts = []
    for document in documents:
        game = parse_game(document.data)
        if game is None or document.id not in gold:
            continue
        marked = [(span.start, span.end) for mark in gold[document.id] for span in mark.spans if span.part == TEXT_PART]
        candidates = tuple(find_error_candidates(document.text, game))
        wrong = tuple(
            any(candidate.start < end and start < candidate.end for start, end in marked) for candidate in candidates
        )
        texts.append(TrainingText(document.id, _game_key(game), candidates, wrong, len(gold[document.id])))
    return texts


def _game_key(game: Game) -> str:
    return f"{game.date} {game.home} {game.vis}"


def build_reference_texts(documents: Iterable[Document]) -> list[TrainingText]:
    """Build training texts from human-written reports about the same games.

    Words and statements that these reports contain and the record does not cover count as correct. Numbers and names
    that contradict the record are omitted, because people make such errors as well.
    """
    texts = []
    for document in documents:
        game = parse_game(document.data)
        if game is None:
            continue
        for reference in document.references:
            candidates = find_error_candidates(reference, game)
            soft = tuple(candidate for candidate in candidates if not candidate.contradicts_record)
            texts.append(TrainingText(document.id, _game_key(game), soft, (False,) * len(soft), 0, is_reference=True))
    return texts


def shuffle_by_hash(names: Iterable[str], seed: int | str) -> list[str]:
    """Return the distinct names in a pseudorandom order that depends only on the seed."""
    return sorted(set(names), key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).hexdigest())


def train_ranker(texts: Sequence[TrainingText], folds: int = DEFAULT_FOLDS, seed: int = 0) -> Ranker:
    """Fit a calibrated ranker to all texts, with a threshold from cross-validation over games."""
    confidences: list[float] = []
    wrong: list[bool] = []
    by_games, by_kinds = cross_validated_scores(texts, seed)
    line = fit_calibration_line([*by_games, *by_kinds])
    for games in _assign_games_to_folds(texts, folds, seed):
        plain = _fit_uncalibrated_ranker([example for example in texts if example.game not in games])
        ranker = calibrate_ranker(plain, line)
        for example in (text for text in texts if text.game in games and not text.is_reference):
            truth = dict(zip(example.candidates, example.wrong, strict=True))
            for rated in rate_candidates(example.candidates, ranker):
                confidences.append(rated.confidence)
                wrong.append(truth[rated.candidate])
    threshold = best_f1_threshold(confidences, wrong, sum(example.errors for example in texts))
    return replace(calibrate_ranker(_fit_uncalibrated_ranker(texts), line), threshold=round(threshold, 4))


ScoredCandidate = tuple[float, bool]  # log odds, and True if annotators marked the candidate


def cross_validated_scores(
    texts: Sequence[TrainingText], seed: int = 0
) -> tuple[list[ScoredCandidate], list[ScoredCandidate]]:
    """Return the scores of candidates in held-out games twice: with their kind of claim in training, and without it."""
    by_games: list[ScoredCandidate] = []
    by_kinds: list[ScoredCandidate] = []
    for games in _assign_games_to_folds(texts, CALIBRATION_FOLDS, seed):
        others, held = ([text for text in texts if (text.game in games) is left] for left in (False, True))
        of_games, of_kinds = held_out_scores(others, held, seed)
        by_games += of_games
        by_kinds += of_kinds
    return by_games, by_kinds


def held_out_scores(
    texts: Sequence[TrainingText], held: Sequence[TrainingText], seed: int = 0
) -> tuple[list[ScoredCandidate], list[ScoredCandidate]]:
    """Score the candidates in `held` by rankers fitted to `texts`, first with and then without the candidate's kind."""
    checked = [text for text in held if not text.is_reference]
    kinds = shuffle_by_hash((candidate.kind for text in (*texts, *held) for candidate in text.candidates), seed)
    by_kinds: list[ScoredCandidate] = []
    for group in (set(kinds[first::CALIBRATION_FOLDS]) for first in range(CALIBRATION_FOLDS)):
        ranker = _fit_uncalibrated_ranker([_keep_candidate_kinds(text, set(kinds) - group) for text in texts])
        by_kinds += _score_candidates(ranker, [_keep_candidate_kinds(text, group) for text in checked])
    return _score_candidates(_fit_uncalibrated_ranker(texts), checked), by_kinds


def _keep_candidate_kinds(text: TrainingText, kinds: set[str]) -> TrainingText:
    kept = [
        (candidate, hit) for candidate, hit in zip(text.candidates, text.wrong, strict=True) if candidate.kind in kinds
    ]
    return replace(text, candidates=tuple(candidate for candidate, _ in kept), wrong=tuple(hit for _, hit in kept))


def _score_candidates(ranker: Ranker, texts: Iterable[TrainingText]) -> list[ScoredCandidate]:
    return [
        (ranker.score(candidate), hit)
        for text in texts
        for candidate, hit in zip(text.candidates, text.wrong, strict=True)
    ]


class Fold(NamedTuple):
    """Texts of held-out games, with a ranker fitted to the other games."""

    ranker: Ranker
    documents: tuple[str, ...]


def cross_validate(texts: Sequence[TrainingText], folds: int = DEFAULT_FOLDS, seed: int = 0) -> list[Fold]:
    """Fit a ranker for each fold, with weights and threshold from the other folds only."""
    result = []
    for games in _assign_games_to_folds(texts, folds, seed):
        others = [example for example in texts if example.game not in games]
        held = tuple(example.document for example in texts if example.game in games and not example.is_reference)
        result.append(Fold(train_ranker(others, folds - 1, seed), held))
    return result


def _assign_games_to_folds(texts: Sequence[TrainingText], folds: int, seed: int) -> list[set[str]]:
    games = shuffle_by_hash((example.game for example in texts), seed)
    if not 2 <= folds <= len(games):
        # Calibration needs its own folds, so lowering the number of folds further would not help.
        or_fewer = f" or lower {param('folds')}" if folds > CALIBRATION_FOLDS else ""
        raise FinecombError(f"cannot split {len(games)} games into {folds} folds; add texts about more games{or_fewer}")
    return [set(games[first::folds]) for first in range(folds)]


def _fit_uncalibrated_ranker(texts: Sequence[TrainingText]) -> Ranker:
    candidates = [candidate for example in texts for candidate in example.candidates]
    wrong = [hit for example in texts for hit in example.wrong]
    if not candidates:
        raise FinecombError(
            "no checkable claim was found in the training texts; they must be reports about basketball games"
        )
    checked = [candidate for example in texts if not example.is_reference for candidate in example.candidates]
    hits = [hit for example in texts if not example.is_reference for hit in example.wrong]
    games = len({example.game for example in texts})
    return replace(fit_ranker_weights(candidates, wrong, games), counts=error_counts_by_kind(checked, hits))


# --- evaluation -----------------------------------------------------------------------------------------------------


def cross_validation_rows(gold: Study, folds: Sequence[Fold], annotator: str = "") -> list[dict[str, object]]:
    """Return recall and precision by basis and label on held-out games, with standard deviations.

    `recall_sd` and `precision_sd` are standard deviations over the folds in which the ratio is defined.
    """
    rows: list[dict[str, object]] = []
    for basis in BASES:
        parts = [_scores_by_label(gold, [fold], basis, annotator) for fold in folds]
        for key, row in _scores_by_label(gold, folds, basis, annotator).items():
            spread: dict[str, object] = {}
            for name in REPORTED_RATIOS:
                values = [part[key][name] for part in parts if key in part]
                defined = [value for value in values if isinstance(value, float) and not math.isnan(value)]
                spread[f"{name}_sd"] = statistics.stdev(defined) if len(defined) > 1 else math.nan
            counts = {name: row[name] for name in ("gold", "predicted", "matched")}
            ratios = {name: row[name] for name in (*REPORTED_RATIOS, "f1")}
            rows.append({"basis": basis, "label": key, **counts, **ratios, **spread, "why": row["why"]})
    return rows


def _scores_by_label(
    gold: Study, folds: Sequence[Fold], basis: BasisFilter, annotator: str
) -> dict[str, dict[str, object]]:
    """Return rows of `score` by label for the documents of the given folds."""
    held = {name: fold.ranker for fold in folds for name in fold.documents}
    texts = [document for document in gold.iter_documents() if document.id in held]
    protocol = gold.protocol()
    annotations = []
    for document in texts:
        annotation = BoxScoreChecker(protocol, held[document.id], basis=basis)(document)
        # Alternative interpretations of marks do not count in the shared task.
        marks = tuple(mark.model_copy(update={"alternatives": ()}) for mark in annotation.marks)
        annotations.append(annotation.model_copy(update={"marks": marks}))
    truth = [annotation for annotation in gold.iter_annotations() if annotation.document in held]
    people = list(gold.iter_annotators())
    true = Study.from_items([gold.settings, protocol, *texts, *people, *truth])
    checked = Study.from_items([gold.settings, protocol, *texts, Annotator(id=NAME, kind="checker"), *annotations])
    scores = score_judges_against_gold(true, checked, "task", gold_annotator=annotator, draws=0).rows
    return {str(row.columns["label"]): row.row() for row in scores}
