"""The sections critic: do sections come in an order that real documents have? (Deng et al. 2022, section 4 and App. E).

z is the type of each section. P(z) is a first-order chain from a begin state into an end state. P(z | x) comes from a
classifier that reads the text of one section and never its title; where titles are to be believed, `labels=title`
reads them instead.
"""

from __future__ import annotations

import functools
import itertools
import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, flag_style, param
from finecomb.core.records import Document
from finecomb.corpora.critics import sections_tables
from finecomb.corpora.critics.base import CriticScores, DroppedDocument, Ints, PriorCritic
from finecomb.corpora.critics.classifier import (
    Classifier,
    FeatureExtractor,
    LogisticRegression,
    TfIdf,
    classifier_from_state,
)
from finecomb.corpora.critics.classifier_models import Encoder, Transformer
from finecomb.corpora.critics.posteriors import Factorised, Floats, PointPosterior, Posterior, Spans
from finecomb.corpora.critics.priors import END, Markov, ProjectionError, SavedState, transition_counts
from finecomb.corpora.critics.progress import track
from finecomb.corpora.critics.section_titles import normalise_title

log = logging.getLogger(__name__)

_BATCH = 256  # documents whose sections are classified together
_SMOOTHING_FOLD_COUNT = 5
_CANDIDATE_COSTS = (0.1, 0.3, 1.0, 3.0, 10.0)  # candidates for cost=auto
_MAX_TRIAL_SECTIONS = 3_000  # that each trial of a cost learns from
_CANDIDATE_SMOOTHING = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # candidates for smoothing=auto


