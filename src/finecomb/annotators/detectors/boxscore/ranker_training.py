"""Fitting the ranker to texts that people have checked, and trying it on games it has not seen."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from finecomb.annotators.detectors.base import FittedDetector
from finecomb.annotators.detectors.boxscore.checker import NAME, Basis, BoxScoreChecker, find_error_candidates
from finecomb.annotators.detectors.boxscore.claims import ErrorCandidate
from finecomb.annotators.detectors.boxscore.game import Game, read_game
from finecomb.annotators.detectors.boxscore.ranker import (
    Ranker,
    best_threshold,
    calibrate_ranker,
    calibration_line,
    fit_ranker_weights,
    kind_counts,
    rate_candidates,
)
from finecomb.core.errors import FinecombError
from finecomb.core.options import option
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import TEXT
from finecomb.core.study import Study
from finecomb.core.text_hash import text_hash
from finecomb.statistics.gold.scores import score

FOLDS = 9
CALIBRATION_FOLDS = 3  # of games, and of kinds of wording
RATIOS = ("recall", "precision")
BASES: tuple[Basis, ...] = ("all", "record")


@dataclass(frozen=True, slots=True)
class RankerOptions:
    """Options of fitting the ranker."""

    folds: int = option(FOLDS, "Groups of games, each left out once.", minimum=3)
    seed: int = option(0, "Same seed, same folds.")
    references: bool = option(
        True, "Take the references of texts, where there are any, for reports whose words and guesses are right."
    )


def fit_ranker(study: Study, gold: Sequence[Annotation], annotator: str, options: RankerOptions) -> FittedDetector:
    """The ranker fitted to the checked texts of a study, and how well it does on games left out."""
    gold_marks = {annotation.document: annotation.marks for annotation in gold}
    texts = build_training_texts(study.iter_documents(), gold_marks)
    if options.references:
        texts += build_reference_texts(document for document in study.iter_documents() if document.id in gold_marks)
    if not texts:
        where = study.origin or "the study"
        raise FinecombError(f"{where}: no text has both gold marks and a RotoWire-style record in `data`")
    folds, seed = options.folds, options.seed
    rows = validation_rows(study, cross_validate(texts, folds, seed), annotator)
    used = {text.document for text in texts if not text.is_reference}
    hashes = [text_hash(document.text) for document in study.iter_documents() if document.id in used]
    ranker = replace(train_ranker(texts, folds, seed), fitted_texts=tuple(sorted(hashes)))
    signature = f"detector:{NAME}|texts:{len(used)}|folds:{folds}|seed:{seed}|threshold:{ranker.threshold}"
    return FittedDetector(ranker.to_json(), len(used), "On games left out of fitting", rows, signature)


@dataclass(frozen=True, slots=True)
class TrainingText:
    """One text: what the checker could mark, and whether people marked it too."""

    document: str
    game: str
    slips: tuple[ErrorCandidate, ...]
    wrong: tuple[bool, ...]
    errors: int
    """How many marks people made."""
    is_reference: bool = False
    """Whether a person wrote it about the same game: nobody has checked it, and it is never scored."""


def build_training_texts(documents: Iterable[Document], gold: Mapping[str, Sequence[Mark]]) -> list[TrainingText]:
    """Training texts: those that have a record and that gold has read."""
    texts = []
    for document in documents:
        game = read_game(document.data)
        if game is None or document.id not in gold:
            continue
        marked = [(span.start, span.end) for mark in gold[document.id] for span in mark.spans if span.part == TEXT]
        candidates = tuple(find_error_candidates(document.text, game))
        wrong = tuple(any(slip.start < end and start < slip.end for start, end in marked) for slip in candidates)
        texts.append(TrainingText(document.id, _game_name(game), candidates, wrong, len(gold[document.id])))
    return texts


def _game_name(game: Game) -> str:
    return f"{game.date} {game.home} {game.vis}"


def build_reference_texts(documents: Iterable[Document]) -> list[TrainingText]:
    """What people wrote about the same games, as texts in which no word and no statement off the record is wrong.

    Numbers and names that contradict the record are left out: people make such slips, too.
    """
    texts = []
    for document in documents:
        game = read_game(document.data)
        for reference in document.references if game else ():
            soft = (
                tuple(slip for slip in find_error_candidates(reference, game) if not slip.contradicts_record)
                if game
                else ()
            )
            name = _game_name(game) if game else ""
            texts.append(TrainingText(document.id, name, soft, (False,) * len(soft), 0, is_reference=True))
    return texts


def shuffle_by_hash(names: Iterable[str], seed: int | str) -> list[str]:
    """Names in an order that depends on the seed and on nothing else."""
    return sorted(set(names), key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).hexdigest())


def train_ranker(texts: Sequence[TrainingText], folds: int = FOLDS, seed: int = 0) -> Ranker:
    """The ranker for all examples, calibrated, its threshold chosen by cross-validation over games."""
    confidences: list[float] = []
    wrong: list[bool] = []
    by_games, by_kinds = left_out_scores(texts, seed)
    line = calibration_line([*by_games, *by_kinds])
    for plain, held in _fit_folds(texts, folds, seed):
        ranker = calibrate_ranker(plain, line)
        for example in (text for text in held if not text.is_reference):
            truth = dict(zip(example.slips, example.wrong, strict=True))
            for rated_slip in rate_candidates(example.slips, ranker):
                confidences.append(rated_slip.confidence)
                wrong.append(truth[rated_slip.slip])
    threshold = best_threshold(confidences, wrong, sum(example.errors for example in texts))
    return replace(calibrate_ranker(_fit_texts(texts), line), threshold=round(threshold, 4))


ScoredCandidate = tuple[float, bool]  # the score before the logistic function, and whether people marked it


def left_out_scores(
    texts: Sequence[TrainingText], seed: int = 0
) -> tuple[list[ScoredCandidate], list[ScoredCandidate]]:
    """Scores of slips in games left out of fitting; and with their kind of wording left out as well."""
    by_games: list[ScoredCandidate] = []
    by_kinds: list[ScoredCandidate] = []
    for games in _fold_games(texts, CALIBRATION_FOLDS, seed):
        others, held = ([text for text in texts if (text.game in games) is left] for left in (False, True))
        of_games, of_kinds = unseen_scores(others, held, seed)
        by_games += of_games
        by_kinds += of_kinds
    return by_games, by_kinds


def unseen_scores(
    texts: Sequence[TrainingText], held: Sequence[TrainingText], seed: int = 0
) -> tuple[list[ScoredCandidate], list[ScoredCandidate]]:
    """Scores of the slips in `held` by rankers fitted on `texts`, and by such that lack the slip's kind of wording."""
    checked = [text for text in held if not text.is_reference]
    kinds = shuffle_by_hash((slip.kind for text in (*texts, *held) for slip in text.slips), seed)
    by_kinds: list[ScoredCandidate] = []
    for group in (set(kinds[first::CALIBRATION_FOLDS]) for first in range(CALIBRATION_FOLDS)):
        ranker = _fit_texts([_select_kinds(text, set(kinds) - group) for text in texts])
        by_kinds += _score_candidates(ranker, [_select_kinds(text, group) for text in checked])
    return _score_candidates(_fit_texts(texts), checked), by_kinds


