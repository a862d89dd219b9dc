"""Synthetic process with known structure, its models, and the exact critic (Deng et al. 2022, section 3 and App. D).

A text is a chain of M hidden states, each of which emits one of its own segments: letters and an end symbol, here a
space. No two states share a segment, so a lookup recovers the states without error.
"""

from __future__ import annotations

import functools
import math
import string
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse, special

from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics.base import CriticScores, Ints, PriorCritic, latent_ppl
from finecomb.corpora.critics.ngrams import KneserNeyModel
from finecomb.corpora.critics.posteriors import Floats, PointPosterior, Posterior
from finecomb.corpora.critics.priors import Markov, ProjectionError
from finecomb.corpora.critics.progress import track_progress
from finecomb.corpora.critics.scoring import score_documents

LETTERS = string.ascii_letters
STOP_TOKEN = len(LETTERS)  # the token that ends a segment
INVALID_STATE = ""
"""State of a segment that the process never emits."""
_ASCII_CODES = np.frombuffer((LETTERS + " ").encode(), np.uint8)


@dataclass(frozen=True)
class SyntheticProcess:
    """P_data: a Markov chain of states without an end state, and segments that each belong to one state."""

    log_transitions: Floats
    """Log probabilities of transitions from the begin state or a state to a state, shape (1 + states, states)."""
    segments: tuple[str, ...]
    owner: Ints
    """Number of the state that emits each segment, shape (segments,)."""
    log_emissions: Floats
    """Probability of each segment given its state, shape (segments,)."""
    length: int = 50
    """M, the number of states per text."""

    @classmethod
    def draw_random(
        cls, rng: np.random.Generator, states: int = 256, segments: int = 10_000, length: int = 50
    ) -> SyntheticProcess:
        """Draw a process as in Appendix D: normal logits, divided by 0.5 for transitions and by 0.3 for emissions."""
        spelled: dict[str, None] = {}  # distinct segments in the order drawn
        while len(spelled) < segments:
            letters = rng.integers(len(LETTERS), size=rng.integers(4, 12) - 1)
            spelled["".join(LETTERS[letter] for letter in letters)] = None
        owner = rng.integers(states, size=segments)
        if len(np.unique(owner)) < states:
            raise FinecombError(f"segments must be at least the number of states ({states}), found {segments}")
        transitions = rng.normal(size=(states + 1, states)) / 0.5
        emissions = rng.normal(size=segments) / 0.3
        totals = np.log(np.bincount(owner, np.exp(emissions)))
        return cls(special.log_softmax(transitions, axis=1), tuple(spelled), owner, emissions - totals[owner], length)

    def _expected_visit_counts(self) -> tuple[Floats, Floats]:
        """Return how often a text is expected to leave each state (the begin state first), and to enter each state."""
        transitions = np.exp(self.log_transitions)
        leaving = np.eye(len(transitions))[0]
        left, entered = np.zeros(len(transitions)), np.zeros(transitions.shape[1])
        for _ in range(self.length):
            left += leaving
            entering = leaving @ transitions
            entered += entering
            leaving = np.concatenate([[0.0], entering])
        return left, entered

    def latent_ppl(self) -> float:
        """Return the exact Latent PPL of the process under itself: exp of its chain's entropy per state."""
        return float(np.exp(self._chain_entropy() / self.length))

    def word_ppl(self) -> float:
        """Return the word-level perplexity of the process under itself, which is the minimum for any model."""
        entered = self._expected_visit_counts()[1]
        weights = np.exp(self.log_emissions)
        spelling = entered @ np.bincount(self.owner, -weights * self.log_emissions)
        lengths = np.array([len(segment) + 1 for segment in self.segments])
        tokens = entered @ np.bincount(self.owner, weights * lengths)
        return float(np.exp((self._chain_entropy() + spelling) / tokens))

    def _chain_entropy(self) -> float:
        return float(self._expected_visit_counts()[0] @ special.entr(np.exp(self.log_transitions)).sum(axis=1))

    def sample_segments(self, rng: np.random.Generator, count: int) -> Ints:
        """Draw texts as segment numbers, shape (count, M)."""
        segment_numbers, state = np.empty((self.length, count), np.int64), np.zeros(count, np.int64)
        order = np.argsort(self.owner, kind="stable")
        chain, spelling = (
            CategoricalRows.from_table(np.exp(self.log_transitions)),
            CategoricalRows.from_groups(self.owner, self.log_emissions),
        )
        for step in range(self.length):
            next_state = chain.draw(rng, state)
            segment_numbers[step] = order[spelling.draw(rng, next_state, absolute=True)]
            state = next_state + 1
        return segment_numbers.T

    def log_prob(self, drawn: Ints) -> Floats:
        """Return log P_data(x) of texts given as segment numbers, shape (texts,)."""
        states = self.owner[drawn]
        before = np.concatenate([np.zeros((len(drawn), 1), np.int64), states[:, :-1] + 1], axis=1)
        result: Floats = (self.log_transitions[before, states] + self.log_emissions[drawn]).sum(axis=1)
        return result

    @functools.cached_property
    def _segment_tokens(self) -> tuple[Ints, Ints]:
        """Tokens of all segments, each followed by the stop token, and the start of each segment."""
        tokens = text_to_tokens("".join(f"{segment} " for segment in self.segments))
        return tokens, np.concatenate([[0], np.flatnonzero(tokens == STOP_TOKEN) + 1])

    def to_tokens(self, drawn: Ints) -> list[Ints]:
        """Return texts as tokens: letters are 0 to 51, the end of a segment is 52."""
        tokens, starts = self._segment_tokens
        return [np.concatenate([tokens[starts[segment] : starts[segment + 1]] for segment in text]) for text in drawn]