class Section(NamedTuple):
    """One section of a document."""

    title: str
    """Normalised."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SectionOptions:
    """How documents become sequences of section types; the same for fitting and for judging."""

    labels: Literal["text", "title"] = "text"
    posterior: Literal["map", "full"] = "map"
    merge_repeats: bool = False
    drop: str = ""
    """Section types to leave out, with commas."""
    min_sections: int = 1
    min_words: int = 0
    max_words: int = 0
    """Of every section; 0 is no limit."""
    split: str = ""
    """What stands between sections in documents without segments."""

    def select_sections(self, document: Document) -> list[Section]:
        """The sections that count, or the reason why the document does not."""
        dropped = set(self.drop.split(",")) if self.drop else set()
        sections = [section for section in self._split_sections(document) if section.title not in dropped]
        if len(sections) < max(1, self.min_sections):
            raise ProjectionError(f"has {len(sections)} sections; {max(1, self.min_sections)} are needed")
        if self.min_words or self.max_words:
            self._check_words(document, sections)
        return sections

    def _split_sections(self, document: Document) -> list[Section]:
        if document.segments:
            return [
                Section(normalise_title(segment.title), segment.start, segment.end) for segment in document.segments
            ]
        if not document.text.strip():
            raise ProjectionError("is empty")
        if not self.split:
            raise ProjectionError(
                f"has no segments; say what stands between its sections with {param('set_', 'split=TEXT')}"
            )
        texts = document.text.split(self.split)
        starts = itertools.accumulate((len(text) + len(self.split) for text in texts[:-1]), initial=0)
        return [
            Section("", start, start + len(text)) for start, text in zip(starts, texts, strict=True) if text.strip()
        ]

    def _check_words(self, document: Document, sections: Iterable[Section]) -> None:
        for section in sections:
            words = len(document.text[section.start : section.end].split())
            if words < self.min_words:
                raise ProjectionError(f"has a section of fewer than {self.min_words} words")
            if self.max_words and words > self.max_words:
                raise ProjectionError(f"has a section of more than {self.max_words} words")


class Sections(PriorCritic):
    """Types of sections, by a classifier or by their titles, and a Markov chain over them."""

    name = "sections"
    table_names = ("data", "transition-errors", "organisations")
    damages = ("two sections swapped", "a section said again")
    batch = _BATCH
    prior: Markov

    def __init__(
        self,
        prior: Markov,
        classifier: Classifier | None,
        choices: SectionOptions,
        facts: Mapping[str, Any],
        unused: tuple[DroppedDocument, ...] = (),
    ) -> None:
        self.prior, self.classifier, self.choices, self.facts, self.unused = prior, classifier, choices, facts, unused
        self.uses_all_cores = classifier is not None and not isinstance(getattr(classifier, "features", None), TfIdf)

    @classmethod
    def fit(
        cls,
        real: Sequence[Document],
        rng: np.random.Generator,
        labels: Literal["text", "title"] = "text",
        prior: Literal["predicted", "title"] = "predicted",
        posterior: Literal["map", "full"] = "map",
        smoothing: str = "auto",
        merge_repeats: bool = False,
        classifier: str = "tfidf",
        cost: str = "auto",
        epochs: int = 3,
        rate: float = 2e-5,
        folds: int = 3,
        min_count: int = 20,
        drop: str = "",
        min_sections: int = 1,
        min_words: int = 0,
        max_words: int = 0,
        split: str = "",
    ) -> Self:
        """A classifier of sections and the chain of their types, from documents with titled segments.

        With `prior=predicted` the chain is fitted to labels that a classifier gave to documents it had not seen: what
        the critic will read in other documents (Appendix B taken at its word). With `prior=title` it is fitted to the
        titles, as the authors did. Types with fewer than `min_count` sections are left to the classifier. `cost` is
        what an error weighs against large weights in the regressions: a number, or `auto`, chosen without the documents
        that are then classified. `epochs` and the learning `rate` are for classifier=transformer:NAME.
        """
        if merge_repeats and posterior == "full":
            raise FinecombError("merge_repeats joins states, so it goes with posterior=map only")
        _parse_smoothing(smoothing)  # a mistake is found before the work
        costs, learner = _parse_costs(cost, classifier), _classifier_trainer(classifier, epochs, rate, rng)
        choices = SectionOptions(labels, posterior, merge_repeats, drop, min_sections, min_words, max_words, split)
        corpus, unused = _read_sections(real, choices)
        titles = [tuple(section.title for section in sections) for _, sections in corpus]
        facts = sections_tables.data_statistics(corpus)
        if labels == "title":
            states = tuple(sorted({title for path in titles for title in path}))
            chain = _fit_chain(_transition_count_tables(titles, states, merge_repeats), states, smoothing, rng)
            return cls(chain, None, choices, facts, unused)
        types = _frequent_types(titles, min_count, classifier)
        model, held_out = _cross_fit(corpus, types, learner, costs, folds, posterior, rng)
        posteriors = [Factorised(model.classes, table) for table in held_out]
        tables: Iterable[Floats]
        if prior == "title":
            paths, rare = _paths_of_frequent_types(corpus, model.classes, min_count)
            tables, unused = _transition_count_tables(paths, model.classes, merge_repeats), unused + rare
        elif posterior == "full":
            tables = map(expected_transition_counts, posteriors)
        else:
            tables = _transition_count_tables(
                (factors.point_estimate() for factors in posteriors), model.classes, merge_repeats
            )
        chain = _fit_chain(tables, model.classes, smoothing, rng)
        return cls(chain, model, choices, facts | _accuracy(titles, posteriors, types), unused)

    def log_prior(self, z: Sequence[str]) -> Floats:
        """log P of each transition; one from or into a title never seen in fitting is skipped."""
        logs: Floats = self.prior.log_transitions[self._seen_transitions(z)[:2]]
        return logs

    def step_names(self, z: Sequence[str]) -> Sequence[str]:
        """The states that transitions which count lead to, the end among them."""
        return [(*z, END)[at] for at in self._seen_transitions(z)[2]]

    def most_probable_states(self, z: Sequence[str]) -> Sequence[tuple[str, float]]:
        """The most probable successor of each predecessor."""
        rows = self.prior.log_transitions[self._seen_transitions(z)[0]]
        called = (*self.prior.states, END)
        return [(called[int(row.argmax())], float(row.max())) for row in rows]

    def _seen_transitions(self, z: Sequence[str]) -> tuple[Ints, Ints, Ints]:
        """Rows and columns of the chain for each transition that counts, and the number of the state it leads to."""
        at = np.array([self.prior.index_by_state.get(state, -1) for state in z], np.int64)
        rows = np.concatenate([[0], np.where(at >= 0, at + 1, -1)])
        columns = np.concatenate([at, [len(self.prior.states)]])
        seen = np.flatnonzero((rows >= 0) & (columns >= 0))
        if not len(seen):
            raise ProjectionError("has no transition between section types that were seen in fitting")
        return rows[seen], columns[seen], seen

    def project(self, document: Document) -> Posterior:
        """The types of its sections."""
        sections = self.choices.select_sections(document)
        return self._posterior(sections, self._probabilities([(document, sections)])[0])

    def project_all(self, documents: Iterable[Document]) -> Iterator[tuple[Document, Posterior | ProjectionError]]:
        """Every document, a few hundred classified at a time."""
        left = iter(documents)
        while batch := list(itertools.islice(left, self.batch)):
            yield from self._project_batch(batch)

    def _project_batch(self, batch: Sequence[Document]) -> Iterator[tuple[Document, Posterior | ProjectionError]]:
        cut = [_sections_or_reason(document, self.choices) for document in batch]
        readable = [
            (document, sections) for document, sections in zip(batch, cut, strict=True) if isinstance(sections, list)
        ]
        tables = iter(self._probabilities(readable))
        for document, sections in zip(batch, cut, strict=True):
            if isinstance(sections, list):
                yield document, self._posterior_or_reason(sections, next(tables))
            else:
                yield document, sections

    def _posterior_or_reason(
        self, sections: Sequence[Section], probabilities: Floats | None
    ) -> Posterior | ProjectionError:
        try:
            return self._posterior(sections, probabilities)
        except ProjectionError as error:
            return error

    def _probabilities(self, corpus: Sequence[tuple[Document, list[Section]]]) -> list[Floats | None]:
        """(sections, types) of each document; None where titles are believed."""
        if self.classifier is None:
            return [None] * len(corpus)
        return list(_classify_sections(self.classifier, corpus))

    def _posterior(self, sections: Sequence[Section], probabilities: Floats | None) -> Posterior:
        spans = tuple((section.start, section.end) for section in sections)
        if probabilities is None:
            return self._keep_seen_spans(
                _point_posterior([section.title for section in sections], spans, self.choices.merge_repeats)
            )
        factors = Factorised(self.prior.states, probabilities, spans)
        return (
            factors
            if self.choices.posterior == "full"
            else _point_posterior(factors.point_estimate(), spans, self.choices.merge_repeats)
        )

    def _keep_seen_spans(self, point: PointPosterior) -> PointPosterior:
        """The same with the texts of those states only to which a transition that counts leads."""
        seen = self._seen_transitions(point.z)[2]
        return PointPosterior(point.z, tuple(point.spans[at] for at in seen if at < len(point.spans)))

    def with_full_posterior(self) -> Sections:
        """With the classifier's probabilities, also where the most probable types are read."""
        full = replace(self.choices, posterior="full", merge_repeats=False)
        return self if self.classifier is None else Sections(self.prior, self.classifier, full, self.facts)

    def familiarity(self, document: Document) -> float:
        """The share of words and pairs of neighbours that the classifier knows; NaN where it reads none."""
        features = getattr(self.classifier, "features", None)
        return features.known_term_share(document.text) if isinstance(features, TfIdf) else math.nan

    def tables(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, pl.DataFrame]:
        """Data (Table 11), transition errors (Table 12) and organisations (Table 18)."""
        return sections_tables.tables(self.prior, self.facts, real, systems)

    def state(self) -> SavedState:
        """For storage."""
        classifier = self.classifier.state() if self.classifier else None
        return {
            "prior": self.prior.state(), "classifier": classifier, "choices": asdict(self.choices),
            "facts": dict(self.facts),
        }  # fmt: skip

    @classmethod
    def user_code_in_state(cls, state: SavedState) -> Sequence[str]:
        """The encoder, whose files may name classes to import."""
        features = (state["classifier"] or {}).get("features", {})
        return (f"encoder:{features['name']}",) if features.get("features") == "encoder" else ()

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        """From storage."""
        classifier = classifier_from_state(state["classifier"]) if state["classifier"] else None
        return cls(Markov.from_state(state["prior"]), classifier, SectionOptions(**state["choices"]), state["facts"])


