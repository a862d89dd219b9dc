"""The demo study: short texts with planted errors, marked by simulated annotators."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

from finecomb.annotators.simulated.simulated_annotators import SimulatedAnnotator, make_crowd, simulate_annotations
from finecomb.core.practice import Solution, locate_nth_quote
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_yaml import parse_yaml
from finecomb.core.question import LabelName
from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Mark, Record, Settings, Text
from finecomb.core.span import TEXT_PART
from finecomb.core.study import StudyItem
from finecomb.protocols import load_shipped

_ANNOTATOR_TEMPLATE = SimulatedAnnotator("reader", recall=0.65, precision=0.85, jitter=0.6, confusion=0.12)
_EXTRA_ANNOTATORS = 3  # annotator slots reserved for people who try the demo study themselves


class DemoText(Record):
    """A text of the demo study with its true errors, given as quotes."""

    id: LabelName
    """Topic and system, for example `harbour-a`."""
    topic: Text
    """The topic of the prompt."""
    model: Text
    """The fictional system that wrote the text, or `human`."""
    prompt: Text
    """A prompt of one sentence, written by a person."""
    text: Text
    """A text of one paragraph."""
    errors: tuple[Solution, ...] = ()
    """The true errors in the text."""


class DemoTexts(Record):
    """All texts of the demo study."""

    texts: tuple[DemoText, ...]
    """The texts in display order."""


def load_demo_texts() -> tuple[DemoText, ...]:
    """Load the texts of the demo study."""
    text = (resources.files(__package__) / "demo.yaml").read_text(encoding="utf-8")
    return parse_yaml(DemoTexts, text, "demo.yaml").texts


def build_demo_study(readers: int = 5, seed: int = 0) -> Iterator[StudyItem]:
    """Yield the records of the demo study: the texts, the true errors, and `readers` simulated annotators."""
    protocol = load_shipped("scarecrow")
    texts = load_demo_texts()
    documents = [build_demo_document(text) for text in texts]
    truth = {text.id: build_demo_truth(text, protocol) for text in texts}
    people = make_crowd(readers, _ANNOTATOR_TEMPLATE, spread=0.1, seed=seed)
    yield Settings(
        title="Saltby: the demo study",
        protocols=(protocol.id,),
        annotators=readers + _EXTRA_ANNOTATORS,
        skip=("survey", "training", "qualification"),  # so that people who try the demo see texts at once
        seed=seed,
    )
    yield protocol
    yield from documents
    yield Annotator(id="truth", kind="gold", meta={"note": "the errors put into the texts by their author"})
    yield from (person.to_annotator() for person in people)
    yield from truth.values()
    yield from simulate_annotations(documents, truth, people, protocol, seed)


def build_demo_document(text: DemoText) -> Document:
    """Build the document of a demo text."""
    meta = {"model": text.model, "topic": text.topic}
    return Document(id=text.id, text=text.text, context={"prompt": text.prompt}, meta=meta)


def build_demo_truth(text: DemoText, protocol: Protocol) -> Annotation:
    """Build the annotation by `truth` with the true errors of a demo text."""
    id = f"{text.id}/truth"
    located = [(error.locate(text.text, {"prompt": text.prompt}), error) for error in text.errors]
    marks = []
    for number, (span, error) in enumerate(sorted(located, key=lambda pair: pair[0]), 1):
        antecedents = None
        if error.antecedent:
            part = TEXT_PART if error.antecedent in text.text else "prompt"
            before = locate_nth_quote(error.antecedent, text.text if part == TEXT_PART else text.prompt, part=part)
            antecedents = Antecedents(spans=(before,), quotes=(error.antecedent,))
        answers = dict(error.answers) | ({"explanation": error.why} if error.why else {})
        marks.append(
            Mark(
                id=f"{id}/{number}",
                spans=(span,),
                quotes=(error.quote,),
                label=error.label,
                answers=answers,
                antecedents=antecedents,
            )
        )
    return Annotation(id=id, document=text.id, annotator="truth", protocol=protocol.id, marks=tuple(marks))
