"""Anonymisation of a study before its report is shared."""

from __future__ import annotations

from collections.abc import Mapping

from finecomb.core.records import Annotation, Annotator
from finecomb.core.study import Study, StudyItem

_ANONYMOUS_PREFIX = "reader"


def anonymise_study(study: Study) -> Study:
    """Return the submitted work of a study with people renamed to `reader-1`, `reader-2`, ... in order of submission.

    Surveys, platforms, locations, times and other data about people are removed. Conditions, cells and qualifications
    stay because the statistics need them. Machines and gold keep their names.
    """
    people = [each.id for each in study.iter_annotators() if each.kind == "human"]
    workers = dict.fromkeys(id for id in study.annotations["annotator"] if id in set(people))
    order = [*workers, *(id for id in people if id not in workers)]
    others = {each.id for each in study.iter_annotators()} - set(people)
    candidates = (f"{_ANONYMOUS_PREFIX}-{number}" for number in range(1, len(people) + len(others) + 1))
    names = dict(zip(order, (name for name in candidates if name not in others), strict=False))
    # New IDs for the annotations and marks of people, because IDs often contain a name
    ids: dict[str, str] = {}
    ids_in_use = set(study.annotations["id"]) | set(study.marks["id"])
    for annotation in study.iter_annotations():
        if annotation.annotator in names:
            ids[annotation.id] = _unused_id(f"{annotation.document}/{names[annotation.annotator]}", ids_in_use)
            for number, mark in enumerate(annotation.marks, 1):
                ids[mark.id] = _unused_id(f"{ids[annotation.id]}/{number}", ids_in_use)
    return Study.from_items((_anonymise_item(item, names, ids) for item in study.items()), study.origin)


def _anonymise_item(item: StudyItem, names: Mapping[str, str], ids: Mapping[str, str]) -> StudyItem:
    """Replace the names of people and the IDs of their work in an annotator or annotation."""
    if not isinstance(item, Annotator | Annotation):
        return item
    excluded = item.excluded and item.excluded.model_copy(update={"by": ""})  # without the person who decided it
    if isinstance(item, Annotator):
        removed: dict[str, object] = {"survey": {}, "platform": "", "meta": {}, "excluded": excluded}
        return item.model_copy(update={"id": names[item.id], **removed}) if item.id in names else item
    marks = [
        {"id": ids.get(mark.id, mark.id), "made_from": tuple(ids.get(id, id) for id in mark.made_from)}
        for mark in item.marks
    ]
    changes: dict[str, object] = {
        "id": ids.get(item.id, item.id),
        "annotator": names.get(item.annotator, item.annotator),
        "about": ids.get(item.about or "", item.about),
        "made_from": tuple(ids.get(id, id) for id in item.made_from),
        "marks": tuple(mark.model_copy(update=new) for mark, new in zip(item.marks, marks, strict=True)),
        "excluded": excluded,
    }
    if item.annotator in names:
        design = {name: value for name, value in item.meta.items() if name in ("stratum", "chance", "inclusion")}
        changes |= {"started": None, "submitted": None, "meta": design}
    return item.model_copy(update=changes)


def _unused_id(wanted: str, ids_in_use: set[str]) -> str:
    number, id = 1, wanted
    while id in ids_in_use:
        number, id = number + 1, f"{wanted}~{number + 1}"
    ids_in_use.add(id)
    return id
