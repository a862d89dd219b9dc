"""Accuracy of SNaC's detectors on its 150 summaries; writes the tables of docs/detect/coherence.md.

Uses three splits by story, since all 55 books appear twice; a tenth of the stories outside the test set is used for
thresholds. Results that take minutes (surprisals, the fine-tuned encoder) are cached in the folder FINECOMB_CACHE, and
skipped unless cached or requested with FINECOMB_SLOW=1. Requires FINECOMB_DATA.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks._docs import markdown_table, write_table
from finecomb import formats
from finecomb.annotators.detectors.boosting import BoostingSettings, fit_boosted_trees
from finecomb.annotators.detectors.coherence import sentence_verdicts
from finecomb.annotators.detectors.coherence.detection_tables import (
    REFERENCE_PRECISION,
    label_recalls_at_precision,
    label_score_rows,
)
from finecomb.annotators.detectors.coherence.embedded_detector import (
    PreparedText,
    fit_mixtures_and_thresholds,
    token_scores,
)
from finecomb.annotators.detectors.coherence.features import feature_matrix, sentence_features
from finecomb.annotators.detectors.coherence.grammar_parse import parse_narratives
from finecomb.annotators.detectors.coherence.narrative import (
    LABELS,
    Narrative,
    TextSplit,
    build_narratives,
    cross_validation_splits,
)
from finecomb.annotators.detectors.coherence.options import DEV_SHARE
from finecomb.annotators.detectors.coherence.sentence_scores import Floats, TextScores, logit, mixture_probabilities
from finecomb.annotators.detectors.coherence.surprisal import SurprisalScorer, TokenSurprisals
from finecomb.annotators.detectors.coherence.tagger import TaggerSettings, fit_tagger
from finecomb.annotators.model_loading import DEFAULT_CAUSAL_MODEL, DEFAULT_ENCODER
from finecomb.statistics.gold.unit_scores import (
    area_under_roc_curve,
    recall_at_false_positive_rates,
    threshold_at_precision,
)

PAGE = "detect/coherence.md"
FALSE_ALARM_RATES = (0.05, 0.1, 0.2, 0.3, 0.5)
PAPER_PRECISION = {"char": 0.86, "scene": 0.58, "ref": 0.45, "incon": 0.25}
PAPER_TABLE_11 = {
    "char": (0.86, 0.74, 0.80, 0.99), "scene": (0.58, 0.49, 0.53, 1.0), "ref": (0.45, 0.25, 0.32, 0.87),
    "incon": (0.25, 0.01, 0.02, 0.0),
}  # fmt: skip
PAPER_TABLE_10 = {
    "synthetic, coreference": (0.61, 0.47, 0.48, 0.15), "synthetic, next sentence": (0.31, 0.35, 0.32, 0.09),
    "T5-Large without spans": (0.89, 0.84, 0.64, 0.51), "T5-Large with spans": (0.90, 0.82, 0.58, 0.47),
}  # fmt: skip
Results = dict[str, list[tuple[list[Narrative], list[TextScores], Mapping[str, float]]]]


def read_narratives(data: Path) -> list[Narrative]:
    """Return the 150 summaries in groups by story."""
    study = formats.read(data / "snac" / "SNaC_data.json")
    groups = {document.id: str(document.meta["story"]) for document in study.iter_documents()}
    return build_narratives(study.iter_documents(), study.iter_annotations(), groups)


class Cache:
    """Cache of arrays that take minutes to compute, in files by name."""

    def __init__(self) -> None:
        self.folder = Path(os.environ["FINECOMB_CACHE"]) if "FINECOMB_CACHE" in os.environ else None
        self.slow = os.environ.get("FINECOMB_SLOW") == "1"

    def get_arrays(self, name: str, make: Callable[[], Mapping[str, Floats]]) -> Mapping[str, Floats] | None:
        """Return the cached arrays, or compute and cache them; None if that would take too long."""
        file = self.folder / f"{name}.npz" if self.folder else None
        if file and file.is_file():
            with np.load(file, allow_pickle=False) as stored:
                return dict(stored)
        if not self.slow:
            return None
        made = make()
        if file:
            np.savez(file, allow_pickle=False, **made)
        return made


def tagger_scores(
    texts: Sequence[Narrative], split: TextSplit, number: int, cache: Cache
) -> dict[int, TextScores] | None:
    """Return the scores of a fine-tuned encoder for the dev and test texts of a split."""
    places = [*split.dev, *split.test]

    def compute_scores() -> dict[str, Floats]:
        tagger = fit_tagger([texts[at] for at in split.train], LABELS, TaggerSettings(DEFAULT_ENCODER, seed=number))
        scores = tagger([texts[at] for at in places])
        return {
            f"{texts[at].id}/{part}": getattr(row, part)
            for at, row in zip(places, scores, strict=True)
            for part in ("sentences", "tokens", "offsets")
        }

    arrays = cache.get_arrays(f"tagger{number}", compute_scores)
    if arrays is None:
        return None
    return {at: _stored_scores(arrays, texts[at].id) for at in places}


def _stored_scores(arrays: Mapping[str, Floats], id: str) -> TextScores:
    return TextScores(arrays[f"{id}/sentences"], arrays[f"{id}/tokens"], arrays[f"{id}/offsets"].astype(np.int64))


def coherence_scores(
    prepared: Sequence[PreparedText], split: TextSplit, tags: Mapping[int, TextScores] | None
) -> tuple[list[TextScores], dict[str, float]]:
    """Return the scores of the embedded detector on a split's test texts, with or without the encoder."""
    columns = tuple(prepared[0].features[0])
    rows = [feature_matrix(text.features, columns) for text in prepared]
    truth = [text.text.target_matrix(LABELS) for text in prepared]
    train = np.concatenate([rows[at] for at in split.train])
    answers = np.concatenate([truth[at] for at in split.train])
    trees = [fit_boosted_trees(train, answers[:, column], BoostingSettings()) for column in range(len(LABELS) + 1)]

    def log_odds(at: int) -> Floats:
        parts = [np.stack([model(rows[at]) for model in trees], axis=1)]
        return np.stack([*parts, *([logit(tags[at].sentences)] if tags else [])], axis=-1)

    dev = np.concatenate([log_odds(at) for at in split.dev])
    mixtures, thresholds = fit_mixtures_and_thresholds(
        [dev[..., model] for model in range(dev.shape[-1])], np.concatenate([truth[at] for at in split.dev]), LABELS
    )
    scores = []
    for at in split.test:
        chances = np.stack(
            [mixture_probabilities(log_odds(at)[:, row], mixtures[row]) for row in range(len(mixtures))], axis=1
        )
        scores.append(TextScores(chances, *token_scores(prepared[at], tags[at] if tags else None, LABELS)))
    return scores, thresholds


