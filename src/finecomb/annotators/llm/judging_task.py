"""Tasks for a language model: one text, one part of it, or one judgement of others that is to be given."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Document, Mark, Segment
from finecomb.core.scales import option_titles
from finecomb.core.study import Study
from finecomb.core.text_parts import text_parts


@dataclass(frozen=True, slots=True)
class ModelTask:
    """What one annotation is about, and the parts in which it is asked."""

    document: Document
    parts: tuple[Segment, ...] = ()
    """Asked one by one; empty for the whole text at once."""
    about: str | None = None
    """Id of the annotation or mark that is judged."""
    material: str = ""
    """What is judged besides the text, in words."""
    swapped: bool = field(default=False)
    """Whether the two texts of a pair are shown in the other order."""

    def part_protocol(self, number: int, protocol: Protocol) -> Protocol:
        """What is asked with one of the parts: the questions of the whole text come with the last."""
        last = number >= len(self.parts) - 1
        return protocol if last else protocol.model_copy(update={"document_questions": ()})


def build_tasks(
    study: Study, documents: Iterable[Document], protocol: Protocol, by_segment: bool
) -> Iterator[ModelTask]:
    """What there is to do under a protocol, in the order of the documents."""
    match protocol.work.unit:
        case "mark" | "annotation":
            yield from _judgement_tasks(study, documents, protocol)
        case "pair":
            yield from (ModelTask(document, swapped=_is_swapped(document)) for document in documents)
        case unit:
            split = by_segment or unit == "segment"
            for document in documents:
                yield ModelTask(document, text_parts(document, protocol.work.sentences) if split else ())


def _is_swapped(document: Document) -> bool:
    """Half of all pairs are shown in the other order, the same half every time."""
    return hashlib.sha256(document.id.encode()).digest()[0] % 2 == 1


def _judgement_tasks(study: Study, documents: Iterable[Document], protocol: Protocol) -> Iterator[ModelTask]:
    """One task for each mark, or for each annotation with an explanation, of other protocols."""
    for document in documents:
        for annotation in study.submitted_work().annotations_on(document.id):
            original = study.protocols[annotation.protocol]
            if annotation.protocol == protocol.id or annotation.about is not None:
                continue
            if protocol.work.unit == "mark":
                yield from mark_tasks(document, annotation, original)
            elif words := _describe_answers(original.document_questions, annotation):
                yield ModelTask(document, about=annotation.id, material=f"What a reader answered:\n{words}")


def mark_tasks(document: Document, annotation: Annotation, protocol: Protocol) -> Iterator[ModelTask]:
    """One task for each located mark of an annotation: is it right?"""
    for mark in annotation.marks:
        if mark.spans:
            yield ModelTask(document, about=mark.id, material=_describe_mark(mark, document, protocol))


def _describe_mark(mark: Mark, document: Document, protocol: Protocol) -> str:
    label = protocol.find_label(mark.label)
    name = f"{label.display_title}: {label.gloss}" if label else "no type given"
    lines = [f"Words marked: {' ... '.join(repr(quote) for quote in mark.quotes)}", f"Kind of error: {name}"]
    lines += [f"Rule: {rule}" for rule in (label.rules if label else ())]
    start = mark.spans[0].start
    text = document.part(mark.spans[0].part) or ""
    lines.append(f"They stand after {text[max(0, start - 80) : start]!r}")
    if mark.antecedents and mark.antecedents.quotes:
        lines.append(f"They are said to refer to: {' ... '.join(map(repr, mark.antecedents.quotes))}")
    questions = {question.name: question for question in protocol.questions_of(mark.label)}
    lines += [
        f"{name}: {option_titles(questions[name], answer)}"
        for name, answer in mark.answers.items()
        if name in questions
    ]
    return "\n".join(lines)


def _describe_answers(questions: Iterable[Question], annotation: Annotation) -> str:
    given = [question for question in questions if question.name in annotation.answers]
    return "\n".join(
        f"{question.ask} {option_titles(question, annotation.answers[question.name])}" for question in given
    )
