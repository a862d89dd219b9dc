"""Reports about runs of language models: rows, notes, cost estimates, and studies with their annotations."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from finecomb import protocols
from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.journal import read_cached_replies
from finecomb.annotators.llm.runs import ModelRun, RunPlan
from finecomb.core.errors import param
from finecomb.core.model_notes import read_reply_note
from finecomb.core.study import Study, StudyItem, merge_work
from finecomb.statistics.judges.validity import (
    CONTRACTS_FOLDER,
    JudgeContract,
    build_judge_binding,
    expiry_warning,
    text_counts_by_system,
)

MIN_CALLS_TO_WARN = 1000


def merge_runs(study: Study, runs: Iterable[ModelRun]) -> list[StudyItem]:
    """Return a study's records with the protocols, annotators and annotations of runs, which replace earlier ones."""
    return merge_work(study, run_records(study, runs), replace=True)


def run_records(study: Study, runs: Iterable[ModelRun]) -> list[StudyItem]:
    """Return the protocols (the study's or otherwise the shipped ones), annotators and annotations of runs."""
    records: list[StudyItem] = []
    for run in runs:
        protocol = study.protocols.get(run.record.protocol)
        records += [protocol or protocols.load(run.record.protocol.partition("@")[0]), *run.annotators]
        records += run.annotations
    return records


def reply_state_rows(run: ModelRun) -> list[dict[str, object]]:
    """Return the number of texts by reply state."""
    rows: list[dict[str, object]] = [{"state": state, "texts": count} for state, count in sorted(run.states.items())]
    return [*rows, {"state": "not asked", "texts": len(run.unasked)}] if run.unasked else rows


def run_notes(run: ModelRun) -> Iterator[str]:
    """Yield notes about excluded, missing and repaired replies, and about calls and cost."""
    read = sum(annotation.status == "submitted" for annotation in run.annotations)
    total = len(run.annotations) + len(run.unasked)
    if read < total:
        yield f"{read:,} of {total:,} texts read"
    bad = sum(run.states.get(state, 0) for state in ("unreadable", "refused", "truncated", "empty"))
    if bad:
        yield f"{_format_reply_count(bad)} could not be parsed and {'was' if bad == 1 else 'were'} excluded"
    for reason in dict.fromkeys(run.unasked.values()):
        ids = [id for id, why in run.unasked.items() if why == reason]
        listed = ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")
        yield f"{len(ids):,} text{'' if len(ids) == 1 else 's'} without a reply ({listed}): {reason}"
    placements = run.placement_counts()
    if placements:
        yield "quotes placed: " + ", ".join(f"{count} {how}" for how, count in placements.most_common() if count)
    repaired = sum(bool(read_reply_note(annotation).flags) for annotation in run.annotations)
    if repaired:
        yield f"{_format_reply_count(repaired)} had to be repaired or had invalid answers; see meta.llm"
    yield from run.call_notes()


def _format_reply_count(number: int) -> str:
    return "1 reply" if number == 1 else f"{number:,} replies"


def run_estimate_row(run_plan: RunPlan, runs: Path | None = None) -> tuple[dict[str, object], list[str]]:
    """Return an estimate of a run's calls, tokens and cost, and notes.

    If at least three replies are stored, for example after a run on three texts, the cost is estimated from them with
    a 95% prediction interval, assuming that the ratio of actual to estimated cost has the same mean for all calls.
    """
    price = Price.from_settings(run_plan.record.settings)
    requests = {call.hash: call.request for call in run_plan.iter_calls()}
    row: dict[str, object] = {
        "calls": len(requests),
        "tokens to send": sum(request.estimated_prompt_tokens() for request in requests.values()),
        "most tokens to receive": sum(request.max_tokens for request in requests.values()),
        "likely cost": None,
        "low": None,
        "high": None,
        "most it can cost": None,
        "prompt": run_plan.record.prompt,
    }
    if not price.is_known:
        return row, ["the price is unknown; pass it as IN,OUT or add it to a price file"]
    replies = {hash: entry.reply for hash, entry in (read_cached_replies(runs) if runs else {}).items()}
    costs = {hash: float(price.reply_cost(requests[hash], replies[hash])) for hash in requests if hash in replies}
    estimates = {hash: float(price.estimated_cost(request)) for hash, request in requests.items()}
    open_cost = sum(estimate for hash, estimate in estimates.items() if hash not in costs)
    ratios = [costs[hash] / estimates[hash] for hash in costs if estimates[hash]]
    row["most it can cost"] = sum(
        float(price.max_cost(request)) for hash, request in requests.items() if hash not in costs
    )
    row["likely cost"] = open_cost
    if len(ratios) < 3:
        return row, ["annotate three texts first for an estimate with an interval (limit 3)"]
    from scipy.stats import t as student

    count, open_count = len(ratios), len(requests) - len(costs)
    mean = statistics.fmean(ratios)
    error = statistics.stdev(ratios) * math.sqrt(1 / count + 1 / max(1, open_count))
    margin = float(student.ppf(0.975, count - 1)) * error
    row |= {"likely cost": open_cost * mean, "low": open_cost * max(0.0, mean - margin)}
    row["high"] = open_cost * (mean + margin)
    return row, [f"cost of the {open_count:,} calls that are left, estimated from {count:,} replies (95% interval)"]


def many_calls_warning(run_plan: RunPlan) -> str:
    """Return a warning if a run makes many calls because it sends texts in parts, or an empty string."""
    settings = run_plan.record.settings
    calls = settings.samples * sum(len(task.parts) or 1 for task in run_plan.tasks)
    texts = len({task.document.id for task in run_plan.tasks})
    if calls < MIN_CALLS_TO_WARN or not any(task.parts for task in run_plan.tasks):
        return ""
    why = f"{calls:,} calls for {texts:,} text{'' if texts == 1 else 's'}, because texts are sent in parts"
    if settings.chunk:
        return f"{why}; increase the words of {param('chunk')} to make fewer"
    return f"{why}, each with all earlier text; use {param('chunk')} instead of {param('by_segment')} to make fewer"


def judge_validity_warning(folder: Path, run_plan: RunPlan) -> str:
    """Return why a judge that was calibrated in the study's folder is no longer valid, or an empty string."""
    annotator = run_plan.build_annotator(0)
    path = folder / CONTRACTS_FOLDER / f"{annotator.id}.json"
    if not path.is_file():
        return ""
    contract = JudgeContract.model_validate_json(path.read_text(encoding="utf-8"))
    binding = build_judge_binding(annotator.id, annotator.meta, run_plan.protocol.id)
    metas = {task.document.id: task.document.meta for task in run_plan.tasks}
    counts = text_counts_by_system(contract, metas.values())
    return expiry_warning(contract, binding, datetime.now(UTC), counts) or ""
