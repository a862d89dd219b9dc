"""Identity of model annotators: one annotator is one model, prompt, provider and set of parameters.

Another run under the name of an annotator is refused, unless it replaces the earlier run. The earlier run then stays in
the study as an excluded annotator, `NAME~1`, whose annotations and marks keep their IDs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import polars as pl

from finecomb.annotators.llm.runs import ModelRun, RunPlan
from finecomb.core.errors import FinecombError, param
from finecomb.core.model_notes import (
    COPY_OF_KEY,
    LIMIT_SETTINGS,
    META_KEY,
    REPLACED_BY_KEY,
    REPLACED_KEY,
    RUN_KEY,
    read_reply_note,
)
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Exclusion, ModelSettings
from finecomb.core.study import Study, StudyItem

_NO_IDENTITY = LIMIT_SETTINGS | {"samples", "model"}


def judging_settings(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an annotator's judgements depend on: model, endpoint and parameters, with their defaults."""
    given = meta.get("settings") or {}
    parameters = {
        name: given.get(name, field.default)
        for name, field in ModelSettings.model_fields.items()
        if name not in _NO_IDENTITY
    }
    return {"model": meta.get("model"), "endpoint": meta.get("endpoint"), **parameters}


def find_identity_changes(study: Study, run_plan: RunPlan) -> dict[str, list[str]]:
    """Return how a plan differs from the earlier runs of its annotators, by annotator ID; empty if it is the same."""
    changes: dict[str, list[str]] = {}
    planned = {annotator.id: annotator for annotator in run_plan.build_annotators()}
    protocols: dict[str, set[str]] = {}
    for id, protocol in study.annotations.select("annotator", "protocol").unique().iter_rows():
        protocols.setdefault(id, set()).add(protocol)
    for before in study.iter_annotators():
        if before.id not in planned or before.id not in protocols:
            continue
        old, new = judging_settings(before.meta), judging_settings(planned[before.id].meta)
        if run_plan.protocol.id in protocols[before.id]:
            # A prompt belongs to a protocol. Earlier versions stored only that of the last run.
            stored: Any = before.meta.get("prompts") or {run_plan.protocol.id: before.meta.get("prompt")}
            old["prompt"] = stored.get(run_plan.protocol.id, run_plan.record.prompt)
            new["prompt"] = run_plan.record.prompt
        differing = [f"{name} {_show(old[name])}, now {_show(new[name])}" for name in new if old[name] != new[name]]
        if differing:
            changes[before.id] = differing
    return changes


def _show(value: object) -> str:
    return "not set" if value is None else str(value)


def annotator_name_clash(study: Study, run_plan: RunPlan) -> str:
    """Return why the annotator's name is taken by another way of judging, or an empty string."""
    planned = {annotator.id for annotator in run_plan.build_annotators()}
    for before in study.iter_annotators():
        if before.id in planned and before.kind != "llm":
            return (
                f"annotator {before.id!r} already exists with kind {before.kind}; use another name with {param('name')}"
            )
    for id, differing in find_identity_changes(study, run_plan).items():
        return (
            f"annotator {id!r} already has annotations with other settings ({'; '.join(differing)}), and nothing was "
            f"changed; use another name with {param('name')}, replace its run with {param('replace')}, or annotate "
            f"further texts with its settings and {param('only_missing')}"
        )
    return ""


def missing_documents(study: Study, run_plan: RunPlan) -> set[str]:
    """Return the IDs of the planned texts that an annotator of the plan has not annotated."""
    own = study.annotations.filter(pl.col("protocol") == run_plan.protocol.id)
    done = [set(own.filter(annotator=annotator.id)["document"]) for annotator in run_plan.build_annotators()]
    return {task.document.id for task in run_plan.tasks if any(task.document.id not in ids for ids in done)}


def plan_replacement(study: Study, run_plan: RunPlan) -> RunPlan:
    """Return a plan whose annotations get IDs of their own, if it replaces an earlier run."""
    if not find_identity_changes(study, run_plan):
        return run_plan
    record = run_plan.record.model_copy(update={"generation": run_plan.record.generation + 1})
    return replace(run_plan, record=record)


# --- storage ---------------------------------------------------------------------------------------------------------


def build_run_records(study: Study, run_plan: RunPlan, runs: Sequence[ModelRun], replaces: bool) -> list[StudyItem]:
    """Return the records that store runs in a study: earlier runs that they replace, annotators and annotations.

    `study` is the study at the time of writing. If another process has stored another run under the name since the run
    was planned, an error is raised and the replies stay in the run's folder.
    """
    changes = find_identity_changes(study, run_plan)
    if changes and not replaces:
        raise FinecombError(annotator_name_clash(study, run_plan))
    records = archive_annotators(study, changes, str(runs[0].annotators[0].meta[RUN_KEY])) if changes else []
    before = {annotator.id: annotator for annotator in study.iter_annotators() if annotator.id not in changes}
    stored = {annotation.id: annotation for annotation in study.iter_annotations()}
    for run in runs:
        protocol = study.protocols.get(run.record.protocol)
        records += [protocol] if protocol else []
        copied = _copied_annotators(study, run)
        for annotator in run.annotators:
            known = before.get(annotator.id)
            earlier: Mapping[str, Any] = known.meta if known else {}
            prompts = {**(earlier.get("prompts") or {}), run.record.protocol: run.record.prompt}
            kept = {name: earlier[name] for name in ("probe", "probe_of", "own_system") if name in earlier}
            copy = {COPY_OF_KEY: copied[annotator.id]} if annotator.id in copied else {}
            meta = {**kept, **annotator.meta, "prompts": prompts, **copy}
            records.append(annotator.model_copy(update={"meta": meta, "excluded": known.excluded if known else None}))
        for annotation in run.annotations:
            same = stored.get(annotation.id)
            # An annotation from the same replies keeps its exclusion and verdicts on its marks.
            has_replies = same is not None and META_KEY in same.meta and META_KEY in annotation.meta
            if same is None or not has_replies or _calls(same) != _calls(annotation):
                records.append(annotation)
    return records


