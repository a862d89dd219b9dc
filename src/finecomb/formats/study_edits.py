"""Edits of the texts, protocol and settings of a study with annotations, which stay with what they were made on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from finecomb.core.protocol import Protocol
from finecomb.core.records import REPLACED_BY_META, REPLACES_META, Document, Settings
from finecomb.core.study import Study, StudyItem

VISIBLE_FIELDS = {"text", "context", "segments", "data"}
"""Document fields that annotators see and that offsets refer to."""


@dataclass(frozen=True, slots=True)
class EditedRecord:
    """A text, protocol or setting that an edit adds or changes."""

    kind: str
    """`text`, `protocol` or `setting`."""
    id: str
    change: str
    annotations: int = 0
    """Annotations that the change affects: they stay with the earlier version."""
    earlier: str = ""
    """ID of the earlier version that keeps the annotations, if any."""


@dataclass(frozen=True, slots=True)
class StudyEdits:
    """Records to store, and a description of each change."""

    records: tuple[StudyItem, ...]
    rows: tuple[EditedRecord, ...]


def build_edits(
    study: Study,
    documents: Iterable[Document] = (),
    protocol: Protocol | None = None,
    settings: Settings | None = None,
) -> StudyEdits:
    """Return the records that edit a study.

    A text with annotations is not changed: the new text becomes a document of its own, `ID~2`, and the earlier one is
    no longer assigned. A protocol with annotations gets a new version. Of `settings`, only the given fields are used.
    """
    rows: list[EditedRecord] = []
    records: list[StudyItem] = []
    stored = {document.id: document for document in study.iter_documents()}
    counts = Counter(study.annotations["document"].to_list())
    for document in documents:
        current = _latest_version(document.id, stored)
        if current is None:
            rows.append(EditedRecord("text", document.id, "added"))
            records.append(document)
            stored[document.id] = document
            continue
        links = {name: current.meta[name] for name in (REPLACES_META,) if name in current.meta}
        edited = document.model_copy(update={"id": current.id, "meta": {**document.meta, **links}})
        if edited == current:
            continue
        is_visible = edited.model_dump(include=VISIBLE_FIELDS) != current.model_dump(include=VISIBLE_FIELDS)
        if not is_visible or not counts[current.id]:
            rows.append(EditedRecord("text", current.id, "changed" if is_visible else "metadata changed"))
            records.append(edited)
            stored[current.id] = edited
            continue
        new_id = next(id for number in range(2, len(stored) + 3) if (id := f"{document.id}~{number}") not in stored)
        new = document.model_copy(update={"id": new_id, "meta": {**document.meta, REPLACES_META: current.id}})
        old = current.model_copy(update={"meta": {**current.meta, REPLACED_BY_META: new_id}})
        rows.append(EditedRecord("text", new_id, "new version", counts[current.id], current.id))
        records += [old, new]
        stored |= {old.id: old, new.id: new}
    changed = study.settings
    if settings is not None:
        given = {name: getattr(settings, name) for name in settings.model_fields_set if name != "protocols"}
        names = [name for name, value in given.items() if getattr(changed, name) != value]
        changed = changed.model_copy(update=given)
        rows += [EditedRecord("setting", name, "changed") for name in names]
    if protocol is not None and study.protocols.get(protocol.id) != protocol:
        used = study.annotations.filter(protocol=protocol.id).height
        earlier = protocol.id if used else ""
        if used:
            protocol = protocol.model_copy(update={"version": _next_version(protocol, study)})
        known = protocol.id in study.protocols
        change = "new version" if used else "changed" if known else "added"
        rows.append(EditedRecord("protocol", protocol.id, change, used, earlier))
        records.append(protocol)
        others = tuple(id for id in changed.protocols if id != protocol.id)
        changed = changed.model_copy(update={"protocols": (protocol.id, *others)})
    if changed != study.settings:
        records.append(changed)
    return StudyEdits(tuple(records), tuple(rows))


def _latest_version(id: str, stored: dict[str, Document]) -> Document | None:
    """Return the document with an ID, or its latest version after earlier edits."""
    current = stored.get(id)
    while current is not None and (later := stored.get(str(current.meta.get(REPLACED_BY_META)))) is not None:
        current = later
    return current


def _next_version(protocol: Protocol, study: Study) -> str:
    """Return the next version number of a protocol that the study does not have."""
    versions = [other.version for other in study.protocols.values() if other.name == protocol.name]
    numbers = [int(version) for version in versions if version.isdecimal()]
    if numbers:
        return str(max(numbers) + 1)
    return next(version for number in range(2, len(versions) + 3) if (version := str(number)) not in versions)