def _select_kinds(text: TrainingText, kinds: set[str]) -> TrainingText:
    kept = [(slip, hit) for slip, hit in zip(text.slips, text.wrong, strict=True) if slip.kind in kinds]
    return replace(text, slips=tuple(slip for slip, _ in kept), wrong=tuple(hit for _, hit in kept))


def _score_candidates(ranker: Ranker, texts: Iterable[TrainingText]) -> list[ScoredCandidate]:
    return [(ranker.score(slip), hit) for text in texts for slip, hit in zip(text.slips, text.wrong, strict=True)]


class Fold(NamedTuple):
    """Games that were left out, and the ranker that has never seen them."""

    ranker: Ranker
    documents: tuple[str, ...]


def cross_validate(texts: Sequence[TrainingText], folds: int = FOLDS, seed: int = 0) -> list[Fold]:
    """For each fold of games a ranker, weights and threshold, made from the other folds alone."""
    result = []
    for games in _fold_games(texts, folds, seed):
        others = [example for example in texts if example.game not in games]
        held = tuple(example.document for example in texts if example.game in games and not example.is_reference)
        result.append(Fold(train_ranker(others, folds - 1, seed), held))
    return result


def _fit_folds(texts: Sequence[TrainingText], folds: int, seed: int) -> Iterable[tuple[Ranker, list[TrainingText]]]:
    for games in _fold_games(texts, folds, seed):
        yield (
            _fit_texts([example for example in texts if example.game not in games]),
            [example for example in texts if example.game in games],
        )


