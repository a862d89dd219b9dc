from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import krippendorff
import numpy as np
import pytest
from scipy import stats

from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Design, Document, Settings
from finecomb.core.results import Finding
from finecomb.core.study import Study
from finecomb.protocols import load
from finecomb.statistics.comparisons.human_or_machine import (
    evaluator_score_histogram,
    evaluator_score_tests,
    human_or_machine_findings,
)
from finecomb.statistics.selection.view import Filters, View, view
from tests.golden.clark_2021 import GPT2_STORIES

TURING = load("turing")


def study(rows: Sequence[tuple[str, str, int | None]], models: Mapping[str, str | None], **conditions: str) -> View:
    """Build ratings (annotator, text, rating) of texts by models."""
    documents = [
        Document(id=id, text="Once.", meta={"domain": "stories"} | ({} if model is None else {"model": model}))
        for id, model in models.items()
    ]
    names = dict.fromkeys(reader for reader, _, _ in rows)
    people = [Annotator(id=name, kind="human", condition=conditions.get(name, "")) for name in names]
    annotations = [
        Annotation(
            id=f"{reader}/{text}",
            document=text,
            annotator=reader,
            protocol=TURING.id,
            answers={} if rating is None else {"rating": rating},
        )
        for reader, text, rating in rows
    ]
    return view(Study.from_items([TURING, *documents, *people, *annotations]))


def by_measure(found: Sequence[Finding]) -> dict[str, Finding]:
    return {str(row.columns["measure"]): row for row in found}


def clark_row(cells: tuple[int, int, int, int], confident: int) -> View:
    """Build 130 annotators with 5 texts each, from a confusion matrix and a number of "definitely" answers."""
    tp, fp, fn, tn = cells
    judged = [("gpt2", True)] * tp + [("human", True)] * fp + [("gpt2", False)] * fn + [("human", False)] * tn
    order = np.random.default_rng(0).permutation(len(judged))
    rows, models = [], {}
    for at, place in enumerate(order):
        author, machine = judged[place]
        sure = at < confident
        text = f"{author}-{at % 50}"
        models[text] = author
        rows.append((f"r{at // 5}", f"{text}", (4 if sure else 3) if machine else (1 if sure else 2)))
    unique = [(reader, f"{text}-{at}", rating) for at, (reader, text, rating) in enumerate(rows)]
    return study(unique, {text: models[text.rsplit("-", 1)[0]] for _, text, _ in unique})


def test_a_row_of_clarks_table_1_comes_out() -> None:
    found = by_measure(human_or_machine_findings(clark_row(GPT2_STORIES, 338), draws=100))
    printed = {"accuracy": 0.62, "f1": 0.60, "precision": 0.64, "recall": 0.56}
    for name, value in printed.items():
        assert round(found[name].estimate.value, 2) == value
    assert round(found["% human"].estimate.value, 2) == 55.23
    assert round(found["% confident"].estimate.value, 2) == 52.00
    assert found["accuracy"].columns["df"] == 129
    assert (found["accuracy"].columns["evaluators"], found["accuracy"].columns["judgements"]) == (130, 650)
    assert all(
        row.estimate.low <= row.estimate.value <= row.estimate.high
        for row in found.values()
        if row is not found["alpha"]
    )


FOUR = {"h1": "human", "h2": "human", "m1": "gpt", "m2": "gpt"}
RATINGS = [
    ("a", "h1", 1), ("a", "h2", 3), ("a", "m1", 4), ("a", "m2", 2),
    ("b", "h1", 2), ("b", "h2", 1), ("b", "m1", 3), ("b", "m2", 4),
    ("c", "h1", 1), ("c", "m1", 1), ("c", "m2", 3),
]  # fmt: skip