@dataclass(frozen=True, slots=True)
class CategoricalRows:
    """Categorical distributions in one array, for drawing from many at once."""

    running: Floats
    """Cumulative weights of all rows, concatenated."""
    starts: Ints
    """Start of each row, shape (rows + 1,)."""

    @classmethod
    def from_table(cls, table: Floats) -> CategoricalRows:
        """Build from a table with one row of probabilities per distribution."""
        return cls(np.cumsum(table.ravel()), np.arange(len(table) + 1) * table.shape[1])

    @classmethod
    def from_groups(cls, group: Ints, log_weights: Floats) -> CategoricalRows:
        """Build from log weights sorted by group; each group is a row."""
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group)
        return cls(np.cumsum(np.exp(log_weights[order])), np.concatenate([[0], np.cumsum(sizes)]))

    def draw(self, rng: np.random.Generator, rows: Ints, absolute: bool = False) -> Ints:
        """Draw one position from each of `rows`, relative to the row's start or, if `absolute`, to the first row."""
        cumulative = np.concatenate([[0.0], self.running])
        low, high = cumulative[self.starts[rows]], cumulative[self.starts[rows + 1]]
        positions = np.searchsorted(self.running, low + rng.random(len(rows)) * (high - low), side="right")
        inside: Ints = np.clip(
            positions, self.starts[rows], self.starts[rows + 1] - 1
        )  # rounding must not leave the row
        return inside if absolute else inside - self.starts[rows]


def text_to_tokens(text: str) -> Ints:
    """Return letters and spaces as tokens."""
    table = np.zeros(256, np.int64)
    table[_ASCII_CODES] = np.arange(len(_ASCII_CODES))
    tokens: Ints = table[np.frombuffer(text.encode("ascii"), np.uint8)]
    return tokens


def as_document(tokens: Ints, id: str, length: int) -> Document:
    """Return tokens as a text of at most `length` complete segments."""
    stops = np.flatnonzero(tokens == STOP_TOKEN)[:length]
    complete = tokens[: stops[-1]] if len(stops) else tokens[:0]
    return Document(id=id, text=_ASCII_CODES[complete].tobytes().decode("ascii"))


