"""The demo study: short texts that we wrote, with the errors we put into them, read by simulated annotators."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

from finecomb.annotators.simulated.simulated_annotators import SimulatedAnnotator, make_crowd, simulate_annotations
from finecomb.core.practice import Solution, locate_quote
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_text import parse_yaml
from finecomb.core.question import Name
from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Mark, Record, Settings, Text
from finecomb.core.span import TEXT
from finecomb.core.study import StudyItem
from finecomb.protocols import load_shipped

_ANNOTATOR_TEMPLATE = SimulatedAnnotator("reader", recall=0.65, precision=0.85, jitter=0.6, confusion=0.12)
_EXTRA_ANNOTATORS = 3  # places left for people who try the demo study themselves


class DemoText(Record):
    """One text of the demo with its true errors, by quote."""

    id: Name
    """Topic and system, e.g. `harbour-a`."""
    topic: Text
    """What the prompt is about."""
    model: Text
    """The system that is supposed to have written it; `human` for a person."""
    prompt: Text
    """One sentence by a person."""
    text: Text
    """One paragraph."""
    errors: tuple[Solution, ...] = ()
    """What is wrong in it."""


class DemoTexts(Record):
    """All texts of the demo."""

    texts: tuple[DemoText, ...]
    """In the order shown."""


def demo_texts() -> tuple[DemoText, ...]:
    """The texts as written."""
    text = (resources.files(__package__) / "demo.yaml").read_text(encoding="utf-8")
    return parse_yaml(DemoTexts, text, "demo.yaml").texts


def demo_study(readers: int = 5, seed: int = 0) -> Iterator[StudyItem]:
    """The demo study as records: the texts, the truth, and `readers` simulated annotators."""
    protocol = load_shipped("scarecrow")
    texts = demo_texts()
    documents = [build_document(text) for text in texts]
    truth = {text.id: build_truth(text, protocol) for text in texts}
    people = make_crowd(readers, _ANNOTATOR_TEMPLATE, spread=0.1, seed=seed)
    yield Settings(
        title="Saltby: the demo study",
        protocols=(protocol.id,),
        annotators=readers + _EXTRA_ANNOTATORS,
        skip=("survey", "training", "qualification"),  # who tries it wants to see texts
        seed=seed,
    )
    yield protocol
    yield from documents
    yield Annotator(id="truth", kind="gold", meta={"note": "the errors put into the texts by their author"})
    yield from (person.to_annotator() for person in people)
    yield from truth.values()
    yield from simulate_annotations(documents, truth, people, protocol, seed)


def build_document(text: DemoText) -> Document:
    """A text of the demo as a document."""
    return Document(
        id=text.id, text=text.text, context={"prompt": text.prompt}, meta={"model": text.model, "topic": text.topic}
    )


def build_truth(text: DemoText, protocol: Protocol) -> Annotation:
    """The true errors of a text of the demo as an annotation by `truth`."""
    id = f"{text.id}/truth"
    marks = sorted((_mark(error, text) for error in text.errors), key=lambda mark: mark.spans)
    numbered = tuple(mark.model_copy(update={"id": f"{id}/{number}"}) for number, mark in enumerate(marks, 1))
    return Annotation(id=id, document=text.id, annotator="truth", protocol=protocol.id, marks=numbered)


def _mark(error: Solution, text: DemoText) -> Mark:
    context = {"prompt": text.prompt}
    span = error.span(text.text, context)
    antecedents = None
    if error.antecedent:
        part = TEXT if error.antecedent in text.text else "prompt"
        before = locate_quote(error.antecedent, text.text if part == TEXT else text.prompt, part=part)
        antecedents = Antecedents(spans=(before,), quotes=(error.antecedent,))
    answers = dict(error.answers) | ({"explanation": error.why} if error.why else {})
    return Mark(
        id="m", spans=(span,), quotes=(error.quote,), label=error.label, answers=answers, antecedents=antecedents
    )
