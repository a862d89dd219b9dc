"""The machine runs of a study: those in force, those that were replaced, and those whose replies are not in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from finecomb.annotators.llm.journal import JOURNAL_FILE, JournalContent, read_entries
from finecomb.annotators.llm.run_folder import list_run_folders, read_run_record, read_run_status
from finecomb.core.errors import Problem
from finecomb.core.model_notes import (
    COPY_OF_KEY,
    LIMIT_SETTINGS,
    META_KEY,
    REPLACED_BY_KEY,
    RUN_KEY,
    read_reply_note,
)
from finecomb.core.records import Annotation, Annotator
from finecomb.core.study import Study

_MACHINE_KINDS = ("llm", "detector", "checker")


def list_machine_runs(study: Study, runs: Path | None) -> list[dict[str, object]]:
    """Return a row for each machine annotator and protocol, and for each run on disk that has no annotations."""
    work: dict[tuple[str, str], list[Annotation]] = {}
    for annotation in study.iter_annotations():
        work.setdefault((annotation.annotator, annotation.protocol), []).append(annotation)
    folders = {folder.name: folder for folder in (list_run_folders(runs) if runs and runs.is_dir() else [])}
    rows: list[dict[str, object]] = []
    listed: set[str] = set()
    for annotator in study.iter_annotators():
        if annotator.kind not in _MACHINE_KINDS:
            continue
        for (id, protocol), own in work.items():
            if id != annotator.id:
                continue
            for run in _runs_of(annotator, own):
                part = [annotation for annotation in own if _run_of(annotation, annotator) == run]
                listed.add(run)
                rows.append(_run_row(annotator, run, protocol, part, folders.get(run)))
    for name, folder in folders.items():
        if name not in listed:
            record, status = read_run_record(folder), read_run_status(folder)
            rows.append(
                {
                    "annotator": record.name,
                    "kind": "llm",
                    "run": name,
                    "status": "running" if status and status.state == "running" else "not in the study",
                    "model": record.settings.model,
                    "protocol": record.protocol,
                    "settings": _format_settings(record.settings.model_dump(mode="json", exclude_defaults=True)),
                    "texts": 0,
                    "replies": "",
                    "cost": _run_cost(folder),
                }
            )
    return rows


def _runs_of(annotator: Annotator, annotations: list[Annotation]) -> list[str]:
    return list(dict.fromkeys(_run_of(annotation, annotator) for annotation in annotations))


def _run_of(annotation: Annotation, annotator: Annotator) -> str:
    """Return the ID of the run that made an annotation; annotations of earlier versions have that of the annotator."""
    own = read_reply_note(annotation).run if META_KEY in annotation.meta else ""
    return own or str(annotator.meta.get(RUN_KEY, ""))


def _run_row(
    annotator: Annotator, run: str, protocol: str, annotations: list[Annotation], folder: Path | None
) -> dict[str, object]:
    meta = annotator.meta
    states = Counter(
        read_reply_note(annotation).state if META_KEY in annotation.meta else annotation.status
        for annotation in annotations
    )
    status = "in force"
    if REPLACED_BY_KEY in meta:
        status = f"replaced by {meta[REPLACED_BY_KEY]}"
    elif annotator.excluded is not None:
        status = "excluded"
    elif COPY_OF_KEY in meta:
        status = f"copy of {meta[COPY_OF_KEY]}"
    settings = meta.get("settings")
    return {
        "annotator": annotator.id,
        "kind": annotator.kind,
        "run": run,
        "status": status,
        "model": str(meta.get("model") or meta.get("signature") or ""),
        "protocol": protocol,
        "settings": _format_settings(settings) if isinstance(settings, dict) else "",
        "texts": len({annotation.document for annotation in annotations}),
        "replies": ", ".join(f"{count} {state}" for state, count in sorted(states.items())),
        "cost": _run_cost(folder) if folder else None,
    }


def _format_settings(settings: Mapping[str, object]) -> str:
    """Format the settings that differ from the defaults, without the model and limits on cost and speed."""
    hidden = LIMIT_SETTINGS | {"model"}
    return ", ".join(f"{name} {value}" for name, value in settings.items() if name not in hidden) or "defaults"


def _run_cost(folder: Path) -> float:
    return float(JournalContent.from_entries(read_entries(folder / JOURNAL_FILE)).spent)


# --- problems --------------------------------------------------------------------------------------------------------


def mixed_run_problems(study: Study, runs: Path) -> list[Problem]:
    """Return a warning for each model annotator whose annotations come from runs with different settings."""
    models = {annotator.id: annotator for annotator in study.iter_annotators() if annotator.kind == "llm"}
    work: dict[tuple[str, str], list[Annotation]] = {}
    for annotation in study.iter_annotations():
        if annotation.annotator in models and META_KEY in annotation.meta:
            work.setdefault((annotation.annotator, annotation.protocol), []).append(annotation)
    return [
        Problem(
            f"annotator {id!r} has annotations of {len(counts)} runs with {protocol} "
            f"({', '.join(f'{count} of {run}' for run, count in counts.items())}); annotate all texts with one of them "
            f"and `finecomb annotate --name {id} --replace`",
            "warning",
            "annotator",
            id,
        )
        for (id, protocol), annotations in work.items()
        if len(counts := _annotation_counts_by_run(models[id], protocol, annotations, runs)) > 1
    ]


def _annotation_counts_by_run(
    annotator: Annotator, protocol: str, annotations: list[Annotation], runs: Path
) -> dict[str, int]:
    named = Counter(read_reply_note(annotation).run for annotation in annotations)
    if "" not in named:
        return dict(named)
    # Annotations of earlier versions do not name their run; their replies are in its journal.
    counts: dict[str, int] = {}
    rest = list(annotations)
    journals = dict(_reply_hashes_by_run(annotator.id, protocol, runs))
    if len(journals) < 2:
        return {}
    while rest and journals:
        best = max(journals, key=lambda run: sum(journals[run].issuperset(_calls(one)) for one in rest))
        found = [one for one in rest if journals[best].issuperset(_calls(one))]
        if not found:
            break
        counts[best] = len(found)
        rest = [one for one in rest if one not in found]
        del journals[best]
    return counts


def _calls(annotation: Annotation) -> tuple[str, ...]:
    return read_reply_note(annotation).calls


def _reply_hashes_by_run(annotator: str, protocol: str, runs: Path) -> Iterator[tuple[str, frozenset[str]]]:
    for folder in list_run_folders(runs) if runs.is_dir() else []:
        record = read_run_record(folder)
        if record.protocol == protocol and record.name == annotator.partition("#")[0]:
            content = JournalContent.from_entries(read_entries(folder / JOURNAL_FILE))
            yield folder.name, frozenset(content.replies)
