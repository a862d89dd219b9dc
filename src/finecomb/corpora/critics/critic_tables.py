"""Tables of a criticism by name: systems, contrasts, diversity, outliers, steps of one document and others."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param, shorten
from finecomb.core.records import Document
from finecomb.core.study import Study
from finecomb.corpora.critics import human_judgements
from finecomb.corpora.critics.base import Critic, Statistic, render_annotated_text, state_steps
from finecomb.corpora.critics.comparison import Comparison, contrast_systems, correct_p_values
from finecomb.corpora.critics.critic_certainty import certainty_row
from finecomb.corpora.critics.critic_choices import UnfittedCritic
from finecomb.corpora.critics.critic_corpora import CriticCorpora
from finecomb.corpora.critics.critic_power import PowerPoint, power_curve
from finecomb.corpora.critics.criticism import Criticism
from finecomb.corpora.critics.diversity import diversity_rows, unused_state_rows
from finecomb.corpora.critics.human_judgements import REAL_SYSTEM
from finecomb.corpora.critics.outliers import outliers
from finecomb.corpora.critics.storage import critic_class
from finecomb.engine.partitions import Executor
from finecomb.statistics.inference.permutation_tests import Correction

Row = Mapping[str, object]
Tables = dict[str, Callable[[], Sequence[Row]]]
"""Functions that build tables on demand, by name."""

_MAX_OUTLIERS = 20  # outliers per system
_EXCERPT_MARGIN = 30  # characters on each side of a short step in an excerpt

DIAGNOSTIC_TABLES = ("power", "certainty")
"""Tables about the critic itself, which need no generated documents."""
_COMMON_TABLES = ("systems", "contrasts", "diversity", "unused", "outliers", *DIAGNOSTIC_TABLES)
_HUMAN_TABLES = ("correlations", "incoherent")


@dataclass(frozen=True, slots=True)
class DocumentChoice:
    """Choice of the document to show; by default, the most unlikely document of the first system."""

    document: str = ""
    system: str = ""


@dataclass(frozen=True, slots=True)
class ComparisonSettings:
    """Settings for comparing systems with real documents and with each other."""

    correction: Correction
    draws: int
    seed: int
    paired: bool

    def contrast_rows(self, criticisms: Sequence[Criticism]) -> list[Row]:
        """Compare systems with each other by each critic."""
        rows = [
            row
            for result in criticisms
            for row in contrast_systems(result.systems, self.correction, self.draws, self.seed)
        ]
        return [row.row() for row in correct_p_values(rows, self.correction)]


@dataclass(frozen=True)
class CriticDiagnostics:
    """Power and certainty of critics on their held-out real documents."""

    criticisms: Sequence[Criticism]
    wanted: Sequence[UnfittedCritic | Critic]
    corpora: CriticCorpora
    stat: Statistic | None
    spread: Executor

    @functools.cached_property
    def power_points_of_all_critics(self) -> list[PowerPoint]:
        """Power curves of all critics, for as many generated documents as the smallest system has."""
        points = []
        for result, held_out in self._criticisms_with_held_out_documents():
            size = min((len(scores.ids) for scores in result.systems.values()), default=0)
            points += power_curve(result.critic, held_out, size, self.stat, self.corpora.seed, spread=self.spread)
        return points

    def power_rows(self) -> list[Row]:
        """Return the rows of the table `power`."""
        return [point.row() for point in self.power_points_of_all_critics]

    def certainty_rows(self) -> list[Row]:
        """Return the rows of the table `certainty` for real documents and each system, by critic."""
        rows: list[Row] = []
        for result, held_out in self._criticisms_with_held_out_documents():
            rows.append(certainty_row(result.critic, REAL_SYSTEM, held_out, self.spread))
            documents = sorted(self.corpora.generated_documents_with_system(), key=lambda pair: pair[0])
            for system, pairs in itertools.groupby(documents, key=lambda pair: pair[0]):
                rows.append(certainty_row(result.critic, system, [document for _, document in pairs], self.spread))
        return rows

    def _criticisms_with_held_out_documents(self) -> Iterator[tuple[Criticism, list[Document]]]:
        for result, choice in zip(self.criticisms, self.wanted, strict=True):
            yield result, self.corpora.unseen_real_documents(result.critic, isinstance(choice, Critic))


def check_table_names(
    wanted: Sequence[UnfittedCritic | Critic], names: Sequence[str], choice: DocumentChoice, has_people: bool
) -> None:
    """Reject unknown tables and misplaced options before fitting."""
    kinds = [type(critic) if isinstance(critic, Critic) else critic_class(critic[0]) for critic in wanted]
    known = [*_COMMON_TABLES, *_DOCUMENT_TABLES, *(_HUMAN_TABLES if has_people else ())]
    known += [name for kind in kinds for name in kind.table_names]
    other_tables = any(kind.tables is not Critic.tables and not kind.table_names for kind in kinds)
    for name in names:
        if name in _HUMAN_TABLES and not has_people:
            raise ParameterError(
                f"{param('show', name)} requires {param('people')} with a study that uses the sections protocol",
                parameter="show",
            )
        if name not in known and not other_tables:
            raise _unknown_table_error(name, known)
    for parameter, value in (("document", choice.document), ("system", choice.system)):
        if value and not set(names) & set(_DOCUMENT_TABLES):
            raise ParameterError(
                f"{param(parameter)} requires {param('show', 'parts')} or {param('show', 'text')}",
                parameter=parameter,
            )


def _unknown_table_error(name: str, known: Sequence[str]) -> ParameterError:
    return ParameterError(f"unknown table {param('show', name)}{did_you_mean(name, known)}", parameter="show")


def build_tables(
    criticisms: Sequence[Criticism],
    rows: Sequence[Comparison],
    people: Study | None,
    figures: human_judgements.MetricValues,
    corpora: CriticCorpora,
    settings: ComparisonSettings,
) -> Tables:
    """Return all tables of a criticism by name; `figures` holds values of other metrics to include."""
    human = human_judgements.coherent_share_by_system(people, corpora.by or "model") if people else {}
    columns = {**figures, **({"people": human} if human else {})}
    tables: Tables = {
        "systems": lambda: human_judgements.add_metric_columns((row.row() for row in rows), columns),
        "contrasts": lambda: settings.contrast_rows(criticisms),
        "diversity": lambda: [
            row for result in criticisms for row in diversity_rows(result, settings.draws, settings.seed)
        ],
        "unused": lambda: [row for result in criticisms for row in unused_state_rows(result)],
        "outliers": lambda: [row for result in criticisms for row in _outlier_rows(result, corpora)],
    }
    if people:
        tables["correlations"] = lambda: human_judgements.human_correlations(
            {**human_judgements.latent_values_by_statistic(rows), **figures}, human
        )
        tables["incoherent"] = lambda: human_judgements.incoherent_section_sequences(people).to_dicts()
    for result in criticisms:
        for name, table in result.critic.tables(result.real, result.systems).items():
            tables[name] = table.to_dicts
    return tables


def table_title_and_rows(
    name: str,
    tables: Tables,
    criticisms: Sequence[Criticism],
    corpora: CriticCorpora,
    choice: DocumentChoice,
    stat: Statistic | None,
) -> tuple[str, Sequence[Row]]:
    """Return the title and the rows of a table; the tables `parts` and `text` show one document."""
    if name in _DOCUMENT_TABLES:
        system, document = _find_document(criticisms[0], corpora, choice)
        rows = [row for result in criticisms for row in _DOCUMENT_TABLES[name](result.critic, document, stat)]
        return f"{name.capitalize()} of {document.id} in {system}", rows
    if name not in tables:
        raise _unknown_table_error(name, [*tables, *_DOCUMENT_TABLES])
    return name.capitalize(), tables[name]()


def _outlier_rows(result: Criticism, corpora: CriticCorpora) -> Iterator[Row]:
    """Yield the most unlikely documents of each system with an excerpt (the paper's Table 14)."""
    ranked = {
        (system, outlier.id): outlier
        for system, scores in result.systems.items()
        for outlier in outliers(result.real, scores)[:_MAX_OUTLIERS]
    }
    documents = {
        (system, document.id): document
        for system, document in corpora.documents_with_system()
        if (system, document.id) in ranked
    }
    for (system, id), outlier in ranked.items():
        # Text of the most unlikely step, with context if it is short, or the beginning of the document
        text = documents[system, id].text
        steps = [step for step in state_steps(result.critic, documents[system, id], result.real.statistic) if step.text]
        worst = max(steps, key=lambda step: step.nll, default=None)
        if worst is None or worst.start is None or worst.end is None:
            excerpt = shorten(text)
        elif len(worst.text) > _EXCERPT_MARGIN:
            excerpt = shorten(worst.text)
        else:
            before, after = text[: worst.start][-_EXCERPT_MARGIN:], text[worst.end :][:_EXCERPT_MARGIN]
            excerpt = " ".join(f"... {before}[{worst.text}]{after} ...".split())
        yield {
            "critic": result.critic.name, "system": system, "document": id, "nats": outlier.value,
            "nats per step": outlier.per_step, "usual": outlier.usual, "p": outlier.p, "text": excerpt,
        }  # fmt: skip


def _find_document(result: Criticism, corpora: CriticCorpora, choice: DocumentChoice) -> tuple[str, Document]:
    """Return the selected document and its system."""
    if choice.system and choice.system not in (REAL_SYSTEM, *result.systems):
        raise ParameterError(
            f"unknown {param('system', choice.system)}{did_you_mean(choice.system, [REAL_SYSTEM, *result.systems])}",
            parameter="system",
        )
    system = choice.system or ("" if choice.document else next(iter(result.systems)))
    scores = result.real if system in ("", REAL_SYSTEM) else result.systems[system]
    id = choice.document or next((outlier.id for outlier in outliers(result.real, scores)), "")
    if not id:
        raise FinecombError(
            f"no document of {system} can be ranked, because it or the real documents have no scores; select one with "
            f"{param('document')}"
        )
    for name, document in corpora.documents_with_system():
        if document.id == id and system in ("", name):
            return name, document
    raise ParameterError(
        f"{param('document', id)}: no document{f' of {system}' if system else ''} has this ID", parameter="document"
    )


def _step_rows(critic: Critic, document: Document, stat: Statistic | None) -> Iterator[Row]:
    """Yield the steps of one document."""
    for step in state_steps(critic, document, stat):
        yield {
            "critic": critic.name, "step": step.step, "text": shorten(step.text, 32), "state": step.state,
            "nats": step.nll, "likeliest": step.likeliest, "its nats": step.likeliest_nll,
        }  # fmt: skip


def _text_rows(critic: Critic, document: Document, stat: Statistic | None) -> Iterator[Row]:
    """Yield one document with its steps marked in the text."""
    steps = state_steps(critic, document, stat)
    if not any(step.text for step in steps):
        raise FinecombError(
            f"{param('show', 'text')}: steps of the {critic.name} critic have no position in the text; use "
            f"{param('show', 'outliers')}"
        )
    yield {"critic": critic.name, "document": document.id, "text": render_annotated_text(document.text, steps)}


_DOCUMENT_TABLES: dict[str, Callable[[Critic, Document, Statistic | None], Iterator[Row]]] = {
    "parts": _step_rows,
    "text": _text_rows,
}
"""Functions that build the tables of one document, by name."""
