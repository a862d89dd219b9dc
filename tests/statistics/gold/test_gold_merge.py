from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given

import finecomb as fc
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Answers, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.statistics.agreement.mark_alignment import align_marks
from finecomb.statistics.gold import merge_tables
from finecomb.statistics.gold.decisions import decision_notes
from finecomb.statistics.gold.gold_merge import Gold, SpanSize, merge_answers, merge_into_gold
from finecomb.statistics.selection.view import Filters, view
from tests.statistics.agreement.agreement_studies import PROTOCOL, MarkTuple, studies
from tests.statistics.gold.gold_studies import TEXT, make_alternative, make_gold_mark, make_gold_study

THREE = ("p", "q", "r")


def three(*given: Sequence[Mark | MarkTuple], text: str = TEXT) -> Study:
    return make_gold_study({"d": text}, {("d", name): own for name, own in zip(THREE, given, strict=True)})


def only(merged: Gold) -> list[Mark]:
    return [mark for annotation in merged.study.iter_annotations() for mark in annotation.marks]


def test_errors_with_enough_votes_get_the_majoritys_label() -> None:
    merged = merge_into_gold(three([(0, 3, "red")], [(0, 3, "red"), (8, 13, "blue")], [(0, 3, "blue")]))
    assert [(m.quotes, m.label, m.votes, m.label_votes) for m in only(merged)] == [(("one",), "red", 3, None)]
    assert only(merged)[0].made_from == ("d/p/0", "d/q/0", "d/r/0")
    annotation = next(merged.study.iter_annotations())
    assert (annotation.annotator, annotation.made_from) == ("gold", ("d/p", "d/q", "d/r"))
    assert fc.check(merged.study) == []


@pytest.mark.parametrize(
    ("labels", "label", "votes"),
    [
        (("red", "blue", "green"), None, {"red": 1, "blue": 1, "green": 1}),
        (("red", None, "blue"), None, {"red": 1, "no type": 1, "blue": 1}),
        ((None, None, "red"), None, None),
        (("red", "red", None), "red", None),
    ],
)
def test_no_majority_is_null_with_the_votes(
    labels: tuple[str | None, ...], label: str | None, votes: dict[str, int] | None
) -> None:
    merged = merge_into_gold(three(*([(0, 3, each)] for each in labels)))
    assert [(m.label, m.label_votes) for m in only(merged)] == [(label, votes)]
    shown = "split" if votes else label or "no type"
    assert merged.kept_errors["label"].to_list() == [shown]
    assert fc.check(merged.study) == []


@pytest.mark.parametrize(
    ("size", "quotes"),
    [
        ("widest", ("one two three",)),
        ("narrowest", ("two",)),
        ("majority", ("two three",)),
        ("union", ("one two three",)),
    ],
)
def test_the_size_is_chosen(size: SpanSize, quotes: tuple[str, ...]) -> None:
    merged = merge_into_gold(three([(0, 13, "red")], [(4, 7, "red")], [(4, 13, "red")]), size=size)
    assert only(merged)[0].quotes == quotes
    resized = [change for change in merged.changes if change.rule == "size"]
    assert {change.after for change in resized} == set(quotes)
    assert len(resized) == {"widest": 2, "union": 2, "narrowest": 2, "majority": 2}[size]


def test_the_majority_of_tokens_may_leave_a_gap() -> None:
    apart = Mark(id="m", spans=(Span(0, 3), Span(14, 18)), quotes=("one", "four"), label="red")
    merged = merge_into_gold(three([(0, 18, "red")], [apart], [apart.model_copy(update={"id": "n"})]))
    assert only(merged)[0].quotes == ("one", "four")
    assert [change.before for change in merged.changes] == [TEXT]


def test_no_common_token_falls_back_to_the_widest_reading() -> None:
    given = [
        make_gold_mark(name, TEXT, start, end, "red", item="1") for name, start, end in (("x", 0, 3), ("y", 4, 13))
    ]
    assert only(merge_into_gold(three(given[:1], given[1:], [])))[0].quotes == ("two three",)


def test_what_all_marked_alike_is_not_widened_to_tokens() -> None:
    merged = merge_into_gold(three([(1, 2, "red")], [(1, 2, "red")], []))
    assert only(merged)[0].quotes == ("n",)
    assert merged.changes == ()


