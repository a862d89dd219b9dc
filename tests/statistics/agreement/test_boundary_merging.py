from __future__ import annotations

import polars as pl
from hypothesis import given

from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.agreement.boundary_merging import widen_overlapping_spans
from finecomb.statistics.selection.view import view
from tests.statistics.agreement.agreement_studies import TEXT, make_marked_study, studies


def widened(one: Study) -> dict[str, list[tuple[int, int]]]:
    marks = widen_overlapping_spans(view(one)).study.marks
    return {
        id: [(span["start"], span["end"]) for span in spans] for id, spans in marks.select("id", "spans").iter_rows()
    }


def test_overlapping_spans_of_one_label_get_the_same_edges() -> None:
    marked_study = make_marked_study(
        {"d": TEXT},
        {("d", "p"): [(0, 7, "red"), (8, 13, "red")], ("d", "q"): [(4, 9, "red")], ("d", "r"): [(0, 3, "blue")]},
    )
    assert widened(marked_study) == {"d/p/0": [(0, 13)], "d/p/1": [(0, 13)], "d/q/0": [(0, 13)], "d/r/0": [(0, 3)]}


def test_spans_that_only_touch_and_omissions_stay() -> None:
    marked_study = make_marked_study(
        {"d": TEXT}, {("d", "p"): [(0, 4, "red"), (2, 2, "red")], ("d", "q"): [(4, 7, "red")]}
    )
    assert widened(marked_study) == {"d/p/0": [(0, 4)], "d/p/1": [(2, 2)], "d/q/0": [(4, 7)]}


@given(studies())
def test_every_span_becomes_the_union_of_its_chain(one: Study) -> None:
    rows = view(one).study.marks.select("id", "document", "label", "spans").rows()
    spans = {id: (document, label, Span(own[0]["start"], own[0]["end"])) for id, document, label, own in rows}
    widened_spans = widened(one)
    for id, (document, label, own) in spans.items():
        chain, grown = own, True
        while grown:
            near = [
                span
                for there, as_, span in spans.values()
                if (there, as_) == (document, label) and span.overlap_length(chain)
            ]
            wider = Span(min(span.start for span in near), max(span.end for span in near))
            chain, grown = wider, wider != chain
        assert widened_spans[id] == [(chain.start, chain.end)]


def test_marks_keep_their_order_and_their_other_columns() -> None:
    selection = view(
        make_marked_study({"d": TEXT}, {("d", "p"): [(8, 13, "red"), (0, 7, None)], ("d", "q"): [(4, 9, "red")]})
    )
    after = widen_overlapping_spans(selection)
    assert after.study.marks.drop("spans").equals(selection.study.marks.drop("spans"))
    assert after.study.marks.schema == selection.study.marks.schema
    assert after.fields["boundaries"] == "union"
    assert isinstance(after.study.spans, pl.DataFrame)
