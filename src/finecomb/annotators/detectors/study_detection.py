"""Running and training detectors on a study: options, protocols, result rows and updated records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from finecomb import protocols
from finecomb.annotators.detectors import (
    DETECTORS,
    Detector,
    DetectorFactory,
    DetectorTraining,
    find_detector_factory,
)
from finecomb.annotators.detectors.base import BatchDetector
from finecomb.annotators.detectors.batch_detection import DetectionTask, MarkedCorpus
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.frames import parse_json_object
from finecomb.core.options import OptionValues, join_names, merge_option_specs, reject_unknown_options
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator
from finecomb.core.study import Study, StudyItem, merge_work


@dataclass(frozen=True, slots=True)
class PreparedDetector:
    """A detector built for a study's protocol, with its annotator record."""

    factory: DetectorFactory
    options: Any
    protocol: Protocol
    program: Detector
    annotator: Annotator

    @property
    def detection_task(self) -> DetectionTask:
        """The detector as a task for worker processes."""
        uses_all_cores = isinstance(self.program, BatchDetector)
        return DetectionTask(self.annotator.id, self.factory.make, self.protocol, self.options, uses_all_cores)


def prepare_detector(name: str, values: Mapping[str, Any], study_protocols: Mapping[str, Protocol]) -> PreparedDetector:
    """Build a detector from the user's options in `values`, rejecting options of other detectors.

    If the study has a protocol of the required name, the detector uses it, otherwise the shipped protocol.
    """
    factory = find_detector_factory(name)
    choices = {row.name: row.options for row in DETECTORS.values()}
    options = _build_checked_options(values, {factory.name: factory.options}, choices)
    wanted = factory.protocol_of(options) if factory.protocol_of else factory.protocol
    candidates = [candidate for candidate in study_protocols.values() if candidate.name == wanted]
    protocol = candidates[-1] if candidates else protocols.load(wanted)
    program = factory.make(protocol, options)
    fitted_texts, id = getattr(program, "fitted_texts", ()), getattr(program, "annotator_id", "")
    return PreparedDetector(
        factory, options, protocol, program, factory.build_annotator(program.signature, fitted_texts, id)
    )


def _build_checked_options(values: Mapping[str, Any], chosen: Mapping[str, type], choices: Mapping[str, type]) -> Any:
    """Build the options of the chosen detector. Options that this detector does not have are rejected."""
    known = merge_option_specs(choices.values())
    for name in values:
        if name not in known:
            raise ParameterError(f"unknown option {name!r}{did_you_mean(name, known)}", parameter="options")
    reject_unknown_options(values, chosen, choices)
    (options,) = chosen.values()
    return OptionValues(values).build_options(options)


def add_detector_annotations(
    study: Study, annotator: Annotator, protocol: Protocol, annotations: Iterable[Annotation]
) -> list[StudyItem]:
    """Return a study's records with the detector's annotations, which replace its earlier ones under the protocol."""
    is_earlier = (pl.col("annotator") == annotator.id) & (pl.col("protocol") == protocol.id)
    return merge_work(study.filter_annotations(~is_earlier), [protocol, annotator, *annotations], replace=True)


def detector_mark_rows(annotations: Iterable[Annotation]) -> Iterator[dict[str, object]]:
    """Yield one row per mark with its position, answers and confidence."""
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


def detection_problem_notes(corpus: MarkedCorpus) -> list[str]:
    """Return a note for each reason for exclusion and each problem of a record, with the IDs of affected texts."""
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
    """Return the training of each trainable detector by name."""
    return {factory.name: factory.training for factory in DETECTORS.values() if factory.training}


def find_training(name: str) -> DetectorTraining:
    """Return the training of a detector, or raise an error if it cannot be trained."""
    factory = find_detector_factory(name)
    if factory.training is None:
        raise ParameterError(
            f"{param('detector', name)} cannot be trained; trainable detectors: {join_names(training_by_detector())}",
            parameter="detector",
        )
    return factory.training


def build_training_options(name: str, values: Mapping[str, Any], real_texts: Iterable[str] | None = None) -> Any:
    """Build a detector's training options. `real_texts` are texts that count as coherent."""
    training = find_training(name)
    choices = {other: row.options for other, row in training_by_detector().items()}
    options = _build_checked_options(values, {name: training.options}, choices)
    return options if real_texts is None else replace(options, texts=tuple(real_texts))


def require_real_texts(name: str) -> None:
    """Raise an error if the detector's training does not use coherent texts."""
    if not find_training(name).real:
        owners = join_names(other for other, row in training_by_detector().items() if row.real)
        raise ParameterError(f"{param('real')} does not apply to {name}; it applies to {owners}", parameter="real")


def submitted_gold_annotations(study: Study, name: str) -> list[Annotation]:
    """Return the submitted annotations of the annotator `name`, or of all gold annotators if `name` is empty."""
    kinds = {annotator.id: annotator.kind for annotator in study.iter_annotators()}
    if name and name not in kinds:
        raise ParameterError(f"unknown annotator {name!r}{did_you_mean(name, kinds)}", parameter="gold")
    wanted = {name} if name else {id for id, kind in kinds.items() if kind == "gold"}
    if not wanted:
        raise FinecombError(
            f"the study has no annotator of kind gold; name the annotator to train on with {param('gold')}"
        )
    return [annotation for annotation in study.submitted_work().iter_annotations() if annotation.annotator in wanted]
