from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given

from finecomb.agreement.align import align
from finecomb.core.errors import FinecombError
from finecomb.core.study import Study
from finecomb.measure.view import View, view
from tests.agreement.worlds import TEXT, Marked, studies, study

Read = dict[tuple[str, str], list[Marked]]


def clusters(one: Study, by: str = "overlap") -> set[frozenset[str]]:
    rows = align(view(one), by)
    found = defaultdict(set)
    for cluster, mark in rows.select("cluster", "mark").iter_rows():
        found[cluster].add(mark.removeprefix("d/"))
    return {frozenset(marks) for marks in found.values()}


def on(read: dict[str, list[Marked]]) -> Study:
    return study({"d": TEXT}, {("d", person): own for person, own in read.items()})


def test_marks_that_share_a_character_are_one_error() -> None:
    one = on({"p": [(0, 7, "red")], "q": [(4, 13, "blue")], "r": [(14, 18, "red")]})
    assert clusters(one) == {frozenset({"p/0", "q/0"}), frozenset({"r/0"})}


def test_only_marks_of_one_label_are_one_error_when_asked() -> None:
    one = on({"p": [(0, 7, "red")], "q": [(4, 13, "blue")], "r": [(0, 3, "red")]})
    assert clusters(one, "overlap-label") == {frozenset({"p/0", "r/0"}), frozenset({"q/0"})}


def test_the_most_alike_are_joined_first_and_each_annotator_once() -> None:
    one = on({"p": [(0, 13, "red")], "q": [(0, 3, "red"), (4, 13, "red")]})
    assert clusters(one) == {frozenset({"p/0", "q/1"}), frozenset({"q/0"})}


def test_of_equals_the_first_in_the_text_is_joined() -> None:
    one = on({"p": [(0, 7, "red")], "q": [(0, 3, "red"), (4, 7, "red")]})
    assert frozenset({"p/0", "q/0"}) in clusters(one)


def test_omissions_at_one_place_are_one_error_and_join_no_span() -> None:
    one = on({"p": [(4, 4, "red")], "q": [(4, 4, "red")], "r": [(0, 7, "red")]})
    assert clusters(one) == {frozenset({"p/0", "q/0"}), frozenset({"r/0"})}


def slow_greedy(seen: View) -> set[frozenset[str]]:
    """Pairs one by one, sorted by likeness and place."""
    rows = align(seen, "overlap").rows(named=True)  # in text order
    pairs = []
    for a, one in enumerate(rows):
        for b, other in list(enumerate(rows))[a + 1 :]:
            if one["document"] == other["document"] and one["annotator"] != other["annotator"]:
                shared = min(one["end"], other["end"]) - max(one["start"], other["start"])
                if shared > 0:
                    total = one["end"] - one["start"] + other["end"] - other["start"]
                    pairs.append((-2 * shared / total, a, b))
    groups = [{at} for at in range(len(rows))]
    for _, a, b in sorted(pairs):
        first, second = (next(group for group in groups if at in group) for at in (a, b))
        people = [rows[at]["annotator"] for at in first | second]
        if first is not second and len(set(people)) == len(people):
            groups.remove(second)
            first |= second
    return {frozenset(rows[at]["mark"] for at in group) for group in groups}


@given(studies())
def test_greedy_alignment_equals_its_definition(one: Study) -> None:
    found = align(view(one), "overlap")
    own = {frozenset(marks) for marks in found.group_by("cluster").agg("mark")["mark"]}
    assert own == slow_greedy(view(one))
    assert sorted(found["mark"]) == sorted(one.marks["id"])
    assert found.select("cluster", "annotator").is_unique().all()
    assert found["cluster"].unique(maintain_order=True).to_list() == list(range(found["cluster"].n_unique()))


@given(studies())
def test_the_order_of_annotations_does_not_matter(one: Study) -> None:
    turned = replace(one, annotations=one.annotations.reverse(), marks=one.marks.reverse())
    assert align(view(turned), "overlap").equals(align(view(one), "overlap"))


def test_items_of_the_source_tie_marks_within_a_document() -> None:
    one = study(
        {"d": TEXT, "e": TEXT},
        {("d", "p"): [(0, 3, "red")] * 2, ("d", "q"): [(8, 13, "red")], ("e", "p"): [(0, 3, "red")]},
    )
    items = pl.Series("item", ["1", None, "1", "1"], dtype=pl.String)
    tied = replace(one, marks=one.marks.with_columns(items))
    rows = dict(align(view(tied), "item").select("mark", "cluster").iter_rows())
    assert rows["d/p/0"] == rows["d/q/0"]
    assert len({rows["d/p/0"], rows["d/p/1"], rows["e/p/0"]}) == 3


@pytest.mark.parametrize(
    ("by", "told"),
    [("item", "--align overlap"), ("overlaps", "did you mean 'overlap'")],
)
def test_what_cannot_be_aligned_says_the_way_out(by: str, told: str) -> None:
    with pytest.raises(FinecombError, match=told):
        align(view(on({"p": [(0, 3, "red")]})), by)


def test_no_marks_give_no_clusters() -> None:
    for by in ("item", "overlap", "overlap-label", "gamma"):
        assert align(view(on({"p": [], "q": []})), by).is_empty()
