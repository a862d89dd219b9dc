"""What every detector is: something made for a protocol that reads a document and returns what it would mark."""

from __future__ import annotations

import logging
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Kind

log = logging.getLogger(__name__)
Basis = Literal["record", "all"]


class Detector(typing.Protocol):
    """Made for one protocol by its factory; reads a document and returns what it would mark."""

    signature: str
    """What made the marks: name, protocol, settings, version."""

    def __call__(self, document: Document) -> Annotation:
        """One pass over one document; never raises for what a document lacks, but says so in the annotation."""
        ...


@dataclass(frozen=True, slots=True)
class DetectorOptions:
    """What a user may say about a detector beyond its name."""

    threshold: float | None = None
    """Report only what is at least this sure; the detector's own choice when None."""
    basis: Basis = "all"
    """`record`: only what the data proves, nothing that is merely likely."""
    weights: Path | None = None
    """What `train` has written, instead of the weights that come with Finecomb."""


@dataclass(frozen=True, slots=True)
class Factory:
    """A detector by name: what it needs, and how it is made."""

    name: str
    """For `--detector`; also the id of its annotator."""
    title: str
    """What it does, in one line."""
    needs: str
    """What a document must have."""
    protocol: str
    """The shipped protocol whose labels it uses."""
    kind: Kind
    """What sort of annotator it is."""
    make: Callable[[Protocol, DetectorOptions], Detector]

    def annotator(self, signature: str) -> Annotator:
        """The annotator that its annotations are by."""
        return Annotator(id=self.name, kind=self.kind, meta={"signature": signature})


def detect(documents: Iterable[Document], detector: Detector) -> Iterator[Annotation]:
    """Annotations as they come; wrap `documents` in a progress bar if you want one."""
    for document in documents:
        annotation = detector(document)
        log.debug("%s: %d marks", document.id, len(annotation.marks))
        yield annotation
