"""What annotators are shown: a text without anything that tells where it comes from, and the protocol as a guide."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pydantic_core import from_json

from finecomb.collection import judged_work_storage
from finecomb.collection.database.rows import EntryKind, StoredEntry
from finecomb.collection.task_storage import TaskInfo, TaskState
from finecomb.core.palette import label_styles
from finecomb.core.protocol import Protocol
from finecomb.core.records import Document, Mark
from finecomb.core.snapping import part_sentences
from finecomb.core.span import TEXT, Offsets
from finecomb.core.text_parts import text_parts
from finecomb.server.annotators.pair_names import PairTextNames, build_pair_text_names
from finecomb.server.annotators.schema import (
    AnsweredQuestion,
    AnswersBody,
    AnswersEntry,
    Guide,
    JudgedWork,
    MarkBody,
    MarkEntry,
    OfferedMark,
    Practice,
    SuggestionBody,
    SuggestionEntry,
    Task,
    TextPart,
    UnitBody,
    UnitEntry,
)
from finecomb.server.schema import LabelLook

Signer = Callable[[str], str]
"""Makes a name that says nothing of what it stands for."""


@dataclass(frozen=True, slots=True)
class TaskText:
    """A text as annotators see it. What is not in here cannot reach them."""

    document: Document
    """Without id, meta, references, and without contexts that the protocol hides."""
    parts: tuple[TextPart, ...]
    units: frozenset[str]
    """The parts' ids, `start-end`."""
    sentences: Mapping[str, Offsets] = field(default_factory=dict)
    """Where sentences lie by part, for labels that go with whole ones."""
    pair: PairTextNames | None = None
    """The names of the two texts of a pair."""
    is_stepwise: bool = False
    """Whether a later part is shown only when those before it were judged."""

    def cut_at_first_unjudged(self, judged: Collection[str]) -> TaskText:
        """The text up to the first part that was not judged; of later parts only where they lie is told."""
        ahead = [part for part in self.parts if unit_id(part) not in judged]
        if not self.is_stepwise or not ahead:
            return self
        end, later = ahead[0].end, frozenset(map(unit_id, ahead[1:]))
        return replace(
            self,
            document=self.document.model_copy(update={"text": self.document.text[:end]}),
            parts=tuple(
                TextPart(start=part.start, end=part.end) if unit_id(part) in later else part for part in self.parts
            ),
            units=self.units - later,
            sentences={
                name: _sentences_before(bounds, end) if name == TEXT else bounds
                for name, bounds in self.sentences.items()
            },
        )


def _sentences_before(bounds: Offsets, end: int) -> Offsets:
    return bounds[bounds[:, 1] <= end]


def unit_id(part: TextPart) -> str:
    """The id under which a part is judged."""
    return f"{part.start}-{part.end}"


def build_task_text(document: Document, protocol: Protocol, first: str | None = None) -> TaskText:
    """The text of a document as far as the protocol lets annotators see it; of a pair, `first` comes first."""
    work = protocol.work
    parts = _text_parts(document, work.sentences) if work.unit == "segment" else ()
    blind = Document(
        id="text",
        text=document.text,
        context={} if work.context == "hidden" else document.context,
        data=document.data if work.data else None,
    )
    pair = build_pair_text_names(protocol, first) if first is not None else None
    blind = pair.document_on_page(blind) if pair else blind
    stepwise = bool(parts) and bool(protocol.labels or protocol.unlabelled)
    sentences = _sentence_offsets(blind, parts) if any(label.snap == "sentence" for label in protocol.labels) else {}
    return TaskText(blind, parts, frozenset(map(unit_id, parts)), sentences, pair, stepwise)


def _sentence_offsets(document: Document, parts: tuple[TextPart, ...]) -> dict[str, Offsets]:
    own = part_sentences(document.text, [(part.start, part.end) for part in parts])
    return {TEXT: own} | {name: part_sentences(text) for name, text in document.context.items()}


def _text_parts(document: Document, size: int) -> tuple[TextPart, ...]:
    parts = text_parts(document, size)
    return tuple(TextPart(start=part.start, end=part.end, title=part.title, role=part.role) for part in parts)


@dataclass(frozen=True, slots=True)
class OfferedMarkNames:
    """Offered marks under names that do not give their makers away."""

    marks: Mapping[str, Mark]
    """By the name that annotators see."""
    shown: Mapping[str, str]
    """That name, by id."""

    @classmethod
    def from_marks(cls, marks: Iterable[Mark], sign: Signer) -> OfferedMarkNames:
        """Name marks."""
        named = {sign(f"offered/{mark.id}")[:16]: mark for mark in marks if mark.spans}
        return cls(named, {mark.id: name for name, mark in named.items()})

    def opaque_names(self, ids: Iterable[str]) -> tuple[str, ...]:
        """OfferedNames instead of ids."""
        return tuple(self.shown[id] for id in ids if id in self.shown)


