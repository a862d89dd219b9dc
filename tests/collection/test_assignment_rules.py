"""Tests of the assignment rules: limits, balance and reproducibility by the seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from finecomb.collection import assignment_rules
from finecomb.collection.assignment_rules import AssignedTask, AssignmentCounts, AssignmentPlan, TextEligibilityRules

names = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)
counts = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 4))


def make_plan(documents: Sequence[str], checks: Sequence[str] = ()) -> AssignmentPlan:
    return AssignmentPlan(
        documents, {each: [("model", "odd" if ord(each[0]) % 2 else "even")] for each in documents}, checks
    )


@given(names, counts, counts, names, st.integers(1, 3), st.integers(0, 5))
def test_the_choice_is_free_has_fewest_and_depends_on_the_seed_only(
    documents: list[str], submitted: dict[str, int], working: dict[str, int], mine: list[str], most: int, seed: int
) -> None:
    known, taken = make_plan(documents), AssignmentCounts(submitted, working)
    free = assignment_rules.assignable_documents(known, taken, most, mine, {}, documents)
    assert free == [each for each in documents if each not in mine and taken.taken_place_count(each) < most]
    chosen = assignment_rules.choose_document(free, known, taken, mine, seed, "me")
    assert (chosen is None) == (not free)
    if chosen is not None:
        assert taken.taken_place_count(chosen) == min(taken.taken_place_count(each) for each in free)
        assert assignment_rules.choose_document(reversed(free), known, taken, mine, seed, "me") == chosen


def test_among_equals_the_annotators_strata_are_balanced() -> None:
    documents = ["a1", "a2", "a3", "b1", "b2", "b3"]
    mine: list[str] = []
    for _ in range(6):
        left = [each for each in documents if each not in mine]
        chosen = assignment_rules.choose_document(left, make_plan(documents), AssignmentCounts({}, {}), mine, 0, "me")
        assert chosen is not None
        mine.append(chosen)
        ours = Counter(each[0] for each in mine)
        assert abs(ours["a"] - ours["b"]) <= 1


def test_a_full_stratum_is_left_out() -> None:
    documents = ["a1", "a2", "b1"]
    free = assignment_rules.assignable_documents(
        make_plan(documents), AssignmentCounts({"a1": 2}, {}), 5, [], {"odd": 2}, documents
    )
    assert free == ["b1"]


@given(st.integers(0, 100), st.integers(1, 40), st.integers(1, 3))
def test_everybody_gets_every_check_once_and_not_first(seed: int, texts: int, checks: int) -> None:
    known = make_plan([f"d{n}" for n in range(texts)], [f"check{n}" for n in range(checks)])
    given_: list[str] = []
    left = list(known.documents)
    while True:
        check = assignment_rules.due_attention_check(known, given_, seed, "me", texts, last=not left)
        if check is None and not left:
            break
        given_.append(check or left.pop())
    assert Counter(given_) == Counter([*known.documents, *known.checks])
    assert given_[0] not in known.checks


@given(st.floats(0, 1), st.integers(0, 1000))
def test_the_blind_share_grows_with_its_size(share: float, seed: int) -> None:
    blind = [assignment_rules.is_shown_without_machine_marks(seed, f"d{n}", share) for n in range(200)]
    assert blind == [assignment_rules.is_shown_without_machine_marks(seed, f"d{n}", share) for n in range(200)]
    assert abs(sum(blind) / 200 - share) < 0.2
    assert not any(assignment_rules.is_shown_without_machine_marks(seed, f"d{n}", 0) for n in range(50))


# --- text groups -------------------------------------------------------------------------------------------------

metas = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3),
    st.fixed_dictionaries(
        {}, optional={"domain": st.sampled_from(["news", "story"]), "model": st.sampled_from(["human", "m1", "m2"])}
    ),
    max_size=12,
)


@given(metas)
def test_texts_by_people_go_with_every_model_and_all_else_is_shared(documents: dict[str, dict[str, str]]) -> None:
    found = assignment_rules.text_groups_by_document(documents, ("domain", "model"))
    assert set(found) == set(documents)
    for id, meta in documents.items():
        domain, model = meta.get("domain", ""), meta.get("model", "")
        machines = {
            each.get("model", "")
            for each in documents.values()
            if each.get("domain", "") == domain and each.get("model") != "human"
        }
        expected = (machines or {"human"}) if model == "human" else {model}
        assert set(found[id]) == {(domain, each) for each in expected}
        assert len(set(found[id])) == len(found[id])


def test_the_setting_with_fewest_people_is_chosen_and_one_with_room_before_others() -> None:
    known = AssignmentPlan(
        list("abcd"), {}, settings={"a": [("x",)], "b": [("x",)], "c": [("y",)], "d": [("x",), ("y",)]}
    )
    assert assignment_rules.choose_text_group("abcd", known, {("x",): 2, ("y",): 1}, 2, 0, "me") == ("y",)
    assert assignment_rules.choose_text_group("abc", known, {("x",): 2, ("y",): 1}, 2, 0, "me") == ("x",)
    assert assignment_rules.choose_text_group("", known, {}, 2, 0, "me") is None
    chosen = Counter(assignment_rules.choose_text_group("abcd", known, {}, 2, seed, "me") for seed in range(200))
    assert min(chosen.values()) > 60


@given(st.integers(0, 50))
def test_each_text_of_a_pair_comes_first_about_as_often(seed: int) -> None:
    first = Counter(assignment_rules.first_shown_text_of_pair(seed, f"reader-{n}", "d") for n in range(200))
    assert set(first) == {"a", "b"}
    assert min(first.values()) > 60


# --- annotator progress ------------------------------------------------------------------------------------------


def given_task(document: str, status: Literal["draft", "submitted"], number: int = 1) -> AssignedTask:
    return AssignedTask(f"task-{document}", document, "", number, status, None, excluded=False)


def make_rules(documents: Sequence[str], checks: Sequence[str] = (), annotators: int = 1) -> TextEligibilityRules:
    return TextEligibilityRules(make_plan(documents, checks), documents, annotators, {})


def test_everything_handed_in_is_all_done() -> None:
    tasks = [given_task("a", "submitted"), given_task("b", "submitted", 2)]
    state = assignment_rules.first_pass_state(
        make_rules("ab"), AssignmentCounts({"a": 1, "b": 1}, {}), tasks, frozenset("ab"), 2
    )
    assert (state.free, state.ahead, state.why, state.later) == ([], 0, "all-done", False)


def test_a_text_that_somebody_else_has_open_may_come_back() -> None:
    state = assignment_rules.first_pass_state(make_rules("a"), AssignmentCounts({}, {"a": 1}), [], frozenset(), 1)
    assert (state.free, state.ahead, state.why, state.later) == ([], 0, "none-now", True)
    over = assignment_rules.first_pass_state(make_rules("a"), AssignmentCounts({"a": 1}, {}), [], frozenset(), 1)
    assert (over.why, over.later) == ("none-now", False)


def test_checks_are_expected_only_with_texts() -> None:
    world = make_rules("ab", checks="c")
    assert assignment_rules.first_pass_state(world, AssignmentCounts({}, {}), [], frozenset(), 2).ahead == 3
    assert (
        assignment_rules.first_pass_state(world, AssignmentCounts({"a": 1, "b": 1}, {}), [], frozenset(), 2).ahead == 0
    )


def test_settling_is_as_if_the_setting_had_been_there_before() -> None:
    settings = {each: [("sea",)] if each in "ab" else [("land",)] for each in "abcd"}
    world = AssignmentPlan("abcd", {}, settings=settings)
    open_ = TextEligibilityRules(world, "abcd", 1, {})
    before = assignment_rules.first_pass_state(open_, AssignmentCounts({"a": 1}, {}), [], frozenset(), 3)
    settled = assignment_rules.narrow_state_to_text_group(before, ("sea",))
    kept = replace(open_, setting=("sea",))
    assert settled == assignment_rules.first_pass_state(kept, AssignmentCounts({"a": 1}, {}), [], frozenset(), 3)


def test_who_is_excluded_gets_nothing_and_stays_at_the_end_when_all_was_handed_in() -> None:
    tasks = [given_task("a", "submitted")]
    assert assignment_rules.excluded_annotator_state(make_plan("ab"), 1, tasks, frozenset("a")).why == "all-done"
    assert assignment_rules.excluded_annotator_state(make_plan("ab"), None, tasks, frozenset("a")).why == "none-now"


def test_a_second_pass_is_over_when_nothing_is_due_or_open() -> None:
    draft, done = given_task("a", "draft"), given_task("a", "submitted")
    state = assignment_rules.second_pass_state
    assert state(make_plan("ab"), ["b"], [done], frozenset("a")).why == ""
    assert state(make_plan("ab"), [], [done], frozenset("a")).why == "all-done"
    assert state(make_plan("ab"), [], [draft], frozenset("a")).why == "none-now"


def test_the_next_item_is_free_or_the_last_check() -> None:
    world = make_rules("ab", checks="c")
    state = assignment_rules.first_pass_state(world, AssignmentCounts({}, {}), [], frozenset(), 2)
    assert assignment_rules.next_first_pass_item(state, None, 0, "me") in set("ab")
    tasks = [given_task("a", "submitted"), given_task("b", "submitted", 2)]
    last = assignment_rules.first_pass_state(world, AssignmentCounts({"a": 1, "b": 1}, {}), tasks, frozenset("ab"), 0)
    assert assignment_rules.next_first_pass_item(last, None, 0, "me") == "c"
