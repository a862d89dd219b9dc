"""Cache of tasks, texts and offered marks, which do not change while a study is served."""

from __future__ import annotations

from finecomb.collection import judged_work_storage, onboarding, task_storage
from finecomb.collection.database.store import Store, StudyState
from finecomb.collection.onboarding import PracticeItem
from finecomb.collection.task_storage import TaskInfo
from finecomb.core.protocol import Protocol
from finecomb.core.records import Mark
from finecomb.server.annotators.schema import JudgedWork
from finecomb.server.annotators.task_view import OfferedMarkNames, Signer, TaskText, build_judged_work, build_task_text

_MAX_TASKS = 20_000


class TaskCache:
    """Cache of tasks and their texts as annotators see them, cleared when a researcher changes the study."""

    def __init__(self, store: Store, sign: Signer) -> None:
        self.store = store
        self._sign = sign
        self._head: StudyState | None = None
        self._facts: dict[str, TaskInfo] = {}
        self._texts: dict[tuple[str, str, str], TaskText] = {}
        self._whole: set[str] = set()
        self._asked: dict[str, Protocol] = {}
        self._names: dict[tuple[str, ...], OfferedMarkNames] = {}

    def get_task_info(self, task: str) -> TaskInfo | None:
        """Return the facts about a task, or None for an unknown ID."""
        if self._head is not self.store.head or len(self._facts) > _MAX_TASKS:
            self._head = self.store.head
            for cache in (self._facts, self._texts, self._asked, self._names):
                cache.clear()
            self._whole.clear()
        facts = self._facts.get(task)
        if facts is None:
            facts = self.store.read(task_storage.read_task_info, task)
            if facts is not None:
                self._facts[task] = facts
        return facts

    def get_protocol(self, facts: TaskInfo) -> Protocol:
        """Return the protocol under which a task was assigned, which may differ from the current one."""
        return self.store.head.protocols[facts.protocol]

    def get_effective_protocol(self, facts: TaskInfo) -> Protocol:
        """Return the protocol of a task; for a multiple-choice task, the protocol with only its question."""
        if facts.phase == "work":
            return self.get_protocol(facts)
        protocol = self._asked.get(facts.document)  # another thread may clear the caches at any time
        if protocol is None:
            protocol = self.get_protocol(facts).protocol_for_document(facts.document)
            self._asked[facts.document] = protocol
        return protocol

    def get_task_text(self, facts: TaskInfo) -> TaskText:
        """Return the complete text of a task as annotators see it."""
        key = (facts.document, facts.protocol, facts.first)
        text, protocol = self._texts.get(key), self.get_protocol(facts)
        if text is None:
            text = (
                build_task_text(self.store.get_document(facts.document), protocol, facts.first)
                if facts.phase == "work"
                else build_task_text(protocol.practice_documents[facts.document], self.get_effective_protocol(facts))
            )
            self._texts[key] = text
        return text

    def get_visible_text(self, task: str, facts: TaskInfo) -> TaskText:
        """Return the text of a task up to the part that the annotator has reached."""
        text = self.get_task_text(facts)
        if not text.is_stepwise or task in self._whole:
            return text
        judged = self.store.read(task_storage.read_ever_judged_unit_ids, task)
        if judged >= text.units:
            self._whole.add(task)
        return text.cut_at_first_unjudged(judged)

    def get_practice_item(self, facts: TaskInfo) -> PracticeItem | None:
        """Return the exercise or question of a task, or None for other tasks."""
        return (
            None
            if facts.phase == "work"
            else onboarding.practice_items_by_document(self.get_protocol(facts), facts.round)[facts.document]
        )

    def get_judged_work(self, facts: TaskInfo) -> JudgedWork | None:
        """Return the annotation or mark to judge in a task, or None when the task is about the text itself."""
        if not facts.about:
            return None
        content = self.store.read(
            judged_work_storage.read_judged_content, facts.about, self.get_protocol(facts).work.unit
        )
        return build_judged_work(content, self.store.head.protocols[content.protocol], self._sign) if content else None

    def get_offered_mark_names(self, facts: TaskInfo) -> OfferedMarkNames:
        """Return the marks offered in a task, under opaque names."""
        names = self._names.get(facts.offered)
        if names is None:
            marks: list[Mark] = []
            if facts.offered:
                marks = self.store.read(task_storage.read_offered_marks, facts.offered)
            names = self._names[facts.offered] = OfferedMarkNames.from_marks(marks, self._sign)
        return names