def test_given_items_are_taken_as_they_are() -> None:
    text = "won 30-20 on Monday"
    protocol = fc.protocol("accuracy")

    def reading(name: str, label: str) -> Annotation:
        own = (
            make_gold_mark(f"{name}/1", text, 4, 9, "number", item="1"),
            make_gold_mark(f"{name}/2", text, 13, 19, label, item="2"),
        )
        return Annotation(id=name, document="d", annotator=name, protocol=protocol.id, marks=own)

    who = [fc.Annotator(id=name, kind="human") for name in THREE]
    document = fc.Document(id="d", text=text)
    people = [reading("p", "word"), reading("q", "word"), reading("r", "name")]
    study = Study.from_items([protocol, document, *who, *people])
    merged = merge_into_gold(study)
    assert merged.align == "item"
    assert [(m.quotes[0], m.label, m.item) for m in only(merged)] == [("30-20", "number", "1"), ("Monday", "word", "2")]
    assert "5 marks break the guidelines" in merged.notes[0]
    ours = merge_into_gold(study, align="overlap")
    assert [(m.quotes[0], m.label) for m in only(ours)] == [("30", "number"), ("20", "number"), ("Monday", "name")]
    assert only(ours)[0].made_from == ("p/1", "q/1", "r/1")


def test_texts_with_too_few_readers_get_no_gold() -> None:
    read = {("d0", "p"): [(0, 3, "red")], ("d1", "p"): [(0, 3, "red")], ("d1", "q"): [(0, 3, "red")]}
    merged = merge_into_gold(make_gold_study({"d0": TEXT, "d1": TEXT}, read))
    assert "1 texts have fewer than 2 annotators and are excluded from gold (d0)" in merged.notes[0]
    assert merged.study.submitted_work().annotations["document"].to_list() == ["d1"]
    assert fc.check(merged.study) == []


def test_pooled_votes_are_votes() -> None:
    pooled = [make_gold_mark("m0", TEXT, 0, 3, "red", votes=2), make_gold_mark("m1", TEXT, 4, 7, "red", votes=1)]
    items = make_gold_study({"d": TEXT}, {("d", "p"): pooled}).items()
    study = Study.from_items(
        each.model_copy(update={"kind": "pooled"}) if isinstance(each, fc.Annotator)
        else each.model_copy(update={"readers": 3}) if isinstance(each, Annotation) else each
        for each in items
    )  # fmt: skip
    assert [(m.quotes, m.votes) for m in only(merge_into_gold(study))] == [(("one",), 2)]


def test_answers_are_kept_words_side_by_side_and_the_rest_by_majority() -> None:
    protocol = fc.protocol("scarecrow")
    given: list[Answers] = [
        {"severity": 1, "explanation": "a"},
        {"severity": 3, "explanation": "b"},
        {"severity": 3, "explanation": "a"},
    ]
    assert merge_answers(given, protocol, "redundant") == {"severity": 3, "explanation": "a / b"}
    assert merge_answers([{"severity": 2}, {"severity": 1}], protocol, "redundant") == {"severity": 2}
    assert merge_answers([{"unasked": "x"}], protocol, "redundant") == {}


def test_what_cannot_be_merged_is_refused() -> None:
    study = three([(0, 3, "red")], [], [])
    with pytest.raises(FinecombError, match="unknown size 'wide'; did you mean 'widest'"):
        merge_into_gold(study, size="wide")  # type: ignore[arg-type]
    with pytest.raises(FinecombError, match="min_votes must be at least 1, found 0"):
        merge_into_gold(study, min_votes=0)
    with pytest.raises(FinecombError, match="unknown alignment 'overlaps'"):
        merge_into_gold(study, align="overlaps")
    with pytest.raises(FinecombError, match="no submitted annotations to merge"):
        merge_into_gold(Study.from_items([PROTOCOL]))


@given(studies())
def test_gold_equals_its_definition(study: Study) -> None:
    """Clusters with two or more annotators on texts with two or more annotators; a label by more than half."""
    merged = merge_into_gold(study, align="overlap", size="union")
    clusters = align_marks(view(study), "overlap")
    readers = Counter(study.annotations["document"])
    expected = []
    for (_, document), own in clusters.group_by(["cluster", "document"], maintain_order=True):
        votes = Counter(own["label"])
        top, count = votes.most_common(1)[0]
        if len(own) >= 2 and readers[str(document)] >= 2:
            label = top if count * 2 > len(own) and top != "no type" else None
            expected.append((document, label, len(own), own["start"].min(), own["end"].max()))
    found = [
        (a.document, m.label, m.votes, m.spans[0].start, m.spans[-1].end)
        for a in merged.study.iter_annotations()
        for m in a.marks
    ]
    assert sorted(map(str, found)) == sorted(map(str, expected))
    assert [each for each in fc.check(merged.study) if each.level == "error"] == []


# --- regression tests of merging ---------------------------------------------------------------------------------

BOSTON = "Boston won 30-20 with a steal by Joel Embiid, who led the Heat with 30 points."


