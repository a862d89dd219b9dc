"""Replies read as annotations: what was said, in which state it came, and nothing dropped without a word."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from finecomb.annotators.llm.chat import ChatReply
from finecomb.core.errors import FinecombError, ProtocolError
from finecomb.core.model_notes import MarkNote
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.quotes import Placement, Quote, find_preceding, place_quotes
from finecomb.core.records import Annotation, Answer, Antecedents, Document, Mark, Segment
from finecomb.core.scales import SCALES
from finecomb.core.span import Span
from finecomb.core.study_checks import unanswered_questions

ReplyState = Literal["read", "unreadable", "refused", "truncated", "empty"]
"""Only the first counts as having read the text."""
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_THINKING = re.compile(r"<think>.*?</think>", re.DOTALL)
_REFUSAL = re.compile(
    r"\b(i['’]?m sorry|i am sorry|i can['’]?t|i cannot|i won['’]?t|i am unable|i['’]?m unable|as an ai|i decline)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """One reply as data, with its state and what had to be done to read it."""

    state: ReplyState
    why: str = ""
    value: dict[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyContent:
    """One reply as marks and answers."""

    state: ReplyState
    why: str = ""
    flags: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    answers: dict[str, Answer] = field(default_factory=dict)
    unit: dict[str, Answer] = field(default_factory=dict)
    malformed: int = 0
    """Things in the list of marks that are no marks."""


# --- from text to data -------------------------------------------------------------------------------------------


def parse_reply(reply: ChatReply) -> ParsedReply:
    """The JSON object in a reply, or the state that says why there is none."""
    text = _THINKING.sub("", reply.text).strip()
    if reply.refusal or reply.finish == "content_filter":
        return ParsedReply("refused", reply.refusal or "stopped by a content filter")
    if reply.finish == "length":
        return ParsedReply("truncated", "reached the most tokens a reply may have")
    if not text:
        return ParsedReply("empty", "the reply is empty")
    if (value := _load_json_object(text)) is not None:
        return ParsedReply("read", value=value)
    return _parse_malformed_reply(text)


def _parse_malformed_reply(text: str) -> ParsedReply:
    """Reading what is not plain JSON: between fences, in the middle of prose, or repaired; all of it is flagged."""
    inside = [*_FENCE.findall(text), text[text.find("{") : text.rfind("}") + 1]]
    for candidate in inside:
        if (value := _load_json_object(candidate.strip())) is not None:
            return ParsedReply("read", value=value, flags=("the JSON stood in other text",))
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    if start < 0:
        refused = _REFUSAL.search(text[:400])
        return ParsedReply("refused", "declines in words") if refused else ParsedReply("unreadable", "has no JSON")
    if _is_truncated_json(text[start:]):
        return ParsedReply("truncated", "the JSON ends in the middle")
    from json_repair import repair_json

    repaired = repair_json(text[start:], return_objects=True)
    if isinstance(repaired, dict) and repaired:
        return ParsedReply("read", value=repaired, flags=("the JSON was repaired",))
    return ParsedReply("unreadable", "has no JSON object that could be read")


def _load_json_object(text: str) -> dict[str, Any] | None:
    """A JSON object, or a list of marks as one; None for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list):
        return {"marks": value}
    return value if isinstance(value, dict) else None


def _is_truncated_json(text: str) -> bool:
    """Whether brackets or a string are still open at the end."""
    depth, inside, escaped = 0, False, False
    for character in text:
        if inside:
            inside, escaped = escaped or character != '"', not escaped and character == "\\"
        elif character == '"':
            inside = True
        else:
            depth += (character in "{[") - (character in "}]")
    return inside or depth > 0


