"""Confusion matrices that fit a published row of accuracy, precision, recall, F1 and answer shares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.results import Estimate, Finding, Signature

ConfusionMatrices = NDArray[np.int64]  # (matrices, 4): TP, FP, FN, TN with machine as the positive class


@dataclass(frozen=True, slots=True)
class PrintedRow:
    """One row of a published table, as strings, which keep the number of printed digits."""

    accuracy: str
    f1: str
    precision: str
    recall: str
    human: str
    """Percentage of "human" answers."""
    confident: str = ""
    """Percentage of "definitely" answers, or empty if the table does not contain it."""


def rounds_to_printed_digits(values: NDArray[np.float64], printed: str) -> NDArray[np.bool_]:
    """Return True where a value rounds to the printed digits; a value halfway between two may round either way.

    >>> rounds_to_printed_digits(np.array([0.475, 0.4751, 0.465, 0.4649]), "0.47")
    array([ True, False,  True, False])
    """
    try:
        target = float(printed)
    except ValueError:
        raise FinecombError(f"a printed figure must be a number such as 0.62, found {printed!r}") from None
    digits = len(printed.partition(".")[2])
    return np.abs(values - target) <= 0.5 * 10.0**-digits + 1e-9


def counts_from_percentage(percentage: str, judgements: int) -> NDArray[np.int64]:
    """Return the counts out of `judgements` whose percentage rounds to the printed one.

    >>> counts_from_percentage("55.23", 650)
    array([359])
    """
    every = np.arange(judgements + 1)
    return every[rounds_to_printed_digits(100 * every / judgements, percentage)]


def matching_confusion_matrices(row: PrintedRow, judgements: int) -> ConfusionMatrices:
    """Return all confusion matrices of `judgements` answers that reproduce every printed figure of the row."""
    if judgements < 1:
        raise FinecombError(f"the number of judgements must be at least 1, found {judgements}")
    fitting = [
        _matrices_with_human_count(row, judgements, int(human))
        for human in counts_from_percentage(row.human, judgements)
    ]
    possible = not row.confident or len(counts_from_percentage(row.confident, judgements)) > 0
    return np.concatenate(fitting) if fitting and possible else np.zeros((0, 4), dtype=np.int64)


def _matrices_with_human_count(row: PrintedRow, judgements: int, human: int) -> ConfusionMatrices:
    """Return the matching matrices with a given number of "human" answers, which leaves two of the four cells free."""
    machine = judgements - human  # TP + FP
    tp, fn = np.meshgrid(np.arange(machine + 1), np.arange(human + 1), indexing="ij")
    fp, tn = machine - tp, human - fn
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 is NaN, which matches no figure
        conditions = [
            rounds_to_printed_digits((tp + tn) / judgements, row.accuracy),
            rounds_to_printed_digits(tp / np.float64(machine), row.precision),
            rounds_to_printed_digits(tp / (tp + fn), row.recall),
            rounds_to_printed_digits(2 * tp / (2 * tp + fp + fn), row.f1),
        ]
    fits = np.logical_and.reduce(conditions)
    return np.stack([tp[fits], fp[fits], fn[fits], tn[fits]], axis=-1)


def check_printed_rows(rows: Mapping[tuple[str, ...], PrintedRow], judgements: int = 650) -> list[Finding]:
    """Count the confusion matrices that fit each row of a published table; 0 means that the row is inconsistent.

    `rows` are keyed by their subject, e.g. ("GPT2", "stories").
    """
    return [
        _fitting_matrix_count_finding(name, matching_confusion_matrices(row, judgements), judgements)
        for name, row in rows.items()
    ]


def _fitting_matrix_count_finding(name: tuple[str, ...], fitting: ConfusionMatrices, judgements: int) -> Finding:
    signature = Signature.from_fields(statistic="confusion-rows", judgements=judgements)
    machine = (fitting[:, 0] + fitting[:, 2]) if len(fitting) else np.zeros(0)
    columns = {
        "row": " ".join(name),
        "measure": "matrices that fit",
        "machine texts, fewest": int(machine.min()) if len(fitting) else None,
        "machine texts, most": int(machine.max()) if len(fitting) else None,
    }
    return Finding(columns, Estimate(float(len(fitting)), math.nan, math.nan, signature))
