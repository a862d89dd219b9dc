from __future__ import annotations

import itertools

import pytest

from finecomb.core.errors import FinecombError
from finecomb.statistics.measures.printed_confusion import (
    PrintedRow,
    check_printed_rows,
    counts_from_percentage,
    matching_confusion_matrices,
)
from tests.golden.clark_2021 import CONFIDENT, GPT2_STORIES, HUMAN, JUDGEMENTS, ROWS


def test_every_row_of_clark_but_gpt3_news_has_a_matrix() -> None:
    found = {row.columns["row"]: row.estimate.value for row in check_printed_rows(ROWS, JUDGEMENTS)}
    assert [name for name, count in found.items() if not count] == ["GPT3 news"]
    assert len(found) == 15


def test_the_known_matrix_of_gpt2_stories_is_among_them() -> None:
    assert GPT2_STORIES in {
        tuple(map(int, row)) for row in matching_confusion_matrices(ROWS["GPT2", "stories"], JUDGEMENTS)
    }


@pytest.mark.parametrize("model", ["GPT2", "GPT3"])
def test_percentages_of_table_1_are_whole_judgements(model: str) -> None:
    rows = [ROWS[model, domain] for domain in ("stories", "news", "recipes")]
    assert [counts_from_percentage(row.human, JUDGEMENTS).tolist() for row in rows] == [[each] for each in HUMAN[model]]
    assert [counts_from_percentage(row.confident, JUDGEMENTS).tolist() for row in rows] == [
        [each] for each in CONFIDENT[model]
    ]


def test_gpt3_news_would_fit_with_an_accuracy_of_52() -> None:
    printed = ROWS["GPT3", "news"]
    mended = PrintedRow("0.52", printed.f1, printed.precision, printed.recall, printed.human, printed.confident)
    assert len(matching_confusion_matrices(printed, JUDGEMENTS)) == 0
    assert len(matching_confusion_matrices(mended, JUDGEMENTS)) > 0


def _fits(cells: tuple[int, ...], row: PrintedRow) -> bool:
    tp, fp, fn, tn = cells
    total = sum(cells)
    if not (tp + fp and tp + fn):
        return False
    figures = ((tp + tn) / total, 2 * tp / (2 * tp + fp + fn), tp / (tp + fp), tp / (tp + fn), 100 * (fn + tn) / total)
    printed = (row.accuracy, row.f1, row.precision, row.recall, row.human)
    return all(
        abs(value - float(text)) <= 0.5 * 10 ** -len(text.partition(".")[2]) + 1e-9
        for value, text in zip(figures, printed, strict=True)
    )


@pytest.mark.parametrize(
    ("row", "total"),
    [(PrintedRow("0.6", "0.7", "0.6", "0.7", "43"), 14), (PrintedRow("0.5", "0.5", "0.5", "0.5", "50"), 12)],
)
def test_matrices_are_those_that_trying_all_of_them_gives(row: PrintedRow, total: int) -> None:
    cells = itertools.product(range(total + 1), repeat=4)
    slow = {each for each in cells if sum(each) == total and _fits(each, row)}
    assert {tuple(map(int, each)) for each in matching_confusion_matrices(row, total)} == slow
    assert slow


def test_a_share_of_confident_answers_that_no_count_gives_leaves_no_matrix() -> None:
    row = ROWS["GPT2", "stories"]
    impossible = PrintedRow(row.accuracy, row.f1, row.precision, row.recall, row.human, "52.01")
    assert len(matching_confusion_matrices(impossible, JUDGEMENTS)) == 0


def test_what_is_not_a_number_is_refused() -> None:
    with pytest.raises(FinecombError, match=r"a number such as 0\.62, found 'n/a'"):
        matching_confusion_matrices(PrintedRow("n/a", "0", "0", "0", "50"), 10)
    with pytest.raises(FinecombError, match="judgements must be at least 1"):
        matching_confusion_matrices(ROWS["GPT2", "news"], 0)