def basketball(*people: Sequence[tuple[str, str, dict[str, Any]]]) -> Study:
    """Build annotators of one sentence under the accuracy protocol, with marks by words, label and other fields."""
    protocol = fc.protocol("accuracy")
    annotations = [
        Annotation(
            id=f"a{number}", document="d", annotator=f"p{number}", protocol=protocol.id,
            marks=tuple(
                make_gold_mark(f"{number}/{at}", BOSTON, BOSTON.index(quote), BOSTON.index(quote) + len(quote), label,
                **more)
                for at, (quote, label, more) in enumerate(own)
            ),
        )
        for number, own in enumerate(people)
    ]  # fmt: skip
    who = [fc.Annotator(id=f"p{number}", kind="human") for number in range(len(people))]
    return Study.from_items([protocol, fc.Document(id="d", text=BOSTON), *who, *annotations])


def errors(merged: Gold) -> list[tuple[str, str | None, int | None]]:
    return [(" … ".join(mark.quotes), mark.label, mark.votes) for mark in only(merged)]


def corrected(words: str) -> dict[str, Any]:
    return {"answers": {"correction": words}}


def test_a_number_that_a_correction_leaves_as_it_is_was_right() -> None:
    """The 20 of 30-20 used to be an error in gold, although both annotators left it unchanged."""
    both = [("30-20", "number", corrected("28-20"))]
    merged = merge_into_gold(basketball(both, both))
    assert errors(merged) == [("30", "number", 2)]
    assert only(merged)[0].answers == {"correction": "28"}
    assert [change.after for change in merged.changes] == ["30", "30"]


@pytest.mark.parametrize(
    ("corrections", "expected"),
    [
        (["28-25", "28-25"], [("30", "number", 2), ("20", "number", 2)]),
        (["28-20", "", ""], [("30", "number", 3)]),
        (["28-20", "30-18"], []),
        (["", ""], [("30", "number", 2), ("20", "number", 2)]),
        (["30-20", "30-20"], [("30-20", "number", 2)]),
    ],
)
def test_corrections_say_which_of_two_numbers_is_wrong(corrections: list[str], expected: list[object]) -> None:
    people = [[("30-20", "number", corrected(words) if words else {})] for words in corrections]
    assert errors(merge_into_gold(basketball(*people))) == expected


def test_a_determiner_that_somebody_marked_by_itself_is_not_trimmed_from_the_others() -> None:
    """Trimming `a steal` to `steal`, which does not overlap `a`, used to give two errors and the wrong word in gold."""
    merged = merge_into_gold(
        basketball([("a", "number", {})], [("a steal", "number", {})], [("a steal", "number", {})])
    )
    assert errors(merged) == [("a steal", "number", 3)]
    narrow = merge_into_gold(basketball([("a", "number", {})], [("a", "number", {})], [("a steal", "number", {})]))
    assert errors(narrow) == [("a", "number", 3)]


def test_a_determiner_that_is_corrected_to_a_number_is_not_trimmed() -> None:
    both = [("a steal", "number", corrected("two steals"))]
    assert errors(merge_into_gold(basketball(both, both))) == [("a steal", "number", 2)]
    team = [("the Heat", "name", corrected("76ers"))]
    assert errors(merge_into_gold(basketball(team, team))) == [("Heat", "name", 2)]


def test_a_long_mark_does_not_make_one_error_of_two_readings() -> None:
    """Two annotators mark different words, a third the whole clause, which used to be one error with three votes."""
    merged = merge_into_gold(
        basketball(
            [("Joel Embiid", "name", {})],
            [("30 points", "number", {})],
            [("Joel Embiid, who led the Heat with 30 points", "name", {})],
        )
    )
    assert errors(merged) == [("Joel Embiid", "name", 2)]
    assert len(merged.errors) == 2


def test_marks_on_a_prompt_merge_like_any_other() -> None:
    """Three annotators of the same words in the prompt used to give three errors with one vote each."""
    document = fc.Document(id="d", text=TEXT, context={"prompt": "Once upon a time"})
    own = {"spans": (Span(5, 9, "prompt"),), "quotes": ("upon",), "label": "red"}
    annotations = [
        Annotation(id=f"d/{name}", document="d", annotator=name, protocol=PROTOCOL.id,
                   marks=(Mark.model_validate({"id": f"d/{name}/0", **own}),))
        for name in THREE
    ]  # fmt: skip
    who = [fc.Annotator(id=name, kind="human") for name in THREE]
    merged = merge_into_gold(Study.from_items([PROTOCOL, document, *who, *annotations]))
    assert [(m.spans, m.quotes, m.votes) for m in only(merged)] == [((Span(5, 9, "prompt"),), ("upon",), 3)]


