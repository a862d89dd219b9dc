"""Fitted detectors as folders: JSON, npz and safetensors, never pickle; reading one imports nothing that it names."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.model_loading import import_library
from finecomb.core.errors import FinecombError, ParameterError, param, shorten
from finecomb.version import __version__

Arrays = Mapping[str, NDArray[Any]]
CARD_FILE, SETTINGS_FILE, ARRAYS_FILE, WEIGHTS_FILE = "card.json", "settings.json", "arrays.npz", "weights.safetensors"


@dataclass(frozen=True, slots=True)
class DetectorCard:
    """What a reader should know about a fitted detector before trusting it."""

    detector: str
    data: str
    """What it was fitted on, in words and numbers."""
    split: str
    """How texts were set apart for thresholds and for figures."""
    fitted_texts: tuple[str, ...]
    """Hashes of every text that it saw, those for thresholds too."""
    signature: str
    figures: Sequence[Mapping[str, object]] = ()
    """How it did on texts that were left out."""
    notes: tuple[str, ...] = ()
    version: str = __version__


@dataclass(frozen=True, slots=True)
class StoredModel:
    """What a folder holds."""

    card: DetectorCard
    settings: Mapping[str, Any]
    """Names, numbers and choices."""
    arrays: Arrays = field(default_factory=dict)
    """Small arrays, in npz."""
    weights: Arrays = field(default_factory=dict)
    """Weights of a network, in safetensors, with half precision."""

    def to_files(self) -> dict[str, bytes]:
        """The folder's files by name."""
        files = {CARD_FILE: _json(asdict(self.card)), SETTINGS_FILE: _json(self.settings)}
        if self.arrays:
            buffer = io.BytesIO()
            np.savez_compressed(buffer, allow_pickle=False, **self.arrays)
            files[ARRAYS_FILE] = buffer.getvalue()
        if self.weights:
            halves = {name: _to_half_precision(array) for name, array in self.weights.items()}
            files[WEIGHTS_FILE] = import_library("safetensors.numpy", self.card.detector).save(halves)
        return files


def _to_half_precision(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array.astype(np.float16) if array.dtype == np.float32 else array)


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def read_model_folder(folder: Path | None, detector: str) -> StoredModel:
    """The stored model in a folder; an error with the way out where it is none of this detector's."""
    if folder is None:
        raise ParameterError(
            f"{param('detector', detector)}: has to be fitted first;"
            f" `finecomb train STUDY --detector {detector} -o FOLDER`, then {param('weights', 'FOLDER')}",
            parameter="weights",
        )
    if not (folder / CARD_FILE).is_file():
        raise FinecombError(f"{folder}: is no folder that `finecomb train --detector {detector} -o` wrote")
    try:
        card = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
        card = DetectorCard(**{**card, "fitted_texts": tuple(card["fitted_texts"]), "notes": tuple(card["notes"])})
        settings = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
        arrays = _read_arrays(folder / ARRAYS_FILE)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise FinecombError(f"{folder}: cannot be read as a detector ({shorten(str(error), 90)})") from None
    if card.detector != detector:
        raise FinecombError(f"{folder}: was made for {param('detector', card.detector)}, not for {detector}")
    return StoredModel(card, settings, arrays, _read_weights(folder / WEIGHTS_FILE, detector))


def _read_arrays(file: Path) -> Arrays:
    if not file.is_file():
        return {}
    with np.load(file, allow_pickle=False) as stored:
        return dict(stored)


def _read_weights(file: Path, detector: str) -> Arrays:
    if not file.is_file():
        return {}
    stored: Arrays = import_library("safetensors.numpy", detector).load_file(file)
    return {name: array.astype(np.float32) if array.dtype == np.float16 else array for name, array in stored.items()}
