"""The interface of detectors, their factories and their training."""

from __future__ import annotations

import itertools
import logging
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, AnnotatorKind, Document
from finecomb.core.results import Signature
from finecomb.core.study import Study

log = logging.getLogger(__name__)


class Detector(typing.Protocol):
    """A function that annotates documents under one protocol."""

    signature: str
    """Name, protocol, settings and version of the detector."""

    def __call__(self, document: Document) -> Annotation:
        """Annotate one document. Missing data is reported in the annotation and never raises an error."""
        ...


@dataclass(frozen=True, slots=True)
class FittedDetector:
    """A fitted detector with its scores on held-out texts."""

    weights: str
    """Contents of the file that `detect --weights` reads."""
    texts: int
    """Number of texts used for fitting."""
    title: str
    """Title of `rows`, for example `Scores on held-out games`."""
    rows: Sequence[dict[str, object]]
    """Recall, precision and other scores on held-out texts."""
    signature: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Contents of the folder that `detect --weights` reads, by file name, for detectors that need several files."""
    notes: Sequence[str] = ()
    """Notes for the user, for example about omitted labels."""


@dataclass(frozen=True, slots=True)
class DetectorTraining:
    """The training of a detector on texts with gold annotations."""

    options: type
    """Frozen dataclass of the training options (see `finecomb.core.options`), set with `train` and passed to `fit`."""
    fit: Callable[[Study, Sequence[Annotation], str, Any], FittedDetector]
    """Function that fits a detector to a study and gold annotations by one annotator ('' for all), with options."""
    real: bool = False
    """True if training uses the coherent texts of `train --real`, which are passed to `fit` in the option `texts`."""


@dataclass(frozen=True, slots=True)
class DetectorFactory:
    """A detector's name, requirements, options, constructor and training, as listed in `DETECTORS`."""

    name: str
    """Name for `--detector`, also the ID of the annotator."""
    title: str
    """Description in one line."""
    needs: str
    """Requirements that documents must meet."""
    protocol: str
    """Name of the shipped protocol whose labels the detector uses."""
    kind: AnnotatorKind
    """Kind of the annotator."""
    options: type
    """Frozen dataclass of the options (see `finecomb.core.options`), passed to `make` and stored in the signature."""
    make: Callable[[Protocol, Any], Detector]
    """Function that builds the detector from a protocol and options."""
    training: DetectorTraining | None = None
    """Training of the detector, or None if the detector cannot be trained."""
    protocol_of: Callable[[Any], str] | None = None
    """Function that returns the name of the protocol, given the options, if the labels depend on the training data."""

    def build_annotator(self, signature: str, fitted_texts: Sequence[str] = (), id: str = "") -> Annotator:
        """Build the annotator record. `fitted_texts` are hashes of the training texts.

        `id` replaces the name for detectors that can annotate a study several times, for example once per critic.
        """
        fitted = {"fitted_texts": list(fitted_texts)} if fitted_texts else {}
        return Annotator(id=id or self.name, kind=self.kind, meta={"signature": signature, **fitted})


@typing.runtime_checkable
class BatchDetector(Detector, typing.Protocol):
    """A detector that is faster on several documents at once."""

    def annotations(self, documents: Sequence[Document]) -> Iterator[Annotation]:
        """Yield the annotation of each document, in order."""
        ...


BATCH_SIZE = 16
"""Number of documents per batch."""


def detect(documents: Iterable[Document], detector: Detector) -> Iterator[Annotation]:
    """Yield the annotation of each document as soon as it is available."""
    annotations: Iterable[Annotation] = ()
    if isinstance(detector, BatchDetector):
        remaining = iter(documents)
        batches = iter(lambda: list(itertools.islice(remaining, BATCH_SIZE)), [])
        annotations = itertools.chain.from_iterable(map(detector.annotations, batches))
    else:
        annotations = map(detector, documents)
    for annotation in annotations:
        log.debug("%s: %d marks", annotation.document, len(annotation.marks))
        yield annotation


def detector_signature(name: str, protocol: Protocol, options: Any, **facts: object) -> str:
    """Return a detector's signature: its name, protocol, options (except files), additional `facts` and version."""
    values = {key: value for key, value in asdict(options).items() if value is not None and not isinstance(value, Path)}
    return str(Signature.from_fields(detector=name, protocol=protocol.id, **values, **facts))
