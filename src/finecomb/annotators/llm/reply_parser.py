"""Parsing of replies into annotations, with the state of each reply and all problems recorded."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from finecomb.annotators.llm.chat import FINISH_MALFORMED, FINISH_PROMPT_TRUNCATED, ChatReply, storable_text
from finecomb.core.errors import FinecombError, ProtocolError
from finecomb.core.model_notes import MarkNote
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.quotes import Placement, Quote, find_preceding_occurrence, place_quotes
from finecomb.core.records import Annotation, Answer, Antecedents, Document, Mark, Segment
from finecomb.core.scales import SCALES
from finecomb.core.span import Span
from finecomb.core.study_checks import unanswered_questions

ReplyState = Literal["read", "unreadable", "refused", "truncated", "empty"]
"""State of a reply. Only `read` counts as an annotation of the text."""
MAX_TEXT_LENGTH, MAX_DEPTH, MAX_MARKS = 1_000_000, 32, 1_000
"""Maximum characters of a reply, levels of its JSON, and marks in a text. Replies beyond them are not read."""
_MAX_REPAIR_LENGTH = 16_000  # the time that repairs take grows with the square of the length
_MAX_INTEGER = 2**53
_DECODER = json.JSONDecoder(
    parse_int=lambda digits: int(digits) if len(digits) < 16 else digits[:40],
    parse_float=lambda digits: float(digits) if math.isfinite(float(digits)) else digits[:40],
    parse_constant=str,
)
_REFUSAL_PATTERN = re.compile(
    r"\b(i['’]?m sorry|i am sorry|i can['’]?t|i cannot|i won['’]?t|i am unable|i['’]?m unable|as an ai|i decline)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The JSON of a reply, with its state and the repairs needed to read it."""

    state: ReplyState
    why: str = ""
    value: dict[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyContent:
    """The marks and answers of a reply."""

    state: ReplyState
    why: str = ""
    flags: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    answers: dict[str, Answer] = field(default_factory=dict)
    unit: dict[str, Answer] = field(default_factory=dict)
    malformed: int = 0
    """Number of entries in the list of marks that are not objects."""


# --- JSON --------------------------------------------------------------------------------------------------------


def parse_reply(reply: ChatReply) -> ParsedReply:
    """Parse the JSON object in a reply, or return the state that explains why there is none.

    A reply whose JSON had to be repaired, decoded twice, or taken out of code fences or prose, is flagged.
    """
    if reply.refusal or reply.finish == "content_filter":
        return ParsedReply("refused", reply.refusal or "stopped by a content filter")
    if reply.finish == FINISH_MALFORMED:
        return ParsedReply("unreadable", reply.raw.partition("\n")[0])
    if reply.finish == FINISH_PROMPT_TRUNCATED:
        return ParsedReply("truncated", reply.raw)
    if reply.finish == "length":
        is_all_thinking = not reply.text.strip() and reply.thinking_tokens
        where = ", all of which were used for reasoning" if is_all_thinking else ""
        return ParsedReply("truncated", f"the reply reached the maximum number of tokens{where}")
    if len(reply.text) > MAX_TEXT_LENGTH:
        return ParsedReply("unreadable", f"the reply has more than {MAX_TEXT_LENGTH:,} characters")
    # Reasoning may contain braces that look like the start of the JSON.
    text = _remove_thinking(reply.text).strip()
    if not text:
        return ParsedReply("empty", "the reply is empty")
    if _scan_brackets(text)[0] > MAX_DEPTH:
        return ParsedReply("unreadable", f"the JSON has more than {MAX_DEPTH} levels")
    parsed = _parse_json_text(text)
    return replace(parsed, value=_storable_value(parsed.value)) if parsed.value else parsed


def _parse_json_text(text: str) -> ParsedReply:
    value = _load_json(text)
    if isinstance(value, str) and isinstance(inner := _load_json(value.strip()), dict | list):
        if _scan_brackets(value)[0] > MAX_DEPTH:
            return ParsedReply("unreadable", f"the JSON has more than {MAX_DEPTH} levels")
        return ParsedReply("read", value=_as_object(inner), flags=("the JSON was encoded twice",))
    if isinstance(value, dict | list):
        return ParsedReply("read", value=_as_object(value))
    fenced = [part.partition("\n")[2] for part in text.split("```")[1::2]]
    for candidate in [*fenced, text[text.find("{") : text.rfind("}") + 1]]:
        if isinstance(value := _load_json(candidate.strip()), dict | list):
            return ParsedReply("read", value=_as_object(value), flags=("the JSON was surrounded by other text",))
    start = min((offset for offset in (text.find("{"), text.find("[")) if offset >= 0), default=-1)
    if start < 0 and _REFUSAL_PATTERN.search(text[:400]):
        return ParsedReply("refused", "the model declined in prose")
    if start < 0:
        return ParsedReply("unreadable", "no JSON found")
    # A truncated reply is not repaired, because the repair would silently drop marks.
    if _scan_brackets(text[start:])[1]:
        return ParsedReply("truncated", "the JSON is incomplete")
    if len(text) - start > _MAX_REPAIR_LENGTH:
        return ParsedReply("unreadable", f"the JSON is invalid and longer than {_MAX_REPAIR_LENGTH:,} characters")
    from json_repair import repair_json

    try:
        repaired = repair_json(text[start:], return_objects=True)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        repaired = None
    if isinstance(repaired, dict) and repaired:
        return ParsedReply("read", value=repaired, flags=("the JSON was repaired",))
    return ParsedReply("unreadable", "no JSON object could be parsed")


def _load_json(text: str) -> Any:
    """Parse JSON, or return None. Numbers that cannot be stored exactly become texts."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None


def _as_object(value: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """Return an object; a list becomes its `marks`. Marks may be encoded once more."""
    found = {"marks": value} if isinstance(value, list) else dict(value)
    if isinstance(marks := found.get("marks"), str) and isinstance(inner := _load_json(marks), list):
        found["marks"] = inner
    return found


def _storable_value(value: Any) -> Any:
    """Return a JSON value with texts and numbers that can be stored."""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, dict):
        return {storable_text(str(name)): _storable_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable_value(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MAX_INTEGER:
        return f"{value:.3e}" if abs(value) < 10**300 else "a number with more than 300 digits"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _scan_brackets(text: str) -> tuple[int, bool]:
    """Return the deepest nesting of brackets outside of strings, and whether a bracket or string is open at the end."""
    depth, deepest, inside, escaped = 0, 0, False, False
    for character in text:
        if inside:
            inside, escaped = escaped or character != '"', not escaped and character == "\\"
        elif character == '"':
            inside = True
        elif character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]":
            depth -= 1
    return deepest, inside or depth > 0


def _remove_thinking(text: str) -> str:
    """Remove reasoning between tags, which some servers leave in the text."""
    while 0 <= (start := text.find("<think>")) < (end := text.find("</think>", start)):
        text = text[:start] + text[end + len("</think>") :]
    return text


def complete_mark_count(text: str) -> int:
    """Count the complete marks in a truncated reply.

    >>> complete_mark_count('{"marks": [{"quote": "a"}, {"quote": "b"}, {"quo')
    2
    """
    _, marks_key, remaining = text.partition('"marks"')
    remaining = remaining.partition("[")[2]
    count = 0
    while marks_key:
        try:
            value, end = _DECODER.raw_decode(remaining.lstrip(" \t\r\n,"))
        except (ValueError, RecursionError):
            break
        remaining = remaining.lstrip(" \t\r\n,")[end:]
        count += isinstance(value, dict)
    return count


def record_placement_decision(annotation: Annotation, mark: str, accept: bool, by: str) -> Annotation:
    """Return the annotation after a researcher accepted or rejected a mark's position.

    Rejected marks lose their span.
    """
    if mark not in {candidate.id for candidate in annotation.marks}:
        raise FinecombError(f"annotation {annotation.id!r} has no mark {mark!r}")
    marks = []
    for candidate in annotation.marks:
        if candidate.id == mark:
            note = MarkNote.from_mark(candidate)
            decided = note.model_copy(update={"decision": "accepted" if accept else "refused"})
            update: dict[str, Any] = {"meta": {**candidate.meta, "llm": decided.model_dump(exclude_defaults=True)}}
            if not accept:
                quote = note.quoted or " ".join(candidate.quotes)
                update |= {"spans": (), "quotes": (quote,), "unlocated": f"position rejected by {by}"}
            candidate = candidate.model_copy(update=update)
        marks.append(candidate)
    return annotation.model_copy(update={"marks": tuple(marks)})


# --- marks and answers -------------------------------------------------------------------------------------------


def build_reply_content(
    reply: ChatReply, document: Document, protocol: Protocol, prefix: str, part: Segment | None = None
) -> ReplyContent:
    """Build the marks and answers of a reply. The IDs of marks start with `prefix`."""
    parsed_reply = parse_reply(reply)
    if parsed_reply.state != "read":
        return ReplyContent(parsed_reply.state, parsed_reply.why)
    value = parsed_reply.value
    expects_marks = bool(protocol.labels) or protocol.unlabelled
    # A missing list must not be counted as 'no errors'.
    if expects_marks and not isinstance(value.get("marks"), list):
        return ReplyContent("unreadable", "`marks` is missing or not a list", parsed_reply.flags)
    if not expects_marks and not isinstance(value.get("answers", value.get("unit")), dict):
        required = "unit" if protocol.unit_questions and not protocol.document_questions else "answers"
        return ReplyContent("unreadable", f"`{required}` is missing or not an object", parsed_reply.flags)
    listed = value["marks"] if expects_marks else []
    if len(listed) > MAX_MARKS:
        why = f"{len(listed):,} marks; at most {MAX_MARKS:,} are read"
        return ReplyContent("unreadable", why, parsed_reply.flags)
    entries = [entry for entry in listed if isinstance(entry, dict) and _text_field(entry, "quote").strip()]
    malformed = len(listed) - len(entries)
    # A list of texts, or of objects without quotes, must not be counted as 'no errors' either.
    if malformed and not entries:
        return ReplyContent("unreadable", "no entry of `marks` has a quote", parsed_reply.flags)
    offset, text = (part.start, document.text[part.start : part.end]) if part else (0, document.text)
    quotes = [Quote(*(_text_field(entry, name) for name in ("quote", "before", "after"))) for entry in entries]
    marks = tuple(
        _build_mark(f"{prefix}/{number}", entry, quote, placement, offset, document, protocol)
        for number, (entry, quote, placement) in enumerate(
            zip(entries, quotes, place_quotes(quotes, text), strict=True)
        )
    )
    answers, refused = _parse_answers(value.get("answers"), protocol.document_questions)
    unit, more = _parse_answers(value.get("unit"), protocol.unit_questions)
    missing = unanswered_questions(answers, protocol.document_questions)
    missing += unanswered_questions(unit, protocol.unit_questions) if part else []
    if missing:
        return ReplyContent("unreadable", f"no valid answer to {', '.join(missing)}", parsed_reply.flags)
    flags = (*parsed_reply.flags, *refused, *more)
    return ReplyContent("read", "", flags, marks, answers, unit, malformed)


def _build_mark(
    id: str,
    entry: dict[str, Any],
    quote: Quote,
    placement: Placement,
    offset: int,
    document: Document,
    protocol: Protocol,
) -> Mark:
    """Build a mark. `offset` is the start of the part that the placement refers to."""
    span = Span(placement.span[0] + offset, placement.span[1] + offset) if placement.span else None
    label, invented = _resolve_label(entry.get("label"), protocol)
    answers, refused = _parse_answers(entry, protocol.questions_for_label(label))
    words = span.extract(document.text) if span else quote.text
    note = MarkNote(
        placed=placement.method,
        flags=placement.flags,
        quoted=quote.text if words != quote.text else "",
        label=invented,
        refused_answers=tuple(refused),
    )
    antecedents, definition = None, protocol.find_label(label)
    earlier_words = _text_field(entry, "antecedent")
    if earlier_words.strip() and definition is not None and definition.antecedent != "none":
        before = document.text[: span.start] if span else document.text
        found = place_quotes([Quote(earlier_words)], before)[0]
        # Words that occur several times are located at the occurrence nearest to the mark.
        position = found.span or find_preceding_occurrence(earlier_words, before, (len(before), len(before)))
        if position is None:
            antecedents = Antecedents(spans=(), quotes=(earlier_words,), unlocated=found.why)
        else:
            antecedents = Antecedents(spans=(Span(*position),), quotes=(document.text[slice(*position)],))
    return Mark(
        id=id,
        spans=(span,) if span else (),
        quotes=(words,),
        label=label,
        answers=answers,
        antecedents=antecedents,
        unlocated=placement.why,
        meta={"llm": note.model_dump(mode="json", exclude_defaults=True)},
    )


def _text_field(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    return value.replace("\0", "") if isinstance(value, str) else ""


def _resolve_label(spelling: Any, protocol: Protocol) -> tuple[str | None, str]:
    """Return the matching label, and the model's spelling if the protocol has no such label."""
    if not isinstance(spelling, str) or not protocol.labels:
        return None, "" if spelling is None else str(spelling)
    try:
        return protocol.resolve_label(spelling).name, ""
    except ProtocolError:
        return None, spelling


def _parse_answers(given: Any, questions: Iterable[Question]) -> tuple[dict[str, Answer], list[str]]:
    """Return the valid answers, and the problems of the invalid ones."""
    answers: dict[str, Answer] = {}
    refused: list[str] = []
    for question in questions:
        value = given.get(question.name) if isinstance(given, dict) else None
        if value is None or value == "" or value == []:
            continue
        answer = _parse_answer(value, question)
        if problem := question.answer_problem(answer):
            refused.append(problem)
        else:
            answers[question.name] = answer
    return answers, refused


def _parse_answer(value: Any, question: Question) -> Answer:
    """Convert an answer to its stored form. Models may write numbers as text, or titles instead of values."""
    scale = SCALES[question.scale]
    if scale.many:
        chosen = [str(choice) for choice in (value if isinstance(value, list) else [value])]
        options = [(scale.parse(question, choice), choice) for choice in chosen]
        return tuple(dict.fromkeys(value[0] if isinstance(value, tuple) else choice for value, choice in options))
    if isinstance(value, str) and not scale.free:
        parsed_value = scale.parse(question, value.strip())
        return value if parsed_value is None else parsed_value
    if isinstance(value, float) and value.is_integer() and scale.chooses:
        return int(value)
    return value if isinstance(value, bool | int | float | str) else json.dumps(value, ensure_ascii=False)
