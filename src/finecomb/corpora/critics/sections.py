"""Sections critic: order of section types compared with real documents (Deng et al. 2022, section 4 and App. E).

z is the type of each section. P(z) is a first-order Markov chain with begin and end states. P(z | x) comes from a
classifier that reads the text of a section and never its title. With `labels=title`, types are read from the titles.
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

from finecomb.core.errors import FinecombError, format_as_flag, param
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
from finecomb.corpora.critics.classifier_models import SentenceEncoder, TransformerClassifier
from finecomb.corpora.critics.posteriors import Factorised, Floats, PointPosterior, Posterior, Spans
from finecomb.corpora.critics.priors import END, Markov, ProjectionError, SavedState, transition_counts
from finecomb.corpora.critics.progress import track_progress
from finecomb.corpora.critics.section_titles import normalise_title

log = logging.getLogger(__name__)

_BATCH_SIZE = 256  # documents classified together
_SMOOTHING_FOLD_COUNT = 5
_CANDIDATE_COSTS = (0.1, 0.3, 1.0, 3.0, 10.0)  # candidates for cost=auto
_MAX_TRIAL_SECTIONS = 3_000  # maximum fitting sections per trial of a cost
_CANDIDATE_SMOOTHING = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # candidates for smoothing=auto


class Section(NamedTuple):
    """One section of a document."""

    title: str
    """Normalised title."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SectionOptions:
    """Options for converting documents into sequences of section types, the same for fitting and scoring."""

    labels: Literal["text", "title"] = "text"
    posterior: Literal["map", "full"] = "map"
    merge_repeats: bool = False
    drop: str = ""
    """Comma-separated section types to omit."""
    min_sections: int = 1
    min_words: int = 0
    max_words: int = 0
    """Maximum words per section; 0 for no limit."""
    split: str = ""
    """Separator between sections in documents without segments."""

    def select_sections(self, document: Document) -> list[Section]:
        """Return the sections to use, or raise `ProjectionError` if the document does not qualify."""
        dropped = set(self.drop.split(",")) if self.drop else set()
        sections = [section for section in self._split_sections(document) if section.title not in dropped]
        if len(sections) < max(1, self.min_sections):
            raise ProjectionError(
                f"has {len(sections)} sections, but at least {max(1, self.min_sections)} are required"
            )
        if self.min_words or self.max_words:
            for section in sections:
                words = len(document.text[section.start : section.end].split())
                if words < self.min_words:
                    raise ProjectionError(f"has a section of fewer than {self.min_words} words (limit: min_words)")
                if self.max_words and words > self.max_words:
                    raise ProjectionError(f"has a section of more than {self.max_words} words (limit: max_words)")
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
                f"has no segments; give the separator of its sections with {param('set_', 'split=TEXT')}"
            )
        texts = document.text.split(self.split)
        starts = itertools.accumulate((len(text) + len(self.split) for text in texts[:-1]), initial=0)
        return [
            Section("", start, start + len(text)) for start, text in zip(starts, texts, strict=True) if text.strip()
        ]


