from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.study import Study
from finecomb.core.text_hash import hash_text
from finecomb.statistics.gold.scores import (
    MATCH_NAMES,
    Average,
    MatchName,
    recall_precision_and_f1,
    score_by_match_rules,
    score_judges_against_gold,
)
from tests.statistics.agreement.agreement_studies import PROTOCOL, MarkTuple
from tests.statistics.gold.gold_studies import (
    TEXT,
    TEXTS,
    gold_and_judge_marks,
    make_gold_mark,
    make_gold_study,
    score_row,
)

RED: MarkTuple = (0, 3, "red")
BY_SHARE: tuple[MatchName, MatchName] = ("partial", "mpp")
AVERAGES: tuple[Average, Average] = ("micro", "macro")


def test_two_studies_or_one_give_the_same() -> None:
    gold: dict[tuple[str, str], list[MarkTuple]] = {("d", "gold"): [RED]}
    judge: dict[tuple[str, str], list[MarkTuple]] = {("d", "judge"): [(0, 7, "blue")]}
    apart = score_judges_against_gold(make_gold_study({"d": TEXT}, gold), make_gold_study({"d": TEXT}, judge), draws=0)
    whole = score_judges_against_gold(make_gold_study({"d": TEXT}, gold | judge), draws=0)
    assert [str(each.row()) for each in apart.rows] == [str(each.row()) for each in whole.rows]


def test_nothing_submitted_is_undefined_and_says_why() -> None:
    found = score_row(
        score_judges_against_gold(make_gold_study({"d": TEXT}, {("d", "gold"): [RED], ("d", "judge"): []}), draws=0),
        "any",
    )
    assert found.recall.value == 0
    assert math.isnan(found.precision.value)
    assert found.precision.why == "this row has no marks to score"
    assert math.isnan(found.f1.value)
    empty = score_row(
        score_judges_against_gold(make_gold_study({"d": TEXT}, {("d", "gold"): [], ("d", "judge"): [RED]}), draws=0),
        "any",
    )
    assert empty.recall.why == "this row has no gold marks"
    assert empty.precision.value == 0


def test_a_text_that_only_one_side_marked_counts() -> None:
    """A popular tool omits such texts and reports 1.0 here."""
    texts = {f"d{at}": TEXT for at in range(11)}
    given: dict[tuple[str, str], list[MarkTuple]] = {(id, "gold"): [RED] for id in texts}
    given |= {(id, "judge"): [RED] if id == "d0" else [] for id in texts}
    assert score_row(
        score_judges_against_gold(make_gold_study(texts, given), draws=0), "any"
    ).recall.value == pytest.approx(1 / 11)
    bare = {key: own for key, own in given.items() if key[1] == "gold" or own}
    found = score_judges_against_gold(make_gold_study(texts, bare), draws=0)
    assert score_row(found, "any").recall.value == pytest.approx(1 / 11)
    assert "judge has no annotation on 10 of 11 texts with gold" in found.notes[0]
    left = score_judges_against_gold(make_gold_study(texts, bare), unread="leave-out", draws=0)
    assert score_row(left, "any").recall.value == 1
    assert "left out" in left.notes[0]


def test_work_that_was_set_aside_does_not_count() -> None:
    study = make_gold_study(TEXTS, {(id, name): [RED] for id in TEXTS for name in ("gold", "judge")})
    items = [
        each.model_copy(update={"status": "excluded"})
        if isinstance(each, Annotation) and each.id == "d1/gold"
        else each
        for each in study.items()
    ]
    found = score_judges_against_gold(Study.from_items(items), draws=0)
    assert score_row(found, "any").gold == 1
    assert found.judged[0].judge.documents == ("d0",)
    assert "was excluded or not submitted" in found.notes[0]


def test_predictions_on_unknown_documents_and_other_texts_are_refused() -> None:
    gold = make_gold_study({"S001": TEXT}, {("S001", "gold"): [RED]})
    with pytest.raises(FinecombError, match=r"'S01' is annotated but missing in gold; did you mean 'S001'"):
        score_judges_against_gold(gold, make_gold_study({"S01": TEXT}, {("S01", "judge"): [RED]}))
    with pytest.raises(FinecombError, match="differs from gold: 'one two three for' instead of"):
        score_judges_against_gold(gold, make_gold_study({"S001": "one two three for"}, {("S001", "judge"): [RED]}))


def test_overlapping_marks_are_refused_by_the_tasks_rule_only() -> None:
    study = make_gold_study({"d": TEXT}, {("d", "gold"): [RED], ("d", "judge"): [(0, 7, "red"), (4, 13, "red")]})
    with pytest.raises(FinecombError, match=r"'one two'.*'two three'.*overlap; .*use match=optimal"):
        score_judges_against_gold(study, match="task")
    assert score_row(score_judges_against_gold(study, match="optimal", draws=0), "any").predicted == 2