def _fold_games(texts: Sequence[TrainingText], folds: int, seed: int) -> list[set[str]]:
    games = shuffle_by_hash((example.game for example in texts), seed)
    if not 2 <= folds <= len(games):
        raise FinecombError(f"{folds} folds need at least as many games and at least 2, not {len(games)}")
    return [set(games[first::folds]) for first in range(folds)]


def _fit_texts(texts: Sequence[TrainingText]) -> Ranker:
    candidates = [slip for example in texts for slip in example.slips]
    wrong = [hit for example in texts for hit in example.wrong]
    if not candidates:
        raise FinecombError("no claim was found in the texts; the checker reads reports about basketball games")
    checked = [slip for example in texts if not example.is_reference for slip in example.slips]
    hits = [hit for example in texts if not example.is_reference for hit in example.wrong]
    games = len({example.game for example in texts})
    return replace(fit_ranker_weights(candidates, wrong, games), counts=kind_counts(checked, hits))


# --- how well it does -----------------------------------------------------------------------------------------------


def validation_rows(gold: Study, folds: Sequence[Fold], annotator: str = "") -> list[dict[str, object]]:
    """Recall and precision by basis and label on games that each ranker had not seen, with their spread over folds.

    `recall_sd` and `precision_sd` are standard deviations over the folds where the ratio is defined.
    """
    rows: list[dict[str, object]] = []
    for basis in BASES:
        parts = [_scores_by_label(gold, [fold], basis, annotator) for fold in folds]
        for key, row in _scores_by_label(gold, folds, basis, annotator).items():
            spread = {
                f"{name}_sd": _standard_deviation([part[key][name] for part in parts if key in part]) for name in RATIOS
            }
            counts = {name: row[name] for name in ("gold", "predicted", "matched")}
            ratios = {name: row[name] for name in (*RATIOS, "f1")}
            rows.append({"basis": basis, "label": key, **counts, **ratios, **spread, "why": row["why"]})
    return rows


def _standard_deviation(values: Iterable[object]) -> float:
    defined = [value for value in values if isinstance(value, float) and not math.isnan(value)]
    return statistics.stdev(defined) if len(defined) > 1 else math.nan


def _drop_alternatives(annotation: Annotation) -> Annotation:
    """Its marks without their other readings: a second guess earns nothing, as in the shared task."""
    marks = tuple(mark.model_copy(update={"alternatives": ()}) for mark in annotation.marks)
    return annotation.model_copy(update={"marks": marks})


def _scores_by_label(gold: Study, folds: Sequence[Fold], basis: Basis, annotator: str) -> dict[str, dict[str, object]]:
    """Rows of `score` by label for the documents of these folds."""
    held = {name: fold.ranker for fold in folds for name in fold.documents}
    texts = [document for document in gold.iter_documents() if document.id in held]
    protocol = gold.protocol()
    annotations = [
        _drop_alternatives(BoxScoreChecker(protocol, held[document.id], basis=basis)(document)) for document in texts
    ]
    truth = [annotation for annotation in gold.iter_annotations() if annotation.document in held]
    people = list(gold.iter_annotators())
    true = Study.from_items([gold.settings, protocol, *texts, *people, *truth])
    checked = Study.from_items([gold.settings, protocol, *texts, Annotator(id=NAME, kind="checker"), *annotations])
    scores = score(true, checked, "task", gold_annotator=annotator, draws=0).rows
    return {str(row.columns["label"]): row.row() for row in scores}