class Sections(PriorCritic):
    """Section types, from a classifier or from titles, and a Markov chain over them."""

    name = "sections"
    table_names = ("data", "transition-errors", "organisations")
    damages = ("two sections swapped", "a section said again")
    batch = _BATCH_SIZE
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
        """Fit a classifier of sections and a Markov chain of their types to documents with titled segments.

        With `prior=predicted`, the chain is fitted to the predictions of classifiers that had not seen the document,
        which match those for new documents (Appendix B, taken literally). With `prior=title`, it is fitted to the
        titles, as by the authors. Types with fewer than `min_count` sections are not learnt; the classifier assigns
        them another type. `cost` weighs errors against large regression weights: a number, or `auto`, selected without
        the documents to classify. `epochs` and the learning `rate` apply to classifier=transformer:NAME.
        """
        if merge_repeats and posterior == "full":
            raise FinecombError("merge_repeats cannot be used with posterior=full; use posterior=map")
        _parse_smoothing(smoothing)  # reject invalid options before fitting starts
        costs, learner = _parse_costs(cost, classifier), _classifier_trainer(classifier, epochs, rate, rng)
        choices = SectionOptions(labels, posterior, merge_repeats, drop, min_sections, min_words, max_words, split)
        corpus, unused = _read_sections(real, choices)
        titles = [tuple(section.title for section in sections) for _, sections in corpus]
        facts = sections_tables.section_statistics(corpus)
        if labels == "title":
            states = tuple(sorted({title for path in titles for title in path}))
            chain = _fit_markov_chain(_transition_count_tables(titles, states, merge_repeats), states, smoothing, rng)
            return cls(chain, None, choices, facts, unused)
        types = _frequent_types(titles, min_count, classifier)
        model, held_out = _cross_fit(corpus, types, learner, costs, folds, posterior, rng)
        posteriors = [Factorised(model.classes, table) for table in held_out]
        tables: Iterable[Floats]
        if prior == "title":
            paths, rare = _paths_of_known_types(corpus, model.classes)
            tables, unused = _transition_count_tables(paths, model.classes, merge_repeats), unused + rare
        elif posterior == "full":
            tables = map(expected_transition_counts, posteriors)
        else:
            tables = _transition_count_tables(
                (factors.point_estimate() for factors in posteriors), model.classes, merge_repeats
            )
        chain = _fit_markov_chain(tables, model.classes, smoothing, rng)
        return cls(chain, model, choices, facts | _cross_fit_accuracy(titles, posteriors, types), unused)

    def log_prior(self, z: Sequence[str]) -> Floats:
        """Return log P of each transition, skipping those from or to titles not seen in fitting."""
        logs: Floats = self.prior.log_transitions[self._seen_transitions(z)[:2]]
        return logs

    def step_names(self, z: Sequence[str]) -> Sequence[str]:
        """Return the target state of each transition between known states, including the end state."""
        return [(*z, END)[position] for position in self._seen_transitions(z)[2]]

    def most_probable_states(self, z: Sequence[str]) -> Sequence[tuple[str, float]]:
        """Return the most probable successor of each state and its log P."""
        rows = self.prior.log_transitions[self._seen_transitions(z)[0]]
        state_names = (*self.prior.states, END)
        return [(state_names[int(row.argmax())], float(row.max())) for row in rows]

    def _seen_transitions(self, z: Sequence[str]) -> tuple[Ints, Ints, Ints]:
        """Return the chain's row and column of each transition between known states, and the position of its target."""
        indices = np.array([self.prior.index_by_state.get(state, -1) for state in z], np.int64)
        rows = np.concatenate([[0], np.where(indices >= 0, indices + 1, -1)])
        columns = np.concatenate([indices, [len(self.prior.states)]])
        known = np.flatnonzero((rows >= 0) & (columns >= 0))
        if not len(known):
            raise ProjectionError("has no transition between section types that occur in the fitting documents")
        return rows[known], columns[known], known

    def project(self, document: Document) -> Posterior:
        """Return the posterior over the types of a document's sections."""
        sections = self.choices.select_sections(document)
        return self._posterior(sections, self._classify_documents([(document, sections)])[0])

    def project_all(self, documents: Iterable[Document]) -> Iterator[tuple[Document, Posterior | ProjectionError]]:
        """Yield the posterior of each document, classified in batches."""
        left = iter(documents)
        while batch := list(itertools.islice(left, self.batch)):
            cut = [_sections_or_reason(document, self.choices) for document in batch]
            readable = [
                (document, sections)
                for document, sections in zip(batch, cut, strict=True)
                if isinstance(sections, list)
            ]
            tables = iter(self._classify_documents(readable))
            for document, sections in zip(batch, cut, strict=True):
                projected: Posterior | ProjectionError
                try:
                    projected = self._posterior(sections, next(tables)) if isinstance(sections, list) else sections
                except ProjectionError as error:
                    projected = error
                yield document, projected

    def _classify_documents(self, corpus: Sequence[tuple[Document, list[Section]]]) -> list[Floats | None]:
        """Return probabilities of shape (sections, types) per document; None if types come from titles."""
        if self.classifier is None:
            return [None] * len(corpus)
        return list(_classify_sections(self.classifier, corpus))

    def _posterior(self, sections: Sequence[Section], probabilities: Floats | None) -> Posterior:
        spans = tuple((section.start, section.end) for section in sections)
        if probabilities is None:
            # Posterior with spans only for targets of transitions between known states
            point = _point_posterior([section.title for section in sections], spans, self.choices.merge_repeats)
            targets = self._seen_transitions(point.z)[2]
            return PointPosterior(
                point.z, tuple(point.spans[position] for position in targets if position < len(point.spans))
            )
        factors = Factorised(self.prior.states, probabilities, spans)
        return (
            factors
            if self.choices.posterior == "full"
            else _point_posterior(factors.point_estimate(), spans, self.choices.merge_repeats)
        )

    def with_full_posterior(self) -> Sections:
        """Return a critic that uses the classifier's probabilities instead of the most probable types."""
        full = replace(self.choices, posterior="full", merge_repeats=False)
        return self if self.classifier is None else Sections(self.prior, self.classifier, full, self.facts)

    def known_word_share(self, document: Document) -> float:
        """Return the share of a document's words and bigrams that the classifier knows; NaN if it uses none."""
        features = getattr(self.classifier, "features", None)
        return features.known_term_share(document.text) if isinstance(features, TfIdf) else math.nan

    def tables(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, pl.DataFrame]:
        """Return `data` (Table 11), `transition-errors` (Table 12) and `organisations` (Table 18)."""
        scores_by_system = {sections_tables.REAL_SYSTEM: real, **systems}.items()
        errors = (sections_tables.transition_errors(self.prior, name, scores) for name, scores in scores_by_system)
        sequences = (sections_tables.frequent_section_sequences(name, scores) for name, scores in scores_by_system)
        return {
            "data": pl.DataFrame([dict(self.facts)]),
            "transition-errors": pl.concat(errors),
            "organisations": pl.concat(sequences),
        }

    def state(self) -> SavedState:
        """Return the state for saving."""
        classifier = self.classifier.state() if self.classifier else None
        return {
            "prior": self.prior.state(), "classifier": classifier, "choices": asdict(self.choices),
            "facts": dict(self.facts),
        }  # fmt: skip

    @classmethod
    def user_code_in_state(cls, state: SavedState) -> Sequence[str]:
        """Return the encoder, whose files may name classes to import."""
        features = (state["classifier"] or {}).get("features", {})
        return (f"encoder:{features['name']}",) if features.get("features") == "encoder" else ()

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        """Rebuild the critic from its saved state."""
        classifier = classifier_from_state(state["classifier"]) if state["classifier"] else None
        return cls(Markov.from_state(state["prior"]), classifier, SectionOptions(**state["choices"]), state["facts"])