def build_task(
    id: str,
    facts: TaskInfo,
    state: TaskState,
    text: TaskText,
    names: OfferedMarkNames,
    practice: Practice | None = None,
    about: JudgedWork | None = None,
) -> Task:
    """A task as it goes to the browser."""
    entries: dict[EntryKind, list[Any]] = {"mark": [], "unit": [], "answers": [], "decision": []}
    for stored in state.entries:
        entries[stored.kind].append(build_browser_entry(stored, names, text.pair))
    return Task(
        id=id,
        number=facts.number,
        text=text.document.text,
        context=text.document.context,
        parts=text.parts,
        sentences={name: bounds.tolist() for name, bounds in text.sentences.items()},
        data=text.document.data,
        offered=_offered_marks(names, text),
        marks=tuple(entries["mark"]),
        units=tuple(entries["unit"]),
        answers=entries["answers"][0] if entries["answers"] else None,
        decisions=tuple(entries["decision"]),
        phase=facts.phase,
        practice=practice,
        about=about,
        round=facts.round,
        status=state.status,
        active=state.active,
        lease=None if state.lease is None else datetime.fromtimestamp(state.lease, UTC),
    )


def _offered_marks(names: OfferedMarkNames, text: TaskText | None = None) -> tuple[OfferedMark, ...]:
    """Offered marks as they go to the browser, as far as their words are there."""
    pair = text.pair if text else None
    return tuple(
        OfferedMark(
            id=name,
            spans=pair.spans_on_page(mark.spans) if pair else mark.spans,
            quotes=mark.quotes,
            label=mark.label,
            answers=mark.answers,
        )
        for name, mark in names.marks.items()
        if text is None or _is_mark_visible(mark, text)
    )


def _is_mark_visible(mark: Mark, text: TaskText) -> bool:
    return all(span.part != TEXT or span.end <= len(text.document.text) for span in mark.spans)


def build_judged_work(content: judged_work_storage.JudgedContent, protocol: Protocol, sign: Signer) -> JudgedWork:
    """Somebody's work that is to be judged, under names that do not give them away."""
    questions = protocol.questions_of(content.marks[0].label) if content.one else protocol.document_questions
    return JudgedWork(
        labels=protocol.labels,
        looks=_label_looks(protocol),
        marks=_offered_marks(OfferedMarkNames.from_marks(content.marks, sign)),
        said=tuple(
            AnsweredQuestion(
                ask=question.ask, answer=question.scale_type.words(question, content.answers[question.name])
            )
            for question in questions
            if question.name in content.answers
        ),
    )


AnyEntry = MarkEntry | UnitEntry | AnswersEntry | SuggestionEntry


def build_browser_entry(stored: StoredEntry, names: OfferedMarkNames, pair: PairTextNames | None = None) -> AnyEntry:
    """An entry as it goes to the browser."""
    id = names.shown.get(stored.id, stored.id) if stored.kind == "decision" else stored.id
    value = None if stored.body is None else _BODY_PARSERS[stored.kind](from_json(stored.body), names)
    if pair is not None and isinstance(value, MarkBody):
        value = _mark_body_with_page_names(value, pair)
    if pair is not None and isinstance(value, AnswersBody):
        value = value.model_copy(update={"answers": pair.answers_on_page(value.answers)})
    sent: AnyEntry = _ENTRY_TYPES[stored.kind](id=id, version=stored.version, body=value)
    return sent


def _browser_mark_body(value: dict[str, Any], names: OfferedMarkNames) -> MarkBody:
    return MarkBody(
        spans=value["spans"],
        quotes=value["quotes"],
        label=value["label"],
        answers=value.get("answers", {}),
        antecedent=value.get("antecedents"),
        made_from=names.opaque_names(value.get("made_from", ())),
        alternatives=value.get("alternatives", ()),
    )


def _mark_body_with_page_names(body: MarkBody, pair: PairTextNames) -> MarkBody:
    earlier = body.antecedent
    if earlier is not None:
        earlier = earlier.model_copy(update={"spans": pair.spans_on_page(earlier.spans)})
    return body.model_copy(update={"spans": pair.spans_on_page(body.spans), "antecedent": earlier})


_ENTRY_TYPES: dict[EntryKind, Any] = {
    "mark": MarkEntry,
    "unit": UnitEntry,
    "answers": AnswersEntry,
    "decision": SuggestionEntry,
}
_BODY_PARSERS: dict[EntryKind, Callable[[dict[str, Any], OfferedMarkNames], Any]] = {
    "mark": _browser_mark_body,
    "unit": lambda value, _: UnitBody(answers=value.get("answers", {}), seconds=value.get("seconds") or 0),
    "answers": lambda value, _: AnswersBody.model_validate(value),
    "decision": lambda value, _: SuggestionBody.model_validate(value),
}


def _label_looks(protocol: Protocol) -> tuple[LabelLook, ...]:
    return tuple(
        LabelLook(label=look.label, title=look.title, slot=look.slot.name, flag=look.flag, key=look.key)
        for look in label_styles(protocol).values()
    )


def build_guide(protocol: Protocol) -> Guide:
    """What annotators can look up at any time: never solutions, never weights, nothing of an experiment's arms."""
    return Guide(
        id=protocol.id,
        title=protocol.title,
        summary=protocol.summary,
        language=protocol.language,
        groups=protocol.groups,
        labels=protocol.labels,
        looks=_label_looks(protocol),
        unlabelled=protocol.unlabelled,
        marks_on=protocol.marks_on,
        questions=protocol.questions,
        unit_questions=protocol.unit_questions,
        document_questions=protocol.document_questions,
        rules=protocol.rules,
        guidelines=protocol.guidelines,
        mode=next((mode for mode in protocol.modes if mode.name == protocol.mode), None),
        work=protocol.work,
        instructions=protocol.instructions,
        examples=protocol.examples,
        thanks=protocol.thanks,
    )