def complete_mark_count(text: str) -> int:
    """How many marks of a reply that was cut off are whole.

    >>> complete_mark_count('{"marks": [{"quote": "a"}, {"quote": "b"}, {"quo')
    2
    """
    _, found, rest = text.partition('"marks"')
    rest = rest.partition("[")[2]
    count = 0
    while found:
        try:
            value, end = _DECODER.raw_decode(rest.lstrip(" \t\r\n,"))
        except (ValueError, RecursionError):
            break
        rest = rest.lstrip(" \t\r\n,")[end:]
        count += isinstance(value, dict)
    return count


_DECODER = json.JSONDecoder()


def decide_placement(annotation: Annotation, mark: str, accept: bool, by: str) -> Annotation:
    """An annotation in which a researcher has accepted or refused the place of a mark; a refused one has none."""
    if mark not in {candidate.id for candidate in annotation.marks}:
        raise FinecombError(f"annotation {annotation.id!r} has no mark {mark!r}")
    marks = (
        _decide_mark_placement(candidate, accept, by) if candidate.id == mark else candidate
        for candidate in annotation.marks
    )
    return annotation.model_copy(update={"marks": tuple(marks)})


def _decide_mark_placement(mark: Mark, accept: bool, by: str) -> Mark:
    note = MarkNote.from_mark(mark)
    decision: Literal["accepted", "refused"] = "accepted" if accept else "refused"
    meta = {**mark.meta, "llm": note.model_copy(update={"decision": decision}).model_dump(exclude_defaults=True)}
    if accept:
        return mark.model_copy(update={"meta": meta})
    quote = note.quoted or " ".join(mark.quotes)
    return mark.model_copy(
        update={"meta": meta, "spans": (), "quotes": (quote,), "unlocated": f"its place was refused by {by}"}
    )


# --- from data to marks and answers ------------------------------------------------------------------------------


def interpret_reply(
    reply: ChatReply, document: Document, protocol: Protocol, prefix: str, part: Segment | None = None
) -> ReplyContent:
    """The marks and answers of one reply; `prefix` begins the marks' ids."""
    parsed_reply = parse_reply(reply)
    if parsed_reply.state != "read":
        return ReplyContent(parsed_reply.state, parsed_reply.why)
    value = parsed_reply.value
    if problem := _shape_problem(value, protocol):
        return ReplyContent("unreadable", problem, parsed_reply.flags)
    entries = (
        [entry for entry in value.get("marks") or [] if isinstance(entry, dict)] if _expects_marks(protocol) else []
    )
    malformed = len(value.get("marks") or []) - len(entries) if _expects_marks(protocol) else 0
    marks = tuple(_parse_marks(entries, document, protocol, prefix, part))
    answers, refused = _parse_answers(value.get("answers"), protocol.document_questions)
    unit, more = _parse_answers(value.get("unit"), protocol.unit_questions)
    missing = unanswered_questions(answers, protocol.document_questions)
    missing += unanswered_questions(unit, protocol.unit_questions) if part else []
    if missing:
        return ReplyContent("unreadable", f"has no usable answer to {', '.join(missing)}", parsed_reply.flags)
    flags = (*parsed_reply.flags, *refused, *more)
    return ReplyContent("read", "", flags, marks, answers, unit, malformed)


def _expects_marks(protocol: Protocol) -> bool:
    return bool(protocol.labels) or protocol.unlabelled


def _shape_problem(value: dict[str, Any], protocol: Protocol) -> str:
    """What a reply lacks, so that silence is never taken for 'no errors'."""
    if _expects_marks(protocol) and not isinstance(value.get("marks"), list):
        return "has no list `marks`"
    if not _expects_marks(protocol) and not isinstance(value.get("answers", value.get("unit")), dict):
        return "has no object `answers`"
    return ""


def _parse_marks(
    entries: Sequence[dict[str, Any]], document: Document, protocol: Protocol, prefix: str, part: Segment | None
) -> Iterable[Mark]:
    offset, text = (part.start, document.text[part.start : part.end]) if part else (0, document.text)
    quotes = [
        Quote(_text_field(entry, "quote"), _text_field(entry, "before"), _text_field(entry, "after"))
        for entry in entries
    ]
    placements = place_quotes(quotes, text)
    for number, (entry, quote, placement) in enumerate(zip(entries, quotes, placements, strict=True)):
        span = Span(placement.span[0] + offset, placement.span[1] + offset) if placement.span else None
        yield _parse_mark(f"{prefix}/{number}", entry, quote, placement, span, document, protocol)


