"""Options of the SNaC detectors for `train` and `detect`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from finecomb.annotators.model_loading import DEFAULT_CAUSAL_MODEL, DEFAULT_ENCODER
from finecomb.core.errors import ParameterError, param
from finecomb.core.options import option_field

NO_MODEL = "none"
DEV_SHARE = 0.1
"""Share of the groups outside a test fold that is reserved for fitting thresholds."""


def _check_threshold(threshold: float | None) -> None:
    if threshold is not None and not 0 <= threshold <= 1:
        raise ParameterError(f"{param('threshold')} must be from 0 to 1, found {threshold:g}", parameter="threshold")


@dataclass(frozen=True, slots=True)
class SentenceDetectorOptions:
    """Options for running a fitted detector."""

    weights: Path | None = option_field(None)
    threshold: float | None = option_field(None)

    def __post_init__(self) -> None:
        _check_threshold(self.threshold)


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """Options for grouping texts and for held-out evaluation."""

    group: str = option_field("")
    test_folds: int = option_field(3, minimum=0)
    seed: int = option_field(0)


@dataclass(frozen=True, slots=True)
class CoherenceOptions(SplitOptions):
    """Options for training the default coherence detector."""

    spans: bool = option_field(True)
    encoder: str = option_field(DEFAULT_ENCODER)
    surprisal: str = option_field(NO_MODEL)
    segments: bool = option_field(True)
    epochs: int = option_field(3, minimum=1)


@dataclass(frozen=True, slots=True)
class SurprisalOptions(SplitOptions):
    """Options for fitting the surprisal threshold."""

    model: str = option_field(DEFAULT_CAUSAL_MODEL)
    per: Literal["token", "sentence"] = option_field("token")


@dataclass(frozen=True, slots=True)
class EntityGridOptions(SplitOptions):
    """Options for fitting an entity grid."""

    texts: tuple[str, ...] = ()
    """Coherent texts from `--real`. If empty, the texts of the study are used."""


@dataclass(frozen=True, slots=True)
class SyntheticOptions(SplitOptions):
    """Options for training a classifier on synthetic errors."""

    texts: tuple[str, ...] = ()
    """Coherent texts from `--real`. If empty, the texts of the study are used."""
    negatives: Literal["coreference", "next-sentence"] = option_field("coreference")


@dataclass(frozen=True, slots=True)
class SequenceOptions(SplitOptions):
    """Options for fine-tuning a Hugging Face model in the paper's format."""

    model: str = option_field(DEFAULT_ENCODER)
    form: Literal["encoder", "seq2seq"] = option_field("encoder")
    spans: bool = option_field(True)
    epochs: int = option_field(5, minimum=1)
    test_folds: int = option_field(0, minimum=0)