Corpus = Sequence[tuple[Document, list[Section]]]


def _sections_or_reason(document: Document, choices: SectionOptions) -> list[Section] | ProjectionError:
    try:
        return choices.select_sections(document)
    except ProjectionError as error:
        return error


def _read_sections(real: Sequence[Document], choices: SectionOptions) -> tuple[Corpus, tuple[DroppedDocument, ...]]:
    """Return the documents with their sections (at least two), and the documents without usable sections."""
    cut = [(document, _sections_or_reason(document, choices)) for document in real]
    readable = [(document, sections) for document, sections in cut if isinstance(sections, list)]
    unused = tuple(
        DroppedDocument(
            document.id, reason.format_message(format_as_flag)
        )  # reasons are data and must not depend on the client
        for document, reason in cut
        if isinstance(reason, ProjectionError)
    )
    if len(readable) < 2:
        example = f"; {unused[0].id!r} {unused[0].why}" if unused else ""
        raise FinecombError(
            f"the sections critic requires at least two fitting documents with sections, found {len(readable)}{example}"
        )
    return readable, unused


def _frequent_types(titles: Iterable[Sequence[str]], min_count: int, classifier: str) -> set[str]:
    """Return the section types with at least `min_count` sections."""
    counts = Counter(itertools.chain.from_iterable(titles))
    common = {title for title, count in counts.items() if title and count >= min_count}
    if len(common) < 2 and not classifier.startswith("transformer:"):
        raise FinecombError(
            f"a classifier requires at least two section types with {min_count} sections or more, found {len(common)}; "
            f"lower {param('set_', 'min_count=N')}, or use documents whose segments have titles"
        )
    return common


def _paths_of_known_types(
    corpus: Corpus, classes: Collection[str]
) -> tuple[list[list[str]], tuple[DroppedDocument, ...]]:
    """Return the title sequences of documents with only types that the classifier knows, and the other documents."""
    paths = [[section.title for section in sections] for _, sections in corpus]
    known = [set(path) <= set(classes) for path in paths]
    reason = "has a section type that the classifier does not know"
    unused = (
        DroppedDocument(document.id, reason)
        for (document, _), is_known in zip(corpus, known, strict=True)
        if not is_known
    )
    return [*itertools.compress(paths, known)], tuple(unused)


