"""The exhibits of Deng, Kuleshov and Rush (2022), "Model Criticism for Long-Form Text Generation".

Texts by people (`meta.model` is `human`, or missing) are real documents, all others belong to systems.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics.base import state_steps
from finecomb.corpora.critics.comparison import compare
from finecomb.corpora.critics.criticism import Criticism, criticize, fit_critic, split_for_fitting
from finecomb.corpora.critics.human_judgements import (
    coherent_shares,
    correlations,
    incoherent_organisations,
    latent_values_by_system,
)
from finecomb.corpora.critics.outliers import outliers
from finecomb.corpora.critics.sections import Sections
from finecomb.corpora.critics.sections_tables import transition_differences
from finecomb.corpora.critics.synthetic import self_test
from finecomb.reporting.figures import paper_charts
from finecomb.reporting.figures.critic_figures import critic_figures
from finecomb.reporting.reproduce.exhibits import Exhibit, ExhibitRow, PaperStudy, Rendering, point_row, require

PAPER = "deng"
REAL_MODEL = "human"
_MAX_SECTION_WORDS = 500  # words of the longest section in Table 3
_MAX_TOPICS = 20
_MAX_EXAMPLE_ROWS = 12  # rows of an example


def _split_real_and_systems(study: PaperStudy) -> tuple[list[Document], dict[str, list[Document]]]:
    """Real documents, and those of each system."""
    real: list[Document] = []
    systems: dict[str, list[Document]] = {}
    for document in study.study.iter_documents():
        model = str(document.meta.get("model", REAL_MODEL))
        (real if model == REAL_MODEL else systems.setdefault(model, [])).append(document)
    require(len(real) >= 4, "needs at least four texts by people (`meta.model` is `human`) to fit a critic on")
    return real, systems


def _run_critic(study: PaperStudy, critic: str, **options: Any) -> Criticism:
    """A critic's scores, made once for all exhibits."""

    def make() -> Criticism:
        real, systems = _split_real_and_systems(study)
        require(systems, "there are no texts by a system: `meta.model` of all documents is `human` or missing")
        return criticize(critic, real, systems, seed=study.seed, **options)

    return study.compute_once((critic, *options.items()), make)


def _criticize_sections(study: PaperStudy, **options: Any) -> Criticism:
    """Section types by their titles where all sections have one, else by a classifier of their words."""
    segments = [segment for document in study.study.iter_documents() for segment in document.segments]
    require(segments, "documents have no sections (`segments`)")
    titled = all(segment.title for segment in segments)
    return _run_critic(study, "sections", labels="title" if titled else "text", **options)


