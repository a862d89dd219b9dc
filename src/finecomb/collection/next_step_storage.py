"""Next step of an annotator: an onboarding page, an exercise, a text, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from finecomb.collection import (
    annotator_storage,
    arrivals_storage,
    assignment_storage,
    design_cells_storage,
    onboarding_storage,
    platform_batches_storage,
)
from finecomb.collection.assignment_rules import AnnotatorAssignmentState
from finecomb.collection.database.connection import Transaction
from finecomb.collection.onboarding import PracticeItem, Step
from finecomb.collection.onboarding_storage import OnboardingState
from finecomb.collection.platform_batches import is_batch_finished
from finecomb.core.records import Annotator

if TYPE_CHECKING:
    from finecomb.collection.database.store import Store


@dataclass(frozen=True, slots=True)
class NextStep:
    """Next task or page for an annotator, or the reason why there is none."""

    task: str = ""
    step: Step | None = None
    annotator: Annotator | None = None
    """Annotator who sees the page."""
    why: Literal["", "all-done", "none-now", "paused", "closed", "screened-out", "ended"] = ""


def assign_next_step(store: Store, transaction: Transaction, annotator: str) -> NextStep:
    """Return an annotator's first open step. If it is a task, assign it. Excluded annotators get no step."""
    if store.head.state == "paused" or store.head.state == "closed":
        return NextStep(why=store.head.state)
    if (
        not store.assignment_plan().cells
        or store.head.settings.round
        or annotator_storage.get_annotator(store, transaction, annotator).excluded
    ):
        place = "held"
    else:
        place = design_cells_storage.hold_place(store, transaction, annotator)
    if place == "not-eligible":
        return NextStep(why="screened-out")
    state = onboarding_storage.read_onboarding_state(store, transaction, annotator)
    if state.annotator.excluded:
        return NextStep(why="ended")
    if place == "full":
        return NextStep(why="none-now")
    match state.step:
        case Step(kind="examples") if assignment_storage.assign_text_group_for_practice(
            store, transaction, state.annotator
        ):
            # The practice rounds depend on the assigned text group.
            return assign_next_step(store, transaction, annotator)
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


def _is_current_batch_finished(store: Store, transaction: Transaction, annotator: str) -> bool:
    """Return whether an annotator has finished the current task on the platform and has no open text."""
    finished = platform_batches_storage.read_finished_batches(store, transaction, annotator)
    last = arrivals_storage.read_last_arrival(store, transaction, annotator) if finished else None
    # People who came in another way, such as by a personal link, have no platform task to finish.
    if last is None or not last.source.worker or not is_batch_finished(finished, last.source):
        return False
    state = assignment_storage.read_assignment_state(store, transaction, annotator)
    return not assignment_storage.has_open_task(store, transaction, annotator, state)


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """Progress of an annotator in onboarding and work."""

    onboarding: OnboardingState
    assignment: AnnotatorAssignmentState
    is_over: bool
    """True when the annotator has submitted all their work."""
    is_batch_over: bool = False
    """True when the annotator's current task on the recruiting platform is finished."""

    @property
    def has_no_work_left(self) -> bool:
        """True when an annotator who never had a task will get none, because others have taken the last texts."""
        return self.onboarding.step == "work" and not self.assignment.given and not self.assignment.later

    @property
    def has_participated(self) -> bool:
        """True when the annotator has submitted an exercise, question or text."""
        return bool(self.onboarding.finished_items) or any(task.status == "submitted" for task in self.assignment.given)


def read_annotator_progress(store: Store, transaction: Transaction, annotator: str) -> AnnotatorProgress:
    """Return the progress of an annotator, without changing anything."""
    state = assignment_storage.read_assignment_state(store, transaction, annotator)
    is_over = (
        state.why == "all-done"
        and any(task.status == "submitted" for task in state.given)
        and not assignment_storage.has_open_task(store, transaction, annotator, state)
    )
    is_batch_over = _is_current_batch_finished(store, transaction, annotator)
    return AnnotatorProgress(
        onboarding_storage.read_onboarding_state(store, transaction, annotator), state, is_over, is_batch_over
    )