class ExactCritic(PriorCritic):
    """Critic with P_c = P_data: states by lookup and the true transitions. An invalid segment breaks the chain.

    Only transitions between two valid segments count, and the first one from the begin state.
    """

    name = "synthetic"
    prior: Markov

    def __init__(self, process: SyntheticProcess) -> None:
        states = tuple(str(state) for state in range(process.log_transitions.shape[1]))
        table = np.pad(process.log_transitions, ((0, 0), (0, 1)), constant_values=-np.inf)
        self.prior = Markov(states, table, ends=False)
        self.length = process.length
        self.states = {segment: states[owner] for segment, owner in zip(process.segments, process.owner, strict=True)}

    @classmethod
    def fit(cls, real: Sequence[Document], rng: np.random.Generator) -> Self:
        """Raise an error: the exact critic is built from the process, not fitted."""
        raise FinecombError("the exact critic cannot be fitted to documents; build it from a SyntheticProcess")

    def project(self, document: Document) -> Posterior:
        """Return the state of each segment, or '' for a segment that the process never emits."""
        words = document.text.split(" ")
        ends = np.cumsum([len(word) + 1 for word in words]) - 1
        spans = tuple((int(end) - len(word), int(end)) for word, end in zip(words, ends, strict=True))
        return PointPosterior(tuple(self.states.get(word, INVALID_STATE) for word in words), spans)

    def log_prior(self, z: Sequence[str]) -> Floats:
        """Return log P of each transition between valid segments."""
        chain = [position for position, state in enumerate(z) if state != INVALID_STATE]
        if not chain:
            raise ProjectionError("has no segment that the synthetic process can emit")
        valid = [position for position in chain if position == 0 or z[position - 1] != INVALID_STATE]
        if not valid:
            raise ProjectionError("has no two consecutive segments that the synthetic process can emit")
        index = {state: position for position, state in enumerate(self.prior.states)}
        rows = [index[z[position - 1]] + 1 if position else 0 for position in valid]
        result: Floats = self.prior.log_transitions[rows, [index[z[position]] for position in valid]]
        return result


# --- models of the process ---------------------------------------------------------------------------------------


class LanguageModel(typing.Protocol):
    """P_model: interface of a language model over tokens."""

    def log_prob(self, texts: Sequence[Ints]) -> float:
        """Return the summed log P of all tokens of all texts."""
        ...

    def sample_texts(self, rng: np.random.Generator, count: int, length: int) -> list[Ints]:
        """Draw texts of about `length` segments."""
        ...


@dataclass(frozen=True, slots=True)
class NgramModel:
    """N-gram language model that does not know the hidden states."""

    ngrams: KneserNeyModel

    @classmethod
    def fit(cls, texts: Sequence[Ints], order: int) -> NgramModel:
        """Fit with interpolated modified Kneser-Ney."""
        return cls(KneserNeyModel.fit(texts, order, STOP_TOKEN + 1))

    def log_prob(self, texts: Sequence[Ints]) -> float:
        """Return the summed log P of all tokens."""
        return float(sum(logs.sum() for logs in self.ngrams.log_probs(texts)))

    def sample_texts(self, rng: np.random.Generator, count: int, length: int) -> list[Ints]:
        """Draw texts token by token; twelve tokens per segment are more than enough."""
        return self.ngrams.sample_sequences(rng, count, 12 * length)


