"""A preview study from the examples of a protocol, to show what annotators will see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from finecomb.core.errors import FinecombError
from finecomb.core.practice import Example
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark, OnboardingPhase, Settings
from finecomb.core.study import StudyItem
from finecomb.protocols import load_shipped

_MAX_ANNOTATORS = 1000  # high enough that every visitor sees every text
_JUDGED_PROTOCOL_BY_UNIT = {"annotation": "turing", "mark": "scarecrow"}
"""Protocol whose examples are shown for judgement, by unit (annotation or mark) of the judging protocol."""


def build_preview_study(protocol: Protocol, skip: Iterable[OnboardingPhase] = ()) -> list[StudyItem]:
    """Build a study with each example and exercise once.

    For protocols that judge annotations or marks, the examples of another protocol provide the work to judge.
    """
    settings = Settings(
        title=f"Preview of {protocol.title}", protocols=(protocol.id,), annotators=_MAX_ANNOTATORS, skip=tuple(skip)
    )
    if protocol.work.unit in _JUDGED_PROTOCOL_BY_UNIT:
        return [
            settings,
            protocol,
            *_example_annotation_items(load_shipped(_JUDGED_PROTOCOL_BY_UNIT[protocol.work.unit])),
        ]
    texts = [
        *(_build_example_document(text) for text in _collect_examples(protocol)),
        *protocol.practice_documents.values(),
    ]
    every = {(text.text, tuple(text.context.values())): text for text in texts}
    if not every:
        raise FinecombError(f"protocol {protocol.id} has no example texts to preview; add some under `examples`")
    named = [text.model_copy(update={"id": f"example-{number}"}) for number, text in enumerate(every.values(), 1)]
    return [settings, protocol, *named]


def _collect_examples(protocol: Protocol) -> list[Example]:
    of_arms = [example for arm in protocol.conditions for example in arm.examples]
    return [*protocol.examples, *(example for label in protocol.labels for example in label.examples), *of_arms]


def _build_example_document(example: Example, id: str = "example") -> Document:
    return Document(id=id, text=example.text, context=example.context, data=example.data)


def _example_annotation_items(protocol: Protocol) -> Iterator[StudyItem]:
    """Yield the examples of a protocol as documents with annotations to judge."""
    yield protocol
    yield Annotator(id="somebody", kind="human")
    for number, example in enumerate(_collect_examples(protocol), 1):
        id = f"example-{number}"
        yield _build_example_document(example, id)
        marks = []
        located = [(solution.locate(example.text, example.context), solution) for solution in example.marks]
        for mark_number, (span, solution) in enumerate(sorted(located, key=lambda pair: pair[0]), 1):
            answers = {**solution.answers, "explanation": solution.why} if solution.why else solution.answers
            mark_id, quotes = f"{id}/{mark_number}", (solution.quote,)
            marks.append(Mark(id=mark_id, spans=(span,), quotes=quotes, label=solution.label, answers=answers))
        # The example's explanation answers the free-text questions.
        reasons = {
            question.name: example.why
            for question in protocol.document_questions
            if example.why
            and question.scale_type.prose
            and question.when
            and example.answers.get(question.when.question) in question.when.among
        }
        yield Annotation(
            id=f"{id}/work",
            document=id,
            annotator="somebody",
            protocol=protocol.id,
            marks=tuple(marks),
            answers={**example.answers, **reasons},
        )
