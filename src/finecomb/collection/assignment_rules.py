"""Which text comes next: fewest annotators first, balanced over strata, among equals as the seed says."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from finecomb.core.design import HUMAN, DesignCell

Stratum = tuple[str, str]
"""A name of document meta and its value there."""
Setting = tuple[str, ...]
"""The values of document meta that all texts of one person share, e.g. a domain and a model."""
_MAX_TEXTS_PER_CHECK = 10  # texts among which one attention check is hidden


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """Somebody's annotation or mark that is to be judged."""

    document: str
    annotator: str


@dataclass(frozen=True, slots=True)
class CellPlan:
    """A cell of the design with the texts that can be read in it."""

    cell: DesignCell
    documents: Sequence[str]
    """Ids in order, without attention checks."""
    checks: int = 0
    """Attention checks, which everybody gets on top."""

    @property
    def texts_per_person(self) -> int:
        """How many texts one person reads, attention checks aside."""
        return self.cell.texts or len(self.documents)

    @property
    def tasks_per_person(self) -> int:
        """How many texts one person hands in."""
        return self.texts_per_person + self.checks


@dataclass(frozen=True, slots=True)
class AssignmentPlan:
    """What there is to give out."""

    documents: Sequence[str]
    """Ids in order, without attention checks; of annotations or marks, where these are judged."""
    strata: Mapping[str, Sequence[Stratum]]
    """Of each document."""
    checks: Sequence[str] = ()
    """Attention checks, which everybody gets."""
    settings: Mapping[str, Sequence[Setting]] = field(default_factory=dict)
    """In which settings each document can be read, where everybody keeps to one."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Which system wrote each document."""
    judged: Mapping[str, JudgedItem] = field(default_factory=dict)
    """What each id stands for, where other people's work is judged."""
    cells: Mapping[str, CellPlan] = field(default_factory=dict)
    """The cells of the study's design by name; none without a design."""
    metas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The meta of each document, where texts are drawn by it."""

    def target_annotator_count(self, document: str, annotators: int) -> int:
        """How many annotators a document should get: so many in each of its settings."""
        return annotators * max(1, len(self.settings.get(document, ())))


@dataclass(frozen=True, slots=True)
class AssignmentCounts:
    """How the work stands, under the protocol in force."""

    submitted: Mapping[str, int]
    """Annotators who handed in, by document."""
    working: Mapping[str, int]
    """Annotators for whom it is kept at the moment, by document."""

    def annotator_count(self, document: str) -> int:
        """Places taken."""
        return self.submitted.get(document, 0) + self.working.get(document, 0)


@dataclass(frozen=True, slots=True)
class AssignedTask:
    """A task of an annotator, as their list shows it."""

    id: str
    document: str
    about: str
    """Id of the annotation or mark that is judged; empty where it is the text."""
    number: int
    status: Literal["draft", "submitted"]
    lease: float | None
    excluded: bool
    """Whether it was set aside."""

    @property
    def item_id(self) -> str:
        """Its id in the plan."""
        return self.about or self.document


NoTaskReason = Literal["", "all-done", "none-now"]
"""Why there is nothing more to do: everything is done, or nothing is free at the moment."""


@dataclass(frozen=True, slots=True)
class AnnotatorAssignmentState:
    """How far an annotator is, and what could come next."""

    given: Sequence[AssignedTask]
    """In order."""
    mine: frozenset[str]
    """What this annotator has had, here or elsewhere."""
    free: Sequence[str]
    """What could be given now."""
    ahead: int
    """How many more texts this annotator can expect."""
    why: NoTaskReason
    """Why there are none."""
    counts: AssignmentCounts
    plan: AssignmentPlan
    setting: Setting | None = None
    """Which texts this annotator keeps to."""
    later: bool = True
    """Whether a text may yet come, since somebody may give one back."""
    left: int = 0
    """How many more texts this annotator may get, attention checks aside, free or not."""
    excluded: bool = False
    """Whether the annotator was excluded."""


# --- how far somebody is -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextEligibilityRules:
    """What decides which texts somebody may get, apart from what others do."""

    plan: AssignmentPlan
    pool: Sequence[str]
    """What is given out at the moment: all documents, or the first ones in a pilot."""
    annotators: int | None
    """For each document; None where the number of people decides and not that of annotations."""
    quotas: Mapping[str, int]
    barred: frozenset[str] = frozenset()
    """Somebody's own work, which they do not judge."""
    setting: Setting | None = None

    def free_documents(self, counts: AssignmentCounts, had: frozenset[str]) -> list[str]:
        """The texts that can be given to somebody who has had `had`."""
        pool = self.pool
        if self.setting is not None:
            pool = [document for document in pool if self.setting in self.plan.settings[document]]
        return free_documents(self.plan, counts, self.annotators, had | self.barred, self.quotas, pool)


