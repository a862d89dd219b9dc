"""Runs of text generation for those who read the numbers: rows, notes and estimates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.run_reports import format_call_count
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.generation.generation import GenerationPlan, GenerationRun, generation_note


def decoding_rows(run: GenerationRun) -> list[dict[str, object]]:
    """Return what came of each setting of decoding."""
    texts: dict[str, list[Document]] = {decoding.name: [] for decoding in run.plan.settings.decodings}
    for document in run.documents:
        texts[generation_note(document).decoding].append(document)
    dropped = Counter(id.split("/")[-2 if run.plan.settings.model.samples > 1 else -1] for id in run.dropped)
    return [
        {
            "setting": name,
            "texts": len(members),
            "words": _mean([generation_note(document).words for document in members]),
            "attempts": _mean([generation_note(document).attempt for document in members]),
            "dropped": dropped[name],
        }
        for name, members in texts.items()
    ]


def _mean(numbers: Sequence[int]) -> float | None:
    return round(sum(numbers) / len(numbers), 1) if numbers else None


def generation_notes(run: GenerationRun) -> Iterator[str]:
    """Yield what a reader of the table should know."""
    for reason, count in Counter(run.dropped.values()).most_common():
        yield f"{_format_count(count, 'text')} dropped: {reason}"
    for reason, count in Counter(run.unwritten.values()).most_common():
        yield f"{_format_count(count, 'text')} not written yet: {reason}"
    for reason, count in Counter(run.rejected).most_common():
        yield f"{_format_count(count, 'sample')} not taken: {reason}"
    yield format_call_count(run.calls, run.cached, run.cost, run.folder)
    if run.stopped:
        yield f"{run.stopped}; the same command goes on from here"


def plan_rows(run_plan: GenerationPlan) -> list[dict[str, object]]:
    """Return how many texts a run would write with each setting of decoding."""
    counts = Counter(task.decoding.name for task in run_plan.tasks())
    return [{"setting": name, "texts": count} for name, count in counts.items()]


def plan_notes(run_plan: GenerationPlan) -> list[str]:
    """Return how much a run would write, and its maximum cost where the price is known."""
    tasks, settings = run_plan.tasks(), run_plan.settings
    texts, prompts = _format_count(len(tasks), "text"), _format_count(len(run_plan.prompts), "prompt")
    notes = [f"{texts} from {prompts}; nothing was sent"]
    if settings.model.price:
        price = Price.from_settings(settings.model)
        most = sum(price.max_cost(run_plan.build_call(task, 0).request) for task in tasks)
        notes.append(f"at most ${most:.4f} where no text has to be sampled again")
    return notes


def require_texts(run: GenerationRun) -> None:
    """Refuse a finished run that wrote no text, with the reason."""
    if not run.documents and not run.stopped:
        reason = next(iter([*run.dropped.values(), *run.unwritten.values()]), "nothing was asked")
        raise FinecombError(f"no text was written: {reason}")


def _format_count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
