from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.tokens import word_offsets
from tests.statistics.agreement.closed_form import closed_form_agreement
from tests.strategies import PROTOCOL, studies

fewer = settings(max_examples=settings().max_examples // 2)

Ratings = list[list[int]]  # one document: a row per annotator, 1 where the token is marked


@st.composite
def ratings(draw: st.DrawFn) -> list[Ratings]:
    """Generate documents of different lengths with different numbers of annotators."""
    shapes = draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 6)), min_size=1, max_size=4))
    return [
        [draw(st.lists(st.integers(0, 1), min_size=tokens, max_size=tokens)) for _ in range(readers)]
        for readers, tokens in shapes
    ]


def as_study(documents: list[Ratings]) -> Study:
    """Build texts of one-letter words, each with its own mark."""
    texts = [Document(id=f"d{number}", text=" ".join("x" * len(rows[0]))) for number, rows in enumerate(documents)]
    read = [
        Annotation(
            id=f"d{number}-{reader}",
            document=f"d{number}",
            annotator=f"p{reader}",
            protocol="test@1",
            marks=tuple(
                Mark(id=f"d{number}-{reader}-{at}", spans=(Span(2 * at, 2 * at + 1),), quotes=("x",), label="red")
                for at, marked in enumerate(row)
                if marked
            ),
        )
        for number, rows in enumerate(documents)
        for reader, row in enumerate(rows)
    ]
    return Study.from_items([PROTOCOL, *texts, *(Annotator(id=f"p{n}", kind="human") for n in range(4)), *read])


def value(documents: list[Ratings], statistic: str = "alpha") -> float:
    return closed_form_agreement(as_study(documents), statistic, draws=0).value


