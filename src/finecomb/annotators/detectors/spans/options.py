"""Options of the span classifier: flags of `train` and `detect`."""

from __future__ import annotations

from dataclasses import dataclass

from finecomb.annotators.detectors.coherence.options import SplitOptions
from finecomb.annotators.model_loading import DEFAULT_ENCODER
from finecomb.core.options import option


@dataclass(frozen=True, slots=True)
class SpanTrainingOptions(SplitOptions):
    """Options of fitting the span classifier."""

    encoder: str = option(DEFAULT_ENCODER, "The encoder, by public name or folder.")
    tune: bool = option(False, "Fine-tune the encoder too, as the paper does; slower.")
    epochs: int = option(20, "How often it sees each text.", minimum=1)
