"""Ability of each statistic of the topics critic to separate real from altered documents, on two corpora.

Uses abstracts of csabstruct (in FINECOMB_DATA) and the English manual pages of the Debian packages `manpages`,
`manpages-dev` and `perl-doc`, if installed. Altered documents have the lengths of the real ones that they are compared
with. The figure is the AUC: 0.5 without separation, and below 0.5 if altered documents are rated as more likely.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from finecomb.core.records import Document
from finecomb.corpora.critics.base import STATISTICS
from finecomb.corpora.critics.ngrams import KneserNeyModel
from finecomb.corpora.critics.priors import ProjectionError
from finecomb.corpora.critics.topics import Topics
from finecomb.formats import csabstruct, man
from finecomb.formats.base import Options

Texts = list[list[str]]
MANUAL = Path("/usr/share/man")
PACKAGE_LISTS_FOLDER = Path("/var/lib/dpkg/info")
TEST_COUNT = 500


def read_abstracts() -> Texts:
    place = Path(os.environ["FINECOMB_DATA"]) / "csabstruct"
    files = [place / "train.jsonl", place / "dev.jsonl"]
    return [
        item.text.split() for path in files for item in csabstruct.read(path, Options()) if isinstance(item, Document)
    ]


def read_manual_pages() -> Texts:
    lists = [
        path
        for name in ("manpages", "manpages-dev", "perl-doc")
        if (path := PACKAGE_LISTS_FOLDER / f"{name}.list").exists()
    ]
    listed = [Path(line) for path in lists for line in path.read_text().splitlines() if "/man/man" in line]
    pages = [path for path in listed if path.is_file() and not path.is_symlink()]
    documents = [item for page in pages for item in man.read(page, Options()) if isinstance(item, Document)]
    return [words[:600] for document in documents if len(words := document.text.split()) >= 150]


def make_word_salad(real: Texts, fit: Texts, other: Texts, rng: np.random.Generator) -> Texts:
    pool = np.concatenate(fit)
    return [rng.choice(pool, len(text)).tolist() for text in real]


def join_halves(real: Texts, fit: Texts, other: Texts, rng: np.random.Generator) -> Texts:
    partners = rng.permutation(len(real))
    return [(text[: len(text) // 2] + real[at])[: len(text)] for text, at in zip(real, partners, strict=True)]


def sample_trigrams(real: Texts, fit: Texts, other: Texts, rng: np.random.Generator) -> Texts:
    words, numbers = np.unique(np.concatenate(fit), return_inverse=True)
    cuts = np.cumsum([len(text) for text in fit])[:-1]
    model = KneserNeyModel.fit(np.split(numbers, cuts), 3, len(words))
    drawn = model.sample_sequences(rng, len(real), max(map(len, real)))
    return [words[row[: len(text)]].tolist() for row, text in zip(drawn, real, strict=True)]


def repeat_beginnings(real: Texts, fit: Texts, other: Texts, rng: np.random.Generator) -> Texts:
    return [(text[: max(10, len(text) // 5)] * 10)[: len(text)] for text in real]


def cut_other_corpus(real: Texts, fit: Texts, other: Texts, rng: np.random.Generator) -> Texts:
    stream = [word for at in rng.permutation(len(other)) for word in other[at]]
    ends = np.cumsum([len(text) for text in real])
    return [stream[end - len(text) : end] for end, text in zip(ends, real, strict=True) if end <= len(stream)]


ALTERATIONS: dict[str, Callable[[Texts, Texts, Texts, np.random.Generator], Texts]] = {
    "word salad": make_word_salad,
    "trigram model": sample_trigrams,
    "two half documents": join_halves,
    "one fifth repeated": repeat_beginnings,
    "the other corpus": cut_other_corpus,
}


def statistic_values(critic: Topics, texts: Texts) -> dict[str, NDArray[np.float64]]:
    documents = [Document(id=str(at), text=" ".join(text)) for at, text in enumerate(texts)]
    posteriors = [
        posterior for _, posterior in critic.project_all(documents) if not isinstance(posterior, ProjectionError)
    ]
    return {
        name: np.array([of(critic, posterior).sum() for posterior in posteriors]) for name, of in STATISTICS.items()
    }


def auc(real: NDArray[np.float64], altered: NDArray[np.float64]) -> float:
    return float(mannwhitneyu(altered, real).statistic / len(real) / len(altered))


def print_aucs(name: str, texts: Texts, other: Texts, topics: int, seeds: Sequence[int]) -> None:
    rows: dict[str, list[list[float]]] = {kind: [] for kind in ALTERATIONS}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        shuffled = [texts[at] for at in rng.permutation(len(texts))]
        real, fit = shuffled[:TEST_COUNT], shuffled[TEST_COUNT:]
        documents = [Document(id=str(at), text=" ".join(text)) for at, text in enumerate(fit)]
        critic = Topics.fit(documents, rng, topics=topics)
        real_values = statistic_values(critic, real)
        for kind, alter in ALTERATIONS.items():
            theirs = statistic_values(critic, alter(real, fit, other, rng))
            rows[kind].append([auc(real_values[statistic], theirs[statistic]) for statistic in STATISTICS])
    print(
        f"{name}: {len(texts):,} documents, {topics} topics, mean AUC of {len(seeds)} seeds ({', '.join(STATISTICS)})"
    )
    for kind, scores_by_statistic in rows.items():
        print(f"  {kind:20}" + "".join(f"{score:8.3f}" for score in np.mean(scores_by_statistic, axis=0)), flush=True)


def main() -> None:
    if "FINECOMB_DATA" not in os.environ or not (MANUAL / "man7").exists():
        print("skipped: needs FINECOMB_DATA and Debian's manual pages")
        return
    short, long = read_abstracts(), read_manual_pages()
    print_aucs("csabstruct", short, long, 30, (0, 1, 2))
    print_aucs("manual pages", long, short, 50, (0, 1, 2))
