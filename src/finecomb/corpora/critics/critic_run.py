"""Steps of `criticize`, from corpora to tables: fit critics, compare systems over splits, and collect notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from finecomb.core.results import Signature, Table
from finecomb.corpora.critics import synthetic
from finecomb.corpora.critics.base import Critic, Statistic
from finecomb.corpora.critics.comparison import (
    Comparison,
    combine_split_comparisons,
    compare,
    describe_dropped_documents,
    describe_unfitted_documents,
    domain_warning,
)
from finecomb.corpora.critics.critic_choices import UnfittedCritic, fit_critics, save_critics
from finecomb.corpora.critics.critic_corpora import CriticCorpora
from finecomb.corpora.critics.critic_tables import ComparisonSettings
from finecomb.corpora.critics.criticism import Criticism
from finecomb.corpora.critics.human_judgements import REAL_SYSTEM
from finecomb.corpora.critics.progress import track_progress
from finecomb.corpora.critics.storage import parse_fit_options
from finecomb.corpora.critics.surprising_spans import calibrate_surprises
from finecomb.engine.partitions import Executor

_MAX_CALIBRATION_DOCUMENTS = 300  # held-out real documents for calibrating surprise values


class CriticTables(Table):
    """First requested table of a criticism, which also holds all requested tables by name."""

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
        """Requested tables by name."""
        self.criticisms = tuple(criticisms)
        """Fitted critics, each with its scores of real and generated documents."""
        self.saved = tuple(saved)
        """Folders of saved critics, one per criticism."""
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
    """Return the criticisms of the first split, the comparisons over all splits, and the folders of saved critics."""
    first: list[Criticism] = []
    saved: list[Path] = []
    compared: list[list[Comparison]] = []
    for number in range(splits):
        part = replace(corpora, seed=corpora.seed + number)
        critics = list(fit_critics(wanted, part, options))
        if save and not number:
            saved = save_critics(critics, save)  # saved early, so that the fit is not lost if a later step fails
        pairs = list(zip(wanted, critics, strict=True))
        results = [part.score_systems(critic, isinstance(choice, Critic), stat, spread) for choice, critic in pairs]
        if save and not number:
            for choice, critic in pairs:
                calibrate_surprises(
                    critic, part.unseen_real_documents(critic, isinstance(choice, Critic), _MAX_CALIBRATION_DOCUMENTS)
                )
            save_critics(critics, save)  # saved again, now with the surprise values of real documents
        first = first or results
        choices = settings.correction, settings.draws, settings.seed, settings.paired
        compared.append([row for result in results for row in compare(result.real, result.systems, *choices)])
    return first, combine_split_comparisons(compared, settings.correction), saved


def model_metric_values(corpora: CriticCorpora, word_ppl: str, mauve: str) -> dict[str, dict[str, float]]:
    """Return the per-word perplexity and MAUVE of each system and of real documents, each if its model is named.

    MAUVE of real documents compares one half of them with the other.
    """
    if not (word_ppl or mauve):
        return {}
    from finecomb.corpora.stress import stress_metrics

    texts: dict[str, list[str]] = {}
    for system, document in corpora.documents_with_system():
        texts.setdefault(system, []).append(document.text)
    figures: dict[str, dict[str, float]] = {}
    if word_ppl:
        figures["word ppl"] = {
            system: stress_metrics.corpus_perplexity(word_ppl, rows)
            for system, rows in track_progress(texts.items(), "perplexity")
        }
    if mauve:
        real = texts[REAL_SYSTEM]
        sides = {system: (real, rows) for system, rows in texts.items()} | {REAL_SYSTEM: (real[::2], real[1::2])}
        figures["mauve"] = {
            system: stress_metrics.mauve(mauve, *pair) for system, pair in track_progress(sides.items(), "MAUVE")
        }
    return figures


def criticism_notes(criticisms: Sequence[Criticism], wanted: Sequence[UnfittedCritic | Critic]) -> list[str]:
    """Return notes on documents without scores, domain mismatch, fitting problems and unknown fitting documents."""
    notes = []
    for result, choice in zip(criticisms, wanted, strict=True):
        sides = {REAL_SYSTEM: result.real, **result.systems}
        notes += [note for side, scores in sides.items() if (note := describe_dropped_documents(side, scores))]
        notes += [note for side, scores in sides.items() if (note := domain_warning(side, scores, result.real))]
        notes += [note] if (note := describe_unfitted_documents(result.critic)) else []
        notes += [f"the {result.critic.name} critic: {caution}" for caution in result.critic.cautions]
        if isinstance(choice, Critic) and not choice.fitted_on:
            notes.append(
                f"the saved {choice.name} critic does not list its fitting documents; check that it was not fitted on "
                "these real documents"
            )
    return notes


def run_self_test(options: Mapping[str, str], seed: int) -> CriticTables:
    """Return Table 1 of the paper, computed with models that run on a CPU."""
    checked = parse_fit_options(synthetic.self_test_rows, options, "synthetic")
    rows = [row.row() for row in synthetic.self_test_rows(np.random.default_rng(seed), **checked)]
    notes = [
        "paper: word-level and Latent PPL in Table 1; 2.28 and 64.80 (66.80 in the text) are those of a transformer",
        "Latent PPL covers transitions between valid segments; the paper's script drops texts with an invalid one",
    ]
    signature = str(Signature.from_fields(statistic="synthetic", seed=seed, **options))
    return CriticTables({"synthetic": Table(rows, title="Self-test")}, notes=notes, signature=signature)
