"""What comes next for an annotator: a page, an exercise, a text, or nothing and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from finecomb.collection import (
    annotator_storage,
    assignment_storage,
    design_cells_storage,
    onboarding_storage,
    platform_batches_storage,
)
from finecomb.collection.assignment_rules import AnnotatorAssignmentState
from finecomb.collection.database.connection import Transaction
from finecomb.collection.design_cells_storage import PlaceStatus
from finecomb.collection.onboarding import PracticeItem, Step
from finecomb.collection.onboarding_storage import OnboardingState
from finecomb.core.records import Annotator

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


@dataclass(frozen=True, slots=True)
class NextStep:
    """What somebody is to do now: a task, a page, or nothing and why."""

    task: str = ""
    step: Step | None = None
    annotator: Annotator | None = None
    """Whose page it is."""
    why: Literal["", "all-done", "none-now", "paused", "closed", "screened-out", "ended"] = ""


def next_step(store: Store, transaction: Transaction, annotator: str) -> NextStep:
    """The first thing on somebody's way that is not done. Who was excluded gets nothing more."""
    if store.head.state == "paused" or store.head.state == "closed":
        return NextStep(why=store.head.state)
    place = _hold_place_if_needed(store, transaction, annotator)
    if place == "not-eligible":
        return NextStep(why="screened-out")
    state = onboarding_storage.read_onboarding_state(store, transaction, annotator)
    if state.annotator.excluded:
        return NextStep(why="ended")
    if place == "full":
        return NextStep(why="none-now")
    match state.step:
        case Step(kind="examples") if assignment_storage.assign_setting_for_practice(
            store, transaction, state.annotator
        ):
            return next_step(store, transaction, annotator)  # what is practised depends on the texts to come
        case Step():
            onboarding_storage.record_step_shown(store, transaction, state.annotator, state.step)
            return NextStep(step=state.step, annotator=state.annotator)
        case PracticeItem():
            return NextStep(onboarding_storage.assign_practice_item(store, transaction, state, state.step))
        case "screened-out":
            design_cells_storage.release_place(store, transaction, annotator)
            return NextStep(why="screened-out")
        case _:
            if _is_current_batch_finished(store, transaction, annotator):
                return NextStep(why="all-done")
            task = assignment_storage.assign_next_task(store, transaction, annotator)
            return NextStep(task.id, why=task.why)


def _hold_place_if_needed(store: Store, transaction: Transaction, annotator: str) -> PlaceStatus:
    """Whether somebody has a place in the study's design; without a design everybody has, and so has who is done."""
    if not store.assignment_plan().cells or store.head.settings.round:
        return "held"
    if annotator_storage.get_annotator(store, transaction, annotator).excluded:
        return "held"
    return design_cells_storage.hold_place(store, transaction, annotator)


def _is_current_batch_finished(store: Store, transaction: Transaction, annotator: str) -> bool:
    """Whether somebody's present task on the platform is finished and no text is open any more."""
    if not store.head.settings.recruitment.batch or not platform_batches_storage.is_current_batch_finished(
        store, transaction, annotator
    ):
        return False
    state = assignment_storage.assignment_state(store, transaction, annotator)
    return not assignment_storage.has_open_task(store, transaction, annotator, state)


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """How far somebody is, before the work and in it."""

    onboarding: OnboardingState
    assignment: AnnotatorAssignmentState
    is_over: bool
    """Whether they handed in all that there is for them."""
    is_batch_over: bool = False
    """Whether their present task on the platform is finished."""

    @property
    def has_no_work_left(self) -> bool:
        """Whether somebody who has no task gets none any more, since others took the last texts."""
        return self.onboarding.step == "work" and not self.assignment.given and not self.assignment.later

    @property
    def has_participated(self) -> bool:
        """Whether somebody handed anything in."""
        return bool(self.onboarding.finished_items) or any(task.status == "submitted" for task in self.assignment.given)


def read_annotator_progress(store: Store, transaction: Transaction, annotator: str) -> AnnotatorProgress:
    """How far somebody is; reads only, and each thing once."""
    state = assignment_storage.assignment_state(store, transaction, annotator)
    over = assignment_storage.has_finished_work(store, transaction, annotator, state)
    batch_over = _is_current_batch_finished(store, transaction, annotator)
    return AnnotatorProgress(
        onboarding_storage.read_onboarding_state(store, transaction, annotator), state, over, batch_over
    )
