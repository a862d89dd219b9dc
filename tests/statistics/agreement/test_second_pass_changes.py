from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.agreement.agreement import agree
from finecomb.statistics.agreement.second_pass_changes import (
    ALL_ANNOTATORS,
    MARK_CHANGE_COLUMNS,
    compare_passes,
    second_pass_progress,
)
from finecomb.statistics.selection.view import Filters, view
from tests.statistics.agreement.agreement_studies import PROTOCOL

TEXT = "one two three four five"
WORDS = [(0, 3), (4, 7), (8, 13), (14, 18), (19, 23)]
PEOPLE = ("p", "q", "r")


def marked(id: str, word: int, label: str | None, **more: Any) -> Mark:
    start, end = WORDS[word]
    return Mark(id=id, spans=(Span(start, end),), quotes=(TEXT[start:end],), label=label, **more)


def annotation(document: str, who: str, round_: int, marks: list[Mark], **more: Any) -> Annotation:
    fields = {"id": f"{document}/{who}/{round_}", "document": document, "annotator": who, "protocol": PROTOCOL.id}
    return Annotation(**fields, round=round_, marks=tuple(marks), **more)


def study(*annotations: Annotation) -> Study:
    documents = dict.fromkeys(each.document for each in annotations)
    people = dict.fromkeys(each.annotator for each in annotations)
    return Study.from_items(
        [
            PROTOCOL,
            *(Document(id=id, text=TEXT) for id in documents),
            *(Annotator(id=id, kind="human") for id in people),
            *annotations,
        ]
    )


def counts(found: Study) -> dict[str, dict[str, int]]:
    return {row.pop("annotator"): row for row in compare_passes(found, draws=0).marks.iter_rows(named=True)}


def test_what_became_of_each_mark() -> None:
    first = [marked(f"a{n}", n, "red", answers={"severity": 1}) for n in range(5)]
    other = [marked("b0", 0, "blue"), marked("b1", 1, "blue")]
    again = [
        marked("c0", 0, "red", answers={"severity": 1}, made_from=("a0",)),  # kept
        marked("c1", 1, "blue", answers={"severity": 2}, made_from=("a1",)),  # label and answers
        marked("c2", 3, "red", answers={"severity": 1}, made_from=("a2", "b1")),  # boundaries; b1 is by another
        marked("c3", 1, "blue", made_from=("b1",)),
        marked("c4", 4, "green"),
    ]  # a3 and a4 are withdrawn
    change_counts = counts(
        study(annotation("d", "p", 0, first), annotation("d", "q", 0, other), annotation("d", "p", 1, again))
    )
    assert list(change_counts) == ["p", ALL_ANNOTATORS]
    assert change_counts["p"] == change_counts[ALL_ANNOTATORS]
    expected = {"before": 5, "after": 5, "kept": 1, "changed": 2, "boundaries": 1, "label": 1, "answers": 1}
    assert change_counts["p"] == {"texts": 1, **expected, "withdrawn": 2, "from_others": 1, "new": 1}


def test_an_antecedent_and_the_order_of_answers() -> None:
    earlier = Antecedents(spans=(Span(0, 3),), quotes=("one",))
    first = [marked("a", 1, "red", answers={"severity": 1, "why": "x"}), marked("b", 2, "red")]
    again = [
        marked("c", 1, "red", answers={"why": "x", "severity": 1}, made_from=("a",)),
        marked("d", 2, "red", antecedents=earlier, made_from=("b",)),
    ]
    found = counts(study(annotation("d", "p", 0, first), annotation("d", "p", 1, again)))["p"]
    assert (found["kept"], found["changed"], found["answers"]) == (1, 1, 1)


def slow(found: Study) -> dict[str, Counter[str]]:
    """Count the changes mark by mark."""
    every = {(each.document, each.annotator, each.round): each for each in found.iter_annotations()}
    result: dict[str, Counter[str]] = {}
    for (document, who, round_), before in every.items():
        after = every.get((document, who, 1))
        if round_ != 0 or after is None:
            continue
        tally = Counter(texts=1, before=len(before.marks), after=len(after.marks))
        own = {mark.id: mark for mark in before.marks}
        for mark in after.marks:
            parents = [own[id] for id in mark.made_from if id in own]
            if not parents:
                tally["from_others" if mark.made_from else "new"] += 1
                continue
            old = parents[0]
            ways = {
                "boundaries": mark.spans != old.spans,
                "label": mark.label != old.label,
                "answers": mark.answers != old.answers,
            }
            tally += Counter(name for name, differs in ways.items() if differs)
            tally["changed" if any(ways.values()) else "kept"] += 1
        used = {id for mark in after.marks for id in mark.made_from}
        tally["withdrawn"] = sum(id not in used for id in own)
        result[who] = result.get(who, Counter()) + tally
        result[ALL_ANNOTATORS] = result.get(ALL_ANNOTATORS, Counter()) + tally
    return result