@dataclass(frozen=True, slots=True)
class Hsmm:
    """Hidden semi-Markov model: a chain of clusters of segments, each of which emits the segments seen in it.

    Unseen segments share one more cluster, in which they are spelled letter by letter.
    """

    chain: KneserNeyModel
    """First-order chain over clusters; the last cluster is for unseen segments."""
    segments: tuple[str, ...]
    cluster: Ints
    """Cluster of each segment, shape (segments,)."""
    log_emissions: Floats
    """Probability of each segment given its cluster, shape (segments,)."""

    @classmethod
    def fit(cls, texts: Sequence[Ints]) -> Hsmm:
        """Cluster segments by their successors and predecessors, and estimate probabilities by counting."""
        number: dict[str, int] = {}
        paths = [np.array([number.setdefault(word, len(number)) for word in _decode_words(text)]) for text in texts]
        segments = tuple(number)
        cluster = cluster_segments(paths, len(segments))
        counts = np.bincount(np.concatenate(paths), minlength=len(segments))
        emissions = np.log(counts / np.bincount(cluster, counts)[cluster])
        chain = KneserNeyModel.fit([cluster[path] for path in paths], 2, int(cluster.max()) + 2)
        return cls(chain, segments, cluster, emissions)

    def log_prob(self, texts: Sequence[Ints]) -> float:
        """Return the summed log P of all tokens; texts consist of complete segments."""
        number = {segment: index for index, segment in enumerate(self.segments)}
        total, paths = 0.0, []
        for text in texts:
            words = _decode_words(text)
            indices = np.array([number.get(word, -1) for word in words])
            paths.append(np.where(indices < 0, self.chain.size - 1, self.cluster[indices]))
            total += float(self.log_emissions[indices[indices >= 0]].sum())
            total -= sum(
                len(word) + 1 for word, segment_index in zip(words, indices, strict=True) if segment_index < 0
            ) * np.log(STOP_TOKEN + 1)
        return total + float(sum(logs.sum() for logs in self.chain.log_probs(paths)))

    def sample_texts(self, rng: np.random.Generator, count: int, length: int) -> list[Ints]:
        """Draw clusters, then a segment from each; an unseen segment is spelled at random."""
        rows = CategoricalRows.from_groups(self.cluster, self.log_emissions)
        order = np.argsort(self.cluster, kind="stable")
        texts = []
        for path in self.chain.sample_sequences(rng, count, length):
            unseen = path == self.chain.size - 1
            indices = order[rows.draw(rng, np.where(unseen, 0, path), absolute=True)]
            words = [
                "".join(
                    LETTERS[letter] for letter in rng.integers(STOP_TOKEN, size=rng.geometric(1 / (STOP_TOKEN + 1)) - 1)
                )
                if new
                else self.segments[segment_index]
                for segment_index, new in zip(indices, unseen, strict=True)
            ]
            texts.append(text_to_tokens("".join(f"{word} " for word in words)))
        return texts


def _decode_words(text: Ints) -> list[str]:
    return _ASCII_CODES[text].tobytes().decode("ascii").split(" ")[:-1]


_MIN_SIMILARITY = (
    0.6  # Bhattacharyya coefficient: about 1 within a state, about exp(-1) between states with logits N(0, 2^2)
)


def cluster_segments(paths: Sequence[Ints], segments: int, rounds: int = 10) -> Ints:
    """Cluster segments by successors and predecessors; the data determine the number of clusters. Shape (segments,).

    Frequent segments start clusters; then each segment moves to its most likely cluster until none moves.
    """
    first = np.concatenate([path[:-1] for path in paths])
    second = np.concatenate([path[1:] for path in paths])
    follows = sparse.coo_array((np.ones(len(first)), (first, second)), shape=(segments, segments)).tocsr()
    counts: Floats = np.asarray(follows.sum(axis=1), float) + np.asarray(follows.sum(axis=0), float)
    cluster = _initial_clusters(follows, counts)
    for _ in track_progress(range(rounds), "clustering segments", rounds):
        # Assign each segment to the cluster under which its successors and predecessors are most likely
        members = np.flatnonzero(cluster >= 0)
        member = sparse.coo_array(
            (np.ones(len(members)), (members, cluster[members])), shape=(len(cluster), int(cluster.max()) + 1)
        ).tocsr()
        after, before = (follows @ member).toarray(), (follows.T @ member).toarray()  # (segments, clusters)
        table = member.T @ after + 0.1
        forward = np.log(table / table.sum(axis=1, keepdims=True))  # log P(second | first)
        reverse = np.log(table / table.sum(axis=0, keepdims=True))  # log P(first | second)
        reassigned: Ints = (after @ forward.T + before @ reverse).argmax(axis=1)
        if (reassigned == cluster).all():
            break
        cluster = reassigned
    return np.unique(cluster, return_inverse=True)[1]


def _initial_clusters(follows: sparse.csr_array, counts: Floats) -> Ints:
    """Assign each segment, most frequent first, to the most similar founder or a new cluster; rare ones get -1."""
    ranked = np.argsort(-counts, kind="stable")
    frequent = ranked[counts[ranked] > np.arange(len(ranked))]  # the n-th most frequent segment occurs at least n times
    table = follows[frequent][:, frequent].toarray()
    both = [side / np.maximum(side.sum(axis=1, keepdims=True), 1) for side in (table, table.T)]
    profiles: Floats = np.sqrt(np.concatenate(both, axis=1) / 2)
    founders = np.empty_like(profiles)
    cluster, clusters = np.full(len(counts), -1), 0
    for segment, profile in zip(frequent, profiles, strict=True):
        alike = founders[:clusters] @ profile
        best = int(alike.argmax()) if clusters else 0
        if not clusters or alike[best] < _MIN_SIMILARITY:
            founders[clusters], best, clusters = profile, clusters, clusters + 1
        cluster[segment] = best
    return cluster


