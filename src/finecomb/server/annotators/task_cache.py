"""What the server remembers about tasks, texts and offered marks: none of it changes while a study is served."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from finecomb.collection import judged_work_storage, onboarding, task_storage
from finecomb.collection.database.store import Store, StudyState
from finecomb.collection.onboarding import PracticeItem
from finecomb.collection.task_storage import TaskInfo
from finecomb.core.protocol import Protocol
from finecomb.server.annotators.schema import JudgedWork
from finecomb.server.annotators.task_view import OfferedMarkNames, Signer, TaskText, build_judged_work, build_task_text

V = TypeVar("V")
_MAX_TASKS = 20_000


class TaskCache:
    """Texts as annotators see them, read once. Emptied when a researcher changes the study."""

    def __init__(self, store: Store, sign: Signer) -> None:
        self.store = store
        self._sign = sign
        self._head: StudyState | None = None
        self._facts: dict[str, TaskInfo] = {}
        self._texts: dict[tuple[str, str, str], TaskText] = {}
        self._whole: set[str] = set()
        self._asked: dict[str, Protocol] = {}
        self._names: dict[tuple[str, ...], OfferedMarkNames] = {}

    def task_info(self, task: str) -> TaskInfo | None:
        """Whose task it is and what it is about."""
        self._clear_if_outdated()
        facts = self._facts.get(task)
        if facts is None:
            with self.store.database.read_transaction() as transaction:
                facts = task_storage.read_task_info(self.store, transaction, task)
            if facts is not None:
                self._facts[task] = facts
        return facts

    def protocol(self, facts: TaskInfo) -> Protocol:
        """The protocol that a task was given out under, which may no longer be the one in force."""
        return self.store.head.protocols[facts.protocol]

    def effective_protocol(self, facts: TaskInfo) -> Protocol:
        """What is asked in a task: its protocol, or a single multiple-choice question."""
        if facts.phase == "work":
            return self.protocol(facts)
        make = functools.partial(self.protocol(facts).protocol_for_document, facts.document)
        return _get_or_make(self._asked, facts.document, make)

    def task_text(self, facts: TaskInfo) -> TaskText:
        """The task's text."""
        key = (facts.document, facts.protocol, facts.first)
        return _get_or_make(self._texts, key, functools.partial(self._build_task_text, facts))

    def visible_text(self, task: str, facts: TaskInfo) -> TaskText:
        """The task's text as far as its annotator has come."""
        text = self.task_text(facts)
        if not text.is_stepwise or task in self._whole:
            return text
        with self.store.database.read_transaction() as transaction:
            judged = task_storage.ever_judged_unit_ids(self.store, transaction, task)
        if judged >= text.units:
            self._whole.add(task)
        return text.cut_at_first_unjudged(judged)

    def _build_task_text(self, facts: TaskInfo) -> TaskText:
        if facts.phase == "work":
            return build_task_text(self.store.document(facts.document), self.protocol(facts), facts.first)
        return build_task_text(self.protocol(facts).practice_documents[facts.document], self.effective_protocol(facts))

    def practice_item(self, facts: TaskInfo) -> PracticeItem | None:
        """The exercise or question that a task is, if it is one."""
        return (
            None
            if facts.phase == "work"
            else onboarding.practice_items_by_document(self.protocol(facts), facts.round)[facts.document]
        )

    def judged_work(self, facts: TaskInfo) -> JudgedWork | None:
        """The work that is judged in a task, where it is not the text."""
        if not facts.about:
            return None
        with self.store.database.read_transaction() as transaction:
            content = judged_work_storage.read_judged_content(
                self.store, transaction, facts.about, self.protocol(facts).work.unit
            )
        return build_judged_work(content, self.store.head.protocols[content.protocol], self._sign) if content else None

    def offered_names(self, facts: TaskInfo) -> OfferedMarkNames:
        """The marks that the task offers."""
        return _get_or_make(self._names, facts.offered, functools.partial(self._read_offered_names, facts.offered))

    def _read_offered_names(self, ids: tuple[str, ...]) -> OfferedMarkNames:
        if not ids:
            return OfferedMarkNames({}, {})
        with self.store.database.read_transaction() as transaction:
            return OfferedMarkNames.from_marks(
                task_storage.read_offered_marks(self.store, transaction, ids), self._sign
            )

    def _clear_if_outdated(self) -> None:
        if self._head is not self.store.head or len(self._facts) > _MAX_TASKS:
            self._head = self.store.head
            for cache in (self._facts, self._texts, self._asked, self._names):
                cache.clear()
            self._whole.clear()


K = TypeVar("K")


def _get_or_make(cache: dict[K, V], key: K, make: Callable[[], V]) -> V:
    value = cache.get(key)  # another thread may empty it at any time
    if value is None:
        value = cache[key] = make()
    return value
