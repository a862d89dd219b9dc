"""Merging of annotations from other files into a study, e.g. from colleagues, language models or other tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from finecomb.annotators.llm.run_identity import archive_annotations
from finecomb.core.duplicate_marks import merge_duplicate_marks
from finecomb.core.errors import FinecombError, did_you_mean, diff_excerpt, param
from finecomb.core.records import Annotation, Document
from finecomb.core.study import Study, StudyItem


@dataclass(frozen=True, slots=True)
class MergedAnnotations:
    """Records to add to a study, or to replace in it, and counts for messages."""

    records: tuple[StudyItem, ...]
    annotations: int
    replaced: int = 0
    duplicates: int = 0


def merge_annotations(study: Study, others: Sequence[tuple[str, Study]], replaces: bool = False) -> MergedAnnotations:
    """Merge the annotations of other studies into a study; `others` pairs each study with its name for messages.

    Their texts must be in the study, with the same ID or the same text. A second annotation of a text by the same
    annotator under the same protocol and round is rejected, because one of the two would be lost. With `replaces`, it
    takes the place of the first, which is kept with an excluded annotator.
    """
    documents = {document.id: document for document in study.iter_documents()}
    by_text: dict[str, list[str]] = {}
    for document in documents.values():
        by_text.setdefault(document.text, []).append(document.id)
    keys: dict[tuple[object, ...], Annotation | None] = {}
    ids, marks = set(), set()
    for annotation in study.iter_annotations():
        keys[annotation.unique_key] = annotation
        ids.add(annotation.id)
        marks |= {mark.id for mark in annotation.marks}
    annotators = set(study.annotators["id"])
    protocols = set(study.protocols)
    added: list[StudyItem] = []
    replaced: list[Annotation] = []
    count = duplicates = 0
    for name, other in others:
        places = dict(_match_documents(name, other, documents, by_text))
        for protocol in other.protocols.values():
            if protocol.id not in protocols:
                protocols.add(protocol.id)
                added.append(protocol)
        for annotator in other.iter_annotators():
            if annotator.id not in annotators:
                annotators.add(annotator.id)
                added.append(annotator)
        for annotation in other.iter_annotations():
            changes: dict[str, object] = {"document": places[annotation.document]}
            if annotation.id in ids:  # an annotation whose ID the study already uses gets a new ID
                changes["id"] = _free_name(f"{annotation.id}@{name}", ids)
            if any(mark.id in marks for mark in annotation.marks):
                renamed = [
                    mark.model_copy(update={"id": _free_name(f"{mark.id}@{name}", marks)}) for mark in annotation.marks
                ]
                changes["marks"] = tuple(renamed)
            moved, merged = merge_duplicate_marks(annotation.model_copy(update=changes))
            if (before := keys.get(moved.unique_key)) is not None and replaces:
                if _same_content(before, moved):
                    continue
                replaced.append(before)
            elif moved.unique_key in keys:
                raise FinecombError(
                    f"{name}: {moved.annotator!r} already has an annotation of {moved.document!r} in the study; remove "
                    f"one of the two, replace the first with {param('replace')}, or rename the annotator of the merged "
                    f"file with {param('annotator')}"
                )
            keys[moved.unique_key] = None
            ids.add(moved.id)
            marks |= {mark.id for mark in moved.marks}
            added.append(moved)
            count += 1
            duplicates += merged
    archived = archive_annotations(study, replaced, "merge") if replaced else []
    return MergedAnnotations((*archived, *added), count, len(replaced), duplicates)


def _same_content(first: Annotation, second: Annotation) -> bool:
    contents = [
        (annotation.answers, annotation.units, [mark.model_dump(exclude={"id"}) for mark in annotation.marks])
        for annotation in (first, second)
    ]
    return contents[0] == contents[1]


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken: the name itself, or the name with a number."""
    return (
        name
        if name not in taken
        else next(candidate for number in range(2, len(taken) + 3) if (candidate := f"{name}-{number}") not in taken)
    )


def _match_documents(
    name: str, other: Study, documents: dict[str, Document], by_text: dict[str, list[str]]
) -> Iterator[tuple[str, str]]:
    """Yield, for each annotated text of the other study, its ID there and the ID of the same text in the study."""
    used = set(other.annotations["document"])
    for document in other.iter_documents():
        if document.id not in used:
            continue
        same = by_text.get(document.text, [])
        if document.id in documents and documents[document.id].text == document.text:
            yield document.id, document.id
        elif len(same) == 1:
            yield document.id, same[0]
        elif document.id in documents:
            ours, theirs = diff_excerpt(documents[document.id].text, document.text)
            raise FinecombError(
                f"{name}: the text of document {document.id!r} is {theirs}, but {ours} in the study; use the same text "
                "in both, or another ID"
            )
        else:
            near = did_you_mean(document.id, list(documents)[:5000])
            raise FinecombError(f"{name}: document {document.id!r} is not in the study{near}")