def first_pass_state(
    rules: TextEligibilityRules,
    counts: AssignmentCounts,
    given: Sequence[AssignedTask],
    mine: frozenset[str],
    left: int,
) -> AnnotatorAssignmentState:
    """The state of somebody who may get `left` more texts."""
    plan = rules.plan
    free_now = rules.free_documents(counts, mine) if left else []
    ahead = _remaining_task_count(plan, given, mine, min(len(free_now), left))
    why: NoTaskReason = ""
    later = True
    if not ahead:
        over = mine - {task.item_id for task in given if task.status == "draft"}
        later = bool(
            left and rules.free_documents(AssignmentCounts(counts.submitted, {}), over)
        )  # somebody may yet give a text back
        why = "none-now" if later or not given else "all-done"
    return AnnotatorAssignmentState(given, mine, free_now, ahead, why, counts, plan, rules.setting, later, left)


def _remaining_task_count(plan: AssignmentPlan, given: Sequence[AssignedTask], mine: frozenset[str], texts: int) -> int:
    """Texts to come with the attention checks among them."""
    return texts + (sum(check not in mine for check in plan.checks) if given or texts else 0)


def narrow_state_to_setting(state: AnnotatorAssignmentState, setting: Setting) -> AnnotatorAssignmentState:
    """The state of somebody who from now on keeps to texts of one setting, in which there are some."""
    fitting = [document for document in state.free if setting in state.plan.settings[document]]
    ahead = _remaining_task_count(state.plan, state.given, state.mine, min(len(fitting), state.left))
    return replace(state, free=fitting, ahead=ahead, setting=setting)


def second_pass_state(
    plan: AssignmentPlan, due: Sequence[str], given: Sequence[AssignedTask], mine: frozenset[str]
) -> AnnotatorAssignmentState:
    """The state of somebody who looks at the documents `due` once more."""
    drafts = any(task.status == "draft" and not task.excluded for task in given)
    why: NoTaskReason = "" if due else "all-done" if given and not drafts else "none-now"
    return AnnotatorAssignmentState(given, mine, due, len(due), why, AssignmentCounts({}, {}), plan)


def excluded_annotator_state(
    plan: AssignmentPlan, texts: int | None, given: Sequence[AssignedTask], mine: frozenset[str]
) -> AnnotatorAssignmentState:
    """The state of somebody who gets nothing more; who had handed in everything before stays at the end."""
    submitted = sum(task.status == "submitted" and task.item_id not in plan.checks for task in given)
    why: NoTaskReason = "all-done" if submitted >= (texts or len(plan.documents)) else "none-now"
    return AnnotatorAssignmentState(given, mine, (), 0, why, AssignmentCounts({}, {}), plan, excluded=True)


def waiting_annotator_state(
    plan: AssignmentPlan, texts: int, given: Sequence[AssignedTask], mine: frozenset[str], later: bool
) -> AnnotatorAssignmentState:
    """The state of somebody without a place in a cell: not assigned yet (`later`), or the cell was filled meanwhile."""
    why: NoTaskReason = "" if later else "none-now"
    return AnnotatorAssignmentState(
        given, mine, (), texts if later else 0, why, AssignmentCounts({}, {}), plan, later=later
    )


def next_first_pass_item(state: AnnotatorAssignmentState, texts: int | None, seed: int, annotator: str) -> str | None:
    """The text or attention check that somebody gets now in the first pass, if there is one."""
    if check := next_attention_check(state, texts, seed, annotator):
        return check
    order = [task.item_id for task in state.given]
    if state.setting is not None:
        return draw_random_document(state.free, seed, annotator)
    return choose_document(state.free, state.plan, state.counts, order, seed, annotator)


def next_attention_check(state: AnnotatorAssignmentState, texts: int | None, seed: int, annotator: str) -> str | None:
    """The attention check that somebody gets now, if one is due."""
    if not state.ahead:
        return None
    order, expected = [task.item_id for task in state.given], texts or len(state.plan.documents)
    return due_attention_check(state.plan, order, seed, annotator, expected, last=not state.free)


# --- which texts are free ----------------------------------------------------------------------------------------


