from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Study
from finecomb.gold.score import ratios, score
from tests.agreement.worlds import PROTOCOL, Marked
from tests.gold.worlds import TEXT, TEXTS, mark, pairs, row, world

RED: Marked = (0, 3, "red")


def test_two_studies_or_one_give_the_same() -> None:
    gold: dict[tuple[str, str], list[Marked]] = {("d", "gold"): [RED]}
    judge: dict[tuple[str, str], list[Marked]] = {("d", "judge"): [(0, 7, "blue")]}
    apart = score(world({"d": TEXT}, gold), world({"d": TEXT}, judge), draws=0)
    whole = score(world({"d": TEXT}, gold | judge), draws=0)
    assert [str(each.row()) for each in apart.rows] == [str(each.row()) for each in whole.rows]


def test_nothing_submitted_is_undefined_and_says_why() -> None:
    found = row(score(world({"d": TEXT}, {("d", "gold"): [RED], ("d", "judge"): []}), draws=0), "any")
    assert found.recall.value == 0
    assert math.isnan(found.precision.value)
    assert found.precision.why == "nothing was submitted here"
    assert math.isnan(found.f1.value)
    empty = row(score(world({"d": TEXT}, {("d", "gold"): [], ("d", "judge"): [RED]}), draws=0), "any")
    assert empty.recall.why == "gold marks nothing here"
    assert empty.precision.value == 0


def test_a_text_that_only_one_side_marked_counts() -> None:
    """A popular tool leaves such texts out and reports 1.0 here."""
    texts = {f"d{at}": TEXT for at in range(11)}
    given: dict[tuple[str, str], list[Marked]] = {(id, "gold"): [RED] for id in texts}
    given |= {(id, "judge"): [RED] if id == "d0" else [] for id in texts}
    assert row(score(world(texts, given), draws=0), "any").recall.value == pytest.approx(1 / 11)
    bare = {key: own for key, own in given.items() if key[1] == "gold" or own}
    found = score(world(texts, bare), draws=0)
    assert row(found, "any").recall.value == pytest.approx(1 / 11)
    assert "judge has no annotation on 10 of 11 texts with gold" in found.notes[0]
    left = score(world(texts, bare), unread="leave-out", draws=0)
    assert row(left, "any").recall.value == 1
    assert "left out" in left.notes[0]


def test_work_that_was_set_aside_does_not_count() -> None:
    study = world(TEXTS, {(id, name): [RED] for id in TEXTS for name in ("gold", "judge")})
    items = [
        each.model_copy(update={"status": "excluded"})
        if isinstance(each, Annotation) and each.id == "d1/gold"
        else each
        for each in study.items()
    ]
    found = score(Study.from_items(items), draws=0)
    assert row(found, "any").gold == 1
    assert found.judged[0].judge.documents == ("d0",)
    assert "set aside" in found.notes[0]


def test_predictions_on_unknown_documents_and_other_texts_are_refused() -> None:
    gold = world({"S001": TEXT}, {("S001", "gold"): [RED]})
    with pytest.raises(FinecombError, match=r"'S01' is annotated, but gold does not have it; did you mean 'S001'"):
        score(gold, world({"S01": TEXT}, {("S01", "judge"): [RED]}))
    with pytest.raises(FinecombError, match="has another text than in gold: 'one two three for' where gold has"):
        score(gold, world({"S001": "one two three for"}, {("S001", "judge"): [RED]}))


def test_overlapping_marks_are_refused_by_the_tasks_rule_only() -> None:
    study = world({"d": TEXT}, {("d", "gold"): [RED], ("d", "judge"): [(0, 7, "red"), (4, 13, "red")]})
    with pytest.raises(FinecombError, match=r"'one two'.*'two three'.*overlap; .*use --match optimal"):
        score(study)
    assert row(score(study, match="optimal", draws=0), "any").predicted == 2


def test_who_is_gold_must_be_clear() -> None:
    nobody = world({"d": TEXT}, {("d", "p"): [RED], ("d", "q"): [RED]})
    with pytest.raises(FinecombError, match=r"no annotator of kind gold; say who is gold with --gold \(p, q\)"):
        score(nobody)
    found = score(nobody, gold_annotator="p", draws=0)
    assert [each.judge.name for each in found.judged] == ["q"]
    with pytest.raises(FinecombError, match="nobody to score"):
        score(world({"d": TEXT}, {("d", "gold"): [RED]}))
    with pytest.raises(FinecombError, match="match cannot be 'exakt'; did you mean 'exact'"):
        score(nobody, match="exakt")  # type: ignore[arg-type]


