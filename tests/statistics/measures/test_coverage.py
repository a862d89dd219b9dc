from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.tokens import TOKENIZERS
from finecomb.statistics.inference.resampling import bootstrap_interval_from_sums, ratio_or_nan
from finecomb.statistics.measures.coverage import coverage
from tests.strategies import PROTOCOL, studies

fewer = settings(max_examples=settings().max_examples // 2)


def covered_by(mark: Mark, text: str, tokens: str) -> set[int]:
    """Return the tokens with a character in a span of the mark (the naive definition)."""
    own = {at for span in mark.spans if span.part == "text" for at in range(span.start, span.end)}
    offsets = TOKENIZERS[tokens](text).tolist()
    return {index for index, (start, end) in enumerate(offsets) if own & set(range(start, end))}


def share(annotation: Annotation, text: str, tokens: str, overlap: str, label: str | None) -> float:
    """Compute tokens covered / tokens, counting a token once per mark or once."""
    found = [covered_by(mark, text, tokens) for mark in annotation.marks if label in (None, mark.label)]
    count = sum(map(len, found)) if overlap == "add" else len(set().union(*found))
    return count / len(TOKENIZERS[tokens](text))


@fewer
@given(
    studies(),
    st.sampled_from(["add", "union"]),
    st.sampled_from(sorted(TOKENIZERS)),
    st.sampled_from([None, "red", "blue"]),
)
def test_coverage_equals_its_definition_by_sets(
    items: list[StudyItem], overlap: Literal["add", "union"], tokens: str, label: str | None
) -> None:
    texts = {item.id: item.text for item in items if isinstance(item, Document)}
    shares = [
        share(item, texts[item.document], tokens, overlap, label)
        for item in items
        if isinstance(item, Annotation) and len(TOKENIZERS[tokens](texts[item.document]))
    ]
    estimate = coverage(Study.from_items(items), label, tokens, overlap, draws=0)
    assert estimate.value == pytest.approx(np.mean(shares) if shares else math.nan, nan_ok=True)


@fewer
@given(studies())
def test_the_union_never_covers_more_than_the_sum_nor_than_the_text(items: list[StudyItem]) -> None:
    study = Study.from_items(items)
    add, union = (coverage(study, overlap=overlap, draws=0).value for overlap in ("add", "union"))
    assert math.isnan(add) or union <= min(1, add)


# --- by hand ---

TEXT = "one two three four five six seven eight nine ten"


def mark(id: str, *words: tuple[int, int], label: str = "red") -> Mark:
    """Build a mark from the first to the last word, counted from 0."""
    places = [(TEXT.index(TEXT.split()[first]), TEXT.index(TEXT.split()[last])) for first, last in words]
    spans = tuple(
        Span(start, end + len(TEXT.split()[last])) for (start, end), (_, last) in zip(places, words, strict=True)
    )
    return Mark(id=id, spans=spans, quotes=tuple(span.extract(TEXT) for span in spans), label=label)


def study(*read: tuple[str, str, tuple[Mark, ...]], texts: tuple[str, ...] = ("d1",)) -> Study:
    return Study.from_items(
        [
            PROTOCOL,
            *(Document(id=id, text=TEXT) for id in texts),
            *(Annotator(id=id, kind="human") for id in dict.fromkeys(person for _, person, _ in read)),
            *(
                Annotation(id=f"{document}-{person}", document=document, annotator=person, protocol="test@1", marks=own)
                for document, person, own in read
            ),
        ]
    )


@pytest.mark.parametrize(
    ("marks", "add", "union"),
    [
        ((), 0.0, 0.0),
        ((mark("a", (0, 4)),), 0.5, 0.5),
        ((mark("a", (0, 4)), mark("b", (3, 5))), 0.8, 0.6),
        ((mark("a", (0, 1), (1, 2)),), 0.3, 0.3),
        ((mark("a", (0, 9)), mark("b", (0, 9))), 2.0, 1.0),
        ((Mark(id="a", spans=(Span(1, 2),), quotes=("n",), label="red"),), 0.1, 0.1),
        ((Mark(id="a", spans=(Span(4, 4),), quotes=("",), label="red"),), 0.0, 0.0),
        ((Mark(id="a", spans=(), quotes=("x",), label="red", unlocated="lost"),), 0.0, 0.0),
    ],
)
def test_overlapping_marks_add_and_the_spans_of_one_mark_do_not(
    marks: tuple[Mark, ...], add: float, union: float
) -> None:
    test_study = study(("d1", "p", marks))
    assert coverage(test_study).value == pytest.approx(add)
    assert coverage(test_study, overlap="union").value == pytest.approx(union)


def test_an_annotation_without_marks_counts_zero() -> None:
    two = study(("d1", "p", (mark("a", (0, 4)),)), ("d1", "q", ()))
    assert coverage(two).value == 0.25


def test_coverage_is_the_mean_over_annotations_not_over_documents() -> None:
    read = [("d1", "p", (mark("a", (0, 9)),)), ("d2", "p", ()), ("d2", "q", ()), ("d2", "r", ())]
    assert coverage(study(*read, texts=("d1", "d2"))).value == 0.25


def test_only_the_label_asked_for_counts() -> None:
    test_study = study(("d1", "p", (mark("a", (0, 4)), mark("b", (0, 1), label="blue"))))
    assert coverage(test_study, label="blue").value == 0.2


def test_marks_on_a_context_cover_nothing_of_the_text() -> None:
    document = Document(id="d", text="one two", context={"prompt": "one two"})
    beside = Mark(id="m", spans=(Span(0, 3, "prompt"),), quotes=("one",), label="red")
    read = Annotation(id="a", document="d", annotator="p", protocol="test@1", marks=(beside,))
    assert coverage(Study.from_items([PROTOCOL, document, Annotator(id="p", kind="human"), read])).value == 0


def test_nothing_read_is_undefined_with_a_reason() -> None:
    for empty in (Study.from_items([]), study()):
        estimate = coverage(empty)
        assert math.isnan(estimate.value)
        assert estimate.why == "no annotations"


def test_texts_without_tokens_are_left_out() -> None:
    blank = Document(id="blank", text=" \n")
    read = Annotation(id="a", document="blank", annotator="p", protocol="test@1")
    test_study = study(("d1", "p", (mark("m", (0, 4)),)))
    assert coverage(Study.from_items([*test_study.items(), blank, read])).value == 0.5


def test_the_signature_says_how_it_was_made() -> None:
    estimate = coverage(study(("d1", "p", ())), label="red", tokens="whitespace", overlap="union", draws=7, seed=3)
    assert str(estimate.signature).startswith(
        "statistic:coverage|label:red|overlap:union|tokens:whitespace|protocol:test@1|annotations:1|documents:1|version:"
    )
    drawn = coverage(many(9), label="red", interval="percentile", draws=7, seed=3)
    assert "documents:9|draws:7|seed:3|interval:percentile|version:" in str(drawn.signature)


# --- intervals ---


def many(count: int) -> Study:
    ids = tuple(f"d{number}" for number in range(count))
    read = [(id, "p", (mark(f"m-{id}", (0, number % 10)),)) for number, id in enumerate(ids)]
    return study(*read, texts=ids)


def test_an_interval_depends_on_its_seed_only() -> None:
    large_study = many(30)
    one, other = (coverage(large_study, seed=seed, interval="percentile") for seed in (1, 2))
    assert one == coverage(large_study, seed=1, interval="percentile")
    assert one.low != other.low
    assert coverage(large_study, seed=1) == coverage(large_study, seed=2)  # the default draws no resamples


def test_an_interval_lies_around_the_value_and_agrees_with_theory() -> None:
    estimate = coverage(many(200), draws=4000)
    assert estimate.value == pytest.approx(0.55)
    error = np.std([(number % 10 + 1) / 10 for number in range(200)]) / math.sqrt(200)
    assert estimate.low == pytest.approx(0.55 - 1.96 * error, abs=0.005)
    assert estimate.high == pytest.approx(0.55 + 1.96 * error, abs=0.005)


def test_one_document_has_no_interval() -> None:
    estimate = coverage(study(("d1", "p", (mark("a", (0, 4)),))))
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)
    assert estimate.short() == "0.500"