def test_who_is_gold_must_be_clear() -> None:
    nobody = make_gold_study({"d": TEXT}, {("d", "p"): [RED], ("d", "q"): [RED]})
    with pytest.raises(FinecombError, match=r"no annotator of kind gold; name the gold annotator with gold \(p, q\)"):
        score_judges_against_gold(nobody)
    found = score_judges_against_gold(nobody, gold_annotator="p", draws=0)
    assert [each.judge.name for each in found.judged] == ["q"]
    with pytest.raises(FinecombError, match="no judge to score"):
        score_judges_against_gold(make_gold_study({"d": TEXT}, {("d", "gold"): [RED]}))
    with pytest.raises(FinecombError, match="unknown match 'exakt'; did you mean 'exact'"):
        score_judges_against_gold(nobody, match="exakt")  # type: ignore[arg-type]


def test_a_judge_of_other_texts_cannot_be_compared() -> None:
    study = make_gold_study(TEXTS, {("d0", "gold"): [RED], ("d1", "judge"): [RED]})
    with pytest.raises(FinecombError, match="judge has not annotated any text with gold"):
        score_judges_against_gold(study)


def test_gold_without_a_majority_label_counts_in_any_only() -> None:
    split = make_gold_mark("g", TEXT, 0, 3, None, label_votes={"red": 1, "blue": 1}, votes=2)
    study = make_gold_study(
        {"d": TEXT}, {("d", "gold"): [split, make_gold_mark("h", TEXT, 4, 7, "red")], ("d", "judge"): [RED]}
    )
    found = score_judges_against_gold(study, draws=0)
    assert score_row(found, "any").matched == 1
    assert (score_row(found, "red").gold, score_row(found, "red").matched, score_row(found, "red").predicted) == (
        1,
        0,
        1,
    )
    assert score_row(found, "typed").gold == 1
    assert "1 gold marks have no label (`split`, `no type`)" in found.notes[0]


def test_rows_by_document_meta_add_up() -> None:
    given = {(id, name): [RED, (4, 7, "blue")][: 1 + at] for at, id in enumerate(TEXTS) for name in ("gold", "judge")}
    meta = {"d0": {"model": "a"}, "d1": {"model": "b"}}
    found = score_judges_against_gold(make_gold_study(TEXTS, given, meta), by=("label", "model"), draws=0)
    rows = [each for each in found.rows if each.columns["label"] == "any"]
    assert [(each.columns["model"], each.gold) for each in rows] == [("a", 1), ("b", 2)]
    with pytest.raises(FinecombError, match="by=modle: no document has this meta field; did you mean 'model'"):
        score_judges_against_gold(make_gold_study(TEXTS, given, meta), by=("modle",))


def test_the_same_seed_gives_the_same_interval_around_the_value() -> None:
    texts = {f"d{at}": TEXT for at in range(8)}
    given: dict[tuple[str, str], list[MarkTuple]] = {}
    for at, id in enumerate(texts):
        given[id, "gold"] = [RED, (8, 13, "blue")]
        given[id, "judge"] = [RED] if at % 3 else [(4, 7, "red")]
    first, again = (
        score_row(score_judges_against_gold(make_gold_study(texts, given), seed=3), "any") for _ in range(2)
    )
    assert first == again
    assert first.recall.low < first.recall.value < first.recall.high


def test_an_interval_without_spread_says_so() -> None:
    found = score_row(
        score_judges_against_gold(make_gold_study(TEXTS, {(id, n): [RED] for id in TEXTS for n in ("gold", "judge")})),
        "any",
    )
    assert found.recall.value == 1
    assert math.isnan(found.recall.low)
    assert found.recall.why == "an interval requires at least 4 texts, found 2"


@given(gold_and_judge_marks(apart=True))
def test_intervals_resample_the_sums_of_documents(both: dict[tuple[str, str], list[MarkTuple]]) -> None:
    found = score_judges_against_gold(make_gold_study(TEXTS, both), draws=0)
    sums = found.judged[0].sums[0]
    assert recall_precision_and_f1(sums.sum(axis=0))[0] == pytest.approx(
        score_row(found, "any").recall.value, nan_ok=True
    )
    assert np.all(sums[:, 2] <= sums[:, 0])
    assert np.all(sums[:, 3] <= sums[:, 1])


