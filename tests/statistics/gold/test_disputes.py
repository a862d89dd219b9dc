from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.annotators.simulated import SimulatedAnnotator, make_crowd, plant_errors, simulate_annotations
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Mark, Settings
from finecomb.core.span import merge_spans
from finecomb.core.study import Study, StudyItem
from finecomb.protocols import load_shipped
from finecomb.statistics.gold.decisions import Decision, DecisionType
from finecomb.statistics.gold.disputes import (
    Dispute,
    DisputeCount,
    DisputeDecision,
    dispute_count_by_document,
    find_disputes,
    gold_marks_of_dispute,
    is_adjudication_finished,
    pair_disputes_with_decisions,
)
from finecomb.statistics.gold.gold_merge import merge_into_gold
from finecomb.statistics.selection.view import Filters, view
from tests.statistics.agreement.agreement_studies import MarkTuple
from tests.statistics.gold.gold_studies import TEXT, make_gold_mark, make_gold_study, mark_lists

THREE = ("p", "q", "r")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def found(*given: Sequence[Mark | MarkTuple], align: str = "auto") -> tuple[Dispute, ...]:
    """Return the disputes of one text with the given number of annotators."""
    return find_disputes(
        view(make_gold_study({"d": TEXT}, {("d", f"p{at}"): own for at, own in enumerate(given)})), align
    )["d"]


def ids(place: Dispute) -> set[str]:
    return {opinion.mark.id for opinion in place.opinions}


def decision(place: Dispute, what: DecisionType = "merged") -> Decision:
    return Decision(what=what, by="ann", when=NOW, readings=tuple(opinion.mark.id for opinion in place.opinions))


def test_places_say_who_agrees() -> None:
    one, two, three = found(
        [(0, 3, "red"), (4, 7, "red")], [(0, 3, "red"), (4, 7, "blue")], [(0, 3, "red"), (8, 13, None)]
    )
    assert (one.vote_count, one.readers, one.agreed) == (3, 3, True)
    assert (two.vote_count, two.agreed, two.merged and two.merged.label_votes) == (2, False, {"red": 1, "blue": 1})
    assert (three.vote_count, three.agreed, three.opinions[0].mark.label) == (1, False, None)


def test_one_reader_agrees_with_nobody() -> None:
    assert [place.agreed for place in found([(0, 3, "red")])] == [False]


def test_words_have_to_agree_too() -> None:
    assert [place.agreed for place in found([(0, 3, "red")], [(0, 7, "red")])] == [False]


def test_items_align_where_a_text_has_them() -> None:
    tied = [[make_gold_mark(f"m{at}", TEXT, *place, "red", item="i")] for at, place in enumerate([(0, 3), (8, 13)])]
    study = make_gold_study(
        {"d": TEXT, "e": TEXT},
        {("d", "p"): tied[0], ("d", "q"): tied[1], ("e", "p"): [(0, 3, "red")], ("e", "q"): [(0, 3, "red")]},
    )
    assert [place.vote_count for own in find_disputes(view(study)).values() for place in own] == [2, 2]
    with pytest.raises(FinecombError, match="no mark has an `item`"):
        found([(0, 3, "red")], align="item")


def test_a_text_without_marks_has_no_places() -> None:
    assert found([], []) == ()


def counted(own: Sequence[Dispute]) -> DisputeCount:
    """Count the disputes by building all of them."""
    return DisputeCount(len(own), sum(dispute.agreed for dispute in own))


@given(st.lists(mark_lists(), min_size=1, max_size=4), st.sampled_from(["auto", "overlap", "overlap-label"]))
def test_disputes_are_counted_without_being_made(given: list[list[MarkTuple]], align: str) -> None:
    study = make_gold_study(
        {"d": TEXT, "e": TEXT}, {("d", f"p{at}"): each for at, each in enumerate(given)} | {("e", "p0"): []}
    )
    every = find_disputes(view(study), align)
    assert dispute_count_by_document(view(study), align) == {document: counted(own) for document, own in every.items()}


@pytest.mark.parametrize("items", [False, True])
@pytest.mark.parametrize("name", ["scarecrow", "accuracy", "snac"])
def test_counts_are_those_of_disputes_under_shipped_protocols(name: str, items: bool) -> None:
    """Simulated annotators with similar marks, under the rules of each protocol."""
    protocol = load_shipped(name)
    texts = [
        Document(id=f"t{at}", text=f"The Hawks won {at + 90}-80 on a Monday. They ran, they ran. " * 4)
        for at in range(6)
    ]
    truth = {one.document: one for one in plant_errors(texts, protocol, 4.0, 1)}
    people = make_crowd(3, SimulatedAnnotator("reader", recall=0.9, precision=0.9, jitter=0.3), 0.0, 1)
    annotations = list(simulate_annotations(texts, truth, people, protocol, 1))
    if items:
        annotations = [tied(one) if isinstance(one, Annotation) else one for one in annotations]
    planted: list[StudyItem] = [
        Settings(protocols=(protocol.id,)),
        protocol,
        *texts,
        Annotator(id="truth", kind="gold"),
    ]
    study = Study.from_items([*planted, *(person.to_annotator() for person in people), *annotations])
    seen = view(study, Filters(kinds=("human",)))
    every = find_disputes(seen)
    assert dispute_count_by_document(seen) == {document: counted(own) for document, own in every.items()}
    assert sum(len(own) for own in every.values()) > 10
    if not items:
        assert any(dispute.agreed for own in every.values() for dispute in own)


