from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given

from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.agreement.mark_alignment import align_marks
from finecomb.statistics.agreement.rating_matrix import item_label_ratings
from finecomb.statistics.selection.view import View, view
from tests.statistics.agreement.agreement_studies import PROTOCOL, TEXT, MarkTuple, make_marked_study, studies
from tests.statistics.gold.gold_studies import make_alternative, make_gold_mark, make_gold_study

Read = dict[tuple[str, str], list[MarkTuple]]


def clusters(one: Study, by: str = "overlap") -> set[frozenset[str]]:
    rows = align_marks(view(one), by)
    found = defaultdict(set)
    for cluster, id in rows.select("cluster", "mark").iter_rows():
        found[cluster].add(id.removeprefix("d/"))
    return {frozenset(marks) for marks in found.values()}


def on(read: dict[str, list[MarkTuple]]) -> Study:
    return make_marked_study({"d": TEXT}, {("d", person): own for person, own in read.items()})


def test_marks_that_share_a_character_are_one_error() -> None:
    placed_marks = on({"p": [(0, 7, "red")], "q": [(4, 13, "blue")], "r": [(14, 18, "red")]})
    assert clusters(placed_marks) == {frozenset({"p/0", "q/0"}), frozenset({"r/0"})}


def test_only_marks_of_one_label_are_one_error_when_asked() -> None:
    placed_marks = on({"p": [(0, 7, "red")], "q": [(4, 13, "blue")], "r": [(0, 3, "red")]})
    assert clusters(placed_marks, "overlap-label") == {frozenset({"p/0", "r/0"}), frozenset({"q/0"})}


def test_the_most_alike_are_joined_first_and_each_annotator_once() -> None:
    placed_marks = on({"p": [(0, 13, "red")], "q": [(0, 3, "red"), (4, 13, "red")]})
    assert clusters(placed_marks) == {frozenset({"p/0", "q/1"}), frozenset({"q/0"})}


def test_of_equals_the_first_in_the_text_is_joined() -> None:
    placed_marks = on({"p": [(0, 7, "red")], "q": [(0, 3, "red"), (4, 7, "red")]})
    assert frozenset({"p/0", "q/0"}) in clusters(placed_marks)


def test_omissions_at_one_place_are_one_error_and_join_no_span() -> None:
    placed_marks = on({"p": [(4, 4, "red")], "q": [(4, 4, "red")], "r": [(0, 7, "red")]})
    assert clusters(placed_marks) == {frozenset({"p/0", "q/0"}), frozenset({"r/0"})}


def test_a_long_mark_does_not_tie_two_that_have_nothing_in_common() -> None:
    """With three annotators, one of whom marked the whole sentence, all marks used to be one error with three votes."""
    placed_marks = on({"p": [(0, 3, "red")], "q": [(8, 13, "red")], "r": [(0, 18, "red")]})
    assert clusters(placed_marks) == {frozenset({"p/0"}), frozenset({"q/0", "r/0"})}


@pytest.mark.parametrize("by", ["overlap", "overlap-label", "gamma"])
def test_marks_on_a_prompt_are_aligned_like_those_on_the_text(by: str) -> None:
    """Marks on a prompt used to be clusters of their own: three equal marks gave three errors with one vote each."""
    texts = [Document(id=id, text=TEXT, context={"prompt": "one two"}) for id in ("d", "e")]
    who = [Annotator(id=name, kind="human") for name in ("p", "q")]
    read = [
        Annotation(
            id=f"{text.id}/{person.id}", document=text.id, annotator=person.id, protocol=PROTOCOL.id,
            marks=(
                Mark(id=f"{text.id}/{person.id}/0", spans=(Span(4, 7, "prompt"),), quotes=("two",), label="red"),
                Mark(id=f"{text.id}/{person.id}/1", spans=(Span(4, 7),), quotes=("two",), label="red"),
            ),
        )
        for text in texts for person in who
    ]  # fmt: skip
    rows = align_marks(view(Study.from_items([PROTOCOL, *texts, *who, *read])), by)
    groups = {frozenset(marks) for marks in rows.group_by("cluster").agg("mark")["mark"]}
    assert groups == {frozenset({f"{text}/p/{at}", f"{text}/q/{at}"}) for text in "de" for at in (0, 1)}