@st.composite
def passes(draw: st.DrawFn) -> Study:
    """Generate studies of three annotators and two texts, with second passes by some of them."""
    made: list[Annotation] = []
    for document in ("d", "e"):
        content = st.tuples(st.integers(0, 4), st.sampled_from(["red", "blue", None]), st.integers(1, 3))
        for who in PEOPLE:
            own = draw(st.lists(content, max_size=3))
            marks = [
                marked(f"{document}{who}{n}", w, lab, answers={"severity": s}) for n, (w, lab, s) in enumerate(own)
            ]
            made.append(annotation(document, who, 0, marks))
        known = [mark.id for each in made if each.document == document for mark in each.marks]
        for who in draw(st.lists(st.sampled_from(PEOPLE), unique=True)):
            again = []
            for n, (w, lab, s) in enumerate(draw(st.lists(content, max_size=3))):
                from_ = draw(st.lists(st.sampled_from(known), unique=True, max_size=2)) if known else []
                id = f"{document}{who}{n}/2"
                again.append(marked(id, w, lab, answers={"severity": s}, made_from=tuple(from_)))
            made.append(annotation(document, who, 1, again))
    return study(*made)


@given(passes())
def test_the_counts_are_their_definition(found: Study) -> None:
    fast = counts(found)
    told = slow(found) or {ALL_ANNOTATORS: Counter()}
    assert {who: {name: own[name] for name in ("texts", *MARK_CHANGE_COLUMNS)} for who, own in told.items()} == fast
    for own in fast.values():
        assert own["kept"] + own["changed"] + own["from_others"] + own["new"] == own["after"]


@given(passes())
def test_agreement_is_that_of_each_pass_alone(found: Study) -> None:
    compared = compare_passes(found, draws=20, seed=1)
    values = {str(each.columns["pass"]): each.estimate for each in compared.agreement}
    for which, seen in (("before", compared.before), ("after", compared.after)):
        if which in values:
            (alone,) = agree(seen, ["alpha"], by_label=False, draws=20, seed=1)
            assert values[which].value == pytest.approx(alone.estimate.value, nan_ok=True)
            assert values[which].low == pytest.approx(alone.estimate.low, nan_ok=True)
    if values and not math.isnan(values["difference"].value):
        assert values["difference"].value == pytest.approx(values["after"].value - values["before"].value)
    before, after = (
        each.study.annotations.select("document", "annotator").rows() for each in (compared.before, compared.after)
    )
    assert sorted(before) == sorted(after)  # the same annotators and texts


def test_statistics_read_one_pass_unless_asked() -> None:
    own = [annotation("d", "p", 0, [marked("a", 0, "red")]), annotation("d", "p", 1, [marked("b", 1, "red")])]
    test_study = study(*own)
    read = {
        which: view(test_study, Filters(rounds=which)).study.marks["id"].to_list() for which in ("first", "last", "all")
    }
    assert read == {"first": ["a"], "last": ["b"], "all": ["a", "b"]}


def test_passes_that_began_with_nothing_are_said() -> None:
    compared = compare_passes(
        study(annotation("d", "p", 0, [marked("a", 0, "red")]), annotation("d", "p", 1, [marked("b", 0, "red")]))
    )
    assert "did not start from the marks of the first" in compared.notes[0]
    assert [each.estimate.why != "" for each in compared.agreement] == [True] * 3  # agreement needs a second annotator


def test_progress_counts_texts_that_others_read_too() -> None:
    test_study = study(
        annotation("d", "p", 0, []),
        annotation("d", "q", 0, []),
        annotation("d", "p", 1, []),
        annotation("d", "q", 1, [], status="draft"),
        annotation("e", "p", 0, []),
    )
    assert (
        second_pass_progress(test_study, PROTOCOL.id).wanted,
        second_pass_progress(test_study, PROTOCOL.id).begun,
    ) == (2, 2)
    assert second_pass_progress(test_study, PROTOCOL.id).done == 1