def slow_alpha(documents: list[Ratings]) -> float:
    """Compute 1 - D_o / D_e from pairs of values: Krippendorff (2011), general form, nominal distance."""
    units = [list(column) for rows in documents for column in zip(*rows, strict=True) if len(column) >= 2]
    values = [each for unit in units for each in unit]
    if len(values) < 2:
        return math.nan
    observed = sum(
        sum(one != other for one, other in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units
    ) / len(values)
    expected = sum(one != other for one, other in itertools.permutations(values, 2)) / (len(values) * (len(values) - 1))
    return 1 - observed / expected if expected else math.nan


@fewer
@given(ratings())
def test_alpha_equals_its_definition(documents: list[Ratings]) -> None:
    assert value(documents) == pytest.approx(slow_alpha(documents), nan_ok=True)


@fewer
@given(ratings())
def test_alpha_equals_that_of_another_package(documents: list[Ratings]) -> None:
    oracle = pytest.importorskip("krippendorff")
    if math.isnan(slow_alpha(documents)):
        return
    widest = max(len(rows) for rows in documents)
    columns = [
        [*column, *[np.nan] * (widest - len(column))] for rows in documents for column in zip(*rows, strict=True)
    ]
    table: NDArray[np.float64] = np.array(columns, dtype=np.float64).T
    published = oracle.alpha(reliability_data=table, level_of_measurement="nominal")
    assert value(documents) == pytest.approx(published)


@fewer
@given(ratings())
def test_the_order_of_documents_annotators_and_tokens_does_not_matter(documents: list[Ratings]) -> None:
    turned = [[row[::-1] for row in reversed(rows)] for rows in reversed(documents)]
    assert value(turned) == pytest.approx(value(documents), nan_ok=True)


@fewer
@given(ratings())
def test_marking_what_others_left_and_leaving_what_they_marked_is_the_same_agreement(documents: list[Ratings]) -> None:
    turned = [[[1 - each for each in row] for row in rows] for rows in documents]
    assert value(turned) == pytest.approx(value(documents), nan_ok=True)


def test_full_agreement_is_one_and_the_worst_of_two_is_below_zero() -> None:
    assert value([[[1, 0, 1], [1, 0, 1]]]) == 1
    assert value([[[1, 0], [0, 1]]]) == pytest.approx(-0.5)


@fewer
@given(ratings())
def test_two_agree_equals_its_definition(documents: list[Ratings]) -> None:
    counts = [sum(column) for rows in documents if len(rows) >= 2 for column in zip(*rows, strict=True)]
    anybody = sum(count >= 1 for count in counts)
    expected = 100 * sum(count >= 2 for count in counts) / anybody if anybody else math.nan
    assert value(documents, "two-agree") == pytest.approx(expected, nan_ok=True)


# --- of a study ---

TEXT = "one two three four five"


def mark(id: str, start: int, end: int, label: str = "red") -> Mark:
    return Mark(id=id, spans=(Span(start, end),), quotes=(TEXT[start:end],), label=label)


def study(read: dict[tuple[str, str], tuple[Mark, ...]], texts: tuple[str, ...] = ("d1", "d2")) -> Study:
    return Study.from_items(
        [
            PROTOCOL,
            *(Document(id=id, text=TEXT) for id in texts),
            *(Annotator(id=id, kind="human") for id in "pqr"),
            *(
                Annotation(id=f"{document}-{person}", document=document, annotator=person, protocol="test@1", marks=own)
                for (document, person), own in read.items()
            ),
        ]
    )


def rows_of(items: list[StudyItem], label: str | None) -> list[Ratings]:
    """Mark a token if any of its characters is marked (the naive definition)."""
    documents = []
    for document in (item for item in items if isinstance(item, Document)):
        tokens = [set(range(start, end)) for start, end in word_offsets(document.text).tolist()]
        read = [item for item in items if isinstance(item, Annotation) and item.document == document.id]
        marked = [{at for mark in each.marks if label in (None, mark.label) for at in positions(mark)} for each in read]
        documents.append([[int(bool(own & token)) for token in tokens] for own in marked])
    return documents


def positions(mark: Mark) -> set[int]:
    return {at for span in mark.spans if span.part == "text" for at in range(span.start, span.end)}


@fewer
@given(studies(), st.sampled_from([None, "red"]))
def test_agreement_on_overlapping_marks_equals_its_definition(items: list[StudyItem], label: str | None) -> None:
    estimate = closed_form_agreement(Study.from_items(items), label=label, draws=0)
    assert estimate.value == pytest.approx(slow_alpha(rows_of(items, label)), nan_ok=True)


def test_who_marked_nothing_still_counts_as_a_reader() -> None:
    with_silent = study({("d1", "p"): (mark("m", 0, 3),), ("d1", "q"): (mark("n", 0, 3),), ("d1", "r"): ()})
    assert closed_form_agreement(with_silent).value == pytest.approx(slow_alpha([[[1, 0, 0, 0, 0]] * 2 + [[0] * 5]]))


def test_overlapping_marks_of_one_annotator_are_one_vote() -> None:
    twice = study({("d1", "p"): (mark("m", 0, 7), mark("n", 0, 3)), ("d1", "q"): (mark("o", 0, 3),)})
    assert closed_form_agreement(twice).value == pytest.approx(slow_alpha([[[1, 1, 0, 0, 0], [1, 0, 0, 0, 0]]]))


ALL = (0, len(TEXT))


@pytest.mark.parametrize("statistic", ["alpha", "two-agree"])
@pytest.mark.parametrize(
    ("read", "why"),
    [
        ({}, "no annotations"),
        ({("d1", "p"): (mark("m", 0, 3),)}, "no text has two or more annotators"),
        ({("d1", "p"): (mark("m", 0, 3),), ("d2", "q"): ()}, "no text has two or more annotators"),
        ({("d1", "p"): (), ("d1", "q"): ()}, "no unit is marked in the texts with two or more annotators"),
        (
            {("d1", "p"): (), ("d1", "q"): (), ("d2", "p"): (mark("m", 0, 3),)},
            "no unit is marked in the texts with two or more annotators",
        ),
    ],
)
def test_undefined_agreement_says_why(statistic: str, read: dict[tuple[str, str], tuple[Mark, ...]], why: str) -> None:
    estimate = closed_form_agreement(study(read), statistic)
    assert math.isnan(estimate.value)
    assert math.isnan(estimate.low)
    assert estimate.why == why


def test_alpha_is_undefined_where_everybody_marked_everything() -> None:
    everything = study({("d1", "p"): (mark("m", *ALL),), ("d1", "q"): (mark("n", *ALL),)})
    assert (
        closed_form_agreement(everything).why
        == "all annotators marked every unit of the texts with two or more annotators"
    )
    assert closed_form_agreement(everything, "two-agree").value == 100


def many(count: int) -> Study:
    texts = tuple(f"d{number}" for number in range(count))
    rng = np.random.default_rng(0)
    read = {
        (id, person): tuple(
            mark(f"{id}-{person}-{at}", at, at + 3) for at in (0, 4) if rng.random() < (0.8 if int(id[1:]) % 2 else 0.3)
        )
        for id in texts
        for person in "pqr"
    }
    return study(read, texts)


def test_an_interval_depends_on_its_seed_only() -> None:
    large_study = many(25)
    assert closed_form_agreement(large_study, seed=1) == closed_form_agreement(large_study, seed=1)
    assert closed_form_agreement(large_study, seed=1).value == closed_form_agreement(large_study, seed=2).value
    assert closed_form_agreement(large_study, seed=1).low != closed_form_agreement(large_study, seed=2).low


@pytest.mark.parametrize("statistic", ["alpha", "two-agree"])
def test_an_interval_lies_around_the_value(statistic: str) -> None:
    estimate = closed_form_agreement(many(40), statistic)
    assert estimate.low < estimate.value < estimate.high


def test_the_signature_says_how_it_was_made() -> None:
    estimate = closed_form_agreement(many(3), "alpha", label="red", tokens="whitespace", draws=5, seed=9)
    assert str(estimate.signature).startswith(
        "statistic:alpha|unit:token|label:red|tokens:whitespace|protocol:test@1|annotators:3|documents:3|draws:5|seed:9|"
    )
