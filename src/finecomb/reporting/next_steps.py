"""Suggested next steps: commands that apply to the current content of a study."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from finecomb.core.frames import meta_entry
from finecomb.core.study import Study
from finecomb.reporting.figures.figure_model import format_count_with_noun

MAX_STEPS = 3
MIN_GOLD_ANNOTATORS = 3
"""Minimum number of annotators per text for a majority."""
_MACHINES = ("llm", "detector", "checker")


@dataclass(frozen=True, slots=True)
class SuggestedCommand:
    """Command to run next, with the reason."""

    command: str
    reason: str


def next_steps(study: Study, name: str = "STUDY") -> list[SuggestedCommand]:
    """Return at most three commands to run next, most urgent first; `name` is the path of the study."""
    return list(_iter_steps(study, shlex.quote(name)))[:MAX_STEPS]


def _iter_steps(study: Study, name: str) -> Iterator[SuggestedCommand]:
    """Yield commands in order of urgency: collect texts and annotations, validate judges, compute results, report."""
    texts = len(study.documents)
    if not texts:
        yield SuggestedCommand(f"finecomb merge {name} texts.csv", "The study has no texts.")
        return
    work = study.submitted_work().annotations.join(
        study.annotators.select(annotator="id", annotator_kind="kind"), on="annotator", how="left"
    )
    if work.is_empty():
        yield SuggestedCommand(
            f"finecomb serve {name}", f"{format_count_with_noun(texts, 'text')} without annotations."
        )
        yield SuggestedCommand(f"finecomb annotate {name} --model MODEL", "A language model can annotate the texts.")
        yield SuggestedCommand(
            f"finecomb rehearse {name}", "A trial run with simulated participants shows cost and power."
        )
        return
    people, needed = work.filter(pl.col("annotator_kind") == "human"), study.settings.annotators
    annotator_counts = people.group_by("document").agg(pl.col("annotator").n_unique())["annotator"]
    if needed and not people.is_empty():
        done = int(annotator_counts.clip(upper_bound=needed).sum())
        if done < needed * texts:
            reason = f"{done:,} of {needed * texts:,} annotations by people are complete."
            yield SuggestedCommand(f"finecomb serve {name}", reason)
    kinds, max_annotators = set(work["annotator_kind"]), max(annotator_counts, default=0)
    machines = work.filter(pl.col("annotator_kind").is_in(_MACHINES))["annotator"].unique().sort().to_list()
    if machines and "gold" in kinds:
        yield SuggestedCommand(f"finecomb score {name}", f"{machines[0]} can be scored against the gold standard.")
    elif machines and max_annotators > 1:
        yield SuggestedCommand(
            f"finecomb calibrate {name} --judge {shlex.quote(machines[0])}",
            f"A calibration shows whether {machines[0]} can replace people.",
        )
    same_text = f"Up to {max_annotators} people annotated the same text"
    if max_annotators > 1:
        yield SuggestedCommand(f"finecomb agree {name}", f"{same_text}, so inter-annotator agreement can be computed.")
    yield from _result_steps(study, name)
    if max_annotators >= MIN_GOLD_ANNOTATORS and "gold" not in kinds:
        yield SuggestedCommand(
            f"finecomb gold {name} -o {name}-gold", f"{same_text}, so their marks can be merged into a gold standard."
        )
    yield SuggestedCommand(
        f"finecomb report {name} -o report", "A report shows the results with figures and every text."
    )


def _result_steps(study: Study, name: str) -> Iterator[SuggestedCommand]:
    """Yield the commands that measure and compare systems, by marks or by ratings."""
    systems = study.documents.select(meta_entry("model"))["model"].drop_nulls().n_unique()
    protocols = study.protocols.values()
    ratings = [
        q.name for protocol in protocols for q in protocol.document_questions if q.scale in ("ordinal", "number")
    ]
    if any(protocol.name == "turing" for protocol in protocols):
        yield SuggestedCommand(
            f"finecomb test {name} --what human-or-machine", "Ratings of human and machine text can be tested."
        )
        return
    if any(protocol.labels or protocol.unlabelled for protocol in protocols):
        options, reason = "", f"{format_count_with_noun(len(study.marks), 'mark')} can be counted by label and system."
    elif ratings:
        options, reason = f" --measure answer:{ratings[0]}", f"Answers to {ratings[0]!r} can be averaged."
    else:
        return  # preferences and free text have no mean
    if systems > 1:
        yield SuggestedCommand(f"finecomb test {name}{options}", f"{systems} systems can be compared.")
    yield SuggestedCommand(f"finecomb measure {name}{options}", reason)
