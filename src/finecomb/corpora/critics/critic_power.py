"""Could a critic see anything? Damage planted in held-out real documents, and how often the test then rejects.

The scores of held-out documents, whole and damaged, are drawn again and again as two sides of a comparison; nothing is
fitted again, so this is the power of the critic at hand with as many documents as there are.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from finecomb.core.records import Document, Segment
from finecomb.core.sentences import sentences
from finecomb.corpora.critics.base import Critic, Statistic
from finecomb.corpora.critics.posteriors import Floats
from finecomb.corpora.critics.scoring import score_documents
from finecomb.engine.partitions import Executor
from finecomb.statistics.measures.mark_audit import wilson_interval

Damage = Callable[[Document, Document, np.random.Generator], Document | None]
"""From a document, another one and random numbers to the damaged document; None where there is nothing to damage."""

MAX_DOCUMENTS = 200
"""So many held-out documents are damaged at most."""
RUN_COUNT, PERMUTATION_COUNT, SIGNIFICANCE_LEVEL = 200, 199, 0.05
NORMAL_MIN_DOCUMENTS = 200
"""From so many documents on, the permutation distribution of a mean is taken as the normal one it tends to."""
DAMAGED_SHARES = (0.0, 0.1, 0.5, 1.0)
"""How many of the documents are damaged; without damage, rejections are false alarms."""
SIZE_FACTORS = (0.5, 1.0, 2.0)
"""Times the documents that there are."""
_SWAPPED_PRONOUNS = {"he": "she", "she": "he", "him": "her", "his": "her", "her": "his", "himself": "herself",
            "herself": "himself"}  # fmt: skip
_GENDERED_PRONOUN = re.compile(rf"\b(?:{'|'.join(_SWAPPED_PRONOUNS)})\b", re.IGNORECASE)


# --- damage ------------------------------------------------------------------------------------------------------


def swap_sections(document: Document, other: Document, rng: np.random.Generator) -> Document | None:
    """Two neighbouring sections with different titles, or any two, change places."""
    order = list(range(len(document.segments)))
    titles = [segment.title for segment in document.segments]
    places = [at for at in order[:-1] if titles[at] != titles[at + 1]] or order[:-1]
    if not places:
        return None
    at = places[int(rng.integers(len(places)))]
    order[at], order[at + 1] = order[at + 1], order[at]
    return _reorder_segments(document, order)


def repeat_section(document: Document, other: Document, rng: np.random.Generator) -> Document | None:
    """A section comes once more, right after itself."""
    if not document.segments:
        return None
    at = int(rng.integers(len(document.segments)))
    order = range(len(document.segments))
    return _reorder_segments(document, [*order[: at + 1], *order[at:]])


def _reorder_segments(document: Document, order: Sequence[int]) -> Document:
    """The document of its segments in another order, a blank line between them."""
    pieces = [document.text[document.segments[at].start : document.segments[at].end] for at in order]
    starts = itertools.accumulate((len(piece) + 2 for piece in pieces), initial=0)
    segments = tuple(
        Segment(start=start, end=start + len(piece), title=document.segments[at].title, role=document.segments[at].role)
        for at, piece, start in zip(order, pieces, starts, strict=False)
    )
    return document.model_copy(update={"text": "\n\n".join(pieces), "segments": segments})


def shuffle_sentences(document: Document, other: Document, rng: np.random.Generator) -> Document | None:
    """The same sentences in another order."""
    parts = _sentences(document)
    order = rng.permutation(len(parts))
    if len(parts) < 2:
        return None
    if (order == np.arange(len(parts))).all():
        order = np.roll(order, 1)
    return _replace_text(document, [parts[at] for at in order])


def replace_second_half(document: Document, other: Document, rng: np.random.Generator) -> Document | None:
    """The second half of the sentences is that of another document."""
    parts, others = _sentences(document), _sentences(other)
    if min(len(parts), len(others)) < 2:
        return None
    return _replace_text(document, [*parts[: len(parts) // 2], *others[len(others) // 2 :]])


def swap_pronoun_genders(document: Document, other: Document, rng: np.random.Generator) -> Document | None:
    """A third of the pronouns `he` and `she`, at least one, become the other."""
    matches = list(_GENDERED_PRONOUN.finditer(document.text))
    if not matches:
        return None
    chosen = set(rng.choice(len(matches), size=-(-len(matches) // 3), replace=False).tolist())
    numbers = itertools.count()
    text = _GENDERED_PRONOUN.sub(
        lambda match: _swap_pronoun(match[0]) if next(numbers) in chosen else match[0], document.text
    )
    return document.model_copy(update={"text": text, "segments": ()})


def _swap_pronoun(word: str) -> str:
    other = _SWAPPED_PRONOUNS[word.lower()]
    return other.capitalize() if word[0].isupper() else other


def _sentences(document: Document) -> list[str]:
    return [document.text[start:end] for start, end in sentences(document.text)]


def _replace_text(document: Document, parts: Iterable[str]) -> Document:
    return document.model_copy(update={"text": " ".join(parts), "segments": ()})


DAMAGES: Mapping[str, Damage] = {
    "two sections swapped": swap_sections,
    "a section said again": repeat_section,
    "sentences shuffled": shuffle_sentences,
    "half of another text": replace_second_half,
    "he and she exchanged": swap_pronoun_genders,
}
"""Every kind of damage by name; a critic says in `damages` which it should notice."""


# --- power -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PowerPoint:
    """How often a test of so many documents rejects when a share of the generated ones is damaged."""

    critic: str
    damage: str
    size: float
    """1 for as many documents as there are."""
    damaged: float
    """The share of generated documents that are damaged."""
    real: int
    generated: int
    """How many documents stand on each side."""
    seen: float
    """The share of runs that reject at 5%; NaN where no document can be damaged and scored."""
    low: float
    high: float
    """95% interval for how many runs there were (Wilson)."""
    tried: int
    """How many documents of the study could be damaged and scored."""

    def row(self) -> dict[str, object]:
        """For a table."""
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
    runs: int = RUN_COUNT,
    spread: Executor | None = None,
) -> list[PowerPoint]:
    """For every damage the critic should notice, shares of damaged documents and numbers of documents: the power.

    `generated` is how many generated documents there are to be judged; 0 stands for as many as real ones. Documents
    are scored as `spread` says.
    """
    rng = np.random.default_rng(seed)
    sample = _sample(held_out, rng)
    rows = []
    for name in critic.damages:
        whole, damaged = _scored_pairs(critic, sample, DAMAGES[name], statistic, rng, spread)
        for size, share in itertools.product(SIZE_FACTORS, DAMAGED_SHARES):
            real, generations = (max(2, round(size * count)) for count in (len(held_out), generated or len(held_out)))
            figures = (
                _rejection_rate(whole, damaged, (real, generations), share, runs, rng)
                if len(whole) > 1
                else (np.nan,) * 3
            )
            rows.append(PowerPoint(critic.name, name, size, share, real, generations, *figures, len(whole)))
    return rows


def _sample(documents: Sequence[Document], rng: np.random.Generator) -> list[Document]:
    if len(documents) <= MAX_DOCUMENTS:
        return list(documents)
    return [documents[at] for at in np.sort(rng.choice(len(documents), size=MAX_DOCUMENTS, replace=False))]


def _scored_pairs(
    critic: Critic,
    documents: Sequence[Document],
    damage: Damage,
    statistic: Statistic | None,
    rng: np.random.Generator,
    spread: Executor | None = None,
) -> tuple[Floats, Floats]:
    """T(x) of the documents that could be damaged and scored, whole and damaged."""
    others = [*documents[1:], *documents[:1]]
    pairs = [(document, damage(document, other, rng)) for document, other in zip(documents, others, strict=True)]
    usable = [(document, changed) for document, changed in pairs if changed is not None]
    sides = [score_documents(critic, [pair[side] for pair in usable], statistic, spread=spread) for side in (0, 1)]
    values = [dict(zip(side.ids, side.values, strict=True)) for side in sides]
    shared = [document.id for document, _ in usable if document.id in values[0] and document.id in values[1]]
    whole, damaged = (np.array([side[id] for id in shared], dtype=np.float64) for side in values)
    return whole, damaged


def _rejection_rate(
    whole: Floats, damaged: Floats, sizes: tuple[int, int], share: float, runs: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """The share of runs whose permutation test rejects, with its interval."""
    p = _normal_p_value if sum(sizes) > NORMAL_MIN_DOCUMENTS else _permutation_p_value
    rate = np.mean([p(*_draw_sides(whole, damaged, sizes, share, rng), rng) <= SIGNIFICANCE_LEVEL for _ in range(runs)])
    low, high = wilson_interval(np.array([rate]), np.array([float(runs)]))
    return float(rate), float(low[0]), float(high[0])


def _draw_sides(
    whole: Floats, damaged: Floats, sizes: tuple[int, int], share: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Scores of a real and of a generated side, drawn from the documents there are."""
    real = whole[rng.integers(len(whole), size=sizes[0])]
    places = rng.integers(len(whole), size=sizes[1])
    hurt = np.arange(sizes[1]) < round(share * sizes[1])
    return real, np.where(hurt, damaged[places], whole[places])


