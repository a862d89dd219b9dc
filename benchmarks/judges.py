"""Anchoring, planted probe effects, and time for calibration and estimates; writes tables in the docs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks._docs import markdown_table, write_table
from finecomb.core.protocol import Label, Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.results import Signature
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.statistics.judges.anchoring_effect import estimate_anchoring_effect
from finecomb.statistics.judges.calibration import calibrate_against_people
from finecomb.statistics.judges.estimates import estimate_means
from finecomb.statistics.judges.reliability_probes import mean_paired_difference

Floats = NDArray[np.float64]
RUN_COUNT = 1000
PAGE = "judges/calibrate.md"
TEXT_COUNT, PERSON_COUNT, JUDGE_COUNT = 1200, 4, 6
LABELS = ("name", "number", "word", "context", "other")
SENTENCE = "The Gulls beat the Terns by ten points on Friday, and the Herons lost to the Crakes once more at home. "


# --- anchoring and probes ----------------------------------------------------------------------------------------


def simulate_assisted_study(
    effect: float, crossed: bool, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """Simulate three annotations of 100 texts; help adds `effect` marks and is given to 70% of tasks or texts."""
    text = np.repeat(np.arange(100), 3)
    level = rng.gamma(2, 1, 100)
    helped = rng.random(300) < 0.7 if crossed else np.repeat(rng.random(100) < 0.7, 3)
    return rng.poisson(level[text] + effect * helped).astype(float), helped, text


def write_anchoring_table() -> None:
    rows = []
    for name, crossed in (("by task", True), ("by text", False)):
        for effect in (0.0, 0.8):
            ends = [_effect_interval(effect, crossed, run) for run in range(RUN_COUNT)]
            held = np.mean([low <= effect <= high for low, high in ends])
            rows.append([name, effect, f"{np.mean([high - low for low, high in ends]):.2f}", f"{held:.3f}"])
    head = ["help is drawn", "true effect, marks per text", "width of the interval", "holds the truth"]
    write_table(PAGE, "anchoring", markdown_table(head, rows))


def _effect_interval(effect: float, crossed: bool, run: int) -> tuple[float, float]:
    return estimate_anchoring_effect(
        *simulate_assisted_study(effect, crossed, np.random.default_rng([5, run]))
    ).interval()


def write_probe_table() -> None:
    rows = []
    for texts in (50, 100):
        for effect in (0.0, 0.35):
            found = sum(_is_effect_found(effect, texts, run) for run in range(RUN_COUNT))
            rows.append([texts, effect, f"{found / RUN_COUNT:.3f}"])
    head = ["texts", "planted effect, standard deviations", "found"]
    write_table(PAGE, "probes", markdown_table(head, rows))


def _is_effect_found(effect: float, texts: int, run: int) -> bool:
    """Check whether a planted effect, in standard deviations of the difference between two annotations, is detected."""
    rng = np.random.default_rng([6, texts, run])
    level = rng.gamma(2, 1, texts)
    base, variant = (rng.poisson(level).astype(float) for _ in range(2))
    estimate = mean_paired_difference(
        base, variant + effect * 2.0, Signature.from_fields()
    )  # sd of the difference: sqrt(2 * 2)
    return not estimate.low <= 0 <= estimate.high


# --- speed -------------------------------------------------------------------------------------------------------


def make_corpus(seed: int = 0) -> Iterator[StudyItem]:
    """Build a corpus of 1,200 texts of 100 words, annotated by four people and six judges."""
    rng = np.random.default_rng(seed)
    protocol = Protocol(
        name="slips", version="1", title="Slips", summary="What is wrong.",
        labels=tuple(Label(name=name, gloss=name) for name in LABELS),
    )  # fmt: skip
    yield protocol
    text = SENTENCE * 5
    for number in range(TEXT_COUNT):
        yield Document(id=f"d{number:04}", text=text, meta={"model": f"m{number % 4}"})
    readers = [(f"p{at}", "human") for at in range(PERSON_COUNT)] + [(f"j{at}", "llm") for at in range(JUDGE_COUNT)]
    errors = [
        [
            (int(start), int(start) + 6, LABELS[int(label)])
            for start, label in zip(rng.integers(0, 480, count), rng.integers(0, 5, count), strict=True)
        ]
        for count in rng.negative_binomial(1, 0.25, TEXT_COUNT)
    ]
    for name, kind in readers:
        yield Annotator(id=name, kind=kind)
        for number, own in enumerate(errors):
            found = [error for error in own if rng.random() < 0.7]
            marks = tuple(
                Mark(id=f"{name}/{number}/{at}", spans=(Span(start, end),), quotes=(text[start:end],), label=label)
                for at, (start, end, label) in enumerate(found)
            )
            yield Annotation(
                id=f"{name}/{number}", document=f"d{number:04}", annotator=name, protocol=protocol.id, marks=marks,
                status="submitted",
            )  # fmt: skip


def measure_speed() -> None:
    study = Study.from_items(make_corpus())
    judges = [f"j{at}" for at in range(JUDGE_COUNT)]
    before = time.process_time()
    for judge in judges:
        calibrate_against_people(study, judge)
    took = time.process_time() - before
    print(f"calibrate: {TEXT_COUNT:,} texts, {JUDGE_COUNT} judges, 1,000 resamples: {took:.1f} CPU s (limit: 30)")
    before = time.process_time()
    estimate_means(study, judges, ("count", "coverage"), by="model")
    print(f"estimate: {TEXT_COUNT:,} texts, {JUDGE_COUNT} judges: {time.process_time() - before:.1f} CPU s (limit: 3)")


def main() -> None:
    measure_speed()
    write_anchoring_table()
    write_probe_table()