Corpus = Sequence[tuple[Document, list[Section]]]


def _sections_or_reason(document: Document, choices: SectionOptions) -> list[Section] | ProjectionError:
    try:
        return choices.select_sections(document)
    except ProjectionError as error:
        return error


def _read_sections(real: Sequence[Document], choices: SectionOptions) -> tuple[Corpus, tuple[DroppedDocument, ...]]:
    """Documents with their sections, at least two, and those that have none."""
    cut = [(document, _sections_or_reason(document, choices)) for document in real]
    readable = [(document, sections) for document, sections in cut if isinstance(sections, list)]
    unused = tuple(
        DroppedDocument(document.id, reason.text(flag_style))  # reasons are data, the same for every client
        for document, reason in cut
        if isinstance(reason, ProjectionError)
    )
    if len(readable) < 2:
        example = f"; {unused[0].id!r} {unused[0].why}" if unused else ""
        raise FinecombError(f"the sections critic needs two documents to be fitted on and has {len(readable)}{example}")
    return readable, unused


def _frequent_types(titles: Iterable[Sequence[str]], min_count: int, classifier: str) -> set[str]:
    """Section types common enough to be learnt."""
    counts = Counter(itertools.chain.from_iterable(titles))
    common = {title for title, count in counts.items() if title and count >= min_count}
    if len(common) < 2 and not classifier.startswith("transformer:"):
        raise FinecombError(
            f"{len(common)} section types have {min_count} sections or more, and a classifier needs two; lower it with "
            f"{param('set_', 'min_count=N')}, or give documents whose segments have titles"
        )
    return common


