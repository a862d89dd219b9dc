"""Assignment rules: texts with the fewest annotators first, balanced over strata. The seed breaks ties."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from finecomb.core.design import HUMAN_MODEL, DesignCell

Stratum = tuple[str, str]
"""Key of document meta and a value, e.g. `model` and the name of a system."""
TextGroup = tuple[str, ...]
"""Values of document meta that all texts of one annotator share, e.g. a domain and a model."""
_MAX_TEXTS_PER_CHECK = 10  # one attention check is hidden among at most this many texts


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """Annotation or mark by another person that an annotator is to judge."""

    document: str
    annotator: str


@dataclass(frozen=True, slots=True)
class CellPlan:
    """Cell of the design, with the texts that are assigned in it."""

    cell: DesignCell
    documents: Sequence[str]
    """Document IDs in order, without attention checks."""
    checks: int = 0
    """Number of attention checks per person, in addition to the texts."""

    @property
    def texts_per_person(self) -> int:
        """Number of texts per person, without attention checks."""
        return self.cell.texts or len(self.documents)

    @property
    def tasks_per_person(self) -> int:
        """Number of tasks per person: texts and attention checks."""
        return self.texts_per_person + self.checks


@dataclass(frozen=True, slots=True)
class AssignmentPlan:
    """Texts, attention checks, annotations and marks that can be assigned."""

    documents: Sequence[str]
    """Document IDs in order, without attention checks; IDs of annotations or marks when these are judged."""
    strata: Mapping[str, Sequence[Stratum]]
    """Strata of each document, by document ID."""
    checks: Sequence[str] = ()
    """IDs of the attention checks, which all annotators get."""
    settings: Mapping[str, Sequence[TextGroup]] = field(default_factory=dict)
    """Text groups of each document; empty unless each annotator stays within one group."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Name of the system that wrote each document."""
    judged: Mapping[str, JudgedItem] = field(default_factory=dict)
    """Annotation or mark to judge, by ID; empty when texts are annotated."""
    cells: Mapping[str, CellPlan] = field(default_factory=dict)
    """Cells of the study's design by name; empty without a design."""
    metas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Meta of each document, for drawing texts by stratum."""

    def target_annotator_count(self, document: str, annotators: int) -> int:
        """Return the number of annotators that a document needs: `annotators` for each of its text groups."""
        return annotators * max(1, len(self.settings.get(document, ())))


@dataclass(frozen=True, slots=True)
class AssignmentCounts:
    """Number of annotators per document under the current protocol."""

    submitted: Mapping[str, int]
    """Number of annotators who have submitted each document."""
    working: Mapping[str, int]
    """Number of annotators who hold a lease on each document."""

    def taken_place_count(self, document: str) -> int:
        """Return the number of annotators who have submitted a document or hold a lease on it."""
        return self.submitted.get(document, 0) + self.working.get(document, 0)


@dataclass(frozen=True, slots=True)
class AssignedTask:
    """Task that was assigned to an annotator."""

    id: str
    document: str
    about: str
    """ID of the annotation or mark to judge; empty when the task is about the text itself."""
    number: int
    status: Literal["draft", "submitted"]
    lease: float | None
    excluded: bool
    """True when the task was excluded."""

    @property
    def item_id(self) -> str:
        """ID under which the plan lists the task: that of the annotation or mark to judge, or of the document."""
        return self.about or self.document


NoTaskReason = Literal["", "all-done", "none-now"]
"""Reason why an annotator gets no task: all work is done, or no text is available now. Empty when they get one."""


@dataclass(frozen=True, slots=True)
class AnnotatorAssignmentState:
    """Progress of an annotator and the texts they could get next."""

    given: Sequence[AssignedTask]
    """Tasks assigned so far, in order."""
    mine: frozenset[str]
    """IDs of the items assigned to this annotator so far, including imported work."""
    free: Sequence[str]
    """IDs of the items that can be assigned to this annotator now."""
    ahead: int
    """Number of further tasks that the annotator will probably get."""
    why: NoTaskReason
    """Reason why the annotator gets no further task; empty when they get one."""
    counts: AssignmentCounts
    plan: AssignmentPlan
    setting: TextGroup | None = None
    """Text group from which all texts of the annotator must come; None when they may come from any group."""
    later: bool = True
    """True when a text may become available later because another annotator's lease expires."""
    left: int = 0
    """Maximum number of further texts, without attention checks, whether or not they are available."""
    excluded: bool = False
    """True when the annotator was excluded."""


# --- annotator progress ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextEligibilityRules:
    """Rules that decide which texts an annotator may get, regardless of the progress of others."""

    plan: AssignmentPlan
    pool: Sequence[str]
    """Documents that are assigned now: all of them, or in a pilot only the first ones."""
    annotators: int | None
    """Maximum number of annotators per document; None when a design limits the people per cell instead."""
    quotas: Mapping[str, int]
    barred: frozenset[str] = frozenset()
    """IDs of the annotator's own work, which the annotator may not judge."""
    setting: TextGroup | None = None

    def assignable_documents(self, counts: AssignmentCounts, had: frozenset[str]) -> list[str]:
        """Return the documents that can be assigned to an annotator who already has the items `had`."""
        pool = self.pool
        if self.setting is not None:
            pool = [document for document in pool if self.setting in self.plan.settings[document]]
        return assignable_documents(self.plan, counts, self.annotators, had | self.barred, self.quotas, pool)


