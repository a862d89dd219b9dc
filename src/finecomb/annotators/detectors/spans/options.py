"""Options of the span classifier for `train` and `detect`."""

from __future__ import annotations

from dataclasses import dataclass

from finecomb.annotators.detectors.coherence.options import SplitOptions
from finecomb.annotators.model_loading import DEFAULT_ENCODER
from finecomb.core.options import option_field


@dataclass(frozen=True, slots=True)
class SpanTrainingOptions(SplitOptions):
    """Options for training the span classifier."""

    encoder: str = option_field(DEFAULT_ENCODER)
    tune: bool = option_field(False)
    epochs: int = option_field(20, minimum=1)
