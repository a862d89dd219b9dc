"""Tests of screening by Clark's rules, also against slow definitions."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import finecomb as fc
from finecomb.collection.screening import (
    PASSAGE_NGRAM_SIZE,
    WrittenExplanation,
    attention_check_results,
    claimed_author,
    copied_word_flags,
    find_explanation_objections,
    has_passed_attention_check,
    passage_ngrams,
    screen_annotations,
    split_normalised_words,
)
from finecomb.core.question import Option, Question, QuestionCondition
from finecomb.core.records import Annotation, Annotator, Document, Exclusion, Mark, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study

TURING = fc.protocol("turing")
QUESTION_BY_NAME = {each.name: each for each in TURING.document_questions}
TEXT = "The ferry left Saltby at dawn, and nobody on the pier waved except the man with the yellow umbrella."


def broken_rules(answer: str, rating: int, text: str = TEXT) -> list[str]:
    question = QUESTION_BY_NAME["why" if rating == 1 else "change"]
    return [
        rule
        for rule, *_ in find_explanation_objections(
            WrittenExplanation(answer, question, rating, QUESTION_BY_NAME["rating"], (text,))
        )
    ]


@pytest.mark.parametrize(
    ("answer", "rating", "expected"),
    [
        ("The man with the yellow umbrella is too odd a detail to be made up by rule.", 1, []),
        ("I would cut the second half, since it says the same as the first.", 3, []),
        ("Make it sound more human by adding how he felt.", 4, []),
        ("There is no sign in the umbrella that it was written by a machine.", 1, []),
        ("A machine would not have thought of the umbrella.", 1, []),
        ("good", 1, ["too-short"]),
        ("", 1, ["too-short"]),
        ("nobody on the pier waved except the man with the yellow umbrella", 1, ["copied"]),
        ("I like: nobody on the pier waved except the man with the yellow umbrella", 1, ["copied"]),
        ("I selected this rating because it is definitely written by a human", 1, ["vague"]),
        ("It just sounds like a human wrote it", 1, ["vague"]),
        ("The pier was clearly written by a machine.", 1, ["contradicts"]),
        ("The umbrella shows that this is definitely a human.", 4, ["contradicts"]),
        ("I would change nothing", 4, ["vague", "contradicts", "instructions"]),
        ("I would change nothing", 2, ["vague", "instructions"]),
        ("I googled the ferry and found the original story.", 1, ["instructions"]),
        ("sdfg hjkl qwrt", 1, ["instructions"]),
    ],
)
def test_explanations(answer: str, rating: int, expected: list[str]) -> None:
    assert broken_rules(answer, rating) == expected


def test_words_are_judged_in_english_only() -> None:
    question = QUESTION_BY_NAME["why"]
    said = WrittenExplanation("I selected this rating because", question, 1, QUESTION_BY_NAME["rating"], (TEXT,))
    assert [rule for rule, *_ in find_explanation_objections(said, english=False)] == []


def test_a_sentence_in_a_script_without_spaces_is_not_too_short() -> None:
    said = WrittenExplanation("这个故事很奇怪", QUESTION_BY_NAME["why"], 1, None, ("",))
    assert list(find_explanation_objections(said, english=False)) == []


# --- definitions -------------------------------------------------------------------------------------------------

few = st.lists(st.sampled_from("abc"), max_size=12)


@given(few, few)
def test_passages_are_runs_that_both_have(own: list[str], source: list[str]) -> None:
    def runs(of: list[str], at: int) -> list[tuple[int, int]]:
        return [
            (s, e)
            for s, e in itertools.combinations(range(len(of) + 1), 2)
            if e - s >= PASSAGE_NGRAM_SIZE and s <= at < e
        ]

    def anywhere(run: list[str]) -> bool:
        return any(source[at : at + len(run)] == run for at in range(len(source)))

    slow = [any(anywhere(own[s:e]) for s, e in runs(own, at)) for at in range(len(own))]
    assert copied_word_flags(own, passage_ngrams(" ".join(source))) == slow


@given(st.text(max_size=80), st.text(max_size=80), st.sampled_from([1, 2, 3, 4]))
def test_any_answer_can_be_looked_at(answer: str, text: str, rating: int) -> None:
    found = broken_rules(answer, rating, text)
    assert ("too-short" in found) == (len(split_normalised_words(answer)) < 3)
    assert len(found) == len(set(found)) or "instructions" in found


@given(st.lists(st.sampled_from("it was is not written by a the machine human clearly odd".split()), max_size=12))
def test_a_claim_names_a_side_that_was_named(own: list[str]) -> None:
    assert claimed_author(own) in ("", *own)


@given(st.lists(st.sampled_from("ferry pier umbrella waved".split()), min_size=4, max_size=9))
def test_a_whole_copy_is_always_noticed(own: list[str]) -> None:
    text = " ".join(own)
    assert "copied" in broken_rules(text, 1, f"Once {text} again")


# --- studies -----------------------------------------------------------------------------------------------------


def make_study(*annotations: Annotation, checks: tuple[str, ...] = (), **more: object) -> Study:
    documents = [Document(id=id, text=TEXT, context={"prompt": "Write about a ferry."}) for id in ("d1", "d2", "d3")]
    people = [Annotator(id="a", kind="human"), Annotator(id="b", kind="human", **more)]
    machines = [Annotator(id="m", kind="llm"), Annotator(id="g", kind="gold")]
    settings = Settings(attention_checks=checks)
    return Study.from_items([settings, TURING, *documents, *people, *machines, *annotations])


def make_rating(id: str, document: str, why: str, annotator: str = "a", **more: object) -> Annotation:
    answers = {"rating": 1, "why": why}
    return Annotation(
        id=id,
        document=document,
        annotator=annotator,
        protocol=TURING.id,
        answers=answers,
        **more,
    )


GOOD_EXPLANATION = "The umbrella is odd enough for a person."


def test_only_work_that_counts_is_looked_at() -> None:
    aside = Exclusion(by="ann", reason="asleep")
    found = screen_annotations(
        make_study(
            make_rating("counts", "d1", "good"),
            make_rating("draft", "d2", "good", status="draft"),
            make_rating("practice", "d3", "good", phase="training"),
            make_rating("aside", "d2", "good", "b", excluded=aside),
            make_rating("machine", "d1", "good", "m"),
        )
    )
    assert [(each.annotation, each.rule) for each in found] == [("counts", "too-short")]
    assert screen_annotations(make_study(make_rating("x", "d1", "good", "b"), excluded=aside)) == []


def test_the_same_words_about_two_texts_are_noticed_once_for_each() -> None:
    found = screen_annotations(
        make_study(
            make_rating("1", "d1", GOOD_EXPLANATION),
            make_rating("2", "d2", GOOD_EXPLANATION.upper()),
            make_rating("3", "d1", GOOD_EXPLANATION, "b"),
        )
    )
    assert [(each.annotation, each.reason) for each in found] == [
        ("1", "repeats the answer about d2"),
        ("2", "repeats the answer about d1"),
    ]


def test_an_answer_that_is_no_longer_asked_for_is_not_looked_at() -> None:
    both = {"rating": 1, "why": GOOD_EXPLANATION, "change": "good"}
    work = Annotation(id="1", document="d1", annotator="a", protocol=TURING.id, answers=both)
    assert screen_annotations(make_study(work)) == []


def test_what_was_kept_says_so() -> None:
    (one,) = screen_annotations(make_study(make_rating("1", "d1", "good", meta={"kept": ["too-short"]})))
    assert one.kept
    (other,) = screen_annotations(make_study(make_rating("1", "d1", "good", meta={"kept": ["vague"]})))
    assert not other.kept


def test_failed_checks_come_with_what_was_missed() -> None:
    gold = Annotation(id="g1", document="d1", annotator="g", protocol=TURING.id, answers={"rating": 4})
    found = screen_annotations(make_study(gold, make_rating("1", "d1", GOOD_EXPLANATION), checks=("d1",)))
    assert [(each.rule, each.evidence) for each in found] == [("failed-check", "rating: expected 4, found 1")]
    assert attention_check_results(make_study(gold, make_rating("1", "d1", GOOD_EXPLANATION), checks=("d1",))) == {
        "1": False
    }


def test_a_check_with_marks_needs_all_of_them_and_one_without_needs_none() -> None:
    def marked(*labels: str) -> Annotation:
        marks = [
            Mark(id=f"m{at}", spans=(Span(0, 3),), quotes=("The",), label=label) for at, label in enumerate(labels)
        ]
        return Annotation(id="x", document="d1", annotator="a", protocol="scarecrow@2", marks=tuple(marks))

    assert has_passed_attention_check(marked("redundant", "incoherent"), marked("redundant"))
    assert not has_passed_attention_check(marked("incoherent"), marked("redundant"))
    assert not has_passed_attention_check(marked("redundant"), marked())
    assert has_passed_attention_check(marked(), marked())


def test_a_scale_without_people_and_machines_is_never_contradicted() -> None:
    scale = Question(name="rating", ask="How good?", scale="ordinal", options=(Option(value=1), Option(value=2)))
    why = Question(name="why", ask="Why?", when=QuestionCondition(question="rating", among=(1,)))
    said = WrittenExplanation("The pier was written by a machine.", why, 1, scale, (TEXT,))
    assert [rule for rule, *_ in find_explanation_objections(said)] == []