def first_pass_state(
    rules: TextEligibilityRules,
    counts: AssignmentCounts,
    given: Sequence[AssignedTask],
    mine: frozenset[str],
    left: int,
) -> AnnotatorAssignmentState:
    """Return the first-pass state of an annotator who may get up to `left` further texts."""
    plan = rules.plan
    free_now = rules.assignable_documents(counts, mine) if left else []
    ahead = _remaining_task_count(plan, given, mine, min(len(free_now), left))
    why: NoTaskReason = ""
    later = True
    if not ahead:
        finished_items = mine - {task.item_id for task in given if task.status == "draft"}
        # Another annotator's lease may still expire.
        later = bool(left and rules.assignable_documents(AssignmentCounts(counts.submitted, {}), finished_items))
        why = "none-now" if later or not given else "all-done"
    return AnnotatorAssignmentState(given, mine, free_now, ahead, why, counts, plan, rules.setting, later, left)


def _remaining_task_count(plan: AssignmentPlan, given: Sequence[AssignedTask], mine: frozenset[str], texts: int) -> int:
    """Return the number of tasks that remain for an annotator, including attention checks."""
    return texts + (sum(check not in mine for check in plan.checks) if given or texts else 0)


def narrow_state_to_text_group(state: AnnotatorAssignmentState, setting: TextGroup) -> AnnotatorAssignmentState:
    """Return a copy of the state, restricted to one text group that has available texts."""
    fitting = [document for document in state.free if setting in state.plan.settings[document]]
    ahead = _remaining_task_count(state.plan, state.given, state.mine, min(len(fitting), state.left))
    return replace(state, free=fitting, ahead=ahead, setting=setting)


def second_pass_state(
    plan: AssignmentPlan, due: Sequence[str], given: Sequence[AssignedTask], mine: frozenset[str]
) -> AnnotatorAssignmentState:
    """Return the state of an annotator who reviews the documents `due` in the second pass."""
    drafts = any(task.status == "draft" and not task.excluded for task in given)
    why: NoTaskReason = "" if due else "all-done" if given and not drafts else "none-now"
    return AnnotatorAssignmentState(given, mine, due, len(due), why, AssignmentCounts({}, {}), plan)


def excluded_annotator_state(
    plan: AssignmentPlan, texts: int | None, given: Sequence[AssignedTask], mine: frozenset[str]
) -> AnnotatorAssignmentState:
    """Return the state of an excluded annotator. If all their texts were submitted, they still count as done."""
    submitted = sum(task.status == "submitted" and task.item_id not in plan.checks for task in given)
    why: NoTaskReason = "all-done" if submitted >= (texts or len(plan.documents)) else "none-now"
    return AnnotatorAssignmentState(given, mine, (), 0, why, AssignmentCounts({}, {}), plan, excluded=True)


def unplaced_annotator_state(
    plan: AssignmentPlan, texts: int, given: Sequence[AssignedTask], mine: frozenset[str], later: bool
) -> AnnotatorAssignmentState:
    """Return the state of an annotator who has no place in a design cell.

    With `later`, the annotator will be assigned a cell. Otherwise no place is left in their cell.
    """
    why: NoTaskReason = "" if later else "none-now"
    return AnnotatorAssignmentState(
        given, mine, (), texts if later else 0, why, AssignmentCounts({}, {}), plan, later=later
    )


def next_first_pass_item(state: AnnotatorAssignmentState, texts: int | None, seed: int, annotator: str) -> str | None:
    """Return the ID of the next text or attention check in the first pass, or None when nothing is left."""
    if check := next_attention_check(state, texts, seed, annotator):
        return check
    order = [task.item_id for task in state.given]
    if state.setting is not None:
        return draw_random_document(state.free, seed, annotator)
    return choose_document(state.free, state.plan, state.counts, order, seed, annotator)


def next_attention_check(state: AnnotatorAssignmentState, texts: int | None, seed: int, annotator: str) -> str | None:
    """Return the ID of the attention check that is due now, or None."""
    if not state.ahead:
        return None
    order, expected = [task.item_id for task in state.given], texts or len(state.plan.documents)
    return due_attention_check(state.plan, order, seed, annotator, expected, last=not state.free)


# --- available texts ---------------------------------------------------------------------------------------------


def assignable_documents(
    plan: AssignmentPlan,
    counts: AssignmentCounts,
    annotators: int | None,
    mine: Iterable[str],
    quotas: Mapping[str, int],
    pool: Sequence[str],
) -> list[str]:
    """Return the documents of `pool` that can be assigned to an annotator who already has the items `mine`.

    With `annotators=None`, the number of annotators per document is not limited.
    """
    totals = taken_place_count_by_stratum(plan, counts)
    full = {stratum for stratum, count in totals.items() if count >= quotas.get(stratum[1], count + 1)}
    had = set(mine)
    return [
        document
        for document in pool
        if document not in had
        and (
            annotators is None or counts.taken_place_count(document) < plan.target_annotator_count(document, annotators)
        )
        and not (full and full.intersection(plan.strata.get(document, ())))
    ]


