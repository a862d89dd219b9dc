"""Critic from a user's function that maps a text to labels or numbers, with a built-in prior over them."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.records import Document
from finecomb.corpora.critics.base import DroppedDocument, PriorCritic
from finecomb.corpora.critics.ngrams import KneserNeyModel
from finecomb.corpora.critics.posteriors import Dirichlet, Floats, PointPosterior, Posterior
from finecomb.corpora.critics.priors import (
    END,
    DirichletPrior,
    GaussianPrior,
    Markov,
    ProjectionError,
    SavedState,
    posterior_mismatch_error,
)
from finecomb.corpora.critics.progress import track_progress
from finecomb.corpora.critics.storage import import_attribute

PriorKind = Literal["markov", "ngram", "gaussian", "dirichlet"]


@dataclass(frozen=True)
class NgramPrior:
    """N-gram model of named states with an end state, smoothed by interpolated modified Kneser-Ney."""

    states: tuple[str, ...]
    ngrams: KneserNeyModel

    @classmethod
    def fit(cls, paths: Iterable[Sequence[str]], order: int = 3) -> NgramPrior:
        """Fit to sequences of states."""
        paths = [tuple(path) for path in paths]
        states = tuple(sorted({state for path in paths for state in path}))
        index = {state: at for at, state in enumerate(states)}
        tokens = [np.array([*(index[state] for state in path), len(states)]) for path in paths]
        return cls(states, KneserNeyModel.fit(tokens, order, len(states) + 1))

    @functools.cached_property
    def _index_by_state(self) -> dict[str, int]:
        return {state: index for index, state in enumerate(self.states)}

    def _state_tokens(self, z: Sequence[str]) -> Any:
        unseen = [state for state in z if state not in self._index_by_state]
        if unseen:
            raise ProjectionError(f"state {unseen[0]!r} does not occur in the fitting documents")
        return np.array([*(self._index_by_state[state] for state in z), len(self.states)])

    def log_prob(self, z: Sequence[str]) -> Floats:
        """Return log P of each state given the previous ones, and of the end state."""
        return self.ngrams.log_probs([self._state_tokens(z)])[0]

    def expected_log_prob(self, posterior: Posterior) -> Floats:
        """Raise an error: n-grams support only point and sample posteriors."""
        raise posterior_mismatch_error(self, posterior)

    def step_names(self, z: Sequence[str]) -> Sequence[str]:
        """Return the states and the end state."""
        return (*z, END)

    def most_probable_states(self, z: Sequence[str]) -> Sequence[tuple[str, float]]:
        """Return, for each state, the most probable state given the previous ones, and its log P."""
        tokens, state_names = self._state_tokens(z), (*self.states, END)
        rows = [self.ngrams.next_probs(tokens[:step]) for step in range(len(tokens))]
        return [(state_names[int(row.argmax())], float(np.log(row.max()))) for row in rows]

    def state(self) -> SavedState:
        """Return the state for saving."""
        return {"states": list(self.states), "ngrams": self.ngrams.to_arrays()}

    @classmethod
    def from_state(cls, state: SavedState) -> NgramPrior:
        """Rebuild the prior from its saved state."""
        return cls(tuple(state["states"]), KneserNeyModel.from_arrays(state["ngrams"]))


StockPrior = Markov | NgramPrior | GaussianPrior | DirichletPrior
_PRIOR_BY_KIND: dict[PriorKind, type[StockPrior]] = {
    "markov": Markov, "ngram": NgramPrior, "gaussian": GaussianPrior, "dirichlet": DirichletPrior,
}  # fmt: skip


class CustomCritic(PriorCritic):
    """Critic from a function of a text and a built-in prior.

    `markov` and `ngram` take labels in order. `gaussian` takes a fixed number of numeric values. `dirichlet` takes
    labels in any order; z is the vector of their proportions, with the Dirichlet posterior given by their counts.
    """

    name = "own"
    prior: StockPrior

    def __init__(
        self,
        function: str,
        kind: PriorKind,
        states: tuple[str, ...],
        prior: StockPrior,
        unused: tuple[DroppedDocument, ...] = (),
    ) -> None:
        self.function, self.kind, self.states, self.prior, self.unused = function, kind, states, prior, unused
        self.name = _function_name(function)
        self.discrete = kind in ("markov", "ngram")
        self._call: StateFunction = import_attribute(function, function)

    @classmethod
    def fit(
        cls,
        real: Sequence[Document],
        rng: np.random.Generator,
        function: str = "",
        kind: PriorKind = "markov",
        order: int = 3,
        add: float = 1.0,
    ) -> Self:
        """Fit the prior to the output of `function`, given as `module:function`.

        `order` applies to n-grams; `add` is added to each count of a Markov chain.
        """
        if ":" not in function:
            raise ParameterError(
                f"{param('critic', 'own')} requires a function; use {param('critic', 'MODULE:FUNCTION')}",
                parameter="critic",
            )
        call = import_attribute(function, function)
        results, unused = _call_on_documents(call, real, _function_name(function))
        if kind == "gaussian":
            return cls(function, kind, (), GaussianPrior.fit(_stack_vectors(results, _function_name(function))), unused)
        paths = [[str(label) for label in result] for result in results]
        states = tuple(sorted({label for path in paths for label in path}))
        if kind == "ngram":
            return cls(function, kind, states, NgramPrior.fit(paths, order), unused)
        if kind == "markov":
            return cls(function, kind, states, Markov.fit(paths, states, add), unused)
        counts = np.array([_label_counts(path, states) for path in paths])
        return cls(function, kind, states, DirichletPrior.fit(counts), unused)

    def project(self, document: Document) -> Posterior:
        """Return the posterior given by the function's output for the text."""
        result = _call_function(self._call, document, self.name)
        if self.kind == "gaussian":
            return PointPosterior(_stack_vectors([result], self.name)[0])
        labels = tuple(str(label) for label in result)
        if not isinstance(self.prior, DirichletPrior):
            return PointPosterior(labels)
        unseen = [label for label in labels if label not in self.states]
        if unseen:
            raise ProjectionError(f"state {unseen[0]!r} does not occur in the fitting documents")
        return Dirichlet(self.prior.alpha + _label_counts(labels, self.states))

    def state(self) -> SavedState:
        """Return the state for saving; the function is stored by name."""
        return {
            "function": self.function, "kind": self.kind, "states": list(self.states), "prior": self.prior.state(),
        }  # fmt: skip

    @classmethod
    def user_code_in_state(cls, state: SavedState) -> Sequence[str]:
        """Return the name of the user's function."""
        return (str(state["function"]),)

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        """Rebuild the critic from its saved state."""
        kind: PriorKind = state["kind"]
        return cls(state["function"], kind, tuple(state["states"]), _PRIOR_BY_KIND[kind].from_state(state["prior"]))


