"""Campaigns of `span_annotation` as one study, with people and six language models on the same texts."""

from __future__ import annotations

from pathlib import Path

from finecomb import formats
from finecomb.core.records import Annotation, Annotator, Document
from finecomb.core.study import Study, StudyItem


def read_campaign(data: Path, split: str) -> Study:
    """Return people and models of one split (`dev` or `iaa`) under the people's protocol and texts."""
    folder = data / "span_annotation"
    options = formats.Options(texts=folder / "outputs")
    people = formats.read(folder / "annotations" / "human" / "d2t-eval" / split, options=options)
    items: dict[tuple[type, str], StudyItem] = {(type(item), getattr(item, "id", "")): item for item in people.items()}
    protocol = people.protocol().id
    for model in sorted((folder / "annotations" / "model" / "d2t-eval" / split).iterdir()):
        name = model.name.removeprefix("zeroshot-")
        for item in formats.read(model, options=options).items():
            if isinstance(item, Document):
                items.setdefault((Document, item.id), item)
            elif isinstance(item, Annotator):
                items[(Annotator, name)] = Annotator(id=name, kind="llm")
            elif isinstance(item, Annotation):
                changes = {"id": f"{name}/{item.id}", "annotator": name, "protocol": protocol}
                marks = tuple(mark.model_copy(update={"id": f"{name}/{mark.id}"}) for mark in item.marks)
                items[(Annotation, changes["id"])] = item.model_copy(update={**changes, "marks": marks})
    return Study.from_items(items.values())
