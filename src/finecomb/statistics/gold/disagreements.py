"""Disagreements between a judge and gold: types of disagreement, label confusion, cases, and comparison of judges."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError
from finecomb.core.results import Finding, Signature
from finecomb.statistics.comparisons.system_ranking import SIGNIFICANCE_LEVEL
from finecomb.statistics.gold.mark_matching import Bools, Floats
from finecomb.statistics.gold.scores import JudgeComparison, Scores, recall_precision_and_f1
from finecomb.statistics.inference.permutation_tests import adjust_p_values
from finecomb.statistics.inference.resampling import (
    estimate_with_interval,
    few_documents_reason,
    permutation_p_value,
    resampled_document_weights,
)
from finecomb.statistics.selection.view import ANY_LABEL

PairingType = Literal["right", "label", "boundary", "boundary and label", "other reading", "missed", "extra"]
PAIRING_TYPES: tuple[PairingType, ...] = (
    "right",
    "boundary",
    "label",
    "boundary and label",
    "other reading",
    "missed",
    "extra",
)
MISSED: PairingType = "missed"
EXTRA: PairingType = "extra"
_MAX_EXACT_DOCUMENTS = 13  # documents; for so few, all arrangements are enumerated


class MarkPairing(NamedTuple):
    """A gold mark paired with a mark of the judge, or a mark of either side without a partner."""

    judge: str
    document: str
    kind: PairingType
    gold: str
    """Words marked by gold; empty for an extra mark."""
    gold_label: str
    predicted: str
    predicted_label: str
    gold_mark: str
    """ID of the gold mark; empty for an extra mark."""
    predicted_mark: str
    start: int
    """Start in the text, used for sorting; -1 for marks without a position."""


def mark_pairings(judged: JudgeComparison) -> Iterator[MarkPairing]:
    """Yield each gold mark and each mark of the judge once, in text order."""
    order = {id: position for position, id in enumerate(judged.judge.documents)}
    yield from sorted(_unsorted_pairings(judged), key=lambda case: (order[case.document], case.start, case.kind))


def _unsorted_pairings(judged: JudgeComparison) -> Iterator[MarkPairing]:
    gold, marks = (list(frame.iter_rows(named=True)) for frame in (judged.gold, judged.judge.marks))
    name, matching = judged.judge.name, judged.matching
    paired = set(matching.partner[matching.partner >= 0].tolist())
    for index, gold_mark in enumerate(gold):
        partner = int(matching.partner[index])
        judge_mark = marks[partner] if partner >= 0 else None
        kind = _pairing_type(gold_mark, judge_mark) if judge_mark else MISSED
        kind = "other reading" if partner < 0 and matching.credit[index] else kind
        yield _build_pairing(name, kind, gold_mark, judge_mark)
    for index, mark in enumerate(marks):
        if index not in paired and not matching.right[index]:
            yield _build_pairing(name, EXTRA, None, mark)


def _pairing_type(gold: dict[str, Any], mark: dict[str, Any]) -> PairingType:
    spans, labels = gold["spans"] == mark["spans"], gold["label"] == mark["label"]
    if spans:
        return "right" if labels else "label"
    return "boundary" if labels else "boundary and label"


def _build_pairing(
    judge: str, kind: PairingType, gold: dict[str, Any] | None, mark: dict[str, Any] | None
) -> MarkPairing:
    some = gold or mark
    assert some is not None
    start = some["spans"][0]["start"] if some["spans"] else -1
    words = ["" if row is None else " … ".join(row["quotes"]) for row in (gold, mark)]
    labels = ["" if row is None else str(row["label"]) for row in (gold, mark)]
    ids = ["" if row is None else str(row["id"]) for row in (gold, mark)]
    return MarkPairing(
        judge, str(some["document"]), kind, words[0], labels[0], words[1], labels[1], ids[0], ids[1], start
    )


def disagreement_rows(scores: Scores) -> list[dict[str, object]]:
    """Return all pairings other than `right` as table rows."""
    hidden = {"gold_mark", "predicted_mark", "start"}
    wrong_cases = (case for judged in scores.judged for case in mark_pairings(judged) if case.kind != "right")
    return [{name: value for name, value in case._asdict().items() if name not in hidden} for case in wrong_cases]


def pairing_type_table(scores: Scores) -> list[dict[str, object]]:
    """Count marks by type (right, wrong boundary, label or both, missed, extra), with shares of all gold marks."""
    rows: list[dict[str, object]] = []
    for judged in scores.judged:
        counted = [case.kind for case in mark_pairings(judged)]
        for kind in PAIRING_TYPES:
            count = counted.count(kind)
            share = count / len(judged.gold) if len(judged.gold) and kind != EXTRA else math.nan
            rows.append({"judge": judged.judge.name, "kind": kind, "count": count, "share of gold": share})
    return rows


def label_confusion_rows(scores: Scores) -> list[dict[str, object]]:
    """Return the confusion of gold labels (rows) and judge labels (columns), ending with missed and extra marks."""
    rows: list[dict[str, object]] = []
    for judged in scores.judged:
        judge_cases = list(mark_pairings(judged))
        pairs = pl.DataFrame(
            {
                "gold": [c.gold_label or EXTRA for c in judge_cases],
                "said": [
                    (c.gold_label if c.kind == "other reading" else c.predicted_label or MISSED) for c in judge_cases
                ],
            }
        )
        counts = {(gold, answer): n for gold, answer, n in pairs.group_by("gold", "said").len().iter_rows()}
        labels = [
            *judged.labels[2:],
            *sorted({name for key in counts for name in key} - {*judged.labels, MISSED, EXTRA}),
        ]
        for gold in [*labels, EXTRA]:
            counted: dict[str, object] = {answer: counts.get((gold, answer), 0) for answer in [*labels, MISSED]}
            rows.append({"judge": judged.judge.name, "gold label": gold, **counted})
    return rows


# --- comparison of judges ----------------------------------------------------------------------------------------


def compare_judges(scores: Scores, label: str = ANY_LABEL, draws: int = 10_000, seed: int = 0) -> list[Finding]:
    """Compare recall, precision and F1 of each pair of judges by a paired permutation test over documents.

    Under the null hypothesis, the judges are exchangeable on each document. With at most 13 documents, all arrangements
    are enumerated; otherwise p = (1 + hits) / (1 + draws). Only documents on which both judges are scored are used.
    `p_adjusted` is corrected by Holm's method over the pairs of judges, per measure. Results are NaN if a ratio is
    undefined.
    """
    if len(scores.judged) < 2:
        raise FinecombError(f"a comparison requires at least two judges, found {len(scores.judged)}")
    if label not in scores.judged[0].labels:
        raise FinecombError(f"label {label!r} is not used; labels in use: {', '.join(scores.judged[0].labels)}")
    findings = [
        finding
        for first, second in itertools.combinations(scores.judged, 2)
        for finding in _compare_two_judges(first, second, label, dict(scores.fields), draws, seed)
    ]
    corrected: list[Finding] = []
    for name in ("recall", "precision", "f1"):
        same_measure = [finding for finding in findings if finding.columns["measure"] == name]
        p = adjust_p_values(np.array([finding.columns["p"] for finding in same_measure], dtype=np.float64))
        corrected += [
            Finding({**finding.columns, "p_adjusted": float(adjusted_p)}, finding.estimate)
            for finding, adjusted_p in zip(same_measure, p, strict=True)
        ]
    return corrected


def significantly_best_judges(scores: Scores, draws: int = 10_000, seed: int = 0) -> set[tuple[str, str]]:
    """Return each judge and ratio (recall, precision, f1) for which the judge is significantly better than all others.

    Labels are ignored. The tests are those of `compare_judges`, with corrected p below .05.
    """
    beaten: Counter[tuple[str, str]] = Counter()
    for finding in compare_judges(scores, draws=draws, seed=seed):
        p, value = finding.columns["p_adjusted"], finding.estimate.value
        if isinstance(p, float) and p < SIGNIFICANCE_LEVEL:
            beaten[str(finding.columns["a" if value > 0 else "b"]), str(finding.columns["measure"])] += 1
    return {winner for winner, count in beaten.items() if count == len(scores.judged) - 1}


def _compare_two_judges(
    one: JudgeComparison, other: JudgeComparison, label: str, signature_fields: dict[str, object], draws: int, seed: int
) -> Iterator[Finding]:
    common = [id for id in one.judge.documents if id in set(other.judge.documents)]
    a, b = (_score_sums_of_documents(comparison, label, common) for comparison in (one, other))
    rng = np.random.default_rng(seed)
    difference = recall_precision_and_f1(a.sum(axis=0)) - recall_precision_and_f1(b.sum(axis=0))
    exact = len(common) <= _MAX_EXACT_DOCUMENTS
    moved = _swap_patterns(len(common), exact, draws, rng).astype(np.float64) @ (b - a)
    null = recall_precision_and_f1(a.sum(axis=0) + moved) - recall_precision_and_f1(b.sum(axis=0) - moved)
    weights = resampled_document_weights(len(common), draws, rng)
    differences_per_draw = recall_precision_and_f1(weights @ a) - recall_precision_and_f1(weights @ b)
    for index, name in enumerate(("recall", "precision", "f1")):
        value = float(difference[index])
        why = "undefined for at least one of the two judges" if math.isnan(value) else ""
        p = math.nan if why else permutation_p_value(null[:, index], value, exact)
        fields = {
            "statistic": f"{name}-difference",
            "label": label,
            **signature_fields,
            "documents": len(common),
            "draws": draws,
        }
        signature = Signature.from_fields(**{**fields, "test": "exact" if exact else "permutation"})
        columns = {"a": one.judge.name, "b": other.judge.name, "measure": name, "label": label, "p": p}
        yield Finding(
            columns,
            estimate_with_interval(
                value, differences_per_draw[:, index], signature, why, few_documents_reason(len(common))
            ),
        )


def _score_sums_of_documents(judged: JudgeComparison, label: str, documents: list[str]) -> Floats:
    positions = {id: position for position, id in enumerate(judged.judge.documents)}
    sums: Floats = judged.sums[judged.labels.index(label)][[positions[id] for id in documents]]
    return sums


def _swap_patterns(documents: int, exact: bool, draws: int, rng: np.random.Generator) -> Bools:
    """Return a mask of the documents on which the judges are swapped in each arrangement, (arrangements, documents)."""
    if exact:
        return np.array(list(itertools.product([False, True], repeat=documents)), dtype=bool)
    return rng.random((draws, documents)) < 0.5
