"""Other people in the place of those who took part: the same texts, read anew with known skill.

So a planned test can be repeated as often as one likes without anybody walking the server again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finecomb.annotators.simulated.simulated_people import (
    CrowdTraits,
    SimulatedPerson,
    SimulatedResponse,
    ground_truth,
    simulate_response,
)
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Study, StudyItem


def resimulate_study(study: Study, protocol: Protocol, traits: CrowdTraits, seed: int, run: int) -> Iterator[StudyItem]:
    """A study with the same people and texts whose accepted work was done anew; `run` names the repetition.

    What is true of each text depends on the seed alone. Nobody copies and nobody is careless: their work was rejected.
    """
    people = {person.id: person for person in study.iter_annotators()}
    documents = {document.id: document for document in study.iter_documents()}
    gold = _gold_by_document(study, people)
    numbers = {id: number for number, id in enumerate(people, 1)}
    for item in study.items():
        if not isinstance(item, Annotation) or people[item.annotator].kind != "human":
            yield item
        elif _is_accepted_work(item, people[item.annotator]):
            person = SimulatedPerson(numbers[item.annotator], "careful", None, _run_seed(seed, run))
            document = documents[item.document]
            yield _resimulate_annotation(
                item, person, traits, people[item.annotator].condition, document, protocol, gold, seed
            )


def _gold_by_document(study: Study, people: Mapping[str, Annotator]) -> dict[str, Annotation]:
    return {one.document: one for one in study.iter_annotations() if people[one.annotator].kind == "gold"}


def _is_accepted_work(annotation: Annotation, person: Annotator) -> bool:
    is_work = annotation.phase == "work" and annotation.status == "submitted"
    return is_work and annotation.excluded is None and person.excluded is None


def _run_seed(seed: int, run: int) -> int:
    return seed * 1_000_003 + run + 1


def _resimulate_annotation(
    annotation: Annotation,
    person: SimulatedPerson,
    traits: CrowdTraits,
    condition: str,
    document: Document,
    protocol: Protocol,
    gold: Mapping[str, Annotation],
    seed: int,
) -> Annotation:
    parts = [f"{unit.start}-{unit.end}" for unit in annotation.units]
    truth = ground_truth(document, protocol, parts, gold.get(document.id), seed, annotation.about or "")
    return _apply_response(annotation, simulate_response(person, traits, condition, document, protocol, truth))


def _apply_response(annotation: Annotation, reading: SimulatedResponse) -> Annotation:
    marks = tuple(
        mark.model_copy(update={"id": f"{annotation.id}-{number}"}) for number, mark in enumerate(reading.marks)
    )
    units = tuple(
        unit.model_copy(update={"answers": reading.units.get(f"{unit.start}-{unit.end}", {})})
        for unit in annotation.units
    )
    return annotation.model_copy(update={"marks": marks, "units": units, "answers": reading.answers})
