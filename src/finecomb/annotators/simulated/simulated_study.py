"""Studies with simulated annotators over known true errors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from finecomb.annotators.simulated.simulated_annotators import SimulatedAnnotator, plant_errors, simulate_annotations
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotator
from finecomb.core.study import Study, StudyItem


@dataclass(frozen=True, slots=True)
class SimulatedStudy:
    """The records of a simulated study, generated lazily."""

    items: Iterator[StudyItem]
    truth: str
    """ID of the annotator whose marks are the true errors."""


def simulate_study(
    study: Study, protocol: Protocol, people: Sequence[SimulatedAnnotator], truth: str, errors_per_100: float, seed: int
) -> SimulatedStudy:
    """Simulate annotations of a study's texts.

    The true errors are the marks of annotator `truth`. If `truth` is empty, `errors_per_100` errors per 100 words are
    planted.
    """
    documents = list(study.iter_documents())
    if truth:
        true_errors = {
            annotation.document: annotation for annotation in study.iter_annotations() if annotation.annotator == truth
        }
        if not true_errors:
            authors = study.annotations["annotator"].unique(maintain_order=True)
            raise FinecombError(f"annotator {truth!r} has no annotations{did_you_mean(truth, authors)}")
    else:
        planted = plant_errors(documents, protocol, errors_per_100, seed)
        true_errors = {annotation.document: annotation for annotation in planted}
    owner = next((item for item in study.iter_annotators() if item.id == truth), Annotator(id="truth", kind="gold"))
    settings = study.settings.model_copy(update={"protocols": (protocol.id,), "annotators": len(people), "seed": seed})
    head: list[StudyItem] = [settings, protocol, *documents, owner, *(person.to_annotator() for person in people)]
    annotations = simulate_annotations(documents, true_errors, people, protocol, seed)
    return SimulatedStudy(itertools.chain(head, true_errors.values(), annotations), owner.id)