def test_who_marked_a_whole_alternative_marked_the_same_error() -> None:
    """Changing one name or two numbers corrects the same sentence, so both are one error with one label."""
    sets = ((make_alternative(TEXT, 4, 7, "blue"), make_alternative(TEXT, 14, 18, "blue")),)
    name = make_gold_mark("d/p/0", TEXT, 0, 3, "red", alternatives=sets)
    numbers: list[MarkTuple] = [(4, 7, "blue"), (14, 18, "blue")]
    gold_study = make_gold_study({"d": TEXT}, {("d", "p"): [name], ("d", "q"): numbers, ("d", "r"): numbers[:1]})
    rows = align_marks(view(gold_study), "overlap")
    assert clusters(gold_study) == {frozenset({"p/0", "q/0", "q/1"}), frozenset({"r/0"})}
    readings = rows.filter(pl.col("reading_of") == "d/p/0")
    assert readings.select("mark", "label").rows() == [("d/q/0", "red"), ("d/q/1", "red")]
    ratings = item_label_ratings(view(gold_study), rows, "marked")
    assert ratings.matrix[:2, 0].tolist() == [0, 0]  # both `red`


def slow_greedy(seen: View) -> set[frozenset[str]]:
    """Merge pairs one by one, sorted by similarity and position."""
    rows = align_marks(seen, "overlap").rows(named=True)  # in text order
    pairs = []
    for a, one in enumerate(rows):
        for b, other in list(enumerate(rows))[a + 1 :]:
            if one["document"] == other["document"] and one["annotator"] != other["annotator"]:
                shared = min(one["end"], other["end"]) - max(one["start"], other["start"])
                if shared > 0:
                    total = one["end"] - one["start"] + other["end"] - other["start"]
                    pairs.append((-2 * shared / total, a, b))
    groups = [{at} for at in range(len(rows))]
    alike = {frozenset(pair) for _, *pair in pairs}
    for _, a, b in sorted(pairs):
        first, second = (next(group for group in groups if at in group) for at in (a, b))
        if first is not second and all(frozenset((x, y)) in alike for x in first for y in second):
            groups.remove(second)
            first |= second
    return {frozenset(rows[at]["mark"] for at in group) for group in groups}


@given(studies())
def test_greedy_alignment_equals_its_definition(one: Study) -> None:
    rows = align_marks(view(one), "overlap")
    own = {frozenset(marks) for marks in rows.group_by("cluster").agg("mark")["mark"]}
    assert own == slow_greedy(view(one))
    assert sorted(rows["mark"]) == sorted(one.marks["id"])
    assert rows.select("cluster", "annotator").is_unique().all()
    assert rows["cluster"].unique(maintain_order=True).to_list() == list(range(rows["cluster"].n_unique()))


@given(studies())
def test_the_order_of_annotations_does_not_matter(one: Study) -> None:
    turned = replace(one, annotations=one.annotations.reverse(), marks=one.marks.reverse())
    assert align_marks(view(turned), "overlap").equals(align_marks(view(one), "overlap"))


def test_items_of_the_source_tie_marks_within_a_document() -> None:
    marked_study = make_marked_study(
        {"d": TEXT, "e": TEXT},
        {("d", "p"): [(0, 3, "red")] * 2, ("d", "q"): [(8, 13, "red")], ("e", "p"): [(0, 3, "red")]},
    )
    items = pl.Series("item", ["1", None, "1", "1"], dtype=pl.String)
    tied = replace(marked_study, marks=marked_study.marks.with_columns(items))
    rows = dict(align_marks(view(tied), "item").select("mark", "cluster").iter_rows())
    assert rows["d/p/0"] == rows["d/q/0"]
    assert len({rows["d/p/0"], rows["d/p/1"], rows["e/p/0"]}) == 3


@pytest.mark.parametrize(
    ("by", "told"),
    [("item", "align=overlap"), ("overlaps", "did you mean 'overlap'")],
)
def test_what_cannot_be_aligned_says_the_way_out(by: str, told: str) -> None:
    with pytest.raises(FinecombError, match=told):
        align_marks(view(on({"p": [(0, 3, "red")]})), by)


def test_no_marks_give_no_clusters() -> None:
    for by in ("item", "overlap", "overlap-label", "gamma"):
        assert align_marks(view(on({"p": [], "q": []})), by).is_empty()