def _criticize_topics(study: PaperStudy) -> Criticism:
    real, _ = _split_real_and_systems(study)
    return _run_critic(study, "topics", statistic="nll", topics=max(2, min(_MAX_TOPICS, len(real) // 8)))


def _latent_score_table(study: PaperStudy, result: Criticism, names: Sequence[str]) -> Rendering:
    """A critic's number for real texts and for each system, with what their difference can be."""
    compared = compare(result.real, result.systems, draws=study.draws, seed=study.seed)
    chosen = [row for row in compared if row.statistic in names]
    require(
        chosen, "no document has a score: " + next((lost.why for lost in result.real.dropped), "texts are too short")
    )
    rows: list[ExhibitRow] = [{"model": "Data", chosen[0].statistic: chosen[0].real, "difference": None}]
    for row in chosen:
        ends = point_row(row.difference)
        rows.append({
            "model": row.system, row.statistic: row.generated, "difference": ends["value"], "low": ends["low"],
            "high": ends["high"], "p": row.p,
        })  # fmt: skip
    columns = dict.fromkeys(name for row in rows for name in row)
    return Rendering(tuple({name: row.get(name) for name in columns} for row in rows),
                     "Data are held-out texts by people; differences have 95% intervals.",
                     signature=str(chosen[0].difference.signature))  # fmt: skip


SELF_TEST_SIZES = {"training": 2000, "evaluation": 400, "states": 32, "segments": 600, "length": 20}
"""A small process, so that it takes seconds; `finecomb criticize --synthetic` has the paper's size."""


def table_1(study: PaperStudy) -> Rendering:
    """The self-test on a process that is known; it needs nothing of the study."""
    rows = self_test(np.random.default_rng(study.seed), **SELF_TEST_SIZES)
    return Rendering(
        tuple({"source": row.source, "Word-level PPL": row.word_ppl, "Latent PPL": row.latent_ppl} for row in rows),
        "Models that need no GPU stand in for the paper's, on a smaller process than its.",
    )


def table_2(study: PaperStudy) -> Rendering:
    """Latent PPL of sections, real texts and systems."""
    return _latent_score_table(study, _criticize_sections(study), ("ppl",))


def table_3(study: PaperStudy) -> Rendering:
    """The same on texts whose sections are short, so that context windows are no excuse."""
    return _latent_score_table(study, _criticize_sections(study, max_words=_MAX_SECTION_WORDS), ("ppl",))


def table_4(study: PaperStudy) -> Rendering:
    """Which figure follows what people say about coherence."""
    human = coherent_shares(study.study)
    result = _criticize_sections(study)
    figures = latent_values_by_system(compare(result.real, result.systems, draws=0, seed=study.seed))
    return Rendering(tuple(correlations(figures, human)), "Correlations over systems with the share called coherent.")


def table_7(study: PaperStudy) -> Rendering:
    """Latent PPL of chains of persons."""
    return _latent_score_table(study, _run_critic(study, "coreference"), ("ppl",))


def table_9(study: PaperStudy) -> Rendering:
    """Latent NLL of topics."""
    return _latent_score_table(study, _criticize_topics(study), ("nll",))


def figure_4(study: PaperStudy) -> Rendering:
    """Transitions between sections that systems make more or less often than people."""
    result = _criticize_sections(study)
    assert isinstance(result.critic, Sections)
    rows: list[ExhibitRow] = []
    for name, scores in result.systems.items():
        changes = transition_differences(result.critic.prior, result.real, scores)
        rows += [{"system": name, "from": a, "to": b, "value": change} for a, b, change, _ in changes]
    require(rows, "no section type occurs ten times on both sides")
    chart = paper_charts.heat_map(rows, "to", "from", "", panel="system", columns=2)
    return Rendering(tuple(rows), "Probability of a section after another in the system, minus that in real texts.",
                     chart, graphs=critic_figures(result.critic, result.real, result.systems))  # fmt: skip


def figure_5(study: PaperStudy) -> Rendering:
    """A text with its persons and how likely each mention is; Figures 10 to 13 are of the same kind."""
    result = _run_critic(study, "coreference")
    ranked = [(outlier, name) for name, scores in result.systems.items() for outlier in outliers(result.real, scores)]
    require(ranked, "no text by a system has a chain of persons")
    first, system = min(ranked, key=lambda pair: (pair[0].p, pair[0].id))
    document = study.study.document(first.id)
    rows: list[ExhibitRow] = [
        {"text": first.id, "system": system, "mention": document.text[one.start : one.end], "state": one.state,
         "log P": -one.nll, "expected": one.likeliest}
        for one in state_steps(result.critic, document) if one.start is not None and one.end is not None
    ]  # fmt: skip
    return Rendering(tuple(rows), f"Text {first.id} of {system}: the least likely for its length.")


def figure_6(study: PaperStudy) -> Rendering:
    """Covariances of topics in real texts and in systems; Figures 8 and 9 are of the same kind."""
    result = _criticize_topics(study)
    graphs = critic_figures(result.critic, result.real, result.systems)
    require(graphs, "fewer than two texts have words that the topic model knows")
    table = result.critic.tables(result.real, result.systems)["topics"]
    return Rendering(tuple(table.iter_rows(named=True)), "Topics in the order of their clustering in real texts.",
                     graphs=graphs)  # fmt: skip


def figure_7(study: PaperStudy) -> Rendering:
    """Mixtures of three languages in real texts and in systems."""
    result = _criticize_languages(study)
    graphs = critic_figures(result.critic, result.real, result.systems)
    table = result.critic.tables(result.real, result.systems)["mixing"]
    return Rendering(tuple(table.iter_rows(named=True)), "Corners are texts of one language.", graphs=graphs)


def _criticize_languages(study: PaperStudy) -> Criticism:
    languages = {document.meta.get("language") for document in study.study.iter_documents()} - {None}
    require(len(languages) > 1, "needs texts of several languages: `meta.language` does not vary")
    return _run_critic(study, "languages", languages=len(languages))


def table_10(study: PaperStudy) -> Rendering:
    """The likeliest words of each language."""
    result = _criticize_languages(study)
    return _critic_table(result, "languages", "Twenty words of each.")


def _critic_table(result: Criticism, name: str, caption: str) -> Rendering:
    table = result.critic.tables(result.real, result.systems).get(name, pl.DataFrame())
    require(len(table), "no text has what this table counts")
    return Rendering(tuple(table.iter_rows(named=True)), caption)


def _make_coreference_exhibit(name: str, caption: str) -> Callable[[PaperStudy], Rendering]:
    def make(study: PaperStudy) -> Rendering:
        return _critic_table(_run_critic(study, "coreference"), name, caption)

    make.__name__ = f"coreference_{name}"
    return make


table_6 = _make_coreference_exhibit("contributions", "N-grams by what they add to the difference in Latent NLL.")
table_15 = _make_coreference_exhibit(
    "unlikely", "N-grams with a log probability below -7, and the critic's own choice."
)
table_16 = _make_coreference_exhibit("more", "N-grams whose end is more probable in systems than in real texts.")
table_17 = _make_coreference_exhibit("less", "N-grams whose end is less probable in systems than in real texts.")


def table_11(study: PaperStudy) -> Rendering:
    """Texts, section types and lengths of the real texts that the critic is fitted on."""
    real, _ = _split_real_and_systems(study)
    segments = [segment for document in real for segment in document.segments]
    require(segments, "documents have no sections (`segments`)")
    labels = "title" if all(segment.title for segment in segments) else "text"
    critic = fit_critic("sections", split_for_fitting(real, seed=study.seed)[0], study.seed, {"labels": labels})
    assert isinstance(critic, Sections)
    return Rendering((dict(critic.facts),), "Of the half that the critic is fitted on.")


def table_12(study: PaperStudy) -> Rendering:
    """The commonest transitions that the critic calls errors, in per cent of all."""
    return _critic_table(_criticize_sections(study), "transition-errors", "A transition with P < 0.01 is an error.")


def table_13(study: PaperStudy) -> Rendering:
    """A text by a system in which a section is followed by one of its own kind."""
    result = _criticize_sections(study)
    for name, scores in result.systems.items():
        for id, path in zip(scores.ids, scores.points, strict=True):
            repeated = Counter(a for a, b in itertools.pairwise(path) if a == b)
            if repeated:
                rows = [
                    {"system": name, "text": id, "section": number, "type": kind} for number, kind in enumerate(path, 1)
                ]
                return Rendering(
                    tuple(rows[:_MAX_EXAMPLE_ROWS]), f"{repeated.most_common(1)[0][0]!r} comes twice in a row."
                )
    raise FinecombError("no system repeats a section type")


def table_14(study: PaperStudy) -> Rendering:
    """The texts whose topics are least likely together."""
    result = _criticize_topics(study)
    rows: list[ExhibitRow] = []
    for name, scores in result.systems.items():
        for outlier in outliers(result.real, scores)[:2]:
            words = study.study.document(outlier.id).text
            start = words if len(words) <= 200 else f"{words[:200]}…"
            rows.append({"system": name, "text": outlier.id, "T(x)": outlier.value, "p": outlier.p, "begins": start})
    require(rows, "no text has a score")
    return Rendering(tuple(rows), "Two of each system, with p among real texts of their length.")


def table_18(study: PaperStudy) -> Rendering:
    """Sequences of sections that people call incoherent."""
    table = incoherent_organisations(study.study, _MAX_EXAMPLE_ROWS)
    require(len(table), "nobody called a text incoherent, as the protocol `sections` asks")
    return Rendering(tuple(table.iter_rows(named=True)), "The commonest first.")


_NEEDS_TEXTS = "texts by people and by systems"
_NEEDS_SECTIONS = f"{_NEEDS_TEXTS}, with sections"
EXHIBITS = (
    Exhibit(PAPER, "Table 1", "Self-test on a known process", table_1, "nothing"),
    Exhibit(PAPER, "Table 2", "Latent PPL of sections", table_2, _NEEDS_SECTIONS),
    Exhibit(PAPER, "Table 3", "The same with short sections", table_3, _NEEDS_SECTIONS),
    Exhibit(PAPER, "Table 4", "Which figure follows people", table_4, f"{_NEEDS_SECTIONS}; verdicts under `sections`"),
    Exhibit(
        PAPER,
        "Table 5",
        "Latent PPL of sections by model size",
        table_2,
        f"{_NEEDS_SECTIONS}, of models of several sizes",
    ),
    Exhibit(PAPER, "Table 6", "Chains of persons by contribution", table_6, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 7", "Latent PPL of chains of persons", table_7, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 8", "The same by model size", table_7, f"{_NEEDS_TEXTS}, of models of several sizes"),
    Exhibit(PAPER, "Table 9", "Latent NLL of topics", table_9, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 10", "Words of languages", table_10, f"{_NEEDS_TEXTS}, in several languages"),
    Exhibit(PAPER, "Table 11", "The corpus", table_11, "texts by people, with sections"),
    Exhibit(PAPER, "Table 12", "Transition errors", table_12, _NEEDS_SECTIONS),
    Exhibit(PAPER, "Table 13", "A repeated section", table_13, _NEEDS_SECTIONS),
    Exhibit(PAPER, "Table 14", "Outliers by topics", table_14, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 15", "Unlikely chains of persons", table_15, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 16", "Chains more frequent in systems", table_16, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 17", "Chains less frequent in systems", table_17, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 18", "Incoherent organisations", table_18, "verdicts under `sections`"),
    Exhibit(PAPER, "Figure 4", "Transitions between sections", figure_4, _NEEDS_SECTIONS),
    Exhibit(PAPER, "Figure 5", "Persons in one text (also Figures 10 to 13)", figure_5, _NEEDS_TEXTS),
    Exhibit(PAPER, "Figure 6", "Covariances of topics (also Figures 8 and 9)", figure_6, _NEEDS_TEXTS),
    Exhibit(PAPER, "Figure 7", "Mixtures of languages", figure_7, f"{_NEEDS_TEXTS}, in three languages"),
)
