"""A criticism from corpora to tables: fit critics, compare systems over splits, and note what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from finecomb.core.estimate import Signature
from finecomb.core.results import Table
from finecomb.corpora.critics import synthetic
from finecomb.corpora.critics.base import Critic, Statistic
from finecomb.corpora.critics.comparison import (
    Comparison,
    combine_splits,
    describe_dropped,
    describe_unused,
    domain_warning,
)
from finecomb.corpora.critics.critic_choices import UnfittedCritic, fit_critics, save_critics
from finecomb.corpora.critics.critic_corpora import CriticCorpora
from finecomb.corpora.critics.critic_tables import ComparisonSettings
from finecomb.corpora.critics.criticism import Criticism
from finecomb.corpora.critics.human_judgements import REAL
from finecomb.corpora.critics.progress import track
from finecomb.corpora.critics.storage import parse_fit_options
from finecomb.corpora.critics.surprising_spans import calibrate_surprises
from finecomb.engine.partitions import Executor

_MAX_CALIBRATION_DOCUMENTS = 300  # held-out real documents that say which surprises are usual


class CriticTables(Table):
    """Tables of a criticism: the first one that was asked for, and all of them by name."""

    def __init__(
        self,
        tables: Mapping[str, Table],
        criticisms: Sequence[Criticism] = (),
        *,
        notes: Sequence[str] = (),
        signature: str = "",
        saved: Sequence[Path] = (),
        written: Sequence[Path] = (),
    ) -> None:
        first = next(iter(tables.values()), Table())
        super().__init__(first.rows(), title=first.title, notes=notes, signature=signature)
        self.tables = dict(tables)
        """Every table that was asked for, by name."""
        self.criticisms = tuple(criticisms)
        """Scores of real and generated documents by each critic, with the fitted critic."""
        self.saved = tuple(saved)
        """Folders of the critics that were saved, one per criticism."""
        self.written = tuple(written)
        """Files of tables and figures that were written."""


def compare_over_splits(
    wanted: Sequence[UnfittedCritic | Critic],
    corpora: CriticCorpora,
    options: Mapping[str, str],
    stat: Statistic | None,
    settings: ComparisonSettings,
    splits: int,
    save: Path | None,
    spread: Executor,
) -> tuple[list[Criticism], list[Comparison], list[Path]]:
    """Return criticisms by the first split of the real documents, comparisons over all splits, and saved folders."""
    first: list[Criticism] = []
    saved: list[Path] = []
    compared: list[list[Comparison]] = []
    for number in range(splits):
        part = replace(corpora, seed=corpora.seed + number)
        critics = list(fit_critics(wanted, part, options))
        if save and not number:
            saved = save_critics(critics, save)  # before anything else can fail
        pairs = list(zip(wanted, critics, strict=True))
        results = [part.score_systems(critic, isinstance(choice, Critic), stat, spread) for choice, critic in pairs]
        if save and not number:
            for choice, critic in pairs:
                calibrate_surprises(
                    critic, part.unseen_real_documents(critic, isinstance(choice, Critic), _MAX_CALIBRATION_DOCUMENTS)
                )
            save_critics(critics, save)  # now with what is usual in real documents
        first = first or results
        compared.append([row for result in results for row in settings.comparisons(result)])
    return first, combine_splits(compared, settings.correction), saved


def model_figures(corpora: CriticCorpora, word_ppl: str, mauve: str) -> dict[str, dict[str, float]]:
    """Return perplexity by words and MAUVE of every system and of real documents, where a model for them is named.

    The MAUVE of real documents is that of one half of them against the other.
    """
    if not (word_ppl or mauve):
        return {}
    from finecomb.corpora.stress import stress_metrics

    texts: dict[str, list[str]] = {}
    for system, document in corpora.documents():
        texts.setdefault(system, []).append(document.text)
    figures: dict[str, dict[str, float]] = {}
    if word_ppl:
        figures["word ppl"] = {
            system: stress_metrics.corpus_perplexity(word_ppl, rows)
            for system, rows in track(texts.items(), "perplexity")
        }
    if mauve:
        real = texts[REAL]
        sides = {system: (real, rows) for system, rows in texts.items()} | {REAL: (real[::2], real[1::2])}
        figures["mauve"] = {
            system: stress_metrics.mauve(mauve, *pair) for system, pair in track(sides.items(), "MAUVE")
        }
    return figures


def criticism_notes(criticisms: Sequence[Criticism], wanted: Sequence[UnfittedCritic | Critic]) -> list[str]:
    """Return what was lost, and what cannot be checked."""
    notes = []
    for result, choice in zip(criticisms, wanted, strict=True):
        sides = {REAL: result.real, **result.systems}
        notes += [words for side, scores in sides.items() if (words := describe_dropped(side, scores))]
        notes += [words for side, scores in sides.items() if (words := domain_warning(side, scores, result.real))]
        notes += [words] if (words := describe_unused(result.critic)) else []
        notes += [f"the {result.critic.name} critic: {caution}" for caution in result.critic.cautions]
        if isinstance(choice, Critic) and not choice.fitted_on:
            notes.append(
                f"the {choice.name} critic came fitted and does not say on what: make sure that it was not fitted on "
                "these real documents"
            )
    return notes


def run_self_test(options: Mapping[str, str], seed: int) -> CriticTables:
    """Return the paper's Table 1 with models that anybody can fit."""
    checked = parse_fit_options(synthetic.self_test, options, "synthetic")
    rows = [row.row() for row in synthetic.self_test(np.random.default_rng(seed), **checked)]
    notes = [
        "paper: word-level and Latent PPL of its Table 1; 2.28, 64.80 (66.80 in its text) is a transformer's",
        "Latent PPL is over transitions between valid segments; the paper's script drops texts with a bad one",
    ]
    signature = str(Signature.from_fields(statistic="synthetic", seed=seed, **options))
    return CriticTables({"synthetic": Table(rows, title="Self-test")}, notes=notes, signature=signature)
