"""Values printed in papers: comparison with our results, and contradictions within a paper."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np

from finecomb.core.protocol_yaml import load_yaml
from finecomb.core.study import Study, document_meta_names
from finecomb.reporting.reproduce.exhibits import ExhibitRow
from finecomb.statistics.measures.printed_confusion import (
    PrintedRow,
    matching_confusion_matrices,
    rounds_to_printed_digits,
)
from finecomb.statistics.measures.study_counts import counts_by_group as counted

PrintedRows = Mapping[str, Mapping[str, str]]


@functools.cache
def _load_printed_values() -> Mapping[str, Mapping[str, PrintedRows]]:
    text = (resources.files(__package__) / "printed.yaml").read_text(encoding="utf-8")
    values: Mapping[str, Mapping[str, PrintedRows]] = load_yaml(text, "the printed values")
    return values


def printed_rows(paper: str, number: str) -> PrintedRows:
    """Return the values printed in an exhibit by row and column, or an empty mapping if none are stored."""
    return _load_printed_values().get(paper, {}).get(number, {})


_TEXTS_BY_SYSTEM: Mapping[str, tuple[Mapping[str, int], ...]] = {
    "thomson-reiter": ({"wiseman": 7, "puduppully": 7, "rebuffel": 7},),
    "snac": ({"book_175b": 55, "book_6b": 55, "tripod": 40},),
}
"""Number of texts per system in the published data of each paper."""


def is_paper_data(paper: str, study: Study) -> bool:
    """Return True if a study is the published data of a paper, judged by its systems and their number of texts."""
    work = study.submitted_work()
    if paper not in _TEXTS_BY_SYSTEM or "model" not in document_meta_names(work) or work.annotations.is_empty():
        return False
    texts = {str(model): int(documents) for model, documents, *_ in counted(work, ["model"]).iter_rows()}
    return any(texts == dict(expected) for expected in _TEXTS_BY_SYSTEM[paper])


# --- comparison with our values ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """Value printed in a paper, with our value."""

    row: str
    column: str
    ours: float
    printed: str

    @property
    def agrees(self) -> bool:
        """True if our value rounds to the printed digits; `3.1k` means thousands."""
        if self.printed.endswith("k"):
            return bool(rounds_to_printed_digits(np.array([self.ours / 1000]), self.printed[:-1])[0])
        return bool(rounds_to_printed_digits(np.array([self.ours]), self.printed)[0])


def compare_with_printed(table: Sequence[ExhibitRow], rows: PrintedRows) -> list[PrintedCell]:
    """Return all printed values that have a cell in the table; rows match by their first column, ignoring case."""
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
class PrintedContradiction:
    """Two printed statements that cannot both be true."""

    where: str
    says: str
    but: str


def _rounding_range(words: str) -> tuple[float, float]:
    """Return the range of values that round to a printed number."""
    half = 0.5 * 10.0 ** -len(words.partition(".")[2])
    return float(words) - half, float(words) + half


def variation_coefficient_contradictions() -> Iterator[PrintedContradiction]:
    """Find rows of Scarecrow's Table 5 whose coefficient of variation is not std. / mean."""
    for name, cells in printed_rows("scarecrow", "Table 5").items():
        mean, deviation, share = (_rounding_range(cells[column]) for column in ("mean", "std.", "c.v. (%)"))
        low, high = 100 * deviation[0] / mean[1], 100 * deviation[1] / mean[0]
        if share[1] < low or share[0] > high:
            statement = f"the coefficient of variation of {name} is {cells['c.v. (%)']}%"
            ratio = 100 * float(cells["std."]) / float(cells["mean"])
            yield PrintedContradiction("Table 5", statement, f"{cells['std.']} / {cells['mean']} is {ratio:.1f}%")


def error_rate_contradictions(texts: int = 7) -> Iterator[PrintedContradiction]:
    """Find error types whose rates in Table 2 cannot add up to the total in Table 1 (Thomson and Reiter)."""
    rates = printed_rows("thomson-reiter", "Table 2").values()
    for kind, cells in printed_rows("thomson-reiter", "Table 1").items():
        if any(kind not in row for row in rates):
            continue
        counts = []
        for rate in (row[kind] for row in rates):
            # error counts that round to the printed rate, or the nearest count if none does
            low, high = _rounding_range(rate) if "." in rate else (float(rate) - 0.05, float(rate) + 0.05)
            possible = [n for n in range(int(texts * (high + 1)) + 1) if low - 1e-9 <= n / texts <= high + 1e-9]
            counts.append(possible or [round(float(rate) * texts)])
        least, most = sum(map(min, counts)), sum(map(max, counts))
        if not least <= int(cells["total"]) <= most:
            statement = f"there are {cells['total']} errors of type {kind}"
            number = str(least) if least == most else f"{least} to {most}"
            but = f"the rates of Table 2 for {texts} texts per system give {number}"
            yield PrintedContradiction("Tables 1 and 2", statement, but)


def confusion_matrix_contradictions(judgements: int = 650) -> Iterator[PrintedContradiction]:
    """Find rows of Tables 1 and 2 of Clark et al. that no confusion matrix can produce."""
    for number in ("Table 1", "Table 2"):
        for name, cells in printed_rows("clark", number).items():
            columns = ("Acc.", "F1", "Prec.", "Recall", "% human", "% confident")
            if not len(matching_confusion_matrices(PrintedRow(*(cells[column] for column in columns)), judgements)):
                others = f"{cells['% human']}% human, P {cells['Prec.']} and R {cells['Recall']}"
                but = f"no set of {judgements} judgements gives this accuracy together with {others}"
                yield PrintedContradiction(number, f"the accuracy of {name} is {cells['Acc.']}", but)


def latent_perplexity_contradictions() -> Iterator[PrintedContradiction]:
    """Compare the latent PPL of the transformer in Table 1 and in section 3 of Deng et al."""
    rows = printed_rows("deng", "Table 1")
    table, text = (rows[name]["Latent PPL"] for name in ("Trans-LM", "Trans-LM in the running text"))
    if table != text:
        statement = f"the latent PPL of the transformer is {table}"
        yield PrintedContradiction("Table 1", statement, f"section 3 gives {text}")


CONTRADICTION_CHECKS: Mapping[str, Callable[[], Iterator[PrintedContradiction]]] = {
    "scarecrow": variation_coefficient_contradictions,
    "thomson-reiter": error_rate_contradictions,
    "clark": confusion_matrix_contradictions,
    "deng": latent_perplexity_contradictions,
}
"""Functions that find contradictory printed values, by paper."""


def find_contradictions(paper: str) -> list[PrintedContradiction]:
    """Find contradictions between values that a paper prints."""
    return list(CONTRADICTION_CHECKS[paper]()) if paper in CONTRADICTION_CHECKS else []
