"""Options of SNaC's detectors: flags of `train` and `detect`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from finecomb.annotators.model_loading import DEFAULT_CAUSAL_MODEL, DEFAULT_ENCODER
from finecomb.core.errors import ParameterError, param
from finecomb.core.options import option

NO_MODEL = "none"
DEV_SHARE = 0.1
"""The share of the groups outside a test that thresholds come from."""


def _check_threshold(threshold: float | None) -> None:
    if threshold is not None and not 0 <= threshold <= 1:
        raise ParameterError(
            f"{param('threshold', f'{threshold:g}')}: how sure to be is a number from 0 to 1", parameter="threshold"
        )


@dataclass(frozen=True, slots=True)
class SentenceDetectorOptions:
    """Options of using a fitted detector of sentences."""

    weights: Path | None = option(None, "What `train` wrote.")
    threshold: float | None = option(None, "Mark only what is at least this sure, from 0 to 1.")

    def __post_init__(self) -> None:
        _check_threshold(self.threshold)


@dataclass(frozen=True, slots=True)
class SplitOptions:
    """Which texts stay together, and how many are left out to see how well a detector does."""

    group: str = option("", "Document meta: texts with one value of it, e.g. of one book, are never split.")
    test_folds: int = option(3, "Groups of texts, each left out once to see how well it does; 0: none.", minimum=0)
    seed: int = option(0, "Same seed, same folds.")


@dataclass(frozen=True, slots=True)
class CoherenceOptions(SplitOptions):
    """Options of fitting the embedded detector."""

    spans: bool = option(True, "Learn types and spans too; without, only whether a sentence is coherent.")
    encoder: str = option(
        DEFAULT_ENCODER, "The encoder that is fine-tuned, by public name or folder; none: features alone."
    )
    surprisal: str = option(
        NO_MODEL, f"A causal language model whose surprisal is a feature, e.g. {DEFAULT_CAUSAL_MODEL}."
    )
    segments: bool = option(True, "Let it know where segments begin.")
    epochs: int = option(3, "How often the encoder sees each text.", minimum=1)


@dataclass(frozen=True, slots=True)
class SurprisalOptions(SplitOptions):
    """Options of fitting the threshold of surprisal."""

    model: str = option(DEFAULT_CAUSAL_MODEL, "A Hugging Face model by name, or a folder.")
    per: Literal["token", "sentence"] = option("token", "Mean over a sentence's tokens, or the sum: -log P(s|c).")


@dataclass(frozen=True, slots=True)
class EntityGridOptions(SplitOptions):
    """Options of fitting an entity grid."""

    texts: tuple[str, ...] = ()
    """Coherent texts, from `--real`; those of the study where there are none."""


@dataclass(frozen=True, slots=True)
class SyntheticOptions(SplitOptions):
    """Options of fitting a classifier to made-up errors."""

    texts: tuple[str, ...] = ()
    """Coherent texts, from `--real`; those of the study where there are none."""
    negatives: Literal["coreference", "next-sentence"] = option(
        "coreference", "How errors are made: a first mention taken away, or a later sentence put next."
    )


@dataclass(frozen=True, slots=True)
class SequenceOptions(SplitOptions):
    """Options of fine-tuning a Hugging Face model in the paper's format."""

    model: str = option(DEFAULT_ENCODER, "A Hugging Face model by name, or a folder.")
    form: Literal["encoder", "seq2seq"] = option("encoder", "A head on an encoder, or a model that writes its verdict.")
    spans: bool = option(True, "Learn types and spans too; without, only whether a sentence is coherent.")
    epochs: int = option(5, "How often it sees each sentence (Table 9: 5).", minimum=1)
    test_folds: int = option(0, "Groups of texts, each left out once to see how well it does; 0: none.", minimum=0)
