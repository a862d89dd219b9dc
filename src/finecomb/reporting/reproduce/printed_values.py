"""What papers print beside what comes out, and where a paper contradicts itself."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np
import yaml

from finecomb.core.study import Study
from finecomb.reporting.reproduce.exhibits import ExhibitRow
from finecomb.statistics.measures.printed_confusion import (
    PrintedRow,
    matching_confusion_matrices,
    rounds_to_printed_digits,
)
from finecomb.statistics.measures.study_counts import counts_by_group as counted
from finecomb.statistics.measures.study_counts import document_meta_names

PrintedRows = Mapping[str, Mapping[str, str]]


@functools.cache
def _load_printed_values() -> Mapping[str, Mapping[str, PrintedRows]]:
    text = (resources.files(__package__) / "printed.yaml").read_text(encoding="utf-8")
    values: Mapping[str, Mapping[str, PrintedRows]] = yaml.safe_load(text)
    return values


def printed_rows(paper: str, number: str) -> PrintedRows:
    """The printed cells of an exhibit, by row and column; nothing where none are kept."""
    return _load_printed_values().get(paper, {}).get(number, {})


_TEXTS_BY_SYSTEM: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "thomson-reiter": ({"wiseman": 7, "puduppully": 7, "rebuffel": 7},),
    "snac": ({"book_175b": 55, "book_6b": 55, "tripod": 40},),
}
"""Texts of each system in the data that the papers published."""


def is_paper_data(paper: str, study: Study) -> bool:
    """Whether a study is the paper's own data, by its systems and how many texts each has."""
    work = study.submitted_work()
    if paper not in _TEXTS_BY_SYSTEM or "model" not in document_meta_names(work) or work.annotations.is_empty():
        return False
    texts = {str(model): int(documents) for model, documents, *_ in counted(work, ["model"]).iter_rows()}
    return any(texts == dict(expected) for expected in _TEXTS_BY_SYSTEM[paper])


# --- ours beside theirs ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """A printed number beside ours."""

    row: str
    column: str
    ours: float
    printed: str

    @property
    def agrees(self) -> bool:
        """Whether ours, rounded, gives the printed digits; `3.1k` are thousands."""
        if self.printed.endswith("k"):
            return bool(rounds_to_printed_digits(np.array([self.ours / 1000]), self.printed[:-1])[0])
        return bool(rounds_to_printed_digits(np.array([self.ours]), self.printed)[0])


def compare_with_printed(table: Sequence[ExhibitRow], rows: PrintedRows) -> list[PrintedCell]:
    """Every printed number whose cell the table has; rows go by their first column, whatever its capitals."""
    by_name = {name.casefold(): cells for name, cells in rows.items()}
    cells = []
    for row in table:
        name = str(next(iter(row.values())))
        for column, words in by_name.get(name.casefold(), {}).items():
            value = row.get(column)
            if isinstance(value, int | float) and not math.isnan(value):
                cells.append(PrintedCell(name, column, float(value), words))
    return cells


# --- contradictions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two printed numbers that cannot both be right."""

    where: str
    says: str
    but: str


def _rounding_range(words: str) -> tuple[float, float]:
    """What a rounded number can have been."""
    half = 0.5 * 10.0 ** -len(words.partition(".")[2])
    return float(words) - half, float(words) + half


def variation_contradictions() -> list[Contradiction]:
    """Rows of Scarecrow's Table 5 whose coefficient is not their deviation over their mean."""
    rows = []
    for name, cells in printed_rows("scarecrow", "Table 5").items():
        mean, deviation, share = (_rounding_range(cells[column]) for column in ("mean", "std.", "c.v. (%)"))
        low, high = 100 * deviation[0] / mean[1], 100 * deviation[1] / mean[0]
        if share[1] < low or share[0] > high:
            said = f"the coefficient of variation of {name} is {cells['c.v. (%)']}%"
            ratio = 100 * float(cells["std."]) / float(cells["mean"])
            rows.append(Contradiction("Table 5", said, f"{cells['std.']} / {cells['mean']} is {ratio:.1f}%"))
    return rows


def rate_contradictions(texts: int = 7) -> list[Contradiction]:
    """Kinds whose errors per text in Table 2 cannot add up to their total in Table 1 (Thomson and Reiter)."""
    rows = []
    rates = printed_rows("thomson-reiter", "Table 2").values()
    for kind, cells in printed_rows("thomson-reiter", "Table 1").items():
        if any(kind not in row for row in rates):
            continue
        counts = [_possible_error_counts(row[kind], texts) for row in rates]
        least, most = sum(min(numbers) for numbers in counts), sum(max(numbers) for numbers in counts)
        if not least <= int(cells["total"]) <= most:
            said = f"{cells['total']} errors of kind {kind}"
            number = str(least) if least == most else f"{least} to {most}"
            rows.append(
                Contradiction("Tables 1 and 2", said, f"{texts} texts of each system at Table 2's rates make {number}")
            )
    return rows


def _possible_error_counts(rate: str, texts: int) -> list[int]:
    """Numbers of errors in so many texts that give a printed rate; the nearest one where none does."""
    low, high = _rounding_range(rate) if "." in rate else (float(rate) - 0.05, float(rate) + 0.05)
    numbers = [n for n in range(int(texts * (high + 1)) + 1) if low - 1e-9 <= n / texts <= high + 1e-9]
    return numbers or [round(float(rate) * texts)]


def confusion_contradictions(judgements: int = 650) -> list[Contradiction]:
    """Rows of Clark et al.'s Tables 1 and 2 that no confusion matrix gives."""
    rows = []
    for number in ("Table 1", "Table 2"):
        for name, cells in printed_rows("clark", number).items():
            figures = PrintedRow(
                *(cells[column] for column in ("Acc.", "F1", "Prec.", "Recall", "% human", "% confident"))
            )
            if not len(matching_confusion_matrices(figures, judgements)):
                others = f"{cells['% human']}% human, P {cells['Prec.']} and R {cells['Recall']}"
                but = f"no {judgements} answers give that and {others}"
                rows.append(Contradiction(number, f"{name}: accuracy {cells['Acc.']}", but))
    return rows


def latent_contradictions() -> list[Contradiction]:
    """The transformer's Latent PPL in Deng et al.'s Table 1 and in its running text."""
    rows = printed_rows("deng", "Table 1")
    table, text = (rows[name]["Latent PPL"] for name in ("Trans-LM", "Trans-LM in the running text"))
    if table == text:
        return []
    return [Contradiction("Table 1", f"the transformer's Latent PPL is {table}", f"section 3 says {text}")]


CONTRADICTION_CHECKS: Mapping[str, Callable[[], list[Contradiction]]] = {
    "scarecrow": variation_contradictions,
    "thomson-reiter": rate_contradictions,
    "clark": confusion_contradictions,
    "deng": latent_contradictions,
}
"""By paper: what finds printed numbers that cannot all be right."""


def find_contradictions(paper: str) -> list[Contradiction]:
    """Where a paper contradicts itself, computed from what it prints."""
    return CONTRADICTION_CHECKS[paper]() if paper in CONTRADICTION_CHECKS else []
