"""Tests of stored detectors: folders without code, and clear errors for other folders."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from finecomb.annotators.detectors.model_folder import DetectorCard, StoredModel, read_model_folder
from finecomb.core.errors import FinecombError

CARD = DetectorCard("toy", "2 texts", "none", ("ab", "cd"), "detector:toy", ({"label": "x", "f1": 0.5},))


def written(folder: Path, model: StoredModel) -> Path:
    folder.mkdir()
    for name, content in model.to_files().items():
        (folder / name).write_bytes(content)
    return folder


def test_a_folder_comes_back_as_it_was(tmp_path: Path) -> None:
    folder = written(tmp_path / "toy", StoredModel(CARD, {"labels": ["x"]}, {"a": np.arange(3)}))
    stored = read_model_folder(folder, "toy")
    assert stored.card.fitted_texts == ("ab", "cd")
    assert stored.settings == {"labels": ["x"]}
    assert stored.arrays["a"].tolist() == [0, 1, 2]


def test_half_precision_weights_come_back_as_single(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    weights = {"w": np.array([0.5, 1.25], dtype=np.float32), "n": np.array([3])}
    stored = read_model_folder(written(tmp_path / "toy", StoredModel(CARD, {}, {}, weights)), "toy")
    assert stored.weights["w"].dtype == np.float32
    assert stored.weights["w"].tolist() == [0.5, 1.25]
    assert stored.weights["n"].tolist() == [3]


@pytest.mark.parametrize("damage", ["no card", "other detector", "broken json", "pickled arrays", "none given"])
def test_what_is_no_detector_is_refused_in_one_line(tmp_path: Path, damage: str) -> None:
    folder: Path | None = written(tmp_path / "toy", StoredModel(CARD, {}, {"a": np.arange(3)}))
    assert folder is not None
    if damage == "no card":
        (folder / "card.json").unlink()
    elif damage == "other detector":
        card = json.loads((folder / "card.json").read_text())
        (folder / "card.json").write_text(json.dumps({**card, "detector": "spans"}))
    elif damage == "broken json":
        (folder / "settings.json").write_text("{")
    elif damage == "pickled arrays":
        (folder / "arrays.npz").write_bytes(pickle.dumps(np.array([print], dtype=object)))
    else:
        folder = None
    with pytest.raises(FinecombError) as error:
        read_model_folder(folder, "toy")
    assert "\n" not in str(error.value)
    assert "toy" in str(error.value)
