"""Tables of a criticism, by name: systems, contrasts, diversity, outliers, steps of one document and others."""

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
from finecomb.corpora.critics.comparison import Comparison, compare, contrast_systems, correct_p_values
from finecomb.corpora.critics.critic_certainty import certainty_row
from finecomb.corpora.critics.critic_choices import UnfittedCritic
from finecomb.corpora.critics.critic_corpora import CriticCorpora
from finecomb.corpora.critics.critic_power import PowerPoint, power_curve
from finecomb.corpora.critics.criticism import Criticism
from finecomb.corpora.critics.diversity import diversity_rows, never_used_rows
from finecomb.corpora.critics.human_judgements import REAL
from finecomb.corpora.critics.outliers import outliers
from finecomb.corpora.critics.storage import critic_class
from finecomb.engine.partitions import Executor
from finecomb.statistics.inference.permutation_tests import Correction

Row = Mapping[str, object]
Tables = dict[str, Callable[[], Sequence[Row]]]
"""Tables by name, made when they are wanted."""

_MAX_OUTLIERS = 20  # outliers per system
_EXCERPT_MARGIN = 30  # characters on each side of a short step in an excerpt

CRITIC_TABLES = ("power", "certainty")
"""Tables about the critic itself, which need no generated documents."""
_COMMON_TABLES = ("systems", "contrasts", "diversity", "unused", "outliers", *CRITIC_TABLES)
_HUMAN_TABLES = ("correlations", "incoherent")


@dataclass(frozen=True, slots=True)
class DocumentChoice:
    """The document whose steps are shown; where nothing is said, the most unlikely one of the first system."""

    document: str = ""
    system: str = ""


@dataclass(frozen=True, slots=True)
class ComparisonSettings:
    """How systems are compared with real documents and with each other."""

    correction: Correction
    draws: int
    seed: int
    paired: bool

    def comparisons(self, result: Criticism) -> list[Comparison]:
        """Compare systems with real documents."""
        return compare(result.real, result.systems, self.correction, self.draws, self.seed, self.paired)

    def contrast_rows(self, criticisms: Sequence[Criticism]) -> list[Row]:
        """Compare systems with each other, by every critic."""
        rows = [
            row
            for result in criticisms
            for row in contrast_systems(result.systems, self.correction, self.draws, self.seed)
        ]
        return [row.row() for row in correct_p_values(rows, self.correction)]


@dataclass(frozen=True)
class CriticDiagnostics:
    """What critics could see, by their own held-out real documents."""

    criticisms: Sequence[Criticism]
    wanted: Sequence[UnfittedCritic | Critic]
    corpora: CriticCorpora
    stat: Statistic | None
    spread: Executor

    @functools.cached_property
    def power_points(self) -> list[PowerPoint]:
        """Power curves of all critics; the smallest system says how many generated documents there are."""
        points = []
        for result, held_out in self._held_out():
            size = min((len(scores.ids) for scores in result.systems.values()), default=0)
            points += power_curve(result.critic, held_out, size, self.stat, self.corpora.seed, spread=self.spread)
        return points

    def power_rows(self) -> list[Row]:
        """Return the rows of the table `power`."""
        return [point.row() for point in self.power_points]

    def certainty_rows(self) -> list[Row]:
        """Return the rows of the table `certainty`: real documents and every system, by every critic."""
        rows: list[Row] = []
        for result, held_out in self._held_out():
            rows.append(certainty_row(result.critic, REAL, held_out, self.spread))
            documents = sorted(self.corpora.generated_documents(), key=lambda pair: pair[0])
            for system, pairs in itertools.groupby(documents, key=lambda pair: pair[0]):
                rows.append(certainty_row(result.critic, system, [document for _, document in pairs], self.spread))
        return rows

    def _held_out(self) -> Iterator[tuple[Criticism, list[Document]]]:
        for result, choice in zip(self.criticisms, self.wanted, strict=True):
            yield result, self.corpora.unseen_real_documents(result.critic, isinstance(choice, Critic))


def check_table_names(
    wanted: Sequence[UnfittedCritic | Critic], names: Sequence[str], choice: DocumentChoice, has_people: bool
) -> None:
    """Refuse tables that do not exist, before a critic is fitted."""
    kinds = [type(critic) if isinstance(critic, Critic) else critic_class(critic[0]) for critic in wanted]
    known = [*_COMMON_TABLES, *_DOCUMENT_TABLES, *(_HUMAN_TABLES if has_people else ())]
    known += [name for kind in kinds for name in kind.table_names]
    other_tables = any(kind.tables is not Critic.tables and not kind.table_names for kind in kinds)
    for name in names:
        if name in _HUMAN_TABLES and not has_people:
            raise ParameterError(
                f"{param('show', name)}: needs {param('people')}, a study with the sections protocol", parameter="show"
            )
        if name not in known and not other_tables:
            raise _unknown_table(name, known)
    for parameter, value in (("document", choice.document), ("system", choice.system)):
        if value and not set(names) & set(_DOCUMENT_TABLES):
            raise ParameterError(
                f"{param(parameter, value)}: goes with {param('show', 'parts')} or {param('show', 'text')}",
                parameter=parameter,
            )


def _unknown_table(name: str, known: Sequence[str]) -> ParameterError:
    return ParameterError(f"{param('show', name)}: there is no such table{did_you_mean(name, known)}", parameter="show")