def test_everything_is_as_counted_by_hand() -> None:
    found = by_measure(human_or_machine_findings(study(RATINGS, FOUR), by=["model"], draws=200))
    tp, fp, fn, tn = 4, 1, 2, 4
    expected = {
        "accuracy": np.mean([2 / 4, 4 / 4, 2 / 3]),
        "precision": tp / (tp + fp),
        "recall": tp / (tp + fn),
        "f1": 2 * tp / (2 * tp + fp + fn),
        "% human": 100 * (tn + fn) / 11,
        "% confident": 100 * 6 / 11,
    }
    assert {name: found[name].estimate.value for name in expected} == pytest.approx(expected)
    oracle = stats.ttest_1samp([2 / 4, 1, 2 / 3], 0.5)
    assert found["accuracy"].columns["p"] == pytest.approx(oracle.pvalue)
    assert found["recall"].columns["p"] is None


TABLE: list[list[float]] = [[1, 3, 4, 2], [2, 1, 3, 4], [1, math.nan, 1, 3]]


def test_alpha_is_that_of_the_krippendorff_package() -> None:
    two = [[math.nan if math.isnan(each) else float(each > 2) for each in row] for row in TABLE]
    seen = study(RATINGS, FOUR)
    found = by_measure(human_or_machine_findings(seen, draws=50))["alpha"].estimate
    assert found.value == pytest.approx(krippendorff.alpha(two, level_of_measurement="nominal"))
    assert found.signature["bins"] == "2"
    asked = by_measure(human_or_machine_findings(seen, bins=4, draws=50))["alpha"].estimate
    assert asked.value == pytest.approx(krippendorff.alpha(TABLE, level_of_measurement="ordinal"))


def test_by_model_each_reader_brings_their_human_texts() -> None:
    models = {"h": "human", "x": "gpt2", "y": "gpt3"}
    rows = [("a", "h", 1), ("a", "x", 4), ("b", "h", 4), ("b", "y", 1), ("c", "h", 1), ("c", "y", 4)]
    found = human_or_machine_findings(study(rows, models), by=["model"], draws=0)
    accuracy = {row.columns["model"]: row for row in found if row.columns["measure"] == "accuracy"}
    assert {model: row.estimate.value for model, row in accuracy.items()} == {"gpt2": 1.0, "gpt3": 0.5}
    assert {model: row.columns["judgements"] for model, row in accuracy.items()} == {"gpt2": 2, "gpt3": 4}


def test_p_is_corrected_over_groups() -> None:
    rows = [(f"{group}{n}", text, 1 + (n + at) % 4) for group in "xy" for n in range(6) for at, text in enumerate(FOUR)]
    conditions = {f"{group}{n}": group for group in "xy" for n in range(6)}
    found = human_or_machine_findings(study(rows, FOUR, **conditions), by=["condition"], draws=0)
    tests = [row for row in found if row.columns["measure"] == "accuracy"]
    assert [row.columns["condition"] for row in tests] == ["x", "y"]
    for row in tests:
        assert row.columns["p_adjusted"] == pytest.approx(min(1, 2 * float(str(row.columns["p"]))))


def test_all_ratings_equal_have_no_alpha_and_no_precision() -> None:
    found = by_measure(human_or_machine_findings(study([(r, t, 1) for r in "ab" for t in FOUR], FOUR), draws=20))
    assert found["alpha"].estimate.why == "all ratings are equal"
    assert found["precision"].estimate.why == "no annotator answered machine"
    assert found["recall"].estimate.value == 0
    assert found["accuracy"].estimate.value == 0.5
    assert math.isnan(float(str(found["accuracy"].columns["p"])))
    assert found["% human"].estimate.value == 100


def test_one_reader_has_no_alpha_and_no_test() -> None:
    found = by_measure(human_or_machine_findings(study([("a", text, 3) for text in FOUR], FOUR), draws=20))
    assert found["alpha"].estimate.why == "no text was rated by two evaluators"
    assert math.isnan(float(str(found["accuracy"].columns["p"])))
    assert math.isnan(found["f1"].estimate.low)