def _permutation_p_value(first: Floats, second: Floats, rng: np.random.Generator) -> float:
    """Two-sided p of the difference of means when values change sides at random."""
    both = np.concatenate([first, second])
    moved = rng.permuted(np.broadcast_to(both, (PERMUTATION_COUNT, len(both))), axis=1)
    sums = moved[:, : len(first)].sum(axis=1)
    null = np.abs(sums / len(first) - (both.sum() - sums) / len(second))
    difference = abs(first.mean() - second.mean())
    return float((1 + (null >= difference - 1e-12).sum()) / (1 + PERMUTATION_COUNT))


def _normal_p_value(first: Floats, second: Floats, rng: np.random.Generator) -> float:
    """The same from the normal distribution with the variance that changing sides gives."""
    both = np.concatenate([first, second])
    spread = both.std(ddof=1) * np.sqrt(1 / len(first) + 1 / len(second))
    difference = abs(first.mean() - second.mean())
    return float(2 * stats.norm.sf(difference / spread)) if spread > 0 else 1.0


def describe_power(rows: Sequence[PowerPoint]) -> list[str]:
    """For each kind of damage one sentence: how often it is seen in the documents there are."""
    words = []
    for point in rows:
        if point.size != 1 or point.damaged != 1:
            continue
        if np.isnan(point.seen):
            words.append(f"the {point.critic} critic: no held-out real document can have {point.damage} and be scored")
        else:
            words.append(
                f"the {point.critic} critic: with your {point.real} held-out real and {point.generated} generated "
                f"documents, {point.damage} in each is seen in {100 * point.seen:.0f}% of runs"
            )
    return words