def test_unplaced_marks_count_and_match_nothing() -> None:
    lost = make_gold_mark("g", TEXT, 0, 3, "red").model_copy(update={"spans": (), "unlocated": "not there"})
    found = score_judges_against_gold(
        make_gold_study({"d": TEXT}, {("d", "gold"): [lost], ("d", "judge"): [RED]}), draws=0
    )
    assert (score_row(found, "any").gold, score_row(found, "any").matched) == (1, 0)
    assert "1 marks of gold have no position in their text" in found.notes[0]


def test_scalar_metrics_are_no_judges_of_marks() -> None:
    study = make_gold_study({"d": TEXT}, {("d", "gold"): [RED], ("d", "judge"): [RED]})
    metric = Annotation(id="d/m", document="d", annotator="m", protocol=PROTOCOL.id, answers={"score": 0.5})
    whole = Study.from_items([*study.items(), Annotator(id="m", kind="detector"), metric])
    assert [each.judge.name for each in score_judges_against_gold(whole, draws=0).judged] == ["judge"]


def test_marks_on_a_context_match_marks_there_only() -> None:
    from finecomb.core.records import Mark
    from finecomb.core.span import Span

    prompt = Mark(id="g", spans=(Span(0, 3, "prompt"),), quotes=("one",), label="red")
    document = Document(id="d", text=TEXT, context={"prompt": TEXT})
    annotations = [
        Annotation(id="d/gold", document="d", annotator="gold", protocol=PROTOCOL.id, marks=(prompt,)),
        Annotation(
            id="d/judge",
            document="d",
            annotator="judge",
            protocol=PROTOCOL.id,
            marks=(make_gold_mark("j", TEXT, 0, 3, "red"),),
        ),
    ]
    who = [Annotator(id="gold", kind="gold"), Annotator(id="judge", kind="llm")]
    found = score_judges_against_gold(Study.from_items([PROTOCOL, document, *who, *annotations]), draws=0)
    assert score_row(found, "any").matched == 0


# --- other matching rules ----------------------------------------------------------------------------------------


def test_overlapping_marks_are_scored_unless_the_task_is_asked_for() -> None:
    """The default used to be the rule of the shared task, which rejects them."""
    study = make_gold_study(
        {"d": TEXT}, {("d", "gold"): [(0, 3, "red")], ("d", "judge"): [(0, 7, "red"), (4, 13, "red")]}
    )
    assert score_row(score_judges_against_gold(study, draws=0), "any").matched == 1
    with pytest.raises(FinecombError, match="use match=optimal"):
        score_judges_against_gold(study, match="task", draws=0)


def test_gold_in_the_predicted_study_is_not_scored_against_itself() -> None:
    """Gold in the same study as the judges used to get a perfect score among them."""
    given = {("d", "reader"): [(0, 3, "red")], ("d", "judge"): [(0, 3, "red")]}
    study = make_gold_study({"d": TEXT}, given)
    rows = score_judges_against_gold(study, study, gold_annotator="reader", draws=0).rows
    assert {each.columns["judge"] for each in rows} == {"judge"}
    alone = make_gold_study({"d": TEXT}, {("d", "gold"): [(0, 3, "red")]})
    assert score_row(score_judges_against_gold(alone, alone, draws=0), "any").f1.value == 1  # there are no other judges


def test_decisions_of_an_adjudicator_are_said() -> None:
    study = make_gold_study({"d": TEXT}, {("d", "gold"): [RED], ("d", "judge"): [RED]})
    decision = {"what": "taken", "by": "ann", "when": "2026-01-31T09:30:00Z", "gold": ["d/gold/0"]}
    meta = {"adjudication": {"k": decision}}
    items = [
        each.model_copy(update={"meta": meta}) if isinstance(each, Annotation) and each.annotator == "gold" else each
        for each in study.items()
    ]
    assert score_judges_against_gold(Study.from_items(items), draws=0).notes == (
        "gold was adjudicated: 1 decisions in 1 texts",
    )


def test_a_sentence_is_found_when_both_mark_something_in_it() -> None:
    text = "One two. Three four. Five six."
    study = make_gold_study(
        {"d": text}, {("d", "gold"): [(0, 3, "red"), (9, 14, "red")], ("d", "judge"): [(4, 7, "blue"), (21, 25, "red")]}
    )
    any_, typed = (
        score_row(score_judges_against_gold(study, match="sentence", draws=0), label) for label in ("any", "typed")
    )
    assert (any_.gold, any_.predicted, any_.matched) == (2, 2, 1)
    assert (typed.gold, typed.predicted, typed.matched) == (2, 2, 0)