def build_tables(
    criticisms: Sequence[Criticism],
    rows: Sequence[Comparison],
    people: Study | None,
    figures: human_judgements.MetricValues,
    corpora: CriticCorpora,
    settings: ComparisonSettings,
) -> Tables:
    """Return every table of a criticism by name; `figures` are other numbers of systems, to stand next to ours."""
    human = human_judgements.coherent_shares(people, corpora.by or "model") if people else {}
    columns = {**figures, **({"people": human} if human else {})}
    tables: Tables = {
        "systems": lambda: human_judgements.add_metric_columns((row.row() for row in rows), columns),
        "contrasts": lambda: settings.contrast_rows(criticisms),
        "diversity": lambda: [
            row for result in criticisms for row in diversity_rows(result, settings.draws, settings.seed)
        ],
        "unused": lambda: [row for result in criticisms for row in never_used_rows(result)],
        "outliers": lambda: [row for result in criticisms for row in _outlier_rows(result, corpora)],
    }
    if people:
        tables["correlations"] = lambda: human_judgements.correlations(
            {**human_judgements.latent_values_by_system(rows), **figures}, human
        )
        tables["incoherent"] = lambda: human_judgements.incoherent_organisations(people).to_dicts()
    for result in criticisms:
        for name, table in result.critic.tables(result.real, result.systems).items():
            tables[name] = table.to_dicts
    return tables


def title_and_rows(
    name: str,
    tables: Tables,
    criticisms: Sequence[Criticism],
    corpora: CriticCorpora,
    choice: DocumentChoice,
    stat: Statistic | None,
) -> tuple[str, Sequence[Row]]:
    """Return the title and the rows of a table; `parts` and `text` are of one document."""
    if name in _DOCUMENT_TABLES:
        system, document = _find_document(criticisms[0], corpora, choice)
        rows = [row for result in criticisms for row in _DOCUMENT_TABLES[name](result.critic, document, stat)]
        return f"{name.capitalize()} of {document.id} in {system}", rows
    if name not in tables:
        raise _unknown_table(name, [*tables, *_DOCUMENT_TABLES])
    return name.capitalize(), tables[name]()


def _outlier_rows(result: Criticism, corpora: CriticCorpora) -> Iterator[Row]:
    """Yield the most unlikely documents of each system, with a piece of each (the paper's Table 14)."""
    ranked = {
        (system, outlier.id): outlier
        for system, scores in result.systems.items()
        for outlier in outliers(result.real, scores)[:_MAX_OUTLIERS]
    }
    documents = {
        (system, document.id): document for system, document in corpora.documents() if (system, document.id) in ranked
    }
    for (system, id), outlier in ranked.items():
        yield {
            "critic": result.critic.name, "system": system, "document": id, "nats": outlier.value,
            "nats per step": outlier.per_step, "usual": outlier.usual, "p": outlier.p,
            "text": _excerpt(result, documents[system, id]),
        }  # fmt: skip


def _excerpt(result: Criticism, document: Document) -> str:
    """Return the text of a document's most unlikely step, with words around it if it is short; else the beginning."""
    steps = [step for step in state_steps(result.critic, document, result.real.statistic) if step.text]
    worst = max(steps, key=lambda step: step.nll, default=None)
    if worst is None or worst.start is None or worst.end is None:
        return shorten(document.text)
    if len(worst.text) > _EXCERPT_MARGIN:
        return shorten(worst.text)
    before, after = document.text[: worst.start][-_EXCERPT_MARGIN:], document.text[worst.end :][:_EXCERPT_MARGIN]
    return " ".join(f"... {before}[{worst.text}]{after} ...".split())


def _find_document(result: Criticism, corpora: CriticCorpora, choice: DocumentChoice) -> tuple[str, Document]:
    """Return the chosen document and its system."""
    if choice.system and choice.system not in (REAL, *result.systems):
        raise ParameterError(
            f"{param('system', choice.system)}: there is no such system"
            f"{did_you_mean(choice.system, [REAL, *result.systems])}",
            parameter="system",
        )
    system = choice.system or ("" if choice.document else next(iter(result.systems)))
    scores = result.real if system in ("", REAL) else result.systems[system]
    id = choice.document or next((outlier.id for outlier in outliers(result.real, scores)), "")
    for name, document in corpora.documents():
        if document.id == id and system in ("", name):
            return name, document
    raise ParameterError(
        f"{param('document', id)}: no document{f' of {system}' if system else ''} has this id", parameter="document"
    )


def _step_rows(critic: Critic, document: Document, stat: Statistic | None) -> Iterator[Row]:
    """Yield the steps of one document."""
    for step in state_steps(critic, document, stat):
        yield {
            "critic": critic.name, "step": step.step, "text": shorten(step.text, 32), "state": step.state,
            "nats": step.nll, "likeliest": step.likeliest, "its nats": step.likeliest_nll,
        }  # fmt: skip


def _text_rows(critic: Critic, document: Document, stat: Statistic | None) -> Iterator[Row]:
    """Yield one document with its steps in place."""
    steps = state_steps(critic, document, stat)
    if not any(step.text for step in steps):
        raise FinecombError(
            f"{param('show', 'text')}: steps of the {critic.name} critic have no place in the text; see outliers"
        )
    yield {"critic": critic.name, "document": document.id, "text": render_annotated_text(document.text, steps)}


_DOCUMENT_TABLES: dict[str, Callable[[Critic, Document, Statistic | None], Iterator[Row]]] = {
    "parts": _step_rows,
    "text": _text_rows,
}
"""Tables of one document."""