FitClassifier = Callable[[Ints, Sequence[str], float], Classifier]
"""Function that fits a classifier to section numbers, their types and the cost of an error."""
ApplyClassifier = Callable[[Any, Ints], Floats]
"""Function that applies a fitted classifier to section numbers."""
ClassifierTrainer = Callable[[Sequence[str]], tuple[FitClassifier, ApplyClassifier]]
"""Function from all section texts to a fit and an apply function; features are computed once, as types are not used."""


def _classifier_trainer(
    name: str, epochs: int, rate: float, rng: np.random.Generator
) -> ClassifierTrainer | Classifier:
    """Return a function that trains classifiers, or a pretrained classifier that needs no training."""
    kind, _, model = name.partition(":")
    if kind == "transformer" and model:
        seed = int(rng.integers(2**31))
        return TransformerClassifier.from_pretrained_classifier(model) or functools.partial(
            _fine_tuning_trainer, model, seed, epochs, rate
        )
    if kind == "encoder" and model:
        return lambda texts: _regression_trainer(SentenceEncoder(model), texts)
    if name != "tfidf":
        raise FinecombError(f"classifier={name}: expected tfidf, encoder:NAME or transformer:NAME")
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
        return [texts[row] for row in rows]

    return (
        lambda rows, titles, _: TransformerClassifier.fit(model, select_texts(rows), titles, seed, epochs, rate),
        lambda fitted, rows: fitted(select_texts(rows)),
    )


def _parse_costs(cost: str, classifier: str) -> tuple[float, ...]:
    """Return the candidate costs of an error; for a transformer, which has none, return a single dummy value."""
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
    """Sections with their types and the folds of their documents, for cross-fitting."""

    learn: FitClassifier
    apply: ApplyClassifier
    titles: NDArray[np.str_]
    learnt: NDArray[np.bool_]
    """Mask of sections whose type has enough sections to be learnt."""
    fold: Ints
    """Fold of each section; all sections of a document are in the same fold."""
    posterior: Literal["map", "full"] = "map"
    """Use of the classifier: the most probable type alone, or all probabilities."""

    def fit_without_folds(self, left_out: Collection[int], cost: float, max_sections: int | None = None) -> Classifier:
        """Fit a classifier to at most `max_sections` sections outside the folds `left_out`."""
        rows = np.flatnonzero(~np.isin(self.fold, list(left_out)) & self.learnt)[:max_sections]
        return self.learn(rows, self.titles[rows].tolist(), cost)

    def fold_loss(self, model: Classifier, number: int) -> float:
        """Return the loss of a model in a fold: minus the mean log P of the correct types, clipped at log 1e-6.

        If only the most probable types are used, the loss is the error rate plus a thousandth of this value, for ties.
        """
        rows = np.flatnonzero((self.fold == number) & self.learnt)
        column_by_class = {name: column for column, name in enumerate(model.classes)}
        table = np.column_stack([self.apply(model, rows), np.full(len(rows), 1e-6)])
        columns = [column_by_class.get(title, len(column_by_class)) for title in self.titles[rows].tolist()]
        if not len(rows):
            return 0.0
        surprise = -float(np.log(np.maximum(table[np.arange(len(rows)), columns], 1e-6)).mean())
        error_rate = float(np.mean(table.argmax(axis=1) != columns))
        return surprise if self.posterior == "full" else error_rate + surprise / 1000