@pytest.mark.parametrize(("readers", "votes", "kept"), [(5, 2, False), (5, 3, True), (4, 2, False), (2, 2, True)])
def test_a_majority_of_any_number_of_readers(readers: int, votes: int, kept: bool) -> None:
    given = {("d", f"p{at}"): [(0, 3, "red")] if at < votes else [] for at in range(readers)}
    merged = merge_into_gold(make_gold_study({"d": TEXT}, given), "majority")
    assert [bool(len(only(merged))), merged.signature["min_votes"]] == [kept, "majority"]


def test_one_reader_is_no_majority() -> None:
    merged = merge_into_gold(make_gold_study({"d": TEXT}, {("d", "p"): [(0, 3, "red")]}), "majority")
    assert merged.study.submitted_work().annotations.is_empty()


def test_each_gold_of_fewer_readers_has_its_own_majority() -> None:
    """Gold of three annotators needs two votes, gold of five three votes; both used the same number before."""
    given = {("d", f"p{at}"): [(0, 3, "red")] if at < 2 else [] for at in range(5)}
    rows = merge_tables.annotator_subset_scores_table(make_gold_study({"d": TEXT}, given), 3, draws=0)
    assert [row.gold for row in rows[:-1]] == [0] * 10
    assert sum(row.predicted for row in rows[:-1]) == 3  # both who marked it and one of three others
    same_votes = merge_tables.annotator_subset_scores_table(make_gold_study({"d": TEXT}, given), 3, 2, draws=0)
    assert {row.gold for row in same_votes[:-1]} == {1}


def test_two_readings_of_one_error_merge_into_one() -> None:
    """A name or two numbers: the first annotator accepts both, the others marked the numbers."""
    sets = ((make_alternative(TEXT, 4, 7, "blue"), make_alternative(TEXT, 14, 18, "blue")),)
    name = make_gold_mark("d/p/0", TEXT, 0, 3, "red", alternatives=sets)
    numbers: list[MarkTuple] = [(4, 7, "blue"), (14, 18, "blue")]
    (merged,) = only(merge_into_gold(three([name], numbers, numbers)))
    assert (merged.quotes, merged.label, merged.votes) == (("one",), "red", 3)
    assert merged.made_from == ("d/p/0", "d/q/0", "d/r/0", "d/q/1", "d/r/1")
    assert [[part.quotes for part in choice] for choice in merged.alternatives] == [[("two",), ("four",)]]


# --- decisions ---------------------------------------------------------------------------------------------------


def decided(what: str, readings: Sequence[str], gold_marks: Sequence[str]) -> dict[str, object]:
    return {
        "what": what, "by": "ann", "when": "2026-01-31T09:30:00Z", "readings": list(readings), "gold": list(gold_marks)
    }  # fmt: skip


def test_decisions_of_an_adjudicator_are_gold() -> None:
    """`gold` used to merge by votes and to ignore decisions."""
    study = three([(0, 3, "red"), (8, 13, "red")], [(0, 3, "red")], [(4, 7, "blue")])
    kept, added = (
        make_gold_mark("d/adjudicated/k", TEXT, 4, 7, "green"),
        make_gold_mark("d/adjudicated/x", TEXT, 14, 18, "red"),
    )
    meta = {
        "adjudication": {
            "k": decided("changed", ["d/r/0"], ["d/adjudicated/k"]),
            "n": decided("not-an-error", ["d/p/0", "d/q/0"], []),
            "x": decided("added", [], ["d/adjudicated/x"]),
            "o": decided("discuss", ["d/p/1"], []),
        }
    }
    judge = fc.Annotator(id="gold", kind="gold")
    decisions = Annotation(
        id="d/adjudicated", document="d", annotator="gold", protocol=PROTOCOL.id, status="draft",
        marks=(kept, added), meta=meta,
    )  # fmt: skip
    whole = Study.from_items([*study.items(), judge, decisions])
    merged = merge_into_gold(whole)
    assert [(m.quotes[0], m.label) for m in only(merged)] == [("two", "green"), ("four", "red")]
    assert merged.notes[-1].startswith("3 errors in 1 texts were decided by an adjudicator")
    assert len(merged.undecided_errors) == 1  # left for discussion
    assert merge_tables.errors_by_label_table(merged)[-1]["errors"] == 2
    assert fc.check(merged.study) == []
    assert [m.quotes[0] for m in only(merge_into_gold(view(whole)))] == ["one"]  # by votes only
    assert list(decision_notes(view(whole, Filters(kinds=("gold",))).study)) == []  # drafts are ignored
    done = Study.from_items([*study.items(), judge, decisions.model_copy(update={"status": "submitted"})])
    (note,) = decision_notes(view(done, Filters(kinds=("gold",))).study)
    assert note == "gold was adjudicated: 3 decisions in 1 texts"