def add_unsupervised_results(
    prepared: Sequence[PreparedText], split: TextSplit, surprisals: Mapping[int, TokenSurprisals], results: Results
) -> None:
    """Add the results of surprisal, if cached, and of the entity grid."""
    texts = [text.text for text in prepared]
    dev, test = ([at for at in part if at in surprisals] for part in (split.dev, split.test))
    if dev and test:
        for whole in (False, True):
            nats = [surprisals[at] for at in dev]
            model = sentence_verdicts.fit_surprisal(DEFAULT_CAUSAL_MODEL, whole, [texts[at] for at in dev], nats)
            scores = model.score_surprisals([texts[at] for at in test], [surprisals[at] for at in test])
            name = f"surprisal, {'sum' if whole else 'mean'}"
            results.setdefault(name, []).append(([texts[at] for at in test], scores, model.calibration.thresholds))
    parses = [text.parse for text in prepared]
    grid = sentence_verdicts.fit_entity_grid_model(
        [parses[at] for at in split.train], [texts[at] for at in split.dev], [parses[at] for at in split.dev]
    )
    test_texts = [texts[at] for at in split.test]
    scores = grid.score_parses([parses[at] for at in split.test])
    results.setdefault("entity grid", []).append((test_texts, scores, grid.calibration.thresholds))


