"""Sections critic on 100,000 documents: documents per second, and memory compared with 1,000 documents."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

import numpy as np

from benchmarks._docs import markdown_table, write_table
from benchmarks._ratios import describe_conditions
from finecomb.core.records import Document, Segment
from finecomb.corpora.critics.base import latent_ppl
from finecomb.corpora.critics.scoring import score_documents
from finecomb.corpora.critics.sections import Sections

TYPES = [f"type-{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]


def make_documents(seed: int, count: int) -> Iterator[Document]:
    """Yield generated articles of five sections with sixty words each."""
    rng = np.random.default_rng(seed)
    words = np.array([f"word{number}" for number in range(3_000)])
    for number in range(count):
        first = int(rng.integers(len(TYPES)))
        kinds = [(first + step * int(rng.integers(1, 3))) % len(TYPES) for step in range(5)]
        texts = [" ".join(words[(rng.zipf(1.3, 60) + 110 * kind) % len(words)]) for kind in kinds]
        ends = np.cumsum([len(text) + 1 for text in texts]) - 1
        segments = [
            Segment(start=int(end) - len(text), end=int(end), title=TYPES[kind])
            for end, text, kind in zip(ends, texts, kinds, strict=True)
        ]
        yield Document(id=f"{seed}-{number}", text=" ".join(texts), segments=tuple(segments))


def peak_megabytes() -> float:
    """Return the peak memory of this process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Fit on 2,000 documents, then score 1,000 and 100,000 streamed ones."""
    start = time.process_time()
    critic = Sections.fit(list(make_documents(0, 2_000)), np.random.default_rng(0))
    print(f"fitted on 2,000 documents, 10,000 sections, 26 types: {time.process_time() - start:.1f} CPU s")
    rows = []
    for count in (1_000, 100_000):
        making = time.process_time()
        for _ in make_documents(1, count // 20):
            pass
        making = 20 * (time.process_time() - making)
        start = time.process_time()
        result = score_documents(critic, make_documents(1, count))
        spent = time.process_time() - start - making
        rate, ppl = count / spent, latent_ppl(result, draws=0).value
        print(
            f"{count:>7,} documents: {rate:,.0f} per CPU second, peak {peak_megabytes():,.0f} MB, Latent PPL {ppl:.2f}"
        )
        rows.append((f"{count:,}", f"{rate:,.0f}", f"{peak_megabytes():,.0f} MB"))
    table = markdown_table(("documents scored", "a second", "peak memory"), rows)
    write_table("performance.md", "sections", table, describe_conditions("numpy"))


if __name__ == "__main__":
    main()