def _paths_of_frequent_types(
    corpus: Corpus, classes: Collection[str], min_count: int
) -> tuple[list[list[str]], tuple[DroppedDocument, ...]]:
    """The titles of documents all of whose types are learnt, and the other documents."""
    paths = [[section.title for section in sections] for _, sections in corpus]
    learnt = [set(path) <= set(classes) for path in paths]
    rare = f"has a section type with fewer than {min_count} sections"
    unused = (DroppedDocument(document.id, rare) for (document, _), has in zip(corpus, learnt, strict=True) if not has)
    return [*itertools.compress(paths, learnt)], tuple(unused)


FitClassifier = Callable[[Ints, Sequence[str], float], Classifier]
"""From the numbers of sections, their types, and the cost of an error."""
ApplyClassifier = Callable[[Any, Ints], Floats]
"""What a classifier so learnt says of the sections with these numbers."""
ClassifierTrainer = Callable[[Sequence[str]], tuple[FitClassifier, ApplyClassifier]]
"""From the texts of all sections; features are made once, as they know words and no types."""


def _classifier_trainer(
    name: str, epochs: int, rate: float, rng: np.random.Generator
) -> ClassifierTrainer | Classifier:
    """How classifiers are learnt, or a transformer that needs no learning."""
    kind, _, model = name.partition(":")
    if kind == "transformer" and model:
        seed = int(rng.integers(2**31))
        return Transformer.from_pretrained_classifier(model) or functools.partial(
            _fine_tuning_trainer, model, seed, epochs, rate
        )
    if kind == "encoder" and model:
        return lambda texts: _regression_trainer(Encoder(model), texts)
    if name != "tfidf":
        raise FinecombError(f"classifier={name}: is none of tfidf, encoder:NAME and transformer:NAME")
    return lambda texts: _regression_trainer(TfIdf.fit(texts), texts)


def _regression_trainer(features: FeatureExtractor, texts: Sequence[str]) -> tuple[FitClassifier, ApplyClassifier]:
    table = features(texts)
    return (
        lambda rows, titles, cost: LogisticRegression.fit(table[rows], titles, features, cost),
        lambda fitted, rows: fitted.probabilities_from_features(table[rows]),
    )


def _fine_tuning_trainer(
    model: str, seed: int, epochs: int, rate: float, texts: Sequence[str]
) -> tuple[FitClassifier, ApplyClassifier]:
    def select_texts(rows: Ints) -> list[str]:
        return [texts[at] for at in rows]

    return (
        lambda rows, titles, _: Transformer.fit(model, select_texts(rows), titles, seed, epochs, rate),
        lambda fitted, rows: fitted(select_texts(rows)),
    )


