"""Power of a critic: share of simulated tests that detect damage planted in held-out real documents.

The scores of original and damaged documents are resampled as the two sides of a comparison. The critic is not refitted,
so the result is the power of this critic with the available number of documents.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from finecomb.core.records import Document, Segment
from finecomb.core.sentences import sentence_offsets
from finecomb.corpora.critics.base import Critic, Statistic
from finecomb.corpora.critics.posteriors import Floats
from finecomb.corpora.critics.scoring import score_documents
from finecomb.engine.partitions import Executor
from finecomb.statistics.measures.mark_audit import wilson_interval

Damage = Callable[[Document, Document, np.random.Generator], Document | None]
"""Function from a document, another document and a generator to the damaged document, or None if not applicable."""

MAX_DOCUMENTS = 200
"""Maximum number of held-out documents to damage."""
SIMULATED_TEST_COUNT, PERMUTATION_COUNT, SIGNIFICANCE_LEVEL = 200, 199, 0.05
MIN_DOCUMENTS_FOR_NORMAL_TEST = 200
"""Number of documents above which the permutation distribution of a mean is approximated by a normal one."""
DAMAGED_SHARES = (0.0, 0.1, 0.5, 1.0)
"""Shares of generated documents that are damaged; without damage, rejections are false positives."""
SIZE_FACTORS = (0.5, 1.0, 2.0)
"""Numbers of documents to evaluate, as multiples of the available number."""
_SWAPPED_PRONOUNS = {"he": "she", "she": "he", "him": "her", "his": "her", "her": "his", "himself": "herself",
            "herself": "himself"}  # fmt: skip
_GENDERED_PRONOUN = re.compile(rf"\b(?:{'|'.join(_SWAPPED_PRONOUNS)})\b", re.IGNORECASE)


# --- damage ------------------------------------------------------------------------------------------------------


def swap_sections(document: Document, other: Document, rng: np.random.Generator) -> Document | None:
    """Swap two adjacent sections, preferably with different titles."""
    order = list(range(len(document.segments)))
    titles = [segment.title for segment in document.segments]
    candidates = [position for position in order[:-1] if titles[position] != titles[position + 1]] or order[:-1]
    if not candidates:
        return None
    position = candidates[int(rng.integers(len(candidates)))]
    order[position], order[position + 1] = order[position + 1], order[position]
    return _reorder_segments(document, order)


def repeat_section(document: Document, other: Document, rng: np.random.Generator) -> Document | None:
    """Repeat a section directly after itself."""
    if not document.segments:
        return None
    position = int(rng.integers(len(document.segments)))
    order = range(len(document.segments))
    return _reorder_segments(document, [*order[: position + 1], *order[position:]])


def _reorder_segments(document: Document, order: Sequence[int]) -> Document:
    """Return the document with its segments in another order, separated by blank lines."""
    pieces = [document.text[document.segments[position].start : document.segments[position].end] for position in order]
    starts = itertools.accumulate((len(piece) + 2 for piece in pieces), initial=0)
    segments = tuple(
        Segment(
            start=start,
            end=start + len(piece),
            title=document.segments[position].title,
            role=document.segments[position].role,
        )
        for position, piece, start in zip(order, pieces, starts, strict=False)
    )
    return document.model_copy(update={"text": "\n\n".join(pieces), "segments": segments})


def shuffle_sentences(document: Document, other: Document, rng: np.random.Generator) -> Document | None:
    """Shuffle the sentences of a document."""
    parts = _sentences(document)
    order = rng.permutation(len(parts))
    if len(parts) < 2:
        return None
    if (order == np.arange(len(parts))).all():
        order = np.roll(order, 1)
    return _replace_text(document, [parts[position] for position in order])


def replace_second_half(document: Document, other: Document, rng: np.random.Generator) -> Document | None:
    """Replace the second half of a document's sentences with that of another document."""
    parts, others = _sentences(document), _sentences(other)
    if min(len(parts), len(others)) < 2:
        return None
    return _replace_text(document, [*parts[: len(parts) // 2], *others[len(others) // 2 :]])


def swap_pronoun_genders(document: Document, other: Document, rng: np.random.Generator) -> Document | None:
    """Swap the gender of a third of the pronouns `he` and `she`, at least one."""
    matches = list(_GENDERED_PRONOUN.finditer(document.text))
    if not matches:
        return None
    chosen = set(rng.choice(len(matches), size=-(-len(matches) // 3), replace=False).tolist())
    text = document.text
    for number, match in reversed([*enumerate(matches)]):  # from the end, so that offsets stay valid
        if number in chosen:
            swapped = _SWAPPED_PRONOUNS[match[0].lower()]
            swapped = swapped.capitalize() if match[0][0].isupper() else swapped
            text = text[: match.start()] + swapped + text[match.end() :]
    return document.model_copy(update={"text": text, "segments": ()})


def _sentences(document: Document) -> list[str]:
    return [document.text[start:end] for start, end in sentence_offsets(document.text)]


def _replace_text(document: Document, parts: Iterable[str]) -> Document:
    return document.model_copy(update={"text": " ".join(parts), "segments": ()})


DAMAGE_BY_NAME: Mapping[str, Damage] = {
    "two sections swapped": swap_sections,
    "a section said again": repeat_section,
    "sentences shuffled": shuffle_sentences,
    "half of another text": replace_second_half,
    "he and she exchanged": swap_pronoun_genders,
}
"""Kinds of damage by name; a critic lists in `damages` those it should detect."""


# --- power -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PowerPoint:
    """Power of a test, for a number of documents and a share of damaged documents among the generated ones."""

    critic: str
    damage: str
    size: float
    """Number of documents as a multiple of those available."""
    damaged: float
    """Share of generated documents that are damaged."""
    real: int
    generated: int
    """Number of generated documents in a test; `real` is the number of real documents."""
    seen: float
    """Share of simulated tests that reject at 5%; NaN if fewer than two documents can be damaged and scored."""
    low: float
    high: float
    """Upper end of the 95% Wilson interval over the simulated tests; `low` is the lower end."""
    tried: int
    """Number of held-out documents that could be damaged and scored."""

    def row(self) -> dict[str, object]:
        """Return the result as a table row."""
        return {
            "critic": self.critic, "damage": self.damage, "damaged": self.damaged,
            "documents": f"{self.real}+{self.generated}", "seen": self.seen, "low": self.low, "high": self.high,
            "tried": self.tried,
        }  # fmt: skip


def power_curve(
    critic: Critic,
    held_out: Sequence[Document],
    generated: int = 0,
    statistic: Statistic | None = None,
    seed: int = 0,
    runs: int = SIMULATED_TEST_COUNT,
    spread: Executor | None = None,
) -> list[PowerPoint]:
    """Return the power for each kind of damage, share of damaged documents and number of documents.

    `generated` is the number of generated documents in a test; 0 means as many as real documents.
    """
    rng = np.random.default_rng(seed)
    if len(held_out) <= MAX_DOCUMENTS:
        sample = list(held_out)
    else:
        sample = [
            held_out[position] for position in np.sort(rng.choice(len(held_out), size=MAX_DOCUMENTS, replace=False))
        ]
    rows = []
    for name in critic.damages:
        damage, others = DAMAGE_BY_NAME[name], [*sample[1:], *sample[:1]]
        pairs = [(document, damage(document, other, rng)) for document, other in zip(sample, others, strict=True)]
        usable = [(document, changed) for document, changed in pairs if changed is not None]
        sides = [score_documents(critic, [pair[side] for pair in usable], statistic, spread=spread) for side in (0, 1)]
        values = [dict(zip(side.ids, side.values, strict=True)) for side in sides]
        shared = [document.id for document, _ in usable if document.id in values[0] and document.id in values[1]]
        whole, damaged = (np.array([side[id] for id in shared], dtype=np.float64) for side in values)
        for size, share in itertools.product(SIZE_FACTORS, DAMAGED_SHARES):
            real, generations = (max(2, round(size * count)) for count in (len(held_out), generated or len(held_out)))
            figures = (
                _rejection_rate(whole, damaged, (real, generations), share, runs, rng)
                if len(whole) > 1
                else (np.nan,) * 3
            )
            rows.append(PowerPoint(critic.name, name, size, share, real, generations, *figures, len(whole)))
    return rows


def _rejection_rate(
    whole: Floats, damaged: Floats, sizes: tuple[int, int], share: float, runs: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return the share of simulated tests that reject, with its interval."""
    p = _normal_approximation_p_value if sum(sizes) > MIN_DOCUMENTS_FOR_NORMAL_TEST else _permutation_p_value
    is_damaged = np.arange(sizes[1]) < round(share * sizes[1])
    rejections = 0
    for _ in range(runs):
        real = whole[rng.integers(len(whole), size=sizes[0])]
        positions = rng.integers(len(whole), size=sizes[1])
        generated = np.where(is_damaged, damaged[positions], whole[positions])
        rejections += p(real, generated, rng) <= SIGNIFICANCE_LEVEL
    rate = rejections / runs
    low, high = wilson_interval(np.array([rate]), np.array([float(runs)]))
    return float(rate), float(low[0]), float(high[0])


def _permutation_p_value(first: Floats, second: Floats, rng: np.random.Generator) -> float:
    """Return the two-sided permutation p-value of a difference of means."""
    both = np.concatenate([first, second])
    permuted = rng.permuted(np.broadcast_to(both, (PERMUTATION_COUNT, len(both))), axis=1)
    sums = permuted[:, : len(first)].sum(axis=1)
    null = np.abs(sums / len(first) - (both.sum() - sums) / len(second))
    difference = abs(first.mean() - second.mean())
    return float((1 + (null >= difference - 1e-12).sum()) / (1 + PERMUTATION_COUNT))


def _normal_approximation_p_value(first: Floats, second: Floats, rng: np.random.Generator) -> float:
    """Return the two-sided p-value from a normal approximation of the permutation distribution."""
    both = np.concatenate([first, second])
    spread = both.std(ddof=1) * np.sqrt(1 / len(first) + 1 / len(second))
    difference = abs(first.mean() - second.mean())
    return float(2 * stats.norm.sf(difference / spread)) if spread > 0 else 1.0


def describe_power(rows: Sequence[PowerPoint]) -> list[str]:
    """Describe in one sentence per kind of damage the power with the available documents."""
    sentences = []
    for point in rows:
        if point.size != 1 or point.damaged != 1:
            continue
        if np.isnan(point.seen):
            sentences.append(
                f"the {point.critic} critic: fewer than two documents can be damaged ({point.damage}) and scored"
            )
        else:
            sentences.append(
                f"the {point.critic} critic: with {point.real} held-out real and {point.generated} generated "
                f"documents, damage in each ({point.damage}) is detected in {100 * point.seen:.0f}% of simulated tests"
            )
    return sentences