StateFunction = Callable[[str], Sequence[Any]]


def _function_name(function: str) -> str:
    return function.rpartition(":")[2]


def _call_function(call: StateFunction, document: Document, name: str) -> Sequence[Any]:
    """Call the user's function on a document. A string is rejected, because its letters would be read as labels."""
    try:
        result = call(document.text)
    except Exception as error:
        raise FinecombError(f"document {document.id!r}: {name} failed: {type(error).__name__}: {error}") from error
    if isinstance(result, str) or not hasattr(result, "__len__"):
        raise FinecombError(
            f"document {document.id!r}: {name} returned {result!r}; expected a list of labels or numbers"
        )
    if not len(result):
        raise ProjectionError(f"{name} returns an empty list")
    if any(isinstance(value, float | np.floating) and not math.isfinite(value) for value in result):
        raise ProjectionError(f"{name} returns NaN or an infinite value")
    return result


def _call_on_documents(
    call: StateFunction, real: Sequence[Document], name: str
) -> tuple[list[Sequence[Any]], tuple[DroppedDocument, ...]]:
    """Return the function's output for each text, and the documents without usable output."""
    results, unused = list[Sequence[Any]](), list[DroppedDocument]()
    for document in track_progress(real, f"calling {name}", len(real)):
        try:
            results.append(_call_function(call, document, name))
        except ProjectionError as error:
            unused.append(DroppedDocument(document.id, str(error)))
    if len(results) < 2:
        example = f"; {unused[0].id!r}: {unused[0].why}" if unused else ""
        raise FinecombError(
            f"{name} must return a usable result for at least two texts, found {len(results)} of {len(real)}{example}"
        )
    return results, tuple(unused)


def _stack_vectors(results: Sequence[Sequence[Any]], name: str) -> Floats:
    try:
        return np.array([list(result) for result in results], dtype=np.float64)
    except (TypeError, ValueError):
        raise FinecombError(
            f"with kind=gaussian, {name} must return the same number of numeric values for each text"
        ) from None


def _label_counts(labels: Iterable[str], states: Sequence[str]) -> Floats:
    counts = Counter(labels)
    return np.array([counts[state] for state in states], dtype=np.float64)
