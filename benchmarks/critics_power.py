"""False positive rate and power of the critics' tests on a synthetic corpus.

    python -m benchmarks critics_power

Prints the tables of docs/critics/power.md. Documents have sections whose types follow a known Markov chain. Each run
repeats all steps: real documents are split, a critic is fitted, and held-out and generated ones are scored and
compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from finecomb.core.records import Document, Segment
from finecomb.corpora.critics import compare, score_documents
from finecomb.corpora.critics.base import CriticScores
from finecomb.corpora.critics.comparison import Comparison, combine_split_comparisons
from finecomb.corpora.critics.criticism import Criticism, criticize, split_for_fitting

STATES = "abcdefgh"
RUN_COUNT, DRAW_COUNT = 400, 199


def random_transition_table(rng: np.random.Generator) -> np.ndarray:
    """Return a random chain over eight types with begin and end states that cannot end at once."""
    table = rng.dirichlet(np.full(len(STATES) + 1, 0.5), len(STATES) + 1)
    table[0, -1], table[1:, -1] = 0, 0.25
    table[0] /= table[0].sum()
    table[1:, :-1] *= 0.75 / table[1:, :-1].sum(axis=1, keepdims=True)
    return table


def sample_section_types(rng: np.random.Generator, table: np.ndarray) -> list[str]:
    at, states = 0, list[str]()
    while (step := int(rng.choice(len(STATES) + 1, p=table[at]))) < len(STATES):
        states.append(STATES[step])
        at = step + 1
    return states


def make_document(id: str, states: Iterable[str], **meta: str) -> Document:
    texts = [f"{id} {state} {at}" for at, state in enumerate(states)]
    ends = np.cumsum([len(text) + 1 for text in texts]) - 1
    titles = [text.split()[1] for text in texts]
    spans = zip(ends.tolist(), texts, titles, strict=True)
    segments = tuple(Segment(start=end - len(text), end=end, title=title) for end, text, title in spans)
    return Document(id=id, text=" ".join(texts), segments=segments, meta=meta)


def make_corpus(rng: np.random.Generator, table: np.ndarray, count: int, name: str) -> list[Document]:
    return [make_document(f"{name}{at}", sample_section_types(rng, table)) for at in range(count)]


def swap_sections(rng: np.random.Generator, page: Document) -> Document:
    """Swap two adjacent sections."""
    titles = [segment.title for segment in page.segments]
    if len(titles) > 1:
        at = int(rng.integers(len(titles) - 1))
        titles[at], titles[at + 1] = titles[at + 1], titles[at]
    return make_document(f"swapped {page.id}", titles)


def repeat_section(rng: np.random.Generator, page: Document) -> Document:
    """Repeat a section."""
    titles = [segment.title for segment in page.segments]
    at = int(rng.integers(len(titles)))
    return make_document(f"looped {page.id}", [*titles[: at + 1], *titles[at:]])


def criticize_sections(real: list[Document], generated: list[Document], seed: int) -> Criticism:
    return criticize("sections", real, {"s": generated}, seed=seed, labels="title", smoothing="add:0.1")


def mean_comparison(rows: list[Comparison]) -> Comparison:
    return next(row for row in rows if row.statistic != "ppl")


def compare_means(result: Criticism, seed: int) -> Comparison:
    return mean_comparison(compare(result.real, result.systems, draws=DRAW_COUNT, seed=seed))


# --- null hypothesis ---------------------------------------------------------------------------------------------


def null_p_values(seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    table = random_transition_table(rng)
    real, generated = make_corpus(rng, table, 80, "r"), make_corpus(rng, table, 40, "g")
    result = criticize_sections(real, generated, seed)
    fitted_on = replace(result, real=score_documents(result.critic, split_for_fitting(real, seed=seed)[0]))
    return {
        "held-out real documents": compare_means(result, seed).p,
        "fitted documents taken for real": compare_means(fitted_on, seed).p,
    }


def clustered_null_p_values(seed: int) -> dict[str, float]:
    """Compare six continuations of each of ten prompts with forty real documents; half of a value is the prompt's."""
    rng = np.random.default_rng(seed)

    def draw_scores(prompts: int, times: int) -> CriticScores:
        effects = np.repeat(rng.normal(size=prompts), times)
        values = 10 + effects + rng.normal(size=len(effects))
        ones = np.ones(len(values), np.int64)
        names = tuple(str(at // times) for at in range(len(values)))
        return CriticScores(
            "c", "nll", False, tuple(map(str, range(len(values)))), values, ones, ones, names, (), names
        )

    real, generated = draw_scores(40, 1), draw_scores(10, 6)
    alone = [replace(scored, clusters=()) for scored in (real, generated)]
    p_alone = mean_comparison(compare(alone[0], {"s": alone[1]}, draws=DRAW_COUNT, seed=seed)).p
    p_cluster = mean_comparison(compare(real, {"s": generated}, draws=DRAW_COUNT, seed=seed)).p
    return {"six continuations of a prompt": p_alone, "the same with --cluster prompt": p_cluster}


def short_text_null_p_values(seed: int) -> dict[str, float]:
    """Compare real documents with the shorter half of the documents of the same process."""
    rng = np.random.default_rng(seed)
    table = random_transition_table(rng)
    drawn = sorted(make_corpus(rng, table, 80, "g"), key=lambda page: (len(page.segments), page.id))[:40]
    row = compare_means(criticize_sections(make_corpus(rng, table, 160, "r"), drawn, seed), seed)
    return {"shorter documents, p": row.p, "shorter documents, p_matched": row.p_matched}


def split_null_p_values(seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    table = random_transition_table(rng)
    real, generated = make_corpus(rng, table, 80, "r"), make_corpus(rng, table, 40, "g")
    rows = []
    for number in range(5):
        result = criticize_sections(real, generated, 100 * seed + number)
        rows.append(compare(result.real, result.systems, draws=DRAW_COUNT, seed=seed))
    pvalues = [mean_comparison(row).p for row in rows]
    return {
        "--splits 5": mean_comparison(combine_split_comparisons(rows)).p,
        "range of p over five splits": max(pvalues) - min(pvalues),
    }


def print_null_table(runs: int) -> None:
    print("rejections at 5% under the null hypothesis, in percent")
    for world in (null_p_values, clustered_null_p_values, short_text_null_p_values, split_null_p_values):
        rows = [world(seed) for seed in range(runs if world is not split_null_p_values else runs // 4)]
        for name in rows[0]:
            values = np.array([row[name] for row in rows])
            figure = (
                f"median {np.median(values):.2f}"
                if name.startswith("range")
                else f"{100 * np.mean(values <= 0.05):.1f}"
            )
            print(f"  {name:40} {figure:>12}   of {len(rows)} runs", flush=True)


# --- planted damage ----------------------------------------------------------------------------------------------


def power(damage: Callable[[np.random.Generator, Document], Document], share: float, count: int, runs: int) -> float:
    """Return the share of runs that reject when a share of the generated documents is damaged."""
    hits = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        table = random_transition_table(rng)
        pages = make_corpus(rng, table, count, "g")
        generated = [damage(rng, page) if rng.random() < share else page for page in pages]
        hits += (
            compare_means(criticize_sections(make_corpus(rng, table, 2 * count, "r"), generated, seed), seed).p <= 0.05
        )
    return hits / runs


def print_power_table(runs: int) -> None:
    print("runs that reject at 5%, in percent, by number of documents per side")
    for name, damage in (("two sections swapped", swap_sections), ("a section said again", repeat_section)):
        for share in (0.5, 1.0):
            figures = [f"{100 * power(damage, share, count, runs):5.0f}" for count in (20, 40, 80)]
            print(f"  {name}, {100 * share:3.0f}% of documents  {' '.join(figures)}", flush=True)


def main() -> None:
    """Print both tables."""
    print_null_table(RUN_COUNT)
    print_power_table(RUN_COUNT // 8)


if __name__ == "__main__":
    main()
