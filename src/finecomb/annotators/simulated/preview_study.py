"""A study of the texts that a protocol brings along, to see what annotators will see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from finecomb.core.errors import FinecombError
from finecomb.core.practice import Example
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark, OnboardingPhase, Settings
from finecomb.core.study import StudyItem
from finecomb.protocols import load_shipped

_MAX_ANNOTATORS = 1000  # whoever opens the link sees every text
_JUDGED_PROTOCOL_BY_UNIT = {"annotation": "turing", "mark": "scarecrow"}
"""Whose examples stand in for other people's work, where that is judged."""


def preview_study(protocol: Protocol, skip: Iterable[OnboardingPhase] = ()) -> list[StudyItem]:
    """The study: every example and exercise once, or examples of another protocol as somebody's work to be judged."""
    settings = Settings(
        title=f"Preview of {protocol.title}", protocols=(protocol.id,), annotators=_MAX_ANNOTATORS, skip=tuple(skip)
    )
    if protocol.work.unit in _JUDGED_PROTOCOL_BY_UNIT:
        return [settings, protocol, *_example_work(load_shipped(_JUDGED_PROTOCOL_BY_UNIT[protocol.work.unit]))]
    texts = [*(_document(text) for text in _examples(protocol)), *protocol.practice_documents.values()]
    every = {(text.text, tuple(text.context.values())): text for text in texts}
    if not every:
        raise FinecombError(f"protocol {protocol.id} has no example texts to show; add some under `examples`")
    named = [text.model_copy(update={"id": f"example-{number}"}) for number, text in enumerate(every.values(), 1)]
    return [settings, protocol, *named]


def _examples(protocol: Protocol) -> list[Example]:
    of_arms = [example for arm in protocol.conditions for example in arm.examples]
    return [*protocol.examples, *(example for label in protocol.labels for example in label.examples), *of_arms]


def _document(example: Example, id: str = "example") -> Document:
    return Document(id=id, text=example.text, context=example.context, data=example.data)


def _example_work(protocol: Protocol) -> Iterator[StudyItem]:
    """The examples of a protocol as if somebody had marked and answered them."""
    yield protocol
    yield Annotator(id="somebody", kind="human")
    for number, example in enumerate(_examples(protocol), 1):
        id = f"example-{number}"
        yield _document(example, id)
        yield Annotation(
            id=f"{id}/work",
            document=id,
            annotator="somebody",
            protocol=protocol.id,
            marks=tuple(_marks(example, id)),
            answers=_example_answers(example, protocol),
        )


def _marks(example: Example, id: str) -> Iterator[Mark]:
    placed = [(solution.span(example.text, example.context), solution) for solution in example.marks]
    for number, (span, solution) in enumerate(sorted(placed, key=lambda pair: pair[0]), 1):
        answers = {**solution.answers, "explanation": solution.why} if solution.why else solution.answers
        yield Mark(id=f"{id}/{number}", spans=(span,), quotes=(solution.quote,), label=solution.label, answers=answers)


def _example_answers(example: Example, protocol: Protocol) -> dict[str, object]:
    """The right answers, and the example's reason in place of one in words."""
    answers = dict(example.answers)
    questions = (question for question in protocol.document_questions if question.scale_type.prose and question.when)
    reasons = {
        question.name: example.why
        for question in questions
        if question.when and answers.get(question.when.question) in question.when.among
    }
    return {**answers, **reasons} if example.why else {**answers}
