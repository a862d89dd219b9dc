"""Tasks for a language model: a text, its parts, or the work of another annotator to judge."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from finecomb.annotators.llm.chunks import split_into_chunks
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, ChunkSize, Document, Segment
from finecomb.core.scales import format_answer_with_titles
from finecomb.core.study import Study
from finecomb.core.text_parts import text_parts


@dataclass(frozen=True, slots=True)
class ModelTask:
    """The work requested for one annotation: a text or item to judge, and the parts in which it is sent."""

    document: Document
    parts: tuple[Segment, ...] = ()
    """Parts requested one by one, empty to request the whole text at once."""
    about: str | None = None
    """ID of the annotation or mark to judge."""
    material: str = ""
    """Description of the work to judge."""
    is_chunked: bool = False
    """True if the parts are chunks of a long text, which may overlap."""
    swapped: bool = False
    """True if the two texts of a pair are shown in reverse order."""

    def part_protocol(self, number: int, protocol: Protocol) -> Protocol:
        """Return the protocol for one of the parts.

        Questions about the whole text are asked only with the last part, and not at all about chunks.
        """
        last = number >= len(self.parts) - 1 and not self.is_chunked
        return protocol if last else protocol.model_copy(update={"document_questions": ()})


def build_tasks(
    study: Study, documents: Iterable[Document], protocol: Protocol, by_segment: bool, chunk: ChunkSize | None = None
) -> Iterator[ModelTask]:
    """Yield the tasks of a protocol in document order.

    If the protocol judges marks or annotations, each task is to judge a mark, or an annotation with answers, that was
    made under another protocol.
    """
    for document in documents:
        if protocol.work.unit == "pair":
            # About half of all pairs are shown in reverse order, determined by their IDs.
            yield ModelTask(document, swapped=hashlib.sha256(document.id.encode()).digest()[0] % 2 == 1)
        elif chunk and len(chunks := split_into_chunks(document.text, chunk)) > 1:
            yield ModelTask(document, chunks, is_chunked=True)
        elif protocol.work.unit not in ("mark", "annotation"):
            split = by_segment or protocol.work.unit == "segment"
            yield ModelTask(document, text_parts(document, protocol.work.sentences) if split else ())
        else:
            for annotation in study.submitted_work().annotations_on(document.id):
                original = study.protocols[annotation.protocol]
                if annotation.protocol == protocol.id or annotation.about is not None:
                    continue
                if protocol.work.unit == "mark":
                    yield from build_mark_judgement_tasks(document, annotation, original)
                elif answers := [
                    f"{question.ask} {format_answer_with_titles(question, annotation.answers[question.name])}"
                    for question in original.document_questions
                    if question.name in annotation.answers
                ]:
                    material = "\n".join(["What a reader answered:", *answers])
                    yield ModelTask(document, about=annotation.id, material=material)


def build_mark_judgement_tasks(document: Document, annotation: Annotation, protocol: Protocol) -> Iterator[ModelTask]:
    """Yield a task to judge each located mark of an annotation."""
    for mark in annotation.marks:
        if not mark.spans:
            continue
        label = protocol.find_label(mark.label)
        name = f"{label.display_title}: {label.gloss}" if label else "no type given"
        lines = [f"Words marked: {' ... '.join(repr(quote) for quote in mark.quotes)}", f"Kind of error: {name}"]
        lines += [f"Rule: {rule}" for rule in (label.rules if label else ())]
        start = mark.spans[0].start
        text = document.part_text(mark.spans[0].part) or ""
        lines.append(f"They stand after {text[max(0, start - 80) : start]!r}")
        if mark.antecedents and mark.antecedents.quotes:
            lines.append(f"They are said to refer to: {' ... '.join(map(repr, mark.antecedents.quotes))}")
        questions = {question.name: question for question in protocol.questions_for_label(mark.label)}
        lines += [
            f"{name}: {format_answer_with_titles(questions[name], answer)}"
            for name, answer in mark.answers.items()
            if name in questions
        ]
        yield ModelTask(document, about=mark.id, material="\n".join(lines))