@pytest.mark.parametrize(
    ("rows", "models", "message"),
    [
        ([("a", "h1", None)], FOUR, "no submitted annotation answers question"),
        ([("a", "h1", 7)], FOUR, "annotation 'a/h1' has the rating 7; use one of 1, 2, 3, 4"),
        ([("a", "t", 1)], {"t": None}, "no rated text names its author"),
        ([("a", "h1", 1)], FOUR, "every rated text was written by a person"),
    ],
)
def test_what_cannot_be_judged_is_refused(
    rows: list[tuple[str, str, int | None]], models: Mapping[str, str | None], message: str
) -> None:
    used = {text: models[text] for _, text, _ in rows}
    seen = study(rows, used)
    with pytest.raises(FinecombError, match=message):
        human_or_machine_findings(seen, by=["model"] if used != {"t": None} else [])


def test_the_histogram_counts_readers_by_texts_judged_rightly() -> None:
    found = evaluator_score_histogram(study(RATINGS, FOUR), by=["model"])
    shown = {(row.columns["of"], row.columns["score"]): row.columns["evaluators"] for row in found}
    assert shown == {(4, 0): 0, (4, 1): 0, (4, 2): 1, (4, 3): 0, (4, 4): 1, (3, 0): 0, (3, 1): 0, (3, 2): 1, (3, 3): 0}
    half = next(row for row in found if row.columns["of"] == 4 and row.columns["score"] == 2)
    assert half.estimate.value == 0.5
    assert half.estimate.low < 0.5 < half.estimate.high


def test_scores_of_conditions_are_tested_as_scipy_does() -> None:
    rng = np.random.default_rng(0)
    conditions = {f"{group}{n}": group for group in ("none", "examples", "comparison") for n in range(12)}
    rows = [(name, text, int(rng.integers(1, 5))) for name in conditions for text in FOUR]
    right = {name: np.mean([(r > 2) == (t[0] == "m") for n, t, r in rows if n == name]) for name in conditions}
    values = [
        [float(right[n]) for n, own in conditions.items() if own == group]
        for group in ("comparison", "examples", "none")
    ]
    found = evaluator_score_tests(study(rows, FOUR, **conditions), "condition")
    assert [row.columns["test"] for row in found] == ["one-way ANOVA", *["Tukey's HSD"] * 3, *["Cohen's d"] * 3]
    assert found[0].columns["p"] == pytest.approx(stats.f_oneway(*values).pvalue)
    assert found[1].columns["p"] == pytest.approx(stats.tukey_hsd(*values).pvalue[0, 1])
    assert (found[4].columns["a"], found[4].columns["b"]) == ("comparison", "examples")
    with pytest.raises(FinecombError, match="a comparison requires at least two groups by domain, found stories"):
        evaluator_score_tests(study(rows, FOUR, **conditions), "domain")


def assigned(cells: Mapping[str, str], rows: Sequence[tuple[str, str, int | None]]) -> View:
    """Build the same ratings by annotators with assigned cells."""
    models = {"h1": "human", "h2": "human", "m1": "gpt2", "m2": "gpt3"}
    whole = study(rows, models).study
    items = [
        item.model_copy(update={"cell": cells[item.id]}) if isinstance(item, Annotator) else item
        for item in whole.items()
    ]
    return view(Study.from_items(items))


DRAWN = [("a", "h1", 1), ("a", "m1", 4), ("b", "h1", 2), ("b", "h2", 4), ("c", "h1", 1), ("c", "m2", 1)]
"""Annotator b drew only human texts."""


def test_who_drew_human_texts_only_counts_in_their_assigned_cell() -> None:
    cells = {"a": "gpt2/stories", "b": "gpt2/stories", "c": "gpt3/stories"}
    rows = {
        (row.columns["model"], row.columns["measure"]): row
        for row in human_or_machine_findings(assigned(cells, DRAWN), draws=0)
    }
    assert rows["gpt2", "accuracy"].columns["evaluators"] == 2
    assert rows["gpt2", "accuracy"].estimate.value == pytest.approx((1 + 0.5) / 2)
    assert rows["gpt3", "accuracy"].columns["evaluators"] == 1