# --- the self-test -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelfTestRow:
    """Row of the self-test: a source of texts, its token perplexity, and its Latent PPL."""

    source: str
    word_ppl: float
    latent_ppl: float
    low: float
    high: float
    invalid_segments: float
    """Share of segments that the process never emits."""
    invalid_texts: float
    """Share of texts with an invalid segment; the authors' script drops these texts."""
    paper: str
    """Word-level and Latent PPL of this row in the paper's Table 1."""

    def row(self) -> dict[str, object]:
        """Return the result as a table row."""
        return {
            "source": self.source, "word_ppl": self.word_ppl, "latent_ppl": self.latent_ppl, "low": self.low,
            "high": self.high, "bad_segments": self.invalid_segments, "bad_texts": self.invalid_texts,
            "paper": self.paper,
        }  # fmt: skip


def self_test_rows(
    rng: np.random.Generator,
    training: int = 51_200,
    evaluation: int = 6_400,
    states: int = 256,
    segments: int = 10_000,
    length: int = 50,
    low_order: int = 4,
    high_order: int = 6,
) -> list[SelfTestRow]:
    """Run the experiment of the paper's section 3 with models that need no GPU.

    A process is drawn, models are fitted to `training` texts, and each model is evaluated on `evaluation` texts.
    """
    process = SyntheticProcess.draw_random(rng, states, segments, length)
    train, test = process.to_tokens(process.sample_segments(rng, training)), process.sample_segments(rng, evaluation)
    held_out = process.to_tokens(test)
    fits: dict[str, tuple[Callable[[], LanguageModel], str]] = {
        f"{low_order}-grams": (lambda: NgramModel.fit(train, low_order), ""),
        f"{high_order}-grams": (lambda: NgramModel.fit(train, high_order), "2.28, 64.80"),
        "HSMM": (lambda: Hsmm.fit(train), "2.05, 47.24"),
    }
    critic = ExactCritic(process)
    exactly = SelfTestRow("P_data", process.word_ppl(), process.latent_ppl(), math.nan, math.nan, 0.0, 0.0, "1.99")
    texts = evaluate_texts(
        critic, "drawn texts", held_out, _token_perplexity(float(process.log_prob(test).sum()), held_out), "44.30"
    )
    rows = [exactly, texts]
    for source, (fit, paper) in track_progress(fits.items(), "fitting, sampling and scoring models", len(fits)):
        model = fit()
        word_ppl = _token_perplexity(model.log_prob(held_out), held_out)
        rows.append(evaluate_texts(critic, source, model.sample_texts(rng, evaluation, length), word_ppl, paper))
    return rows


def evaluate_texts(critic: ExactCritic, source: str, texts: Sequence[Ints], word_ppl: float, paper: str) -> SelfTestRow:
    """Score the texts of a source with the exact critic."""
    corpus = score_documents(
        critic, (as_document(text, f"{source}-{at}", critic.length) for at, text in enumerate(texts))
    )
    ppl = latent_ppl(corpus)
    return SelfTestRow(source, word_ppl, ppl.value, ppl.low, ppl.high, *invalid_shares(corpus), paper)


def invalid_shares(corpus: CriticScores) -> tuple[float, float]:
    """Return the share of invalid segments, and the share of texts that contain one or have no step to score."""
    broken = [INVALID_STATE in z for z in corpus.points]
    segments = [state == INVALID_STATE for z in corpus.points for state in z]
    texts = len(corpus.ids) + len(corpus.dropped)
    return float(np.mean(segments)), (sum(broken) + len(corpus.dropped)) / texts


def _token_perplexity(log_prob: float, texts: Sequence[Ints]) -> float:
    return float(np.exp(-log_prob / sum(len(text) for text in texts)))
