"""A study in which nobody can be told by name: what a report carries when it is to be shared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finecomb.core.records import Annotation, Annotator, Mark
from finecomb.core.study import Study, StudyItem

_ANONYMOUS_PREFIX = "reader"


def anonymise_study(study: Study) -> Study:
    """The study with people as `reader-1`, `reader-2`, in the order in which they handed in, and only their work.

    Surveys, platforms, places, clock times and what else is known about them are left out; conditions, cells and
    qualifications, which the numbers need, stay. Machines and gold keep their names.
    """
    return Study.from_items(_anonymised_items(study), study.origin)


def _anonymised_items(study: Study) -> Iterator[StudyItem]:
    people = [each.id for each in study.iter_annotators() if each.kind == "human"]
    workers = dict.fromkeys(id for id in study.annotations["annotator"] if id in set(people))
    order = [*workers, *(id for id in people if id not in workers)]
    others = {each.id for each in study.iter_annotators()} - set(people)
    candidates = (f"{_ANONYMOUS_PREFIX}-{number}" for number in range(1, len(people) + len(others) + 1))
    names = dict(zip(order, (name for name in candidates if name not in others), strict=False))
    ids = _new_id_by_old(study, names)
    for item in study.items():
        match item:
            case Annotator(id=id) if id in names:
                yield item.model_copy(
                    update={
                        "id": names[id],
                        "survey": {},
                        "platform": "",
                        "meta": {},
                        "excluded": _exclusion_without_author(item),
                    }
                )
            case Annotation():
                yield _anonymise_annotation(item, names, ids)
            case _:
                yield item


def _exclusion_without_author(item: Annotator | Annotation) -> object:
    """Why it was set aside, without who decided."""
    return item.excluded and item.excluded.model_copy(update={"by": ""})


def _new_id_by_old(study: Study, names: Mapping[str, str]) -> dict[str, str]:
    """New ids of people's annotations and marks, which often have the person's name in them."""
    ids: dict[str, str] = {}
    ids_in_use = set(study.annotations["id"]) | set(study.marks["id"])
    for annotation in study.iter_annotations():
        if annotation.annotator in names:
            ids[annotation.id] = _unused_id(f"{annotation.document}/{names[annotation.annotator]}", ids_in_use)
            for number, mark in enumerate(annotation.marks, 1):
                ids[mark.id] = _unused_id(f"{ids[annotation.id]}/{number}", ids_in_use)
    return ids


def _unused_id(wanted: str, ids_in_use: set[str]) -> str:
    number, id = 1, wanted
    while id in ids_in_use:
        number, id = number + 1, f"{wanted}~{number + 1}"
    ids_in_use.add(id)
    return id


def _anonymise_annotation(annotation: Annotation, names: Mapping[str, str], ids: Mapping[str, str]) -> Annotation:
    def new_ids(others: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(ids.get(id, id) for id in others)

    def anonymise_mark(old: Mark) -> Mark:
        return old.model_copy(update={"id": ids.get(old.id, old.id), "made_from": new_ids(old.made_from)})

    changes: dict[str, object] = {
        "id": ids.get(annotation.id, annotation.id),
        "annotator": names.get(annotation.annotator, annotation.annotator),
        "about": ids.get(annotation.about or "", annotation.about),
        "made_from": new_ids(annotation.made_from),
        "marks": tuple(anonymise_mark(old) for old in annotation.marks),
        "excluded": _exclusion_without_author(annotation),
    }
    if annotation.annotator in names:
        design = {name: value for name, value in annotation.meta.items() if name in ("stratum", "chance", "inclusion")}
        changes |= {"started": None, "submitted": None, "meta": design}
    return annotation.model_copy(update=changes)