def taken_place_count_by_stratum(plan: AssignmentPlan, counts: AssignmentCounts) -> Counter[Stratum]:
    """Return the number of submitted and leased tasks in each stratum."""
    totals: Counter[Stratum] = Counter()
    for document, strata in plan.strata.items():
        for stratum in strata:
            totals[stratum] += counts.taken_place_count(document)
    return totals


def choose_document(
    candidates: Iterable[str],
    plan: AssignmentPlan,
    counts: AssignmentCounts,
    mine: Iterable[str],
    seed: int,
    annotator: str,
) -> str | None:
    """Choose the document with the fewest annotators. Strata least used by this annotator, then by all, break ties."""
    read = Counter(stratum for document in mine for stratum in plan.strata.get(document, ()))
    totals = taken_place_count_by_stratum(plan, counts)

    def rank(document: str) -> tuple[int, int, int]:
        strata = plan.strata.get(document, ())
        return (
            counts.taken_place_count(document),
            sum(read[name] for name in strata),
            sum(totals[name] for name in strata),
        )

    ranked = [(rank(document), document) for document in candidates]
    best = min((ranks for ranks, _ in ranked), default=None)
    return draw_random_document((document for ranks, document in ranked if ranks == best), seed, annotator)


def seeded_hash(seed: int, *parts: str) -> int:
    """Return a pseudo-random number that depends only on the arguments."""
    text = "\0".join([str(seed), *parts]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())


# --- text groups -------------------------------------------------------------------------------------------------


def text_groups_by_document(
    metas: Mapping[str, Mapping[str, object]], within: Sequence[str]
) -> dict[str, list[TextGroup]]:
    """Return the text groups of each document.

    A human text belongs to the groups of all models that match it in the other keys.

    >>> metas = {"a": {"topic": "sea", "model": "x"}, "b": {"topic": "sea", "model": "human"}}
    >>> text_groups_by_document(metas, ("topic", "model"))
    {'a': [('sea', 'x')], 'b': [('sea', 'x')]}
    """
    values = {id: tuple(str(meta.get(name, "")) for name in within) for id, meta in metas.items()}
    by_people = {id for id, meta in metas.items() if "model" in within and meta.get("model") == HUMAN_MODEL}
    machine: dict[TextGroup, list[TextGroup]] = {}
    for setting in dict.fromkeys(value for id, value in values.items() if id not in by_people):
        machine.setdefault(_text_group_without_model(setting, within), []).append(setting)
    return {
        id: machine.get(_text_group_without_model(setting, within), [setting]) if id in by_people else [setting]
        for id, setting in values.items()
    }


def _text_group_without_model(setting: TextGroup, within: Sequence[str]) -> TextGroup:
    return tuple(value for name, value in zip(within, setting, strict=True) if name != "model")


def choose_text_group(
    candidates: Iterable[str],
    plan: AssignmentPlan,
    people: Mapping[TextGroup, int],
    texts: int,
    seed: int,
    annotator: str,
) -> TextGroup | None:
    """Among the text groups with enough texts, choose the one with the fewest people. The seed breaks ties."""
    room = Counter(setting for document in candidates for setting in plan.settings[document])
    return min(
        room,
        key=lambda setting: (
            room[setting] < texts,
            people.get(setting, 0),
            seeded_hash(seed, annotator, "setting", *setting),
        ),
        default=None,
    )


def draw_random_document(candidates: Iterable[str], seed: int, annotator: str) -> str | None:
    """Choose a document at random. The seed makes the choice reproducible."""
    return min(candidates, key=lambda document: seeded_hash(seed, annotator, document), default=None)


# --- attention checks, machine marks, pairs ----------------------------------------------------------------------


def due_attention_check(
    plan: AssignmentPlan, mine: Sequence[str], seed: int, annotator: str, expected: int, last: bool
) -> str | None:
    """Return the attention check that is due, or None. The seed places each check in its own block of texts.

    `mine` lists the items assigned so far, in order. With `last`, no text is left and the check is due at once.
    """
    order = sorted(plan.checks, key=lambda check: seeded_hash(seed, annotator, "check", check))
    left = [(index, check) for index, check in enumerate(order) if check not in set(mine)]
    if not left:
        return None
    index, check = left[0]
    block = max(1, min(_MAX_TEXTS_PER_CHECK, (expected + len(order)) // len(order) - 1))
    place = 1 + index * (block + 1) + seeded_hash(seed, annotator, "place", check) % block
    return check if last or len(mine) >= place else None


def is_shown_without_machine_marks(seed: int, document: str, share: float) -> bool:
    """Return whether a document is shown without machine marks, as a control for measuring the anchoring effect."""
    return seeded_hash(seed, "blind", document) < share * 2**64


def first_shown_text_of_pair(seed: int, annotator: str, document: str) -> str:
    """Return which text of a pair is shown first: `a` or `b`."""
    return "ab"[seeded_hash(seed, annotator, "first", document) % 2]