def free_documents(
    plan: AssignmentPlan,
    counts: AssignmentCounts,
    annotators: int | None,
    mine: Iterable[str],
    quotas: Mapping[str, int],
    pool: Sequence[str],
) -> list[str]:
    """The documents of `pool` that can be given to somebody who has had `mine`; None lets any number read each."""
    totals = annotator_count_by_stratum(plan, counts)
    full = {stratum for stratum, count in totals.items() if count >= quotas.get(stratum[1], count + 1)}
    had = set(mine)
    return [
        document
        for document in pool
        if document not in had
        and (annotators is None or counts.annotator_count(document) < plan.target_annotator_count(document, annotators))
        and not (full and full.intersection(plan.strata.get(document, ())))
    ]


def annotator_count_by_stratum(plan: AssignmentPlan, counts: AssignmentCounts) -> Counter[Stratum]:
    """Places taken by stratum."""
    totals: Counter[Stratum] = Counter()
    for document, strata in plan.strata.items():
        for stratum in strata:
            totals[stratum] += counts.annotator_count(document)
    return totals


def choose_document(
    candidates: Iterable[str],
    plan: AssignmentPlan,
    counts: AssignmentCounts,
    mine: Iterable[str],
    seed: int,
    annotator: str,
) -> str | None:
    """The next document: fewest places taken, then the strata this annotator and then everybody has had least of."""
    read = Counter(stratum for document in mine for stratum in plan.strata.get(document, ()))
    totals = annotator_count_by_stratum(plan, counts)

    def rank(document: str) -> tuple[int, int, int]:
        strata = plan.strata.get(document, ())
        return (
            counts.annotator_count(document),
            sum(read[name] for name in strata),
            sum(totals[name] for name in strata),
        )

    ranked = [(rank(document), document) for document in candidates]
    best = min((ranks for ranks, _ in ranked), default=None)
    return draw_random_document((document for ranks, document in ranked if ranks == best), seed, annotator)


def seeded_hash(seed: int, *parts: str) -> int:
    """A number that looks random and depends on its arguments only."""
    text = "\0".join([str(seed), *parts]).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())


def choose_condition(names: Iterable[str], people: Mapping[str, int], seed: int, annotator: str) -> str:
    """The arm of the experiment with fewest people so far; among equals, the seed decides."""
    return min(names, key=lambda name: (people.get(name, 0), seeded_hash(seed, annotator, name)), default="")


# --- one setting for each person ---------------------------------------------------------------------------------


def settings_by_document(metas: Mapping[str, Mapping[str, object]], within: Sequence[str]) -> dict[str, list[Setting]]:
    """In which settings each document can be read. A text by a person goes with every model, all else being equal.

    >>> metas = {"a": {"topic": "sea", "model": "x"}, "b": {"topic": "sea", "model": "human"}}
    >>> settings_by_document(metas, ("topic", "model"))
    {'a': [('sea', 'x')], 'b': [('sea', 'x')]}
    """
    values = {id: tuple(str(meta.get(name, "")) for name in within) for id, meta in metas.items()}
    by_people = {id for id, meta in metas.items() if "model" in within and meta.get("model") == HUMAN}
    machine: dict[Setting, list[Setting]] = {}
    for setting in dict.fromkeys(value for id, value in values.items() if id not in by_people):
        machine.setdefault(_setting_without_model(setting, within), []).append(setting)
    return {
        id: machine.get(_setting_without_model(setting, within), [setting]) if id in by_people else [setting]
        for id, setting in values.items()
    }


def _setting_without_model(setting: Setting, within: Sequence[str]) -> Setting:
    return tuple(value for name, value in zip(within, setting, strict=True) if name != "model")


def choose_setting(
    candidates: Iterable[str],
    plan: AssignmentPlan,
    people: Mapping[Setting, int],
    texts: int,
    seed: int,
    annotator: str,
) -> Setting | None:
    """The setting with fewest people among those with enough texts left; among equals, the seed decides."""
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
    """A document at random, as the seed says."""
    return min(candidates, key=lambda document: seeded_hash(seed, annotator, document), default=None)


# --- attention checks, machine marks, pairs ----------------------------------------------------------------------


def due_attention_check(
    plan: AssignmentPlan, mine: Sequence[str], seed: int, annotator: str, expected: int, last: bool
) -> str | None:
    """The attention check to be given now, if one is: each hides at a seeded place in its own stretch of texts.

    `mine` are the texts given so far in their order; `last` says that nothing else is left.
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
    """Whether a document is shown without machine marks, so that anchoring can be measured."""
    return seeded_hash(seed, "blind", document) < share * 2**64


def first_shown_text_of_pair(seed: int, annotator: str, document: str) -> str:
    """Which text of a pair somebody is shown first: `a` or `b`."""
    return "ab"[seeded_hash(seed, annotator, "first", document) % 2]