def test_a_table_by_cell_has_everybody() -> None:
    cells = {"a": "gpt2/stories", "b": "gpt2/stories", "c": "gpt3/stories"}
    rows = [
        row
        for row in human_or_machine_findings(assigned(cells, DRAWN), ["cell"], draws=0)
        if row.columns["measure"] == "accuracy"
    ]
    assert [(row.columns["cell"], row.columns["evaluators"]) for row in rows] == [
        ("gpt2/stories", 2),
        ("gpt3/stories", 1),
    ]


def test_without_cells_it_is_said_how_many_are_in_no_row() -> None:
    unknown = assigned({"a": "", "b": "", "c": ""}, DRAWN)
    findings = human_or_machine_findings(unknown, draws=0)
    assert "1 annotator with only human texts" in findings.notes[0]
    assert human_or_machine_findings(unknown, [], draws=0).notes == ()


def test_a_model_without_human_texts_is_refused_and_not_precise() -> None:
    only = view(assigned({"a": "", "b": "", "c": ""}, DRAWN).study, Filters(where="model=gpt3"))
    with pytest.raises(FinecombError, match="no rated text was written by a person"):
        human_or_machine_findings(only, draws=0)


def test_cells_give_back_the_accuracy_that_they_were_made_with() -> None:
    """Annotators of two cells guess with known accuracies, and many draw only human texts."""
    rng = np.random.default_rng(3)
    chances = {"gpt2": 0.7, "gpt3": 0.55}
    rows, cells = [], {}
    models = {"h1": "human", "h2": "human", "m1": "gpt2", "m2": "gpt3"}
    for number in range(400):
        model = "gpt2" if number % 2 else "gpt3"
        reader = f"r{number}"
        cells[reader] = model
        for text in rng.choice(["h1", "h2", "m1" if model == "gpt2" else "m2"], 2, replace=False):
            is_right = rng.random() < chances[model]
            rows.append((reader, str(text), 4 if is_right == (models[str(text)] != "human") else 1))
    findings = human_or_machine_findings(assigned(cells, rows), draws=0)
    accuracies = {str(row.columns["model"]): row for row in findings if row.columns["measure"] == "accuracy"}
    for model, chance in chances.items():
        assert accuracies[model].columns["evaluators"] == 200
        assert accuracies[model].estimate.low <= chance <= accuracies[model].estimate.high


def test_who_left_before_the_end_is_not_counted_in_a_study_with_a_design() -> None:
    """Cells are filled with people who finish all texts; a row used to have 401 evaluators instead of 390."""
    design = Design(cross={"condition": ("none",), "model": ("gpt",)}, people=2, texts=2)
    documents = [Document(id=id, text="Once.", meta={"model": model}) for id, model in FOUR.items()]
    texts = {"ann": ("h1", "m1"), "ben": ("h2", "m2"), "leaver": ("m2",)}
    factors = {"condition": "none", "model": "gpt"}
    people = [Annotator(id=id, kind="human", condition="none", cell="none/gpt", factors=factors) for id in texts]
    work = [
        Annotation(id=f"{id}/{text}", document=text, annotator=id, protocol=TURING.id, answers={"rating": 1})
        for id, read in texts.items()
        for text in read
    ]
    settings = Settings(protocols=(TURING.id,), design=design)
    rated = view(Study.from_items([settings, TURING, *documents, *people, *work]))
    found = human_or_machine_findings(rated, draws=10)
    assert by_measure(found)["accuracy"].columns["evaluators"] == 2
    assert by_measure(found)["accuracy"].estimate.value == 0.5
    (note,) = found.notes
    assert note.startswith("not counted: 1 person who left before finishing")
    (note_of_scores,) = evaluator_score_histogram(rated).notes
    assert note_of_scores == note
    everybody = human_or_machine_findings(rated, draws=10, unfinished=True)
    assert by_measure(everybody)["accuracy"].columns["evaluators"] == 3
    assert not everybody.notes
    chosen = view(rated.source or rated.study, Filters(where=('model == "human" or document == "m1"',)))
    assert by_measure(human_or_machine_findings(chosen, draws=10))["accuracy"].columns["evaluators"] == 2, (
        "a part of the texts"
    )
