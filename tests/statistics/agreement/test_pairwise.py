from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from finecomb.core.study import Study
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.agreement.kappa import cohen
from tests.statistics.agreement.agreement_studies import TEXT, make_marked_study, studies

fewer = settings(max_examples=settings().max_examples // 2)

Marks = list[tuple[str | None, int, int]]


def read(one: Study) -> dict[tuple[str, str], Marks]:
    """Generate the marks of each (document, annotator), including annotators without marks."""
    own: dict[tuple[str, str], Marks] = {key: [] for key in one.annotations.select("document", "annotator").iter_rows()}
    for document, person, label, spans in one.marks.select("document", "annotator", "label", "spans").iter_rows():
        own[document, person] += [(label, span["start"], span["end"]) for span in spans]
    return own


def pairs(one: Study) -> list[tuple[str, str, str, Marks, Marks]]:
    own = read(one)
    return [
        (document, a, b, own[document, a], own[document, b])
        for document in one.documents["id"]
        for a, b in itertools.combinations(sorted(person for there, person in own if there == document), 2)
    ]


def value(one: Study, measure: str, label: str = "any", **asked: str) -> float:
    findings = agree(one, [measure], "char", draws=0, **asked)
    return next(each.estimate.value for each in findings if each.columns["label"] == label)


def shared(first: Marks, second: Marks, typed: bool) -> int:
    """Return the sum over characters, and labels if typed, of the smaller of the two numbers of marks."""
    depths = [Counter((label if typed else "", at) for label, start, end in side for at in range(start, end))
              for side in (first, second)]  # fmt: skip
    return sum((depths[0] & depths[1]).values())


def length(marks: Marks) -> int:
    return sum(end - start for _, start, end in marks)


@pytest.mark.parametrize("typed", [False, True])
@fewer
@given(one=studies())
def test_f1_equals_its_definition(one: Study, typed: bool) -> None:
    each = [(2 * shared(first, second, typed), length(first) + length(second)) for *_, first, second in pairs(one)]
    total = sum(both for _, both in each)
    micro = sum(twice for twice, _ in each) / total if total else math.nan
    macro = float(np.mean([twice / both if both else 1 for twice, both in each])) if each else math.nan
    name = "f1-typed" if typed else "f1"
    assert value(one, name) == pytest.approx(micro, nan_ok=True)
    assert value(one, f"{name}-macro") == pytest.approx(macro, nan_ok=True)


def characters(marks: Marks, label: str) -> set[int]:
    return {at for own, start, end in marks if label in ("any", own or "no type") for at in range(start, end)}


@fewer
@given(studies(), st.sampled_from(["any", "red"]))
def test_f1_of_unions_counts_each_character_once(one: Study, label: str) -> None:
    sets = [(characters(first, label), characters(second, label)) for *_, first, second in pairs(one)]
    total = sum(len(first) + len(second) for first, second in sets)
    expected = 2 * sum(len(first & second) for first, second in sets) / total if total else math.nan
    assert value(one, "f1", label, overlap="union") == pytest.approx(expected, nan_ok=True)


@fewer
@given(studies(), st.sampled_from(["any", "red"]))
def test_cohen_of_marks_is_the_mean_over_pairs(one: Study, label: str) -> None:
    texts = dict(one.documents.select("id", "text").iter_rows())
    by_pair: dict[tuple[str, str], list[list[float]]] = {}
    for document, a, b, first, second in pairs(one):
        rows = by_pair.setdefault((a, b), [[], []])
        for row, marks in zip(rows, (first, second), strict=True):
            row += [float(at in characters(marks, label)) for at in range(len(texts[document]))]
    each = [cohen(np.array(first), np.array(second)) for first, second in by_pair.values()]
    defined = [kappa for kappa in each if not math.isnan(kappa)]
    expected = float(np.mean(defined)) if defined else math.nan
    assert value(one, "kappa-cohen", label) == pytest.approx(expected, nan_ok=True)


@fewer
@given(studies())
def test_pearson_of_counts_is_the_mean_over_pairs(one: Study) -> None:
    counts: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for _, a, b, first, second in pairs(one):
        counts.setdefault((a, b), []).append((len(first), len(second)))
    varied = [np.array(rows).T for rows in counts.values()]
    each = [stats.pearsonr(*rows)[0] for rows in varied if (rows.std(axis=1) > 0).all()]
    expected = float(np.mean(each)) if each else math.nan
    assert value(one, "pearson") == pytest.approx(expected, nan_ok=True)


def one_by_one(one: Study, label: str, rest: str) -> dict[str, list[tuple[int, int, int]]]:
    """Return the hits, own and others' characters of each annotator on each text with two or more annotators."""
    own, found = read(one), dict[str, list[tuple[int, int, int]]]()
    for document, person in own:
        others = [characters(own[key], label) for key in own if key[0] == document and key[1] != person]
        if not others:
            continue
        least = 1 if rest == "union" else len(others) // 2 + 1
        theirs = {at for at in set().union(*others) if sum(at in each for each in others) >= least}
        mine = characters(own[document, person], label)
        found.setdefault(person, []).append((len(mine & theirs), len(mine), len(theirs)))
    return found


@pytest.mark.parametrize("rest", ["union", "majority"])
@fewer
@given(one=studies(), label=st.sampled_from(["any", "red"]))
def test_one_against_the_rest_equals_its_definition(one: Study, label: str, rest: str) -> None:
    found = one_by_one(one, label, rest)
    hits, mine, theirs = np.array([row for rows in found.values() for row in rows]).reshape(-1, 3).sum(axis=0)
    wanted = {"precision": (hits, mine), "recall": (hits, theirs), "f1": (2 * hits, mine + theirs)}
    for score, (top, bottom) in wanted.items():
        expected = top / bottom if bottom else math.nan
        assert value(one, f"one-vs-rest-{score}", label, rest=rest) == pytest.approx(expected, nan_ok=True)
    each = [np.array(rows).sum(axis=0) for rows in found.values()]
    recalls = [row[0] / row[2] for row in each if row[2]]
    expected = float(np.mean(recalls)) if recalls else math.nan
    assert value(one, "one-vs-rest-recall-mean", label, rest=rest) == pytest.approx(expected, nan_ok=True)


def test_each_annotator_against_the_rest_has_a_row() -> None:
    marked_study = make_marked_study(
        {"d": TEXT}, {("d", "p"): [(0, 7, "red")], ("d", "q"): [(0, 3, "red")], ("d", "r"): []}
    )
    findings = agree(marked_study, ["one-vs-rest-precision-each"], by_label=False, draws=0)
    assert {
        each.columns["annotator"]: each.estimate.value for each in findings if each.columns["annotator"] != "r"
    } == {
        "p": 0.5,
        "q": 1.0,
    }
    silent = next(each.estimate for each in findings if each.columns["annotator"] == "r")
    assert math.isnan(silent.value)
    assert silent.why


@settings(max_examples=20, deadline=None)
@given(one=studies(), overlap=st.sampled_from(["add", "union"]))
def test_agreement_is_bounded_and_identical_annotators_agree_fully(one: Study, overlap: str) -> None:
    names = ["f1", "f1-typed", "f1-macro", "f1-typed-macro", "one-vs-rest", "alpha", "kappa", "ac1", "observed",
             "two-agree"]  # fmt: skip
    marks = one.marks.filter(pl.col("annotator") == pl.col("annotator").min())
    for study, is_twin in ((one, False), (_with_twin(one, marks), True)):
        for each in agree(study, names, "char", draws=0, overlap=overlap):
            most, value = 100 if each.columns["measure"] == "two-agree" else 1, each.estimate.value
            assert math.isnan(value) or value <= most + 1e-12
            assert not is_twin or math.isnan(value) or value == pytest.approx(most)


def _with_twin(one: Study, marks: pl.DataFrame) -> Study:
    """Return a study with the annotations of one annotator, twice."""
    name = one.marks["annotator"].min() if len(one.marks) else one.annotations["annotator"].min()
    own = one.annotations.filter(pl.col("annotator") == name)
    first = marks.filter(pl.col("annotation").is_in(own["id"].implode()))
    twin = own.with_columns(id=pl.lit("twin-") + pl.col("id"), annotator=pl.lit("twin"))
    again = first.with_columns(
        id=pl.lit("twin-") + pl.col("id"), annotation=pl.lit("twin-") + pl.col("annotation"), annotator=pl.lit("twin")
    )
    people = one.annotators.filter(pl.col("id") == name)
    return replace(
        one,
        annotations=pl.concat([own, twin]),
        marks=pl.concat([first, again]),
        annotators=pl.concat([people, people.with_columns(id=pl.lit("twin"))]),
    )
