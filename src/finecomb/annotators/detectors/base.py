"""What every detector is: something made for a protocol that reads a document and returns what it would mark."""

from __future__ import annotations

import itertools
import logging
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from finecomb.core.estimate import Signature
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, AnnotatorKind, Document
from finecomb.core.study import Study

log = logging.getLogger(__name__)


class Detector(typing.Protocol):
    """Made for one protocol by its factory; reads a document and returns what it would mark."""

    signature: str
    """What made the marks: name, protocol, settings, version."""

    def __call__(self, document: Document) -> Annotation:
        """One pass over one document; never raises for what a document lacks, but says so in the annotation."""
        ...


@dataclass(frozen=True, slots=True)
class FittedDetector:
    """What fitting a detector gives: the file to use it with, and how well it does on texts it has not seen."""

    weights: str
    """The text of the file that `detect --weights` reads."""
    texts: int
    """How many texts it was fitted on."""
    title: str
    """What `rows` are about, e.g. `On games left out of fitting`."""
    rows: Sequence[dict[str, object]]
    """Recall, precision and the like on texts left out."""
    signature: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The files of a folder that `detect --weights` reads, by name, where one file is not enough."""
    notes: Sequence[str] = ()
    """What the user should hear, e.g. labels that were left out."""


@dataclass(frozen=True, slots=True)
class DetectorTraining:
    """How a detector is fitted to texts that people have checked."""

    options: type
    """A frozen dataclass (see `finecomb.core.options`): flags of `train` and arguments of `fit`."""
    fit: Callable[[Study, Sequence[Annotation], str, Any], FittedDetector]
    """From a study, its gold annotations, the name of the gold annotator ('' for those of kind gold), and options."""
    real: bool = False
    """Whether it is fitted on texts that count as coherent (`train --real`), which its options then hold in `texts`."""


@dataclass(frozen=True, slots=True)
class Factory:
    """A detector by name: what it needs, its options, how it is made and how it is fitted. A row of
    `detectors_by_name()`.
    """

    name: str
    """For `--detector`; also the id of its annotator."""
    title: str
    """What it does, in one line."""
    needs: str
    """What a document must have."""
    protocol: str
    """The shipped protocol whose labels it uses."""
    kind: AnnotatorKind
    """What sort of annotator it is."""
    options: type
    """A frozen dataclass (see `finecomb.core.options`): flags of `detect`, signature, argument of `make`."""
    make: Callable[[Protocol, Any], Detector]
    """From the protocol whose labels it uses and options of the type `options`."""
    training: DetectorTraining | None = None
    """None where there is nothing to fit."""
    protocol_of: Callable[[Any], str] | None = None
    """From options the protocol whose labels it uses, where that depends on what it was fitted on."""

    def annotator(self, signature: str, fitted_texts: Sequence[str] = (), id: str = "") -> Annotator:
        """The annotator that its annotations are by; `fitted_texts` are hashes of the texts it was fitted on.

        `id` is for detectors of which several may mark one study, as one for each critic; else it is the name.
        """
        fitted = {"fitted_texts": list(fitted_texts)} if fitted_texts else {}
        return Annotator(id=id or self.name, kind=self.kind, meta={"signature": signature, **fitted})


@typing.runtime_checkable
class BatchDetector(Detector, typing.Protocol):
    """A detector that is quicker with several documents at once."""

    def annotations(self, documents: Sequence[Document]) -> Iterator[Annotation]:
        """What it would mark in each, in order."""
        ...


BATCH_SIZE = 16
"""How many documents a batch detector gets at once."""


def detect(documents: Iterable[Document], detector: Detector) -> Iterator[Annotation]:
    """Annotations as they come; wrap `documents` in a progress bar if you want one."""
    for annotation in _annotate_documents(documents, detector):
        log.debug("%s: %d marks", annotation.document, len(annotation.marks))
        yield annotation


def _annotate_documents(documents: Iterable[Document], detector: Detector) -> Iterator[Annotation]:
    if not isinstance(detector, BatchDetector):
        yield from map(detector, documents)
        return
    remaining = iter(documents)
    while batch := list(itertools.islice(remaining, BATCH_SIZE)):
        yield from detector.annotations(batch)


def detector_signature(name: str, protocol: Protocol, options: Any, **facts: object) -> str:
    """What made the marks: the detector, its protocol, its options (files left out), further facts, the version."""
    values = {key: value for key, value in asdict(options).items() if value is not None and not isinstance(value, Path)}
    return str(Signature.from_fields(detector=name, protocol=protocol.id, **values, **facts))
