"""Reports on generation runs: table rows, notes and cost estimates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from finecomb.annotators.llm.budget import Price
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.generation.generation import GenerationPlan, GenerationRun, generation_note


def decoding_rows(run: GenerationRun) -> list[dict[str, object]]:
    """Return one row per decoding setting with its numbers of texts, words, attempts and dropped texts."""
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
    """Yield notes on dropped texts, rejected samples, calls and cost."""
    for reason, count in Counter(run.dropped.values()).most_common():
        yield f"{_format_count(count, 'text')} dropped: {reason}"
    for reason, count in Counter(run.unwritten.values()).most_common():
        yield f"{_format_count(count, 'text')} not written yet: {reason}"
    for reason, count in Counter(run.rejected).most_common():
        yield f"{_format_count(count, 'sample')} rejected: {reason}"
    yield from run.call_notes()


def plan_notes(run_plan: GenerationPlan) -> list[str]:
    """Return notes on the size of a run, and its maximum cost if the price is known."""
    tasks, settings = run_plan.tasks(), run_plan.settings
    texts, prompts = _format_count(len(tasks), "text"), _format_count(len(run_plan.prompts), "prompt")
    notes = [f"{texts} from {prompts}; no request was sent"]
    if settings.model.price:
        price = Price.from_settings(settings.model)
        max_cost = sum(price.max_cost(run_plan.build_call(task, 0).request) for task in tasks)
        notes.append(f"at most ${max_cost:.4f} if no text needs to be sampled again")
    return notes


def require_texts(run: GenerationRun) -> None:
    """Raise an error with the reason if a finished run generated no text."""
    if not run.documents and not run.stopped:
        reason = next(iter([*run.dropped.values(), *run.unwritten.values()]), "no text was requested")
        raise FinecombError(f"no text was generated: {reason}")


def _format_count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
