"""Tests of onboarding: each step occurs once and in order, for all protocols and skipped phases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb import protocols
from finecomb.collection import onboarding
from finecomb.collection.onboarding import OnboardingSection, PracticeItem, Step, StepOrItem
from finecomb.core.protocol import Protocol
from finecomb.core.records import ONBOARDING_PHASES, Annotator, Attempt, OnboardingPhase, QualificationRecord, Settings

PROTOCOL_BY_NAME = {name: protocols.load(name) for name in protocols.names()}
skips = st.sets(st.sampled_from(ONBOARDING_PHASES)).map(lambda each: tuple(sorted(each)))
ways = st.sampled_from(sorted(PROTOCOL_BY_NAME)).map(PROTOCOL_BY_NAME.__getitem__)


def with_attempts(protocol: Protocol, attempts: int) -> Protocol:
    if protocol.qualification is None:
        return protocol
    test = protocol.qualification.model_copy(update={"attempts": attempts})
    return protocol.model_copy(update={"qualification": test})


@dataclass
class SimulatedAnnotator:
    """Annotator who completes every step; attempts pass or fail as in `passes`."""

    protocol: Protocol
    settings: Settings
    passes: list[bool] = field(default_factory=list)
    annotator: Annotator = field(default_factory=lambda: Annotator(id="ann", kind="human"))
    finished: set[tuple[str, int]] = field(default_factory=set)
    met: list[StepOrItem] = field(default_factory=list)

    def here(self) -> Any:
        return onboarding.next_onboarding_step(self.protocol, self.settings, self.annotator, self.finished)

    def do(self, stop: StepOrItem) -> None:
        self.met.append(stop)
        if isinstance(stop, Step):
            self.annotator = onboarding.with_updated_step_record(self.protocol, self.annotator, stop.id, done="now")
            return
        self.finished.add((stop.document, stop.round))
        tested = [
            each
            for each in onboarding.practice_items_by_document(self.protocol, stop.round).values()
            if each.phase == "qualification"
        ]
        if stop.phase == "qualification" and stop.document == tested[-1].document:
            self.grade(stop.round)

    def grade(self, round: int) -> None:
        before = onboarding.find_qualification_record(self.protocol, self.annotator)
        tried = (*(before.attempts if before else ()), Attempt(round=round, score=1))
        made = QualificationRecord(protocol=self.protocol.id, score=1, passed=self.passes[round], attempts=tried)
        self.annotator = onboarding.with_qualification_record(self.annotator, made)

    def walk(self) -> str:
        for _ in range(500):
            now = self.here()
            if isinstance(now, str):
                return now
            self.do(now)
        raise AssertionError("the onboarding does not end")

    def legs(self) -> list[OnboardingSection]:
        return onboarding.progress_bar_sections(
            self.protocol, self.settings, self.annotator, self.finished, is_over=False
        )


@st.composite
def simulated_annotators(draw: st.DrawFn) -> SimulatedAnnotator:
    attempts = draw(st.integers(1, 3))
    protocol = with_attempts(draw(ways), attempts)
    arms = [each.name for each in protocol.conditions] or [""]
    passes = draw(st.lists(st.booleans(), min_size=attempts, max_size=attempts))
    who = Annotator(id="ann", kind="human", condition=draw(st.sampled_from(arms)))
    return SimulatedAnnotator(protocol, Settings(skip=draw(skips)), passes, who)


def phase_of(stop: StepOrItem) -> OnboardingPhase:
    return stop.phase


@given(simulated_annotators())
def test_each_step_comes_once_in_order_and_the_way_ends(walker: SimulatedAnnotator) -> None:
    end = walker.walk()
    keys = [(each.id, 0) if isinstance(each, Step) else (each.document, each.round) for each in walker.met]
    assert len(set(keys)) == len(keys)
    places = [ONBOARDING_PHASES.index(phase_of(each)) for each in walker.met]
    assert places == sorted(places)
    assert not {phase_of(each) for each in walker.met} & set(walker.settings.skip)
    tested = walker.protocol.qualification is not None and "qualification" not in walker.settings.skip
    assert end == ("work" if not tested or any(walker.passes) else "screened-out")


@given(simulated_annotators())
def test_what_the_protocol_has_and_nobody_skips_is_met(walker: SimulatedAnnotator) -> None:
    walker.walk()
    asked, skip = walker.protocol, walker.settings.skip
    kinds = [each.kind for each in walker.met if isinstance(each, Step)]
    assert ("survey" in kinds) == (bool(asked.survey) and "survey" not in skip)
    assert ("instructions" in kinds) == (bool(asked.instructions) and "instructions" not in skip)
    assert ("examples" in kinds) == (bool(asked.conditions) and "training" not in skip)
    trained = {each.document for each in walker.met if isinstance(each, PracticeItem) and each.phase == "training"}
    exercises = asked.training.exercises if asked.training and "training" not in skip else ()
    assert trained == {f"{asked.id}/{each.name}" for each in exercises}


@given(simulated_annotators())
def test_another_attempt_repeats_the_test_only_and_all_of_it(walker: SimulatedAnnotator) -> None:
    walker.walk()
    rounds: dict[int, list[str]] = {}
    for each in walker.met:
        if isinstance(each, PracticeItem) and each.phase == "qualification":
            rounds.setdefault(each.round, []).append(each.document)
    assert list(rounds) == list(range(len(rounds)))
    assert all(each == rounds[0] for each in rounds.values())
    needed = next((n for n, passed in enumerate(walker.passes, 1) if passed), len(walker.passes))
    assert len(rounds) in (0, needed)
    assert [each.id for each in walker.met if isinstance(each, Step) and each.kind == "result"] == [
        f"result-{round + 1}" for round in rounds
    ]


@given(simulated_annotators())
def test_a_finished_way_never_goes_back(walker: SimulatedAnnotator) -> None:
    end = walker.walk()
    assert walker.here() == end
    before = len(walker.met)
    for stop in list(walker.met):
        if isinstance(stop, Step):
            walker.annotator = onboarding.with_updated_step_record(
                walker.protocol, walker.annotator, stop.id, done="again"
            )
        assert walker.here() == end
    assert len(walker.met) == before


@given(simulated_annotators())
def test_the_legs_go_from_ahead_through_now_to_done(walker: SimulatedAnnotator) -> None:
    order = {"ahead": 0, "now": 1, "done": 2}
    states = {leg.phase: 0 for leg in walker.legs()}
    while not isinstance(now := walker.here(), str):
        legs = walker.legs()
        assert [leg.phase for leg in legs if leg.state == "now"] == [now.phase]
        assert all(order[leg.state] >= states[leg.phase] for leg in legs)
        states = {leg.phase: order[leg.state] for leg in legs}
        walker.do(now)
    assert walker.legs()[-1] == OnboardingSection("work", "now" if walker.here() == "work" else "ahead")
    assert all(leg.state == "done" for leg in walker.legs()[:-1])


@pytest.mark.parametrize("name", ["scarecrow", "accuracy", "snac"])
def test_who_passed_elsewhere_skips_training_and_test(name: str) -> None:
    asked = PROTOCOL_BY_NAME[name]
    known = Annotator(
        id="ann", kind="human", qualification=QualificationRecord(protocol=asked.id, score=95, passed=True)
    )
    walker = SimulatedAnnotator(asked, Settings(), annotator=known)
    assert walker.walk() == "work"
    assert {phase_of(each) for each in walker.met} <= {"survey", "instructions"}
    other = known.model_copy(update={"qualification": QualificationRecord(protocol=f"{name}@0", score=95, passed=True)})
    walker = SimulatedAnnotator(asked, Settings(), [True], annotator=other)
    assert walker.walk() == "work"
    assert "qualification" in {phase_of(each) for each in walker.met}
    assert (
        onboarding._all_qualification_records(walker.annotator)[1].protocol == f"{name}@0"
    )  # kept next to the new one


def test_who_failed_elsewhere_has_the_attempts_that_are_left() -> None:
    asked = with_attempts(PROTOCOL_BY_NAME["accuracy"], 2)
    tried = QualificationRecord(protocol=asked.id, score=10, passed=False, attempts=(Attempt(round=0, score=10),))
    known = Annotator(id="ann", kind="human", qualification=tried)
    walker = SimulatedAnnotator(asked, Settings(), [False, True], annotator=known)
    assert walker.walk() == "work"
    assert {each.round for each in walker.met if each.phase == "qualification"} == {1}
    assert SimulatedAnnotator(
        with_attempts(asked, 1), Settings(skip=("survey", "instructions", "training")), annotator=known
    ).walk() == ("screened-out")


def test_steps_of_another_version_do_not_count() -> None:
    asked = PROTOCOL_BY_NAME["likert"]
    walker = SimulatedAnnotator(asked, Settings())
    assert walker.walk() == "work"
    later = Protocol.model_validate({**asked.model_dump(), "version": "3"})
    again = SimulatedAnnotator(later, Settings(), annotator=walker.annotator)
    assert [each.id for each in ([again.here()])] == ["instructions"]
    assert again.walk() == "work"
    assert len(again.annotator.meta["steps"]) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("steps", ["none", 3, [None, 4, {"step": "instructions"}], {}])
def test_strange_steps_in_imported_records_count_for_nothing(steps: Any) -> None:
    who = Annotator(id="ann", kind="human", meta={"steps": steps})
    assert SimulatedAnnotator(PROTOCOL_BY_NAME["likert"], Settings(), annotator=who).here().id == "instructions"
