"""Exhibits of Deng, Kuleshov and Rush (2022), "Model Criticism for Long-Form Text Generation".

Texts by people (`meta.model` is `human` or missing) are real documents; all other texts belong to systems.
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
    coherent_share_by_system,
    human_correlations,
    incoherent_section_sequences,
    latent_values_by_statistic,
)
from finecomb.corpora.critics.outliers import outliers
from finecomb.corpora.critics.sections import Sections
from finecomb.corpora.critics.sections_tables import transition_differences
from finecomb.corpora.critics.synthetic import self_test_rows
from finecomb.reporting.figures import paper_charts
from finecomb.reporting.figures.critic_figures import draw_critic_figures
from finecomb.reporting.reproduce.exhibits import (
    Exhibit,
    ExhibitRow,
    PaperStudy,
    RenderedExhibit,
    point_row,
    require_exhibit_data,
)

PAPER = "deng"
REAL_MODEL = "human"
_MAX_SECTION_WORDS = 500  # maximum words per section in Table 3
_MAX_TOPICS = 20
_MAX_EXAMPLE_ROWS = 12  # per example


def _split_real_and_systems(study: PaperStudy) -> tuple[list[Document], dict[str, list[Document]]]:
    """Return the real documents and the documents of each system."""
    real: list[Document] = []
    systems: dict[str, list[Document]] = {}
    for document in study.study.iter_documents():
        model = str(document.meta.get("model", REAL_MODEL))
        (real if model == REAL_MODEL else systems.setdefault(model, [])).append(document)
    require_exhibit_data(len(real) >= 4, f"at least 4 human texts are needed to fit a critic, found {len(real)}")
    return real, systems


def _run_critic(study: PaperStudy, critic: str, **options: Any) -> Criticism:
    """Run a critic on the study, once for all exhibits."""

    def make() -> Criticism:
        real, systems = _split_real_and_systems(study)
        require_exhibit_data(systems, "no text is by a system; `meta.model` of all documents is `human` or missing")
        return criticize(critic, real, systems, seed=study.seed, **options)

    return study.compute_once((critic, *options.items()), make)


def _criticize_sections(study: PaperStudy, **options: Any) -> Criticism:
    """Run the section critic; section types are the titles if all sections have one, else predicted from the text."""
    segments = [segment for document in study.study.iter_documents() for segment in document.segments]
    require_exhibit_data(segments, "documents have no sections (`segments`)")
    titled = all(segment.title for segment in segments)
    return _run_critic(study, "sections", labels="title" if titled else "text", **options)


def _criticize_topics(study: PaperStudy) -> Criticism:
    real, _ = _split_real_and_systems(study)
    return _run_critic(study, "topics", statistic="nll", topics=max(2, min(_MAX_TOPICS, len(real) // 8)))


def _latent_score_table(study: PaperStudy, result: Criticism, names: Sequence[str]) -> RenderedExhibit:
    """Return the latent score of real texts and each system, with the difference and its interval."""
    compared = compare(result.real, result.systems, draws=study.draws, seed=study.seed)
    chosen = [row for row in compared if row.statistic in names]
    require_exhibit_data(
        chosen, "no document has a score: " + next((lost.why for lost in result.real.dropped), "texts are too short")
    )
    rows: list[ExhibitRow] = [{"model": "Data", chosen[0].statistic: chosen[0].real, "difference": None}]
    for row in chosen:
        ends = point_row(row.difference)
        rows.append({
            "model": row.system, row.statistic: row.generated, "difference": ends["value"], "low": ends["low"],
            "high": ends["high"], "p": row.p,
        })  # fmt: skip
    return RenderedExhibit(
        tuple(rows),
        '"Data" is held-out human text. Differences have 95% intervals.',
        signature=str(chosen[0].difference.signature),
    )


SELF_TEST_SIZES = {"training": 2000, "evaluation": 400, "states": 32, "segments": 600, "length": 20}
"""Sizes for a self-test that takes seconds; `finecomb criticize --synthetic` uses the sizes of the paper."""


def table_1(study: PaperStudy) -> RenderedExhibit:
    """Run the self-test on a known process; it does not use the study."""
    rows = self_test_rows(np.random.default_rng(study.seed), **SELF_TEST_SIZES)
    return RenderedExhibit(
        tuple({"source": row.source, "Word-level PPL": row.word_ppl, "Latent PPL": row.latent_ppl} for row in rows),
        "CPU models replace those of the paper, on a smaller process.",
    )


def table_2(study: PaperStudy) -> RenderedExhibit:
    """Compute the latent PPL of sections, for real texts and systems."""
    return _latent_score_table(study, _criticize_sections(study), ("ppl",))


def table_3(study: PaperStudy) -> RenderedExhibit:
    """Compute the latent PPL of sections on texts with short sections, to rule out effects of the context window."""
    return _latent_score_table(study, _criticize_sections(study, max_words=_MAX_SECTION_WORDS), ("ppl",))


def table_4(study: PaperStudy) -> RenderedExhibit:
    """Correlate latent scores with human judgements of coherence."""
    human = coherent_share_by_system(study.study)
    result = _criticize_sections(study)
    figures = latent_values_by_statistic(compare(result.real, result.systems, draws=0, seed=study.seed))
    return RenderedExhibit(
        tuple(human_correlations(figures, human)), "Correlation over systems with the share of texts judged coherent."
    )


def table_7(study: PaperStudy) -> RenderedExhibit:
    """Compute the latent PPL of coreference chains."""
    return _latent_score_table(study, _run_critic(study, "coreference"), ("ppl",))


def table_9(study: PaperStudy) -> RenderedExhibit:
    """Compute the latent NLL of topics."""
    return _latent_score_table(study, _criticize_topics(study), ("nll",))


def figure_4(study: PaperStudy) -> RenderedExhibit:
    """Draw the section transitions that are more or less frequent in systems than in real texts."""
    result = _criticize_sections(study)
    assert isinstance(result.critic, Sections)
    rows: list[ExhibitRow] = []
    for name, scores in result.systems.items():
        changes = transition_differences(result.critic.prior, result.real, scores)
        rows += [{"system": name, "from": a, "to": b, "value": change} for a, b, change, _ in changes]
    require_exhibit_data(rows, "no section type occurs at least ten times in both real and generated texts")
    chart = paper_charts.heat_map(rows, "to", "from", panel="system", columns=2)
    return RenderedExhibit(
        tuple(rows),
        "Transition probability in the system minus that in real texts.",
        chart,
        graphs=draw_critic_figures(result.critic, result.real, result.systems),
    )


def figure_5(study: PaperStudy) -> RenderedExhibit:
    """List the coreference chain of one text with the probability of each mention (also Figures 10 to 13)."""
    result = _run_critic(study, "coreference")
    ranked = [(outlier, name) for name, scores in result.systems.items() for outlier in outliers(result.real, scores)]
    require_exhibit_data(ranked, "no text by a system has a coreference chain")
    first, system = min(ranked, key=lambda pair: (pair[0].p, pair[0].id))
    document = study.study.document(first.id)
    rows: list[ExhibitRow] = [
        {"text": first.id, "system": system, "mention": document.text[step.start : step.end], "state": step.state,
         "log P": -step.nll, "expected": step.likeliest}
        for step in state_steps(result.critic, document) if step.start is not None and step.end is not None
    ]  # fmt: skip
    return RenderedExhibit(tuple(rows), f"Text {first.id} of {system}, the least likely for its length.")


def figure_6(study: PaperStudy) -> RenderedExhibit:
    """Draw topic covariances in real texts and systems (also Figures 8 and 9)."""
    result = _criticize_topics(study)
    graphs = draw_critic_figures(result.critic, result.real, result.systems)
    require_exhibit_data(graphs, "at least 2 texts with words known to the topic model are needed")
    table = result.critic.tables(result.real, result.systems)["topics"]
    return RenderedExhibit(
        tuple(table.iter_rows(named=True)), "Topics are in the order of their clustering in real texts.", graphs=graphs
    )


def figure_7(study: PaperStudy) -> RenderedExhibit:
    """Draw the mixture of three languages in real texts and systems."""
    result = _criticize_languages(study)
    graphs = draw_critic_figures(result.critic, result.real, result.systems)
    table = result.critic.tables(result.real, result.systems)["mixing"]
    return RenderedExhibit(
        tuple(table.iter_rows(named=True)), "A corner is a text in a single language.", graphs=graphs
    )


def _criticize_languages(study: PaperStudy) -> Criticism:
    languages = {document.meta.get("language") for document in study.study.iter_documents()} - {None}
    require_exhibit_data(len(languages) > 1, "texts in at least 2 languages (`meta.language`) are needed")
    return _run_critic(study, "languages", languages=len(languages))


def table_10(study: PaperStudy) -> RenderedExhibit:
    """List the most probable words of each language."""
    result = _criticize_languages(study)
    return _critic_table(result, "languages", "Up to 20 words per language, most probable first.")


def _critic_table(result: Criticism, name: str, caption: str) -> RenderedExhibit:
    table = result.critic.tables(result.real, result.systems).get(name, pl.DataFrame())
    require_exhibit_data(len(table), "no text contains an item of this table")
    return RenderedExhibit(tuple(table.iter_rows(named=True)), caption)


def _make_coreference_exhibit(name: str, caption: str) -> Callable[[PaperStudy], RenderedExhibit]:
    def make(study: PaperStudy) -> RenderedExhibit:
        return _critic_table(_run_critic(study, "coreference"), name, caption)

    make.__name__ = f"coreference_{name}"
    return make


table_6 = _make_coreference_exhibit("contributions", "N-grams by contribution to the difference in latent NLL.")
table_15 = _make_coreference_exhibit(
    "unlikely", "N-grams with a log probability below -7, and the most probable alternative of the critic."
)
table_16 = _make_coreference_exhibit(
    "more", "N-grams whose last element is more probable in systems than in real texts."
)
table_17 = _make_coreference_exhibit(
    "less", "N-grams whose last element is less probable in systems than in real texts."
)


def table_11(study: PaperStudy) -> RenderedExhibit:
    """Count texts, section types and lengths of the real texts that the critic is fitted to."""
    real, _ = _split_real_and_systems(study)
    segments = [segment for document in real for segment in document.segments]
    require_exhibit_data(segments, "documents have no sections (`segments`)")
    labels = "title" if all(segment.title for segment in segments) else "text"
    critic = fit_critic("sections", split_for_fitting(real, seed=study.seed)[0], study.seed, {"labels": labels})
    assert isinstance(critic, Sections)
    return RenderedExhibit((dict(critic.facts),), "The half of the real texts that the critic is fitted to.")


def table_12(study: PaperStudy) -> RenderedExhibit:
    """List the most frequent transitions that the critic classifies as errors, in per cent of all transitions."""
    return _critic_table(_criticize_sections(study), "transition-errors", "A transition with P < 0.01 is an error.")


def table_13(study: PaperStudy) -> RenderedExhibit:
    """Show a generated text in which a section is followed by another section of the same type."""
    result = _criticize_sections(study)
    for name, scores in result.systems.items():
        for id, path in zip(scores.ids, scores.points, strict=True):
            repeated = Counter(a for a, b in itertools.pairwise(path) if a == b)
            if repeated:
                rows = [
                    {"system": name, "text": id, "section": number, "type": kind} for number, kind in enumerate(path, 1)
                ]
                return RenderedExhibit(
                    tuple(rows[:_MAX_EXAMPLE_ROWS]), f"{repeated.most_common(1)[0][0]!r} occurs twice in a row."
                )
    raise FinecombError("no generated text has two consecutive sections of the same type")


def table_14(study: PaperStudy) -> RenderedExhibit:
    """List the texts with the least likely combinations of topics."""
    result = _criticize_topics(study)
    rows: list[ExhibitRow] = []
    for name, scores in result.systems.items():
        for outlier in outliers(result.real, scores)[:2]:
            words = study.study.document(outlier.id).text
            start = words if len(words) <= 200 else f"{words[:200]}…"
            rows.append({"system": name, "text": outlier.id, "T(x)": outlier.value, "p": outlier.p, "begins": start})
    require_exhibit_data(rows, "no text has a score")
    return RenderedExhibit(tuple(rows), "Up to two texts per system, with p among real texts of similar length.")


def table_18(study: PaperStudy) -> RenderedExhibit:
    """List section sequences that people judged incoherent."""
    table = incoherent_section_sequences(study.study, _MAX_EXAMPLE_ROWS)
    require_exhibit_data(len(table), "no text was judged incoherent under the protocol `sections`")
    return RenderedExhibit(tuple(table.iter_rows(named=True)), "Most frequent first.")


_NEEDS_TEXTS = "texts by people and by systems"
_NEEDS_SECTIONS = f"{_NEEDS_TEXTS}, with sections"
EXHIBITS = (
    Exhibit(PAPER, "Table 1", "Self-test on a known process", table_1, "nothing"),
    Exhibit(PAPER, "Table 2", "Latent PPL of sections", table_2, _NEEDS_SECTIONS),
    Exhibit(PAPER, "Table 3", "Latent PPL of short sections", table_3, _NEEDS_SECTIONS),
    Exhibit(
        PAPER,
        "Table 4",
        "Correlation of latent scores with human judgements",
        table_4,
        f"{_NEEDS_SECTIONS}; judgements under `sections`",
    ),
    Exhibit(
        PAPER,
        "Table 5",
        "Latent PPL of sections by model size",
        table_2,
        f"{_NEEDS_SECTIONS}, of models of several sizes",
    ),
    Exhibit(PAPER, "Table 6", "Coreference chains by contribution", table_6, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 7", "Latent PPL of coreference chains", table_7, _NEEDS_TEXTS),
    Exhibit(
        PAPER,
        "Table 8",
        "Latent PPL of coreference chains by model size",
        table_7,
        f"{_NEEDS_TEXTS}, of models of several sizes",
    ),
    Exhibit(PAPER, "Table 9", "Latent NLL of topics", table_9, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 10", "Most probable words by language", table_10, f"{_NEEDS_TEXTS}, in several languages"),
    Exhibit(PAPER, "Table 11", "Corpus statistics", table_11, "texts by people, with sections"),
    Exhibit(PAPER, "Table 12", "Transition errors", table_12, _NEEDS_SECTIONS),
    Exhibit(PAPER, "Table 13", "A repeated section", table_13, _NEEDS_SECTIONS),
    Exhibit(PAPER, "Table 14", "Outlier texts by topic", table_14, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 15", "Unlikely coreference chains", table_15, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 16", "Coreference chains more frequent in systems", table_16, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 17", "Coreference chains less frequent in systems", table_17, _NEEDS_TEXTS),
    Exhibit(PAPER, "Table 18", "Incoherent section sequences", table_18, "judgements under `sections`"),
    Exhibit(PAPER, "Figure 4", "Section transitions", figure_4, _NEEDS_SECTIONS),
    Exhibit(PAPER, "Figure 5", "Coreference chain of one text (also Figures 10 to 13)", figure_5, _NEEDS_TEXTS),
    Exhibit(PAPER, "Figure 6", "Topic covariances (also Figures 8 and 9)", figure_6, _NEEDS_TEXTS),
    Exhibit(PAPER, "Figure 7", "Language mixtures", figure_7, f"{_NEEDS_TEXTS}, in three languages"),
)