def _best_costs(sections: _SectionFolds, costs: Sequence[float], folds: int) -> tuple[list[float], float]:
    """Return the best cost for each fold, selected without its sections, and the best cost overall.

    With two folds, no data is left to compare costs, so the middle candidate is used.
    """
    middle = costs[len(costs) // 2]
    if len(costs) == 1 or folds < 3:
        return [middle] * folds, middle
    # Loss in fold j of a classifier fitted without folds j and k, shape (costs, folds, folds); 0 for j = k
    losses = np.zeros((len(costs), folds, folds))
    for table, cost in zip(losses, track_progress(costs, "choosing a cost", len(costs)), strict=True):
        for first, second in itertools.combinations(range(folds), 2):
            model = sections.fit_without_folds((first, second), cost, _MAX_TRIAL_SECTIONS)
            table[first, second] = sections.fold_loss(model, first)
            table[second, first] = sections.fold_loss(model, second)
    by_fold, overall = losses.sum(axis=1), losses.sum(axis=(1, 2))
    log.info("cost of an error: %g", costs[int(overall.argmin())])
    return [costs[number] for number in by_fold.argmin(axis=0)], costs[int(overall.argmin())]


def _cross_fit(
    corpus: Corpus,
    types: set[str],
    learner: ClassifierTrainer | Classifier,
    costs: Sequence[float],
    folds: int,
    posterior: Literal["map", "full"],
    rng: np.random.Generator,
) -> tuple[Classifier, list[Floats]]:
    """Return the classifier fitted to all sections, and out-of-fold predictions for each document."""
    if isinstance(learner, TransformerClassifier):
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
    for number in track_progress(range(folds), "fitting section classifiers", folds):
        model, inside = parts.fit_without_folds((number,), by_fold[number]), np.flatnonzero(fold == number)
        columns = np.array([classes.index(name) for name in model.classes])
        held_out[inside[:, None], columns] = parts.apply(model, inside)
    return parts.fit_without_folds((), cost), np.split(held_out, ends[:-1])


def _classify_sections(classifier: Classifier, corpus: Corpus) -> Iterator[Floats]:
    """Yield probabilities of shape (sections, types) per document, classified in batches."""
    for start in range(0, len(corpus), _BATCH_SIZE):
        batch = corpus[start : start + _BATCH_SIZE]
        texts = [document.text[section.start : section.end] for document, sections in batch for section in sections]
        ends = np.cumsum([len(sections) for _, sections in batch])
        yield from np.split(classifier(texts), ends[:-1])


def _cross_fit_accuracy(
    titles: Sequence[Sequence[str]], posteriors: Sequence[Factorised], types: set[str]
) -> dict[str, float]:
    """Return the number of learnt types and the out-of-fold accuracy on their sections."""
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
    """Return a path of states as a point posterior; if `merge`, equal neighbours are merged."""
    if not merge:
        return PointPosterior(tuple(states), spans)
    groups = [list(group) for _, group in itertools.groupby(range(len(states)), states.__getitem__)]
    return PointPosterior(tuple(states[g[0]] for g in groups), tuple((spans[g[0]][0], spans[g[-1]][1]) for g in groups))


def _transition_count_tables(paths: Iterable[Sequence[str]], states: Sequence[str], merge: bool) -> Iterator[Floats]:
    """Yield the transition counts of each path."""
    for path in paths:
        yield transition_counts([[state for state, _ in itertools.groupby(path)] if merge else path], states)


def _parse_smoothing(smoothing: str) -> float | None:
    """Return the number X in the option `add:X`, or None for `auto`."""
    kind, _, number = smoothing.partition(":")
    try:
        added = None if smoothing == "auto" else float(number)
    except ValueError:
        added = -1.0
    if added is not None and (kind != "add" or not 0 <= added < np.inf):
        raise FinecombError(f"smoothing={smoothing}: expected auto or add:X, e.g. add:1")
    return added


def _fit_markov_chain(
    tables: Iterable[Floats], states: Sequence[str], smoothing: str, rng: np.random.Generator
) -> Markov:
    """Fit a chain to transition counts per document; `auto` selects the smoothing by held-out likelihood."""
    folds = np.zeros((_SMOOTHING_FOLD_COUNT, len(states) + 1, len(states) + 1))
    for table in tables:
        folds[rng.integers(_SMOOTHING_FOLD_COUNT)] += table
    added = _parse_smoothing(smoothing)
    if added is None:
        # Summed log probability of each fold under a chain fitted to the other folds
        total, log_probs = folds.sum(axis=0), list[float]()
        for candidate in _CANDIDATE_SMOOTHING:
            chains = [Markov.from_counts(states, total - fold, candidate) for fold in folds]
            pairs = zip(folds, chains, strict=True)
            log_probs.append(sum(float((fold * chain.log_transitions).sum()) for fold, chain in pairs))
        added = _CANDIDATE_SMOOTHING[int(np.argmax(log_probs))]
    log.info("smoothing: %g added to each count", added)
    return Markov.from_counts(states, folds.sum(axis=0), added)


def expected_transition_counts(posterior: Factorised) -> Floats:
    """Return the expected transition counts of a document under its posterior, in the layout of `transition_counts`."""
    p = posterior.probabilities
    counts = np.zeros((p.shape[1] + 1, p.shape[1] + 1))
    counts[0, :-1], counts[1:, -1] = p[0], p[-1]
    counts[1:, :-1] = p[:-1].T @ p[1:]
    return counts
