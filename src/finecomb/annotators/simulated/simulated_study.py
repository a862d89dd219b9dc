"""A study with simulated annotators over known true errors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from finecomb.annotators.simulated.simulated_annotators import SimulatedAnnotator, plant_errors, simulate_annotations
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator
from finecomb.core.study import Study, StudyItem


@dataclass(frozen=True, slots=True)
class SimulatedStudy:
    """The records of a simulated study, made while they are read."""

    items: Iterator[StudyItem]
    truth: str
    """Annotator whose marks are the true errors."""


def simulate_study(
    study: Study, protocol: Protocol, people: Sequence[SimulatedAnnotator], truth: str, errors_per_100: float, seed: int
) -> SimulatedStudy:
    """Let simulated annotators mark the texts of a study.

    The true errors are the marks of annotator `truth`; without one, errors are planted at `errors_per_100` words.
    """
    documents = list(study.iter_documents())
    if truth:
        true_errors = _annotations_by_document(study, truth)
    else:
        planted = plant_errors(documents, protocol, errors_per_100, seed)
        true_errors = {annotation.document: annotation for annotation in planted}
    owner = next((item for item in study.iter_annotators() if item.id == truth), Annotator(id="truth", kind="gold"))
    settings = study.settings.model_copy(update={"protocols": (protocol.id,), "annotators": len(people), "seed": seed})
    head: list[StudyItem] = [settings, protocol, *documents, owner, *(person.to_annotator() for person in people)]
    annotations = simulate_annotations(documents, true_errors, people, protocol, seed)
    return SimulatedStudy(itertools.chain(head, true_errors.values(), annotations), owner.id)


def _annotations_by_document(study: Study, annotator: str) -> dict[str, Annotation]:
    annotations = {
        annotation.document: annotation for annotation in study.iter_annotations() if annotation.annotator == annotator
    }
    if not annotations:
        authors = study.annotations["annotator"].unique(maintain_order=True)
        raise FinecombError(f"no annotations by {annotator!r}{did_you_mean(annotator, authors)}")
    return annotations
