"""Tests of the span classifier with a tiny encoder: it learns a word, survives storage, and uses its fitted labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from finecomb.annotators.detectors import find_detector_factory
from finecomb.annotators.detectors.coherence.options import SentenceDetectorOptions
from finecomb.annotators.detectors.spans.options import SpanTrainingOptions
from finecomb.annotators.detectors.spans.training import collect_span_texts
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.protocols import load_shipped
from tests.annotators.detectors import tiny_models

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def study(texts: int = 9) -> Study:
    """Build texts in which each `letter` is marked."""
    items: list[object] = [load_shipped("snac"), Annotator(id="gold", kind="gold")]
    for number in range(texts):
        text = f"Nora waits . {'She opens the letter . ' * (number + 1)}Emil leaves the garden ."
        starts = [at for at in range(len(text)) if text.startswith("letter", at)]
        marks = tuple(
            Mark(id=f"{number}/{at}", spans=(Span(at, at + 6),), quotes=("letter",), label="ref") for at in starts
        )
        items.append(Document(id=f"d{number}", text=text))
        items.append(
            Annotation(id=f"g{number}", document=f"d{number}", annotator="gold", protocol="snac@1", marks=marks)
        )
    return Study.from_items(items)  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.parametrize("tune", [False, True])
def test_it_learns_is_stored_and_marks(tmp_path: Path, tune: bool) -> None:
    options = SpanTrainingOptions(
        encoder=tiny_models.save_encoder(tmp_path / "encoder"), epochs=60, test_folds=2, tune=tune
    )
    training = find_detector_factory("spans").training
    assert training is not None
    fitted = training.fit(study(), list(study().iter_annotations()), "", options)
    assert [row["label"] for row in fitted.rows] == ["ref"]
    assert ("weights.safetensors" in fitted.files) is tune
    folder = tmp_path / "model"
    folder.mkdir()
    for name, content in fitted.files.items():
        (folder / name).write_bytes(content)
    values = SentenceDetectorOptions(folder)
    factory = find_detector_factory("spans")
    assert factory.protocol_of is not None
    assert factory.protocol_of(values) == "snac"
    annotation = factory.make(load_shipped("snac"), values)(
        Document(id="x", text="Nora waits . She opens the letter . Emil leaves the garden .")
    )
    assert "letter" in " ".join(mark.quotes[0] for mark in annotation.marks)
    assert all(mark.confidence is not None for mark in annotation.marks)
    with pytest.raises(FinecombError, match="trained with label 'ref', which protocol scarecrow@2 does not have"):
        factory.make(load_shipped("scarecrow"), values)


def test_labels_that_are_too_rare_are_left_out_with_a_note() -> None:
    annotations = list(study().iter_annotations())
    first = annotations[0].marks[0].model_copy(update={"label": "rep", "id": "r"})
    annotations[0] = annotations[0].model_copy(update={"marks": (*annotations[0].marks, first)})
    texts, labels, notes = collect_span_texts(study(), annotations, "")
    assert (len(texts), labels) == (9, ("ref",))
    assert notes == ["label 'rep' is omitted because it has only 1 mark"]
    with pytest.raises(FinecombError, match="no label of the gold protocol has the 5 gold marks"):
        collect_span_texts(study(), [], "")