def add_synthetic_results(
    prepared: Sequence[PreparedText], split: TextSplit, results: Results, intrinsic: dict[str, list[tuple[float, ...]]]
) -> None:
    """Add results for both kinds of synthetic errors in training texts, with intrinsic figures on dev texts."""
    texts = [text.text for text in prepared]
    for negatives, name in (("coreference", "synthetic, coreference"), ("next-sentence", "synthetic, next sentence")):
        made = [
            sentence_verdicts.build_synthetic_rows(
                [texts[at] for at in part],
                [prepared[at].parse for at in part],
                negatives,  # type: ignore[arg-type]
                0,
            )
            for part in (split.train, split.dev)
        ]
        features = [prepared[at].features for at in split.dev]
        model = sentence_verdicts.fit_synthetic(made[0], negatives, [texts[at] for at in split.dev], features, 0)  # type: ignore[arg-type]
        scores = model.score_features([prepared[at].features for at in split.test])
        test_texts = [texts[at] for at in split.test]
        results.setdefault(name, []).append((test_texts, scores, model.calibration.thresholds))
        guess = model.trees(feature_matrix(made[1].rows, model.columns)) > 0
        right = int((guess & made[1].damaged).sum())
        f1 = 2 * right / max(int(guess.sum() + made[1].damaged.sum()), 1)
        row = (len(made[0].rows), len(made[1].rows), f1, float((guess == made[1].damaged).mean()))
        intrinsic.setdefault(name, []).append(row)


def main() -> None:
    place = os.environ.get("FINECOMB_DATA")
    if not place:
        sys.exit("set FINECOMB_DATA to the folder with the released data")
    cache = Cache()
    texts = read_narratives(Path(place))
    start = time.process_time()
    prepared = [
        PreparedText(text, parse, sentence_features(text, parse))
        for text, parse in zip(texts, parse_narratives(texts, "benchmark"), strict=True)
    ]
    sentences = sum(len(text.sentences) for text in texts)
    seconds = (time.process_time() - start) / sentences * 1000
    print(f"{sentences} sentences: grammar and features {seconds:.1f} s per 1,000", flush=True)
    surprisals = known_surprisals(texts, cache)
    results: Results = {}
    intrinsic: dict[str, list[tuple[float, ...]]] = {}
    for number, split in enumerate(cross_validation_splits(texts, 3, DEV_SHARE, np.random.default_rng(0))):
        test = [texts[at] for at in split.test]
        add_unsupervised_results(prepared, split, surprisals, results)
        add_synthetic_results(prepared, split, results, intrinsic)
        start = time.process_time()
        scores, thresholds = coherence_scores(prepared, split, None)
        print(f"split {number}: trees in {time.process_time() - start:.1f} s", flush=True)
        results.setdefault("coherence, features alone", []).append((test, scores, thresholds))
        tags = tagger_scores(texts, split, number, cache)
        if tags:
            results.setdefault("coherence", []).append((test, *coherence_scores(prepared, split, tags)))
    write_tables(results, intrinsic)


def known_surprisals(texts: Sequence[Narrative], cache: Cache) -> dict[int, TokenSurprisals]:
    """Return the surprisals of the texts that have cached ones."""
    model: list[SurprisalScorer] = []
    known = {}
    for at, text in enumerate(texts):

        def compute_surprisals(text: Narrative = text) -> dict[str, Floats]:
            model.extend([] if model else [SurprisalScorer.from_pretrained(DEFAULT_CAUSAL_MODEL)])
            nats = model[0]([text])[0]
            return {"nats": nats.nats, "offsets": nats.offsets.astype(np.float64)}

        arrays = cache.get_arrays(f"surprisal.{text.id}", compute_surprisals)
        if arrays is not None:
            known[at] = TokenSurprisals(arrays["nats"], arrays["offsets"].astype(np.int64))
    return known


# --- tables ------------------------------------------------------------------------------------------------------


def format_spread(values: Sequence[float]) -> str:
    """Return the mean and standard deviation over splits."""
    numbers = np.array(values, dtype=float)
    if np.isnan(numbers).all():
        return ""
    deviation = f" ({np.nanstd(numbers, ddof=1):.2f})" if len(numbers) > 1 else ""
    return f"{np.nanmean(numbers):.2f}{deviation}".replace("0.", ".")