def test_another_severity_is_worth_half_under_the_rule_of_wmt25() -> None:
    def severe(id: str, start: int, end: int, severity: str) -> Mark:
        return make_gold_mark(id, TEXT, start, end, "red", answers={"severity": severity})

    study = make_gold_study(
        {"d": TEXT},
        {
            ("d", "gold"): [severe("g0", 0, 3, "major"), severe("g1", 8, 13, "minor")],
            ("d", "judge"): [severe("j0", 0, 3, "minor"), severe("j1", 8, 12, "minor")],
        },
    )
    found = score_row(score_judges_against_gold(study, match="wmt25", draws=0), "any")
    assert (found.gold, found.predicted, found.matched) == (8, 7, 1.5 + 4)
    assert score_row(score_judges_against_gold(study, match="char", draws=0), "any").matched == 7


def test_the_greatest_credit_may_need_fewer_pairs() -> None:
    """`partial` maximises the number of pairs, `mpp` the credit."""
    both: dict[tuple[str, str], list[MarkTuple]] = {
        ("d", "gold"): [(0, 10, "red"), (10, 18, "red")],
        ("d", "judge"): [(0, 1, "red"), (1, 11, "red")],
    }
    shares = {
        match: score_row(score_judges_against_gold(make_gold_study({"d": TEXT}, both), match=match, draws=0), "any")
        for match in BY_SHARE
    }
    assert (shares["partial"].matched, shares["partial"].right) == pytest.approx((1 / 10 + 1 / 8, 1 + 1 / 10))
    assert (shares["mpp"].matched, shares["mpp"].right) == pytest.approx((0.9, 0.9))


@given(gold_and_judge_marks())
def test_mpp_is_never_worth_less_than_partial(both: dict[tuple[str, str], list[MarkTuple]]) -> None:
    study = make_gold_study(TEXTS, both)
    partial, mpp = (score_row(score_judges_against_gold(study, match=match, draws=0), "any") for match in BY_SHARE)
    assert mpp.matched + mpp.right >= partial.matched + partial.right - 1e-9


def test_macro_is_the_mean_over_texts() -> None:
    """Two texts: the only mark found, one of three found; a third without any marks counts 1."""
    texts = dict.fromkeys(("a", "b", "c"), TEXT)
    given = {
        ("a", "gold"): [(0, 3, "red")], ("a", "judge"): [(0, 3, "red")],
        ("b", "gold"): [(0, 3, "red"), (4, 7, "red"), (8, 13, "red")], ("b", "judge"): [(0, 3, "red")],
        ("c", "gold"): [], ("c", "judge"): [],
    }  # fmt: skip
    micro, macro = (
        score_row(score_judges_against_gold(make_gold_study(texts, given), average=each, draws=100), "any")
        for each in AVERAGES
    )
    assert (micro.recall.value, macro.recall.value) == pytest.approx((2 / 4, (1 + 1 / 3 + 1) / 3))
    assert macro.recall.signature["average"] == "macro"
    assert macro.recall.why == "an interval requires at least 4 texts, found 3"


def test_every_rule_in_one_table_with_ranks() -> None:
    """The longer judge leads by marks, the exact one by characters; a note says why the task's rule has no column."""
    given = {
        ("d", "gold"): [(0, 3, "red"), (8, 13, "red")],
        ("d", "long"): [(0, 7, "red"), (4, 18, "red")],
        ("d", "short"): [(0, 3, "red")],
    }
    by_rule = score_by_match_rules(make_gold_study({"d": TEXT}, given))
    ranks = {each["judge"]: each for each in by_rule.ranks}
    assert (ranks["long"]["optimal"], ranks["short"]["optimal"]) == (1, 2)
    assert (ranks["long"]["exact"], ranks["short"]["exact"]) == (2, 1)
    assert "task" not in ranks["long"]
    assert any(note.startswith("task: long: marks") for note in by_rule.notes)
    assert len(by_rule.scores[0]) == len(MATCH_NAMES)  # judge, and all rules but the task's


def test_a_judge_that_was_fitted_on_the_texts_is_warned_about() -> None:
    study = make_gold_study(
        {"a": TEXT, "b": "another text"}, {(id, n): [RED] for id in "ab" for n in ("gold", "judge")}
    )
    fitted = {"fitted_texts": [hash_text(TEXT)]}
    items = [
        each.model_copy(update={"meta": fitted}) if isinstance(each, Annotator) and each.id == "judge" else each
        for each in study.items()
    ]
    (note,) = score_judges_against_gold(Study.from_items(items), draws=0).notes
    assert note.startswith("warning: judge was trained on 1 of the 2 texts it is scored on")
    assert score_judges_against_gold(study, draws=0).notes == ()
