"""Runs of language models for those who read the numbers: rows, notes, estimates, and the study that comes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from finecomb import protocols
from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.runs import ModelRun, RunPlan
from finecomb.core.model_notes import read_reply_note
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation
from finecomb.core.study import Study, StudyItem
from finecomb.statistics.judges.validity import (
    CONTRACTS_FOLDER,
    JudgeContract,
    build_judge_binding,
    stale_warning,
    text_counts_by_system,
)


def items_with_runs(study: Study, runs: Iterable[ModelRun]) -> list[StudyItem]:
    """Return a study's records with the runs' annotators and annotations; those with the same id are replaced."""
    runs = list(runs)
    people = {person.id: person for person in study.iter_annotators()}
    people |= {person.id: person for run in runs for person in run.annotators}
    work: dict[str, Annotation] = {annotation.id: annotation for annotation in study.iter_annotations()}
    work |= {annotation.id: annotation for run in runs for annotation in run.annotations}
    used = {**study.protocols, **{protocol.id: protocol for protocol in run_protocols(study, runs)}}
    names = dict.fromkeys([*study.settings.protocols, *used])
    settings = study.settings.model_copy(update={"protocols": tuple(names)})
    return [settings, *used.values(), *study.iter_documents(), *people.values(), *work.values()]


def run_protocols(study: Study, runs: Iterable[ModelRun]) -> list[Protocol]:
    """Return the protocols of runs, each once; shipped ones where the study does not have them."""
    wanted = dict.fromkeys(run.record.protocol for run in runs)
    return [study.protocols.get(id) or protocols.load(id.partition("@")[0]) for id in wanted]


def state_rows(run: ModelRun) -> list[dict[str, object]]:
    """Return how many texts have replies of each state."""
    rows: list[dict[str, object]] = [{"state": state, "texts": count} for state, count in sorted(run.states.items())]
    return [*rows, {"state": "not asked", "texts": len(run.unasked)}] if run.unasked else rows


def run_notes(run: ModelRun) -> Iterator[str]:
    """Yield what a reader of a run's numbers should know."""
    bad = sum(run.states.get(state, 0) for state in ("unreadable", "refused", "truncated", "empty"))
    if bad:
        yield f"{_format_reply_count(bad)} could not be read: excluded with the reason, never counted as no errors"
    for reason in dict.fromkeys(run.unasked.values()):
        ids = [id for id, why in run.unasked.items() if why == reason]
        listed = ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")
        yield f"{len(ids):,} text{'' if len(ids) == 1 else 's'} without a reply ({listed}): {reason}"
    placements = run.placement_counts()
    if placements:
        yield "quotes placed: " + ", ".join(f"{count} {how}" for how, count in placements.most_common() if count)
    repaired = sum(bool(read_reply_note(annotation).flags) for annotation in run.annotations)
    if repaired:
        yield (
            f"{_format_reply_count(repaired)} had to be repaired or had answers that the protocol does not "
            "allow; see meta.llm"
        )
    yield format_call_count(run.calls, run.cached, run.cost, run.folder)
    if run.stopped:
        yield f"{run.stopped}; the same command goes on from here"


def _format_reply_count(number: int) -> str:
    return "1 reply" if number == 1 else f"{number:,} replies"


def format_call_count(calls: int, cached: int, cost: float, folder: Path | None) -> str:
    """Return how many calls a run made, what they cost, and where their replies are kept."""
    paid = f", ${cost:.4f}" if cost else ""
    kept = f"; kept in {folder}" if folder else ""
    return f"{calls:,} call{'' if calls == 1 else 's'} made now, {cached} answered from earlier runs{paid}{kept}"


def estimate_row(run_plan: RunPlan) -> dict[str, object]:
    """Return what a run would take: calls, tokens, and costs where the price is known."""
    settings = run_plan.record.settings
    price = Price.from_settings(settings)
    requests = [call.request for call in run_plan.calls()]
    return {
        "calls": len(requests),
        "tokens to send": sum(request.estimated_prompt_tokens() for request in requests),
        "most tokens to receive": sum(request.max_tokens for request in requests),
        "likely cost": sum(price.estimated_cost(request) for request in requests) if settings.price else None,
        "most it can cost": sum(price.max_cost(request) for request in requests) if settings.price else None,
        "prompt": run_plan.record.prompt,
    }


def contract_warning(folder: Path, run_plan: RunPlan) -> str:
    """Return why the contract of a judge that was calibrated in a study's folder no longer holds; empty if it does."""
    annotator = run_plan.annotator(0)
    path = folder / CONTRACTS_FOLDER / f"{annotator.id}.json"
    if not path.is_file():
        return ""
    contract = JudgeContract.model_validate_json(path.read_text(encoding="utf-8"))
    binding = build_judge_binding(annotator.id, annotator.meta, run_plan.protocol.id)
    asked = {task.document.id: task.document.meta for task in run_plan.tasks}
    counts = text_counts_by_system(contract, asked.values())
    return stale_warning(contract, binding, datetime.now(UTC), counts) or ""