def test_a_ratio_by_zero_is_undefined() -> None:
    assert ratio_or_nan(np.array([1.0, 1.0]), np.array([2.0, 0.0])).tolist() == pytest.approx(
        [0.5, math.nan], nan_ok=True
    )


def test_undefined_draws_are_left_out_of_an_interval() -> None:
    sums = np.array([[0.0, 0.0], [1.0, 2.0]])
    low, high = bootstrap_interval_from_sums(
        sums, lambda each: ratio_or_nan(each[:, 0], each[:, 1]), 200, np.random.default_rng(0)
    )
    assert (low, high) == (0.5, 0.5)
    nothing = bootstrap_interval_from_sums(
        np.zeros((2, 2)), lambda each: ratio_or_nan(each[:, 0], each[:, 1]), 5, np.random.default_rng(0)
    )
    assert np.isnan(nothing).all()


def test_gold_drafts_practice_and_second_passes_are_left_out() -> None:
    everything = (mark("m", (0, 9)),)
    gold = Annotator(id="gold", kind="gold")
    base = {"document": "d1", "protocol": "test@1", "annotator": "p"}
    others: list[dict[str, Any]] = [
        {"id": "draft", "round": 1, "status": "draft"},
        {"id": "practice", "document": "test@1/exercise", "phase": "training"},
        {"id": "again", "round": 2},
        {"id": "truth", "annotator": "gold"},
    ]
    more = [
        Annotation.model_validate(base | each | {"marks": [everything[0].model_copy(update={"id": f"m-{each['id']}"})]})
        for each in others
    ]
    test_study = study(("d1", "p", (mark("a", (0, 4)),)))
    assert coverage(Study.from_items([*test_study.items(), gold, *more])).value == 0.5
