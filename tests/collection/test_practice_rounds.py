"""Tests of practice rounds: three of the annotator's domain, a guess, and then the solution."""

from __future__ import annotations

import pytest

from finecomb import protocols
from finecomb.collection.annotator_meta import with_assigned_text_group
from finecomb.collection.practice_rounds import (
    annotator_practice_rounds,
    example_without_answer,
    find_guess_problem,
    is_guess_right,
    practised_condition,
)
from finecomb.core.protocol import Condition
from finecomb.core.records import Annotator, Answer, Design, Settings

TURING = protocols.load("turing")
EXAMPLES, COMPARISON = TURING.conditions[2:]


def make_annotator(domain: str = "", **more: str) -> Annotator:
    return Annotator(id="a", kind="human", factors={"domain": domain} if domain else {}, **more)


@pytest.mark.parametrize("domain", ["stories", "news", "recipes"])
@pytest.mark.parametrize(("condition", "texts"), [(EXAMPLES, 1), (COMPARISON, 2)])
def test_each_domain_has_three_rounds_of_its_own(domain: str, condition: Condition, texts: int) -> None:
    rounds = annotator_practice_rounds(condition, make_annotator(domain))
    assert [len(examples) for examples in rounds] == [texts] * 3
    others = {
        example.text
        for other in {"stories", "news", "recipes"} - {domain}
        for examples in annotator_practice_rounds(condition, make_annotator(other))
        for example in examples
    }
    assert not others & {example.text for examples in rounds for example in examples}


@pytest.mark.parametrize("domain", ["stories", "news", "recipes"])
def test_comparison_pairs_the_texts_of_examples_with_the_opposite_source_and_the_same_beginning(domain: str) -> None:
    single = [example for (example,) in annotator_practice_rounds(EXAMPLES, make_annotator(domain))]
    for pair in annotator_practice_rounds(COMPARISON, make_annotator(domain)):
        assert sum(member in single for member in pair) == 1
        assert {member.answers["rating"] for member in pair} == {1, 4}
        one, other = (member.text for member in pair)
        assert one[:30] == other[:30]


def test_the_setting_of_a_study_without_a_design_chooses_too_and_an_unknown_domain_gets_one_of_each() -> None:
    settled = with_assigned_text_group(make_annotator(), {"domain": "news"})
    assert annotator_practice_rounds(EXAMPLES, settled) == annotator_practice_rounds(EXAMPLES, make_annotator("news"))
    firsts = [
        annotator_practice_rounds(EXAMPLES, make_annotator(domain))[0] for domain in ("stories", "news", "recipes")
    ]
    assert list(annotator_practice_rounds(EXAMPLES, make_annotator("poems"))) == firsts


def test_a_cell_may_name_the_training_of_another_condition() -> None:
    cells = [{"factors": {"condition": "none", "domain": "news"}, "training": "examples"}]
    design = Design.model_validate({"people": 1, "cells": cells})
    person = make_annotator("news", cell="none/news", condition="none")
    assert practised_condition(TURING, Settings(design=design), person) == EXAMPLES
    assert practised_condition(TURING, Settings(), person) == TURING.conditions[0]


@pytest.mark.parametrize(("guess", "right"), [(3, True), (4, True), (1, False), (2, False)])
def test_a_guess_on_the_right_side_is_right(guess: Answer, right: bool) -> None:
    machine = annotator_practice_rounds(EXAMPLES, make_annotator("news"))[0]
    assert machine[0].answers == {"rating": 4}
    assert is_guess_right(TURING, machine, guess) is right


def test_of_a_pair_the_machines_text_is_named() -> None:
    for pair in annotator_practice_rounds(COMPARISON, make_annotator("news")):
        side = "a" if pair[0].answers["rating"] == 4 else "b"
        assert is_guess_right(TURING, pair, side)
        assert not is_guess_right(TURING, pair, "b" if side == "a" else "a")


def test_what_is_no_guess_is_said_and_nothing_gives_the_answer_away() -> None:
    (one,), pair = (
        annotator_practice_rounds(EXAMPLES, make_annotator("news"))[0],
        annotator_practice_rounds(COMPARISON, make_annotator("news"))[0],
    )
    assert find_guess_problem(TURING, (one,), None) == "no option was selected"
    assert find_guess_problem(TURING, (one,), 9)
    assert find_guess_problem(TURING, pair, 4) == "it must name one of the two texts, a or b"
    bare = example_without_answer(one)
    assert (bare.text, bare.answers, bare.why, bare.only) == (one.text, {}, "", {})
