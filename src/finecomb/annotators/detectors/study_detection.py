"""A detector at work on a study: made from its options and the study's protocols, its marks as rows and as a study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from finecomb import protocols
from finecomb.annotators.detectors import Detector, DetectorTraining, Factory, detectors_by_name, find_detector
from finecomb.annotators.detectors.base import BatchDetector
from finecomb.annotators.detectors.batch_detection import DocumentMarking, MarkedCorpus
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.frames import parse_json_object
from finecomb.core.options import OptionValues, join_names, merge_option_specs, reject_unknown_options
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator
from finecomb.core.study import Study, StudyItem


@dataclass(frozen=True, slots=True)
class PreparedDetector:
    """A detector made for a study's protocol, with the annotator that its annotations are by."""

    factory: Factory
    options: Any
    protocol: Protocol
    program: Detector
    annotator: Annotator

    @property
    def document_marking(self) -> DocumentMarking:
        """The detector as work that can be sent to other processes."""
        uses_all_cores = isinstance(self.program, BatchDetector)
        return DocumentMarking(self.annotator.id, self.factory.make, self.protocol, self.options, uses_all_cores)


def prepare_detector(name: str, values: Mapping[str, Any], study_protocols: Mapping[str, Protocol]) -> PreparedDetector:
    """Make a detector; `values` are the options that the user gave, and those of other detectors are refused.

    It uses the study's own protocol of the name that it needs, or the shipped one.
    """
    factory = find_detector(name)
    choices = {row.name: row.options for row in detectors_by_name().values()}
    options = _build_options(values, {factory.name: factory.options}, choices)
    wanted = factory.protocol_of(options) if factory.protocol_of else factory.protocol
    candidates = [candidate for candidate in study_protocols.values() if candidate.name == wanted]
    protocol = candidates[-1] if candidates else protocols.load(wanted)
    program = factory.make(protocol, options)
    fitted_texts, id = getattr(program, "fitted_texts", ()), getattr(program, "annotator_id", "")
    return PreparedDetector(factory, options, protocol, program, factory.annotator(program.signature, fitted_texts, id))


def _build_options(values: Mapping[str, Any], chosen: Mapping[str, type], choices: Mapping[str, type]) -> Any:
    """Return the options of the one that is chosen; values that it or all choices do not have are refused."""
    known = merge_option_specs(choices.values())
    for name in values:
        if name not in known:
            raise ParameterError(f"no option is called {name!r}{did_you_mean(name, known)}", parameter="options")
    reject_unknown_options(values, chosen, choices)
    (options,) = chosen.values()
    return OptionValues(values).build_options(options)


def add_detector_work(
    study: Study, annotator: Annotator, protocol: Protocol, annotations: Iterable[Annotation]
) -> list[StudyItem]:
    """Return a study's records with the detector as one more annotator, whose earlier work under it is replaced."""
    names = dict.fromkeys([*study.settings.protocols, *study.protocols, protocol.id])
    settings = study.settings.model_copy(update={"protocols": tuple(names)})
    all_protocols = {**study.protocols, protocol.id: protocol}
    people = [person for person in study.iter_annotators() if person.id != annotator.id]
    others = [
        annotation
        for annotation in study.iter_annotations()
        if (annotation.annotator, annotation.protocol) != (annotator.id, protocol.id)
    ]
    return [settings, *all_protocols.values(), *study.iter_documents(), *people, annotator, *others, *annotations]


def mark_rows(annotations: Iterable[Annotation]) -> Iterator[dict[str, object]]:
    """Yield one row per mark: where it is, what it says, and how sure the detector is."""
    for annotation in annotations:
        for mark in annotation.marks:
            yield {
                "document": annotation.document,
                "label": mark.label,
                "quote": " … ".join(mark.quotes),
                "basis": mark.basis,
                "confidence": mark.confidence,
                "correction": mark.answers.get("correction", ""),
                "comment": mark.answers.get("comment", ""),
            }


def problem_notes(corpus: MarkedCorpus) -> list[str]:
    """Return a note for each reason why texts could not be checked or have odd records."""
    reasons: dict[str, list[str]] = {}
    odd = pl.col("excluded").is_not_null() | pl.col("meta").str.contains('"problems"', literal=True)
    rows = corpus.table("annotations").filter(odd).select("document", "excluded", "meta").collect(engine="streaming")
    for document, excluded, meta in rows.iter_rows():
        problems = parse_json_object(meta).get("problems", [])
        texts = [str(problem) for problem in problems] if isinstance(problems, list) else []
        for reason in [str(parse_json_object(excluded)["reason"])] if excluded else texts:
            reasons.setdefault(reason, []).append(document)
    return [
        f"{len(where):,} text{'' if len(where) == 1 else 's'} "
        f"({', '.join(where[:3])}{', ...' if len(where) > 3 else ''}): {reason}"
        for reason, where in reasons.items()
    ]


# --- training --------------------------------------------------------------------------------------------------------


def training_by_detector() -> dict[str, DetectorTraining]:
    """Return how detectors are fitted, by name, of those that can be."""
    return {factory.name: factory.training for factory in detectors_by_name().values() if factory.training}


def find_training(name: str) -> DetectorTraining:
    """Return how a detector is fitted; one that has nothing to fit is refused."""
    factory = find_detector(name)
    if factory.training is None:
        raise ParameterError(
            f"{param('detector', name)}: has nothing to fit; {join_names(training_by_detector())} can be fitted",
            parameter="detector",
        )
    return factory.training


def build_training_options(name: str, values: Mapping[str, Any], real_texts: Iterable[str] | None = None) -> Any:
    """Return a detector's training options; `real_texts` are texts that count as coherent."""
    training = find_training(name)
    choices = {other: row.options for other, row in training_by_detector().items()}
    options = _build_options(values, {name: training.options}, choices)
    return options if real_texts is None else replace(options, texts=tuple(real_texts))


def require_real_texts(name: str) -> None:
    """Refuse texts that count as coherent for a detector that is not fitted on them."""
    if not find_training(name).real:
        owners = join_names(other for other, row in training_by_detector().items() if row.real)
        raise ParameterError(f"{param('real')} does not apply to {name}; it applies to {owners}", parameter="real")


def gold_annotations(study: Study, name: str) -> list[Annotation]:
    """Return the submitted annotations of the gold annotator called `name`, or of all of kind gold."""
    kinds = {annotator.id: annotator.kind for annotator in study.iter_annotators()}
    if name and name not in kinds:
        raise ParameterError(f"no annotator is called {name!r}{did_you_mean(name, kinds)}", parameter="gold")
    wanted = {name} if name else {id for id, kind in kinds.items() if kind == "gold"}
    if not wanted:
        raise FinecombError(f"the study has no annotator of kind gold; say who is with {param('gold')}")
    return [annotation for annotation in study.submitted_work().iter_annotations() if annotation.annotator in wanted]