def _parse_mark(
    id: str,
    entry: dict[str, Any],
    quote: Quote,
    placement: Placement,
    span: Span | None,
    document: Document,
    protocol: Protocol,
) -> Mark:
    label, invented = _resolve_label(entry.get("label"), protocol)
    answers, refused = _parse_answers(entry, protocol.questions_of(label))
    words = span.extract(document.text) if span else quote.text
    note = MarkNote(
        placed=placement.method,
        flags=placement.flags,
        quoted=quote.text if words != quote.text else "",
        label=invented,
        refused_answers=tuple(refused),
    )
    return Mark(
        id=id,
        spans=(span,) if span else (),
        quotes=(words,),
        label=label,
        answers=answers,
        antecedents=_locate_antecedents(_text_field(entry, "antecedent"), span, document, protocol, label),
        unlocated=placement.why,
        meta={"llm": note.model_dump(mode="json", exclude_defaults=True)},
    )


def _text_field(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    return value.replace("\0", "") if isinstance(value, str) else ""


def _resolve_label(spelling: Any, protocol: Protocol) -> tuple[str | None, str]:
    """The label meant, and what the model wrote where the protocol has no such label."""
    if not isinstance(spelling, str) or not protocol.labels:
        return None, "" if spelling is None else str(spelling)
    try:
        return protocol.resolve_label(spelling).name, ""
    except ProtocolError:
        return None, spelling


def _locate_antecedents(
    words: str, span: Span | None, document: Document, protocol: Protocol, label: str | None
) -> Antecedents | None:
    """The earlier words that a mark names: the place nearest before it."""
    definition = protocol.find_label(label)
    if not words.strip() or definition is None or definition.antecedent == "none":
        return None
    before = document.text[: span.start] if span else document.text
    placement = place_quotes([Quote(words)], before)[0]
    at = placement.span or find_preceding(words, before, (len(before), len(before)))
    if at is None:
        return Antecedents(spans=(), quotes=(words,), unlocated=placement.why)
    return Antecedents(spans=(Span(*at),), quotes=(document.text[slice(*at)],))


def _parse_answers(given: Any, questions: Iterable[Question]) -> tuple[dict[str, Answer], list[str]]:
    """The answers that the questions allow, and what was wrong with the others."""
    answers: dict[str, Answer] = {}
    refused: list[str] = []
    for question in questions:
        value = given.get(question.name) if isinstance(given, dict) else None
        if value is None or value == "" or value == []:
            continue
        answer = _parse_answer(value, question)
        if problem := question.problem(answer):
            refused.append(problem)
        else:
            answers[question.name] = answer
    return answers, refused


def _parse_answer(value: Any, question: Question) -> Answer:
    """An answer as the question stores it: a model may write a number as text, or a title for its value."""
    scale = SCALES[question.scale]
    if scale.many:
        chosen = [str(choice) for choice in (value if isinstance(value, list) else [value])]
        return tuple(dict.fromkeys(_resolve_option(question, choice) for choice in chosen))
    if isinstance(value, str) and not scale.free:
        parsed_value = scale.parse(question, value.strip())
        return value if parsed_value is None else parsed_value
    if isinstance(value, float) and value.is_integer() and scale.chooses:
        return int(value)
    return value if isinstance(value, bool | int | float | str) else json.dumps(value, ensure_ascii=False)


def _resolve_option(question: Question, spelling: str) -> str:
    """The option that a spelling means; the spelling itself where it means none."""
    parsed_value = SCALES[question.scale].parse(question, spelling)
    return parsed_value[0] if isinstance(parsed_value, tuple) else spelling
