"""Tasks as annotators see them: texts without their origin, and the guide from the protocol."""

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
from finecomb.core.snapping import sentence_offsets_within_parts
from finecomb.core.span import TEXT_PART, Offsets
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
"""Function that returns a new opaque name."""


@dataclass(frozen=True, slots=True)
class TaskText:
    """Text as annotators see it. Only the data in this class reaches them."""

    document: Document
    """Document without ID, meta, references and hidden contexts."""
    parts: tuple[TextPart, ...]
    units: frozenset[str]
    """IDs of the parts that can be judged, as `start-end`."""
    sentences: Mapping[str, Offsets] = field(default_factory=dict)
    """Offsets of the sentences in each part of the document, for labels that cover whole sentences."""
    pair: PairTextNames | None = None
    """Names of the two texts of a pair."""
    is_stepwise: bool = False
    """True when each part is shown only after the earlier parts were judged."""

    def cut_at_first_unjudged(self, judged: Collection[str]) -> TaskText:
        """Return the text up to and including the first unjudged part. Later parts keep only their offsets."""
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
                name: bounds[bounds[:, 1] <= end] if name == TEXT_PART else bounds
                for name, bounds in self.sentences.items()
            },
        )


def unit_id(part: TextPart) -> str:
    """Return the ID of a text part, `start-end`."""
    return f"{part.start}-{part.end}"


def build_task_text(document: Document, protocol: Protocol, first: str | None = None) -> TaskText:
    """Build the text that the protocol shows to annotators. In a pair, the text `first` is shown first."""
    work = protocol.work
    parts = tuple(
        TextPart(start=part.start, end=part.end, title=part.title, role=part.role)
        for part in (text_parts(document, work.sentences) if work.unit == "segment" else ())
    )
    blind = Document(
        id="text",
        text=document.text,
        context={} if work.context == "hidden" else document.context,
        data=document.data if work.data else None,
    )
    pair = build_pair_text_names(protocol, first) if first is not None else None
    blind = pair.document_on_page(blind) if pair else blind
    stepwise = bool(parts) and bool(protocol.labels or protocol.unlabelled)
    sentences: dict[str, Offsets] = {}
    if any(label.snap == "sentence" for label in protocol.labels):
        sentences = {name: sentence_offsets_within_parts(text) for name, text in blind.context.items()}
        bounds = [(part.start, part.end) for part in parts]
        sentences = {TEXT_PART: sentence_offsets_within_parts(blind.text, bounds), **sentences}
    return TaskText(blind, parts, frozenset(map(unit_id, parts)), sentences, pair, stepwise)


@dataclass(frozen=True, slots=True)
class OfferedMarkNames:
    """Offered marks under opaque names, which do not reveal where the marks come from."""

    marks: Mapping[str, Mark]
    """Offered marks by opaque name."""
    shown: Mapping[str, str]
    """Opaque names by mark ID."""

    @classmethod
    def from_marks(cls, marks: Iterable[Mark], sign: Signer) -> OfferedMarkNames:
        """Assign opaque names to offered marks."""
        named = {sign(f"offered/{mark.id}")[:16]: mark for mark in marks if mark.spans}
        return cls(named, {mark.id: name for name, mark in named.items()})


def build_task(
    id: str,
    facts: TaskInfo,
    state: TaskState,
    text: TaskText,
    names: OfferedMarkNames,
    practice: Practice | None = None,
    about: JudgedWork | None = None,
) -> Task:
    """Build a task for the browser."""
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
    """Return the offered marks whose words are already visible, for the browser."""
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
        if text is None or all(span.part != TEXT_PART or span.end <= len(text.document.text) for span in mark.spans)
    )


def build_judged_work(content: judged_work_storage.JudgedContent, protocol: Protocol, sign: Signer) -> JudgedWork:
    """Build the anonymous annotation or mark to judge, for the browser."""
    questions = protocol.questions_for_label(content.marks[0].label) if content.one else protocol.document_questions
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
    """Build an entry for the browser."""
    id = names.shown.get(stored.id, stored.id) if stored.kind == "decision" else stored.id
    value = None if stored.body is None else _BODY_PARSERS[stored.kind](from_json(stored.body), names)
    if pair is not None and isinstance(value, MarkBody):
        earlier = value.antecedent
        if earlier is not None:
            earlier = earlier.model_copy(update={"spans": pair.spans_on_page(earlier.spans)})
        value = value.model_copy(update={"spans": pair.spans_on_page(value.spans), "antecedent": earlier})
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
        made_from=tuple(names.shown[id] for id in value.get("made_from", ()) if id in names.shown),
        alternatives=value.get("alternatives", ()),
    )


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
    """Build the annotation guide from a protocol, without solutions, weights and conditions."""
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
