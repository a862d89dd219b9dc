"""Folders with fitted detectors, stored as JSON, npz and safetensors, so that loading executes no code."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.model_loading import import_library
from finecomb.core.errors import FinecombError, ParameterError, param, shorten
from finecomb.core.guarded_json import load_json
from finecomb.engine.guarded_files import load_arrays, load_weights
from finecomb.version import __version__

Arrays = Mapping[str, NDArray[Any]]
CARD_FILE, SETTINGS_FILE, ARRAYS_FILE, WEIGHTS_FILE = "card.json", "settings.json", "arrays.npz", "weights.safetensors"


@dataclass(frozen=True, slots=True)
class DetectorCard:
    """The model card of a fitted detector."""

    detector: str
    data: str
    """Description of the training data with counts."""
    split: str
    """Description of the splits used for thresholds and for scores."""
    fitted_texts: tuple[str, ...]
    """Hashes of all texts used for training or thresholds."""
    signature: str
    figures: Sequence[Mapping[str, object]] = ()
    """Scores on held-out texts."""
    notes: tuple[str, ...] = ()
    version: str = __version__


@dataclass(frozen=True, slots=True)
class StoredModel:
    """The contents of a detector's folder."""

    card: DetectorCard
    settings: Mapping[str, Any]
    """Settings as JSON values."""
    arrays: Arrays = field(default_factory=dict)
    """Small arrays, stored as npz."""
    weights: Arrays = field(default_factory=dict)
    """Network weights, stored as safetensors with half precision."""

    def to_files(self) -> dict[str, bytes]:
        """Return the folder's files by name."""
        files = {CARD_FILE: _to_json_bytes(asdict(self.card)), SETTINGS_FILE: _to_json_bytes(self.settings)}
        if self.arrays:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, allow_pickle=False, **self.arrays)
            files[ARRAYS_FILE] = buffer.getvalue()
        if self.weights:
            halves = {
                name: np.ascontiguousarray(array.astype(np.float16) if array.dtype == np.float32 else array)
                for name, array in self.weights.items()
            }
            files[WEIGHTS_FILE] = import_library("safetensors.numpy", self.card.detector).save(halves)
        return files


def _to_json_bytes(value: object) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def read_model_folder(folder: Path | None, detector: str) -> StoredModel:
    """Read the stored model in a folder, or raise an error if it is missing or belongs to another detector."""
    if folder is None:
        raise ParameterError(
            f"{param('detector', detector)} must be fitted first; run"
            f" `finecomb train STUDY --detector {detector} -o FOLDER`, then pass {param('weights', 'FOLDER')}",
            parameter="weights",
        )
    if not (folder / CARD_FILE).is_file():
        raise FinecombError(
            f"{folder}: {CARD_FILE} is missing; expected a folder written by `finecomb train --detector {detector} -o`"
        )
    arrays: Arrays = {}
    try:
        card = load_json((folder / CARD_FILE).read_text(encoding="utf-8"))
        card = DetectorCard(**{**card, "fitted_texts": tuple(card["fitted_texts"]), "notes": tuple(card["notes"])})
        settings = load_json((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
        if (folder / ARRAYS_FILE).is_file():
            arrays = load_arrays(folder / ARRAYS_FILE)
        halves = load_weights(folder / WEIGHTS_FILE, detector) if (folder / WEIGHTS_FILE).is_file() else {}
    except FinecombError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FinecombError(f"{folder}: cannot read the detector ({shorten(str(error), 90)}); train it again") from None
    if card.detector != detector:
        raise FinecombError(
            f"{folder}: contains detector {card.detector!r}, not {detector!r}; pass "
            f"{param('detector', card.detector)} or another folder"
        )
    weights = {name: array.astype(np.float32) if array.dtype == np.float16 else array for name, array in halves.items()}
    return StoredModel(card, settings, arrays, weights)
