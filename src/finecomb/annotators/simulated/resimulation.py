"""Resimulation of a study: the same texts and assignments, answered again by simulated participants of known skill.

Planned tests can thus be repeated many times without running participants through the server again.
"""

from __future__ import annotations

from collections.abc import Iterator

from finecomb.annotators.simulated.simulated_people import (
    CrowdTraits,
    SimulatedPerson,
    build_ground_truth,
    simulate_response,
)
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation
from finecomb.core.study import Study, StudyItem


def resimulate_study(study: Study, protocol: Protocol, traits: CrowdTraits, seed: int, run: int) -> Iterator[StudyItem]:
    """Yield a study's records with its accepted annotations simulated again; `run` numbers the repetition.

    The ground truth of each text depends only on the seed. All simulated participants are careful, because the work of
    those who copy or are careless was rejected.
    """
    people = {person.id: person for person in study.iter_annotators()}
    documents = {document.id: document for document in study.iter_documents()}
    gold = {
        annotation.document: annotation
        for annotation in study.iter_annotations()
        if people[annotation.annotator].kind == "gold"
    }
    numbers = {id: number for number, id in enumerate(people, 1)}
    for item in study.items():
        if not isinstance(item, Annotation) or people[item.annotator].kind != "human":
            yield item
            continue
        is_work = item.phase == "work" and item.status == "submitted"
        if is_work and item.excluded is None and people[item.annotator].excluded is None:
            person = SimulatedPerson(numbers[item.annotator], "careful", None, seed * 1_000_003 + run + 1)
            document = documents[item.document]
            parts = [f"{unit.start}-{unit.end}" for unit in item.units]
            truth = build_ground_truth(document, protocol, parts, gold.get(document.id), seed, item.about or "")
            reading = simulate_response(person, traits, people[item.annotator].condition, document, protocol, truth)
            marks = tuple(
                mark.model_copy(update={"id": f"{item.id}-{number}"}) for number, mark in enumerate(reading.marks)
            )
            units = tuple(
                unit.model_copy(update={"answers": reading.units.get(f"{unit.start}-{unit.end}", {})})
                for unit in item.units
            )
            yield item.model_copy(update={"marks": marks, "units": units, "answers": reading.answers})