def _parse_costs(cost: str, classifier: str) -> tuple[float, ...]:
    """The candidates for the cost of an error; a transformer has none."""
    if classifier.startswith("transformer:"):
        return (1.0,)
    if cost == "auto":
        return _CANDIDATE_COSTS
    try:
        value = float(cost)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise FinecombError(f"cost={cost}: expected auto or a number above 0")
    return (value,)


@dataclass(frozen=True)
class _SectionFolds:
    """All sections with their types and the folds of their documents, for learning from some and judging others."""

    learn: FitClassifier
    apply: ApplyClassifier
    titles: NDArray[np.str_]
    learnt: NDArray[np.bool_]
    """Whether the type of each section is common enough to be learnt."""
    fold: Ints
    """The fold of each section: that of its document."""
    posterior: Literal["map", "full"] = "map"
    """What will be read: the most probable type alone, or all probabilities."""

    def fit_without_folds(self, left_out: Collection[int], cost: float, max_sections: int | None = None) -> Classifier:
        """A classifier learnt from other folds, or from the first `most` of their sections."""
        rows = np.flatnonzero(~np.isin(self.fold, list(left_out)) & self.learnt)[:max_sections]
        return self.learn(rows, self.titles[rows].tolist(), cost)

    def fold_loss(self, model: Classifier, number: int) -> float:
        """How badly a model does in a fold: minus the mean log P of the right types, at least log 1e-6.

        Where only the most probable types are read, their share of errors, and a thousandth of that log P for ties.
        """
        rows = np.flatnonzero((self.fold == number) & self.learnt)
        places = {name: at for at, name in enumerate(model.classes)}
        table = np.column_stack([self.apply(model, rows), np.full(len(rows), 1e-6)])
        columns = [places.get(title, len(places)) for title in self.titles[rows].tolist()]
        if not len(rows):
            return 0.0
        surprise = -float(np.log(np.maximum(table[np.arange(len(rows)), columns], 1e-6)).mean())
        wrong = float(np.mean(table.argmax(axis=1) != columns))
        return surprise if self.posterior == "full" else wrong + surprise / 1000

    def pairwise_losses(self, cost: float, folds: int) -> Floats:
        """(folds, folds): the loss in fold j of a classifier that has seen neither fold j nor fold k; 0 for j = k."""
        table = np.zeros((folds, folds))
        for first, second in itertools.combinations(range(folds), 2):
            model = self.fit_without_folds((first, second), cost, _MAX_TRIAL_SECTIONS)
            table[first, second], table[second, first] = self.fold_loss(model, first), self.fold_loss(model, second)
        return table