def _calls(annotation: Annotation) -> tuple[str, ...]:
    return read_reply_note(annotation).calls


def archive_annotators(study: Study, ids: Iterable[str], replaced_by: str) -> list[StudyItem]:
    """Return records that keep the work of annotators under other IDs, excluded, so that their IDs become free."""
    names = set(ids)
    replaced = [annotation for annotation in study.iter_annotations() if annotation.annotator in names]
    records = archive_annotations(study, replaced, replaced_by)
    for annotator in study.iter_annotators():
        if annotator.meta.get(COPY_OF_KEY) in names:  # the copy is now the only annotator with these replies
            meta = {name: value for name, value in annotator.meta.items() if name != COPY_OF_KEY}
            records.append(annotator.model_copy(update={"meta": meta}))
    return records


def archive_annotations(study: Study, replaced: Iterable[Annotation], replaced_by: str) -> list[StudyItem]:
    """Return records that give replaced annotations to excluded annotators; annotations and marks keep their IDs."""
    work: dict[str, list[Annotation]] = {}
    for annotation in replaced:
        work.setdefault(annotation.annotator, []).append(annotation)
    taken = set(study.annotators["id"])
    records: list[StudyItem] = []
    for annotator in study.iter_annotators():
        if annotator.id not in work:
            continue
        number = next(number for number in range(1, len(taken) + 2) if f"{annotator.id}~{number}" not in taken)
        id = f"{annotator.id}~{number}"
        meta = {**annotator.meta, REPLACED_KEY: annotator.id, REPLACED_BY_KEY: replaced_by}
        excluded = Exclusion(by="finecomb", when=datetime.now(UTC), reason=f"replaced by {replaced_by}")
        records.append(annotator.model_copy(update={"id": id, "meta": meta, "excluded": excluded}))
        records += [annotation.model_copy(update={"annotator": id}) for annotation in work[annotator.id]]
    return records


def build_replacement(study: Study, records: Iterable[StudyItem]) -> list[StudyItem]:
    """Return the records that add the work of annotators to a study, and keep earlier work that it replaces.

    Annotations that equal those of the study are left unchanged. Others get IDs that the study does not use. An
    annotator that is excluded stays so.
    """
    given = list(records)
    excluded = {annotator.id: annotator.excluded for annotator in study.iter_annotators() if annotator.excluded}
    stored = {annotation.unique_key: annotation for annotation in study.iter_annotations()}
    taken = set(study.annotations["id"]) | set(study.marks["id"])
    replaced: list[Annotation] = []
    added: list[StudyItem] = []
    for record in given:
        if isinstance(record, Annotation):
            before = stored.get(record.unique_key)
            if before is not None and _content(before) == _content(record):
                continue
            if before is not None:
                replaced.append(before)
            added.append(_with_free_ids(record, taken))
        elif isinstance(record, Annotator) and record.id in excluded:
            added.append(record.model_copy(update={"excluded": excluded[record.id]}))
        elif not isinstance(record, Protocol) or record.id not in study.protocols:
            added.append(record)
    return [*archive_annotations(study, replaced, "a later run"), *added]


def _content(annotation: Annotation) -> tuple[object, ...]:
    """Return what an annotation states, without its IDs and times."""
    marks = [mark.model_dump(exclude={"id", "made_from"}) for mark in annotation.marks]
    return annotation.status, marks, annotation.units, annotation.answers


def _with_free_ids(annotation: Annotation, taken: set[str]) -> Annotation:
    """Return an annotation whose IDs the study does not use, and add them to those that are taken."""

    def free(id: str) -> str:
        names = (id if number == 1 else f"{id}~{number}" for number in range(1, len(taken) + 3))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        return name

    marks = tuple(mark.model_copy(update={"id": free(mark.id)}) for mark in annotation.marks)
    return annotation.model_copy(update={"id": free(annotation.id), "marks": marks})


def _copied_annotators(study: Study, run: ModelRun) -> dict[str, str]:
    """Return, for each annotator whose replies are all those of another annotator, the ID of that annotator."""
    kinds = {annotator.id: annotator for annotator in study.iter_annotators()}
    own = {annotator.id for annotator in run.annotators}
    owners: dict[tuple[str, str, tuple[str, ...]], str] = {}
    for annotation in study.iter_annotations():
        other = kinds.get(annotation.annotator)
        if (
            META_KEY in annotation.meta
            and other is not None
            and other.excluded is None
            and annotation.annotator not in own
            and COPY_OF_KEY not in other.meta
        ):
            key = annotation.document, annotation.protocol, _calls(annotation)
            owners.setdefault(key, annotation.annotator)
    copies: dict[str, str] = {}
    for id in own:
        # Marks by votes have no replies of their own.
        mine = [one for one in run.annotations if one.annotator == id and META_KEY in one.meta]
        found = {owners.get((one.document, one.protocol, _calls(one))) for one in mine}
        if len(found) == 1 and (other_id := found.pop()) is not None:
            copies[id] = other_id
    return copies