def tied(annotation: Annotation) -> Annotation:
    """Return the annotation with the position of each mark as its item."""
    marks = (one.model_copy(update={"item": f"{at}"}) for at, one in enumerate(annotation.marks))
    return annotation.model_copy(update={"marks": tuple(marks)})


@given(st.lists(mark_lists(), min_size=1, max_size=4))
def test_places_are_what_gold_merges(given: list[list[MarkTuple]]) -> None:
    """Each mark is in one dispute, keys differ, and merging gives the same as gold with one vote."""
    own = found(*given)
    study = make_gold_study({"d": TEXT}, {("d", f"p{at}"): each for at, each in enumerate(given)})
    assert sorted(id for place in own for id in ids(place)) == sorted(study.marks["id"])
    assert len({place.key for place in own}) == len(own)
    made = merge_into_gold(view(study), min_votes=1, align="overlap")
    merged = [each for annotation in made.study.iter_annotations() for each in annotation.marks]
    assert [place.merged for place in own] == merged
    for place in own:
        same = {(opinion.mark.label, tuple(merge_spans(opinion.mark.spans))) for opinion in place.opinions}
        assert place.agreed == (len(given) >= 2 and len(same) == 1 and place.vote_count == len(given))


# --- decisions ----------------------------------------------------------------------------------------------------


def slow_decisions(own: Sequence[Dispute], decisions: Mapping[str, Decision]) -> dict[str, set[str]]:
    """Return the marks of each dispute, decided mark by mark."""
    result: dict[str, set[str]] = {key: set() for key in decisions}
    for place in own:
        owners = {id: key for id in ids(place) for key, each in decisions.items() if id in each.readings}
        first = next((owners[opinion.mark.id] for opinion in place.opinions if opinion.mark.id in owners), None)
        for opinion in place.opinions:
            result.setdefault(owners.get(opinion.mark.id) or first or place.key, set()).add(opinion.mark.id)
    return result


@given(st.lists(mark_lists(), min_size=2, max_size=3), mark_lists(), st.data())
def test_decided_places_stay_and_nothing_is_lost(
    given: list[list[MarkTuple]], late: list[MarkTuple], data: st.DataObject
) -> None:
    before, after = found(*given), found(*given, late)
    decided = data.draw(st.lists(st.sampled_from(before), unique_by=lambda place: place.key)) if before else []
    decisions = {place.key: decision(place) for place in decided}
    standing = pair_disputes_with_decisions(after, decisions)
    assert {each.dispute.key: ids(each.dispute) for each in standing} == slow_decisions(after, decisions)
    assert {each.dispute.key for each in standing if each.decision} == set(decisions)
    for each in standing:
        if each.decision:
            assert set(each.decision.readings) <= ids(each.dispute)
            assert each.later == len(ids(each.dispute) - set(each.decision.readings))
    assert sorted(id for each in standing for id in ids(each.dispute)) == sorted(
        id for place in after for id in ids(place)
    )


def test_marks_of_a_second_pass_stay_with_what_they_were_made_from() -> None:
    (before,) = found([(0, 3, "red")], [(0, 3, "blue")])
    again = make_gold_mark("new", TEXT, 8, 13, "blue", made_from=("d/p0/0",))
    standing = pair_disputes_with_decisions(found([again], [(0, 3, "blue")]), {before.key: decision(before, "discuss")})
    assert [(ids(each.dispute), each.later) for each in standing] == [({"new", "d/p1/0"}, 0)]


def test_a_decision_outlives_its_readings() -> None:
    (before,) = found([(0, 3, "red")], [])
    (standing,) = pair_disputes_with_decisions(found([], []), {before.key: decision(before)})
    assert (standing.dispute.opinions, standing.is_settled) == ((), True)


def test_discussion_settles_nothing() -> None:
    (place,) = found([(0, 3, "red")], [(0, 3, "blue")])
    assert not is_adjudication_finished([DisputeDecision(place)])
    assert not is_adjudication_finished([DisputeDecision(place, decision(place, "discuss"))])
    assert is_adjudication_finished([DisputeDecision(place, decision(place, "not-an-error"))])
    assert is_adjudication_finished([])


def test_gold_marks_say_where_they_come_from() -> None:
    (place,) = found([(0, 3, "red")], [(0, 3, "blue")], [])
    assert place.merged is not None
    one, two = gold_marks_of_dispute("d", place, [place.merged, make_gold_mark("x", TEXT, 4, 7, "green")])
    assert (one.id, two.id) == (f"d/adjudicated/{place.key}", f"d/adjudicated/{place.key}.2")
    for each in (one, two):
        assert (each.votes, each.label_votes) == (2, {"red": 1, "blue": 1})
        assert each.made_from == ("d/p0/0", "d/p1/0")
    (most,) = found([(0, 3, "red")], [(0, 3, "red")], [(0, 3, "blue")])
    assert gold_marks_of_dispute("d", most, [most.opinions[0].mark])[0].label_votes is None