def _best_costs(sections: _SectionFolds, costs: Sequence[float], folds: int) -> tuple[list[float], float]:
    """For each fold the cost that does best without it, and the cost that does best altogether.

    With two folds nothing is left to try costs on, and the middle one is taken.
    """
    middle = costs[len(costs) // 2]
    if len(costs) == 1 or folds < 3:
        return [middle] * folds, middle
    losses = np.stack([sections.pairwise_losses(cost, folds) for cost in track(costs, "choosing a cost", len(costs))])
    by_fold, overall = losses.sum(axis=1), losses.sum(axis=(1, 2))
    log.info("cost of an error: %g", costs[int(overall.argmin())])
    return [costs[at] for at in by_fold.argmin(axis=0)], costs[int(overall.argmin())]


def _cross_fit(
    corpus: Corpus,
    types: set[str],
    learner: ClassifierTrainer | Classifier,
    costs: Sequence[float],
    folds: int,
    posterior: Literal["map", "full"],
    rng: np.random.Generator,
) -> tuple[Classifier, list[Floats]]:
    """The classifier fitted on all, and what classifiers that had not seen a document say of its sections."""
    if isinstance(learner, Transformer):
        return learner, list(_classify_sections(learner, corpus))
    texts = [document.text[section.start : section.end] for document, sections in corpus for section in sections]
    titles = np.array([section.title for _, sections in corpus for section in sections])
    ends = np.cumsum([len(sections) for _, sections in corpus])
    folds = max(2, min(folds, len(corpus)))
    fold = np.repeat(rng.permutation(len(corpus)) % folds, np.diff(ends, prepend=0))
    learn, apply = learner(texts)
    parts = _SectionFolds(learn, apply, titles, np.isin(titles, sorted(types)), fold, posterior)
    by_fold, cost = _best_costs(parts, costs, folds)
    classes, held_out = sorted(types), np.zeros((len(texts), len(types)))
    for number in track(range(folds), "fitting section classifiers", folds):
        model, inside = parts.fit_without_folds((number,), by_fold[number]), np.flatnonzero(fold == number)
        columns = np.array([classes.index(name) for name in model.classes])
        held_out[inside[:, None], columns] = parts.apply(model, inside)
    return parts.fit_without_folds((), cost), np.split(held_out, ends[:-1])


def _classify_sections(classifier: Classifier, corpus: Corpus) -> Iterator[Floats]:
    """(sections, types) of each document, classified in batches."""
    for start in range(0, len(corpus), _BATCH):
        batch = corpus[start : start + _BATCH]
        texts = [document.text[section.start : section.end] for document, sections in batch for section in sections]
        ends = np.cumsum([len(sections) for _, sections in batch])
        yield from np.split(classifier(texts), ends[:-1])


def _accuracy(titles: Sequence[Sequence[str]], posteriors: Sequence[Factorised], types: set[str]) -> dict[str, float]:
    """How many types were learnt, and the share of their sections that a classifier new to the document gets right."""
    pairs = [
        (title, guess)
        for path, posterior in zip(titles, posteriors, strict=True)
        for title, guess in zip(path, posterior.point_estimate(), strict=True)
        if title in types
    ]
    accuracy = float(np.mean([title == guess for title, guess in pairs])) if pairs else math.nan
    return {"learnt types": len(types), "accuracy": accuracy}


# --- paths and chains --------------------------------------------------------------------------------------------


def _point_posterior(states: Sequence[str], spans: Spans, merge: bool) -> PointPosterior:
    """A path, with equal neighbours joined where that is wanted."""
    if not merge:
        return PointPosterior(tuple(states), spans)
    groups = [list(group) for _, group in itertools.groupby(range(len(states)), states.__getitem__)]
    return PointPosterior(tuple(states[g[0]] for g in groups), tuple((spans[g[0]][0], spans[g[-1]][1]) for g in groups))


def _transition_count_tables(paths: Iterable[Sequence[str]], states: Sequence[str], merge: bool) -> Iterator[Floats]:
    """The transitions of each path."""
    for path in paths:
        yield transition_counts([[state for state, _ in itertools.groupby(path)] if merge else path], states)


def _parse_smoothing(smoothing: str) -> float | None:
    """What `add:X` says; None for `auto`."""
    kind, _, number = smoothing.partition(":")
    try:
        added = None if smoothing == "auto" else float(number)
    except ValueError:
        added = -1.0
    if added is not None and (kind != "add" or not 0 <= added < np.inf):
        raise FinecombError(f"smoothing={smoothing}: expected auto or add:X, e.g. add:1")
    return added


def _fit_chain(tables: Iterable[Floats], states: Sequence[str], smoothing: str, rng: np.random.Generator) -> Markov:
    """From the transitions of each document; with `auto` so much is added as predicts held-out documents best."""
    folds = np.zeros((_SMOOTHING_FOLD_COUNT, len(states) + 1, len(states) + 1))
    for table in tables:
        folds[rng.integers(_SMOOTHING_FOLD_COUNT)] += table
    added = _parse_smoothing(smoothing)
    if added is None:
        added = max(_CANDIDATE_SMOOTHING, key=lambda add: _held_out_log_prob(folds, states, add))
    log.info("smoothing: %g is added to every count", added)
    return Markov.from_counts(states, folds.sum(axis=0), added)


def _held_out_log_prob(folds: Floats, states: Sequence[str], add: float) -> float:
    """log P of each fold under the others."""
    total = folds.sum(axis=0)
    return sum(float((fold * Markov.from_counts(states, total - fold, add).log_transitions).sum()) for fold in folds)


def expected_transition_counts(posterior: Factorised) -> Floats:
    """Transitions of one document in expectation over its posterior, laid out as in `transition_counts`."""
    p = posterior.probabilities
    counts = np.zeros((p.shape[1] + 1, p.shape[1] + 1))
    counts[0, :-1], counts[1:, -1] = p[0], p[-1]
    counts[1:, :-1] = p[:-1].T @ p[1:]
    return counts