def write_tables(results: Results, intrinsic: Mapping[str, list[tuple[float, ...]]]) -> None:
    write_table(
        PAGE,
        "roc",
        markdown_table(
            ["detector", "splits", "area", *(f"at {share}" for share in FALSE_ALARM_RATES)], _roc_rows(results)
        ),
    )
    heads = ["detector", "char", "scene", "ref", "incon", "mean of the four"]
    rows: list[list[object]] = [
        [name, *(format_spread(values) for values in zip(*_recall_rows(folds), strict=True))]
        for name, folds in results.items()
    ]
    paper: list[list[object]] = [
        [f"{name} (paper)", *values, f"{np.mean(values):.2f}"] for name, values in PAPER_TABLE_10.items()
    ]
    write_table(PAGE, "recall", markdown_table(heads, [*rows, *paper]))
    heads = ["detector", "label", "precision", "recall", "F1", "overlap", "IoU", "recall at the paper's precision"]
    write_table(PAGE, "types", markdown_table(heads, _label_rows(results)))
    made: list[list[object]] = [
        [name, *(f"{int(np.mean(part)):,}" for part in columns[:2]), *(format_spread(part) for part in columns[2:])]
        for name, folds in intrinsic.items()
        for columns in [list(zip(*folds, strict=True))]
    ]
    printed: list[list[object]] = [
        ["coreference (paper)", "6,000", "920", ".78", ".77"],
        ["next sentence (paper)", "3,800", "880", ".71", ".74"],
    ]
    write_table(PAGE, "synthetic", markdown_table(["examples", "training", "dev", "F1", "accuracy"], [*made, *printed]))


def _roc_rows(results: Results) -> list[list[object]]:
    rows: list[list[object]] = []
    for name, folds in results.items():
        truth = [np.concatenate([text.target_matrix(())[:, -1] for text in texts]) for texts, _, _ in folds]
        chances = [np.concatenate([row.sentences[:, -1] for row in scores]) for _, scores, _ in folds]
        areas = [area_under_roc_curve(*pair) for pair in zip(chances, truth, strict=True)]
        points = [recall_at_false_positive_rates(*pair, FALSE_ALARM_RATES) for pair in zip(chances, truth, strict=True)]
        rows.append(
            [name, len(folds), format_spread(areas), *(format_spread(part) for part in zip(*points, strict=True))]
        )
    return rows


def _recall_rows(folds: Sequence[tuple[list[Narrative], list[TextScores], Mapping[str, float]]]) -> list[list[float]]:
    rows = []
    for texts, scores, _ in folds:
        recalls = label_recalls_at_precision(
            texts, [row.sentences[:, -1] for row in scores], LABELS, REFERENCE_PRECISION
        )
        values = [recalls[label] for label in LABELS]
        rows.append([*values, float(np.mean(values))])
    return rows


def _label_rows(results: Results) -> list[list[object]]:
    rows: list[list[object]] = []
    for name, folds in results.items():
        if not name.startswith("coherence"):
            continue
        figures = [label_score_rows(texts, scores, LABELS, thresholds) for texts, scores, thresholds in folds]
        for column, label in enumerate(LABELS):
            cells = [
                format_spread([float(str(fold[column][part])) for fold in figures])
                for part in ("precision", "recall", "f1", "overlap", "iou")
            ]
            rows.append(
                [name, label, *cells, format_spread([_recall_at_paper_precision(fold, column) for fold in folds])]
            )
    for label, (precision, recall, f1, overlap) in PAPER_TABLE_11.items():
        rows.append(["T5-Large with spans (paper)", label, precision, recall, f1, overlap, "", recall])
    return rows


def _recall_at_paper_precision(
    fold: tuple[list[Narrative], list[TextScores], Mapping[str, float]], column: int
) -> float:
    texts, scores, _ = fold
    truth = np.concatenate([text.target_matrix(LABELS)[:, column] for text in texts])
    chances = np.concatenate([row.sentences[:, column] for row in scores])
    threshold = threshold_at_precision(chances, truth, PAPER_PRECISION[LABELS[column]])
    return float((chances[truth] >= threshold).mean())
