"""Marks of others joined to a study: a colleague's file, a language model's replies, another tool's export."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from finecomb.core.errors import FinecombError, did_you_mean, diff_excerpt, param
from finecomb.core.records import Annotation, Document
from finecomb.core.study import Study, StudyItem


@dataclass(frozen=True, slots=True)
class MergedAnnotations:
    """What came of joining: the records of the whole study, and how many annotations are new."""

    items: tuple[StudyItem, ...]
    annotations: int


def merge_annotations(study: Study, others: Sequence[tuple[str, Study]]) -> MergedAnnotations:
    """A study with the annotations of others, each given with a name for messages.

    Their texts must be texts of the study: by id, or by the very same words. An annotation of the same annotator on the
    same text under the same protocol and round is refused, since one of the two would be lost.
    """
    documents = {document.id: document for document in study.iter_documents()}
    by_text: dict[str, list[str]] = {}
    for document in documents.values():
        by_text.setdefault(document.text, []).append(document.id)
    annotations = {annotation.key: annotation for annotation in study.iter_annotations()}
    protocols, people = dict(study.protocols), {person.id: person for person in study.iter_annotators()}
    ids = {annotation.id for annotation in annotations.values()}
    marks = {mark.id for annotation in annotations.values() for mark in annotation.marks}
    new: list[Annotation] = []
    for name, other in others:
        places = dict(_match_documents(name, other, documents, by_text))
        for annotation in other.iter_annotations():
            moved = _with_unique_ids(
                annotation.model_copy(update={"document": places[annotation.document]}), name, ids, marks
            )
            if moved.key in annotations:
                raise FinecombError(
                    f"{name}: {moved.annotator!r} has an annotation on {moved.document!r} in the study already; "
                    f"leave one of them out, or name who made these with {param('annotator')}"
                )
            annotations[moved.key] = moved
            ids.add(moved.id)
            marks |= {mark.id for mark in moved.marks}
            new.append(moved)
        protocols = {**other.protocols, **protocols}
        people = {**{person.id: person for person in other.iter_annotators()}, **people}
    settings = study.settings.model_copy(
        update={"protocols": tuple(dict.fromkeys([*study.settings.protocols, *(a.protocol for a in new)]))}
    )
    items: tuple[StudyItem, ...] = (
        settings,
        *protocols.values(),
        *documents.values(),
        *people.values(),
        *annotations.values(),
    )
    return MergedAnnotations(items, len(new))


def _match_documents(
    name: str, other: Study, documents: dict[str, Document], by_text: dict[str, list[str]]
) -> Iterator[tuple[str, str]]:
    """Id of each annotated text of the other, and of the same text in the study."""
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
                f"{name}: document {document.id!r} has another text: {theirs} where the study has {ours}"
            )
        else:
            near = did_you_mean(document.id, list(documents)[:5000])
            raise FinecombError(f"{name}: document {document.id!r} is not in the study{near}")


def _with_unique_ids(annotation: Annotation, name: str, ids: set[str], marks: set[str]) -> Annotation:
    """The annotation with ids that the study does not have yet."""
    changes: dict[str, object] = {}
    if annotation.id in ids:
        changes["id"] = f"{annotation.id}@{name}"
    if any(mark.id in marks for mark in annotation.marks):
        changes["marks"] = tuple(mark.model_copy(update={"id": f"{mark.id}@{name}"}) for mark in annotation.marks)
    return annotation.model_copy(update=changes) if changes else annotation