def test_a_judge_of_other_texts_cannot_be_compared() -> None:
    study = world(TEXTS, {("d0", "gold"): [RED], ("d1", "judge"): [RED]})
    with pytest.raises(FinecombError, match="judge has no annotation on any text that gold has"):
        score(study)


def test_gold_without_a_majority_label_counts_in_any_only() -> None:
    split = mark("g", TEXT, 0, 3, None, label_votes={"red": 1, "blue": 1}, votes=2)
    study = world({"d": TEXT}, {("d", "gold"): [split, mark("h", TEXT, 4, 7, "red")], ("d", "judge"): [RED]})
    found = score(study, draws=0)
    assert row(found, "any").matched == 1
    assert (row(found, "red").gold, row(found, "red").matched, row(found, "red").predicted) == (1, 0, 1)
    assert row(found, "typed").gold == 1
    assert "1 gold marks have no label that counts" in found.notes[0]


def test_rows_by_document_meta_add_up() -> None:
    given = {(id, name): [RED, (4, 7, "blue")][: 1 + at] for at, id in enumerate(TEXTS) for name in ("gold", "judge")}
    meta = {"d0": {"model": "a"}, "d1": {"model": "b"}}
    found = score(world(TEXTS, given, meta), by=("label", "model"), draws=0)
    rows = [each for each in found.rows if each.columns["label"] == "any"]
    assert [(each.columns["model"], each.gold) for each in rows] == [("a", 1), ("b", 2)]
    with pytest.raises(FinecombError, match="--by modle: documents have no meta of that name; did you mean 'model'"):
        score(world(TEXTS, given, meta), by=("modle",))


def test_the_same_seed_gives_the_same_interval_around_the_value() -> None:
    texts = {f"d{at}": TEXT for at in range(8)}
    given: dict[tuple[str, str], list[Marked]] = {}
    for at, id in enumerate(texts):
        given[id, "gold"] = [RED, (8, 13, "blue")]
        given[id, "judge"] = [RED] if at % 3 else [(4, 7, "red")]
    first, again = (row(score(world(texts, given), seed=3), "any") for _ in range(2))
    assert first == again
    assert first.recall.low < first.recall.value < first.recall.high


def test_an_interval_without_spread_says_so() -> None:
    found = row(score(world(TEXTS, {(id, n): [RED] for id in TEXTS for n in ("gold", "judge")})), "any")
    assert found.recall.value == 1
    assert math.isnan(found.recall.low)
    assert found.recall.why == "all resamples give the same value, so no interval"


@given(pairs(apart=True))
def test_intervals_resample_the_sums_of_documents(both: dict[tuple[str, str], list[Marked]]) -> None:
    found = score(world(TEXTS, both), draws=0)
    sums = found.judged[0].sums[0]
    assert ratios(sums.sum(axis=0))[0] == pytest.approx(row(found, "any").recall.value, nan_ok=True)
    assert np.all(sums[:, 2] <= sums[:, 0])
    assert np.all(sums[:, 3] <= sums[:, 1])


def test_unplaced_marks_count_and_match_nothing() -> None:
    lost = mark("g", TEXT, 0, 3, "red").model_copy(update={"spans": (), "unlocated": "not there"})
    found = score(world({"d": TEXT}, {("d", "gold"): [lost], ("d", "judge"): [RED]}), draws=0)
    assert (row(found, "any").gold, row(found, "any").matched) == (1, 0)
    assert "1 marks of gold have no place in their text" in found.notes[0]


def test_scalar_metrics_are_no_judges_of_marks() -> None:
    study = world({"d": TEXT}, {("d", "gold"): [RED], ("d", "judge"): [RED]})
    metric = Annotation(id="d/m", document="d", annotator="m", protocol=PROTOCOL.id, answers={"score": 0.5})
    whole = Study.from_items([*study.items(), Annotator(id="m", kind="detector"), metric])
    assert [each.judge.name for each in score(whole, draws=0).judged] == ["judge"]


def test_marks_on_a_context_match_marks_there_only() -> None:
    from finecomb.core.records import Mark
    from finecomb.core.span import Span

    prompt = Mark(id="g", spans=(Span(0, 3, "prompt"),), quotes=("one",), label="red")
    document = Document(id="d", text=TEXT, context={"prompt": TEXT})
    annotations = [
        Annotation(id="d/gold", document="d", annotator="gold", protocol=PROTOCOL.id, marks=(prompt,)),
        Annotation(
            id="d/judge", document="d", annotator="judge", protocol=PROTOCOL.id, marks=(mark("j", TEXT, 0, 3, "red"),)
        ),
    ]
    who = [Annotator(id="gold", kind="gold"), Annotator(id="judge", kind="llm")]
    found = score(Study.from_items([PROTOCOL, document, *who, *annotations]), draws=0)
    assert row(found, "any").matched == 0
