"""A process whose structure is known, models of it, and the exact critic (Deng et al. 2022, section 3 and App. D).

A text is a chain of M hidden states, each of which spells one of its own segments: letters and an end symbol, here a
space. Since no two states share a segment, looking segments up gives the states back without error.
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
from finecomb.corpora.critics.progress import track
from finecomb.corpora.critics.scoring import score_documents

LETTERS = string.ascii_letters
STOP_TOKEN = len(LETTERS)  # the token that ends a segment
INVALID_STATE = ""
"""The state of a segment that the process never spells."""
_ASCII_CODES = np.frombuffer((LETTERS + " ").encode(), np.uint8)


@dataclass(frozen=True)
class SyntheticProcess:
    """P_data: a Markov chain of states without an end, and segments of which each belongs to one state."""

    log_transitions: Floats
    """(1 + states, states): from the begin state or a state."""
    segments: tuple[str, ...]
    owner: Ints
    """(segments,): the state that spells each."""
    log_emissions: Floats
    """(segments,): given its state."""
    length: int = 50
    """M: states in a text."""

    @classmethod
    def draw_random(
        cls, rng: np.random.Generator, states: int = 256, segments: int = 10_000, length: int = 50
    ) -> SyntheticProcess:
        """As Appendix D describes it: logits are normal, divided by 0.5 for transitions and by 0.3 for emissions."""
        spelled = _random_segments(rng, segments)
        owner = rng.integers(states, size=segments)
        if len(np.unique(owner)) < states:
            raise FinecombError(f"{segments} segments are too few for {states} states: a state would have none")
        transitions = rng.normal(size=(states + 1, states)) / 0.5
        emissions = rng.normal(size=segments) / 0.3
        totals = np.log(np.bincount(owner, np.exp(emissions)))
        return cls(special.log_softmax(transitions, axis=1), spelled, owner, emissions - totals[owner], length)

    def _expected_visits(self) -> tuple[Floats, Floats]:
        """How often a text leaves each state, the begin state first, and how often it enters each; on average."""
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
        """The Latent PPL of the process under itself: exp of the entropy of its chain per state, without sampling."""
        return float(np.exp(self._chain_entropy() / self.length))

    def word_ppl(self) -> float:
        """The word-level perplexity of the process under itself: no model can have a lower one."""
        entered = self._expected_visits()[1]
        weights = np.exp(self.log_emissions)
        spelling = entered @ np.bincount(self.owner, -weights * self.log_emissions)
        lengths = np.array([len(segment) + 1 for segment in self.segments])
        tokens = entered @ np.bincount(self.owner, weights * lengths)
        return float(np.exp((self._chain_entropy() + spelling) / tokens))

    def _chain_entropy(self) -> float:
        return float(self._expected_visits()[0] @ special.entr(np.exp(self.log_transitions)).sum(axis=1))

    def sample_segments(self, rng: np.random.Generator, count: int) -> Ints:
        """(count, M): segments by number."""
        drawn, state = np.empty((self.length, count), np.int64), np.zeros(count, np.int64)
        order = np.argsort(self.owner, kind="stable")
        chain, spelling = (
            CategoricalRows.from_table(np.exp(self.log_transitions)),
            CategoricalRows.from_groups(self.owner, self.log_emissions),
        )
        for step in range(self.length):
            reached = chain.draw(rng, state)
            drawn[step] = order[spelling.draw(rng, reached, absolute=True)]
            state = reached + 1
        return drawn.T

    def log_prob(self, drawn: Ints) -> Floats:
        """(texts,): log P_data(x) of texts by the numbers of their segments."""
        states = self.owner[drawn]
        before = np.concatenate([np.zeros((len(drawn), 1), np.int64), states[:, :-1] + 1], axis=1)
        result: Floats = (self.log_transitions[before, states] + self.log_emissions[drawn]).sum(axis=1)
        return result

    @functools.cached_property
    def _segment_tokens(self) -> tuple[Ints, Ints]:
        """The tokens of all segments in a row with the stop after each, and where each begins."""
        tokens = as_tokens("".join(f"{segment} " for segment in self.segments))
        return tokens, np.concatenate([[0], np.flatnonzero(tokens == STOP_TOKEN) + 1])

    def to_tokens(self, drawn: Ints) -> list[Ints]:
        """Texts as tokens: 0 to 51 letters, 52 the end of a segment."""
        tokens, starts = self._segment_tokens
        return [np.concatenate([tokens[starts[segment] : starts[segment + 1]] for segment in text]) for text in drawn]


@dataclass(frozen=True, slots=True)
class CategoricalRows:
    """Distributions side by side, for drawing one value from each of many at once."""

    running: Floats
    """Cumulative weights of all rows one after the other."""
    starts: Ints
    """(rows + 1,): where each begins."""

    @classmethod
    def from_table(cls, table: Floats) -> CategoricalRows:
        """Rows of probabilities of one length."""
        return cls(np.cumsum(table.ravel()), np.arange(len(table) + 1) * table.shape[1])

    @classmethod
    def from_groups(cls, group: Ints, log_weights: Floats) -> CategoricalRows:
        """Weights in the order of their groups; each group is a row."""
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group)
        return cls(np.cumsum(np.exp(log_weights[order])), np.concatenate([[0], np.cumsum(sizes)]))

    def draw(self, rng: np.random.Generator, rows: Ints, absolute: bool = False) -> Ints:
        """One place from each of `rows`, counted from the row's start or from the first row's."""
        running = np.concatenate([[0.0], self.running])
        low, high = running[self.starts[rows]], running[self.starts[rows + 1]]
        places = np.searchsorted(self.running, low + rng.random(len(rows)) * (high - low), side="right")
        inside: Ints = np.clip(places, self.starts[rows], self.starts[rows + 1] - 1)  # rounding must not leave the row
        return inside if absolute else inside - self.starts[rows]


def _random_segments(rng: np.random.Generator, count: int) -> tuple[str, ...]:
    """Distinct segments of 3 to 10 letters; with the end-of-segment symbol 4 to 11 tokens."""
    segments: dict[str, None] = {}
    while len(segments) < count:
        segments["".join(LETTERS[at] for at in rng.integers(len(LETTERS), size=rng.integers(4, 12) - 1))] = None
    return tuple(segments)


def as_tokens(text: str) -> Ints:
    """Letters and spaces as tokens."""
    table = np.zeros(256, np.int64)
    table[_ASCII_CODES] = np.arange(len(_ASCII_CODES))
    tokens: Ints = table[np.frombuffer(text.encode("ascii"), np.uint8)]
    return tokens


def as_document(tokens: Ints, id: str, length: int) -> Document:
    """Tokens as a text of at most `length` whole segments."""
    stops = np.flatnonzero(tokens == STOP_TOKEN)[:length]
    whole = tokens[: stops[-1]] if len(stops) else tokens[:0]
    return Document(id=id, text=_ASCII_CODES[whole].tobytes().decode("ascii"))


class ExactCritic(PriorCritic):
    """P_c = P_data: states by look-up, transitions as they are. A segment that nobody spells breaks the chain.

    Only transitions between two valid segments count; the first from the begin state.
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
        """Never: the process is known."""
        raise FinecombError("the exact critic is not fitted; it is made from the process")

    def project(self, document: Document) -> Posterior:
        """The state of every segment, '' for a segment that the process never spells."""
        words = document.text.split(" ")
        ends = np.cumsum([len(word) + 1 for word in words]) - 1
        spans = tuple((int(end) - len(word), int(end)) for word, end in zip(words, ends, strict=True))
        return PointPosterior(tuple(self.states.get(word, INVALID_STATE) for word in words), spans)

    def log_prior(self, z: Sequence[str]) -> Floats:
        """log P of every transition between valid segments."""
        chain = [at for at, state in enumerate(z) if state != INVALID_STATE]
        if not chain:
            raise ProjectionError("has no valid segment")
        valid = [at for at in chain if at == 0 or z[at - 1] != INVALID_STATE]
        if not valid:
            raise ProjectionError("has no two valid segments in a row")
        index = {state: at for at, state in enumerate(self.prior.states)}
        rows = [index[z[at - 1]] + 1 if at else 0 for at in valid]
        result: Floats = self.prior.log_transitions[rows, [index[z[at]] for at in valid]]
        return result


# --- models of the process ---------------------------------------------------------------------------------------


class LanguageModel(typing.Protocol):
    """P_model: a language model of tokens."""

    def log_prob(self, texts: Sequence[Ints]) -> float:
        """log P of all tokens of all texts together."""
        ...

    def sample_segments(self, rng: np.random.Generator, count: int, length: int) -> list[Ints]:
        """Texts of about `length` segments."""
        ...


@dataclass(frozen=True, slots=True)
class NgramModel:
    """A language model that sees the last few tokens and no states."""

    ngrams: KneserNeyModel

    @classmethod
    def fit(cls, texts: Sequence[Ints], order: int) -> NgramModel:
        """Interpolated modified Kneser-Ney."""
        return cls(KneserNeyModel.fit(texts, order, STOP_TOKEN + 1))

    def log_prob(self, texts: Sequence[Ints]) -> float:
        """log P of all tokens."""
        return float(sum(logs.sum() for logs in self.ngrams.log_probs(texts)))

    def sample_segments(self, rng: np.random.Generator, count: int, length: int) -> list[Ints]:
        """Token by token; twelve tokens a segment are more than enough."""
        return self.ngrams.sample(rng, count, 12 * length)


@dataclass(frozen=True, slots=True)
class Hsmm:
    """The true class of models: a chain of clusters of segments, each of which spells the segments seen in it.

    Segments never seen share one more cluster, in which they are spelled letter by letter.
    """

    chain: KneserNeyModel
    """First order over clusters; the last is for segments never seen."""
    segments: tuple[str, ...]
    cluster: Ints
    """(segments,)."""
    log_emissions: Floats
    """(segments,): given the cluster."""

    @classmethod
    def fit(cls, texts: Sequence[Ints]) -> Hsmm:
        """Clusters from who follows and precedes whom; all else by counting."""
        segments, paths = _number_segments(texts)
        cluster = cluster_segments(paths, len(segments))
        counts = np.bincount(np.concatenate(paths), minlength=len(segments))
        emissions = np.log(counts / np.bincount(cluster, counts)[cluster])
        chain = KneserNeyModel.fit([cluster[path] for path in paths], 2, int(cluster.max()) + 2)
        return cls(chain, segments, cluster, emissions)

    def log_prob(self, texts: Sequence[Ints]) -> float:
        """log P of all tokens; a text is a whole number of segments."""
        number = {segment: at for at, segment in enumerate(self.segments)}
        total, paths = 0.0, []
        for text in texts:
            words = _decode_words(text)
            places = np.array([number.get(word, -1) for word in words])
            paths.append(np.where(places < 0, self.chain.size - 1, self.cluster[places]))
            total += float(self.log_emissions[places[places >= 0]].sum())
            total -= sum(len(word) + 1 for word, place in zip(words, places, strict=True) if place < 0) * np.log(
                STOP_TOKEN + 1
            )
        return total + float(sum(logs.sum() for logs in self.chain.log_probs(paths)))

    def sample_segments(self, rng: np.random.Generator, count: int, length: int) -> list[Ints]:
        """Clusters, then a segment of each; a segment never seen is spelled at random."""
        rows = CategoricalRows.from_groups(self.cluster, self.log_emissions)
        order = np.argsort(self.cluster, kind="stable")
        texts = []
        for path in self.chain.sample(rng, count, length):
            unseen = path == self.chain.size - 1
            drawn = order[rows.draw(rng, np.where(unseen, 0, path), absolute=True)]
            words = [_random_word(rng) if new else self.segments[at] for at, new in zip(drawn, unseen, strict=True)]
            texts.append(as_tokens("".join(f"{word} " for word in words)))
        return texts


def _random_word(rng: np.random.Generator) -> str:
    """Letters until the end of the segment comes up, all tokens equally likely."""
    return "".join(LETTERS[at] for at in rng.integers(STOP_TOKEN, size=rng.geometric(1 / (STOP_TOKEN + 1)) - 1))


def _decode_words(text: Ints) -> list[str]:
    return _ASCII_CODES[text].tobytes().decode("ascii").split(" ")[:-1]


def _number_segments(texts: Sequence[Ints]) -> tuple[tuple[str, ...], list[Ints]]:
    """Every segment seen, and every text as numbers of segments."""
    number: dict[str, int] = {}
    paths = [np.array([number.setdefault(word, len(number)) for word in _decode_words(text)]) for text in texts]
    return tuple(number), paths


_MIN_SIMILARITY = 0.6  # Bhattacharyya: about 1 within a state, about exp(-1) between states whose logits are N(0, 2^2)


def cluster_segments(paths: Sequence[Ints], segments: int, rounds: int = 10) -> Ints:
    """(segments,): clusters of segments with the same successors and predecessors; how many is found, not told.

    Frequent segments found clusters; then every segment moves to where its neighbours are likeliest, until none moves.
    """
    follows = _bigrams(paths, segments)
    counts: Floats = np.asarray(follows.sum(axis=1), float) + np.asarray(follows.sum(axis=0), float)
    cluster = _initial_clusters(follows, counts)
    for _ in track(range(rounds), "clustering segments", rounds):
        moved = _reassign_clusters(follows, cluster)
        if (moved == cluster).all():
            break
        cluster = moved
    return np.unique(cluster, return_inverse=True)[1]


def _bigrams(paths: Sequence[Ints], segments: int) -> sparse.csr_array:
    """(segments, segments): how often each follows each."""
    first = np.concatenate([path[:-1] for path in paths])
    second = np.concatenate([path[1:] for path in paths])
    return sparse.coo_array((np.ones(len(first)), (first, second)), shape=(segments, segments)).tocsr()


def _initial_clusters(follows: sparse.csr_array, counts: Floats) -> Ints:
    """Clusters of frequent segments, the commonest first: with the founder most alike, else a new one; rare ones -1."""
    ranked = np.argsort(-counts, kind="stable")
    frequent = ranked[counts[ranked] > np.arange(len(ranked))]  # as many neighbours each as there are such segments
    profiles = _neighbour_profiles(follows, frequent)
    founders = np.empty_like(profiles)
    cluster, clusters = np.full(len(counts), -1), 0
    for segment, profile in zip(frequent, profiles, strict=True):
        alike = founders[:clusters] @ profile
        best = int(alike.argmax()) if clusters else 0
        if not clusters or alike[best] < _MIN_SIMILARITY:
            founders[clusters], best, clusters = profile, clusters, clusters + 1
        cluster[segment] = best
    return cluster


def _neighbour_profiles(follows: sparse.csr_array, chosen: Ints) -> Floats:
    """(chosen, 2 x chosen): square roots of the shares of successors and predecessors, scaled to length 1."""
    table = follows[chosen][:, chosen].toarray()
    both = [side / np.maximum(side.sum(axis=1, keepdims=True), 1) for side in (table, table.T)]
    result: Floats = np.sqrt(np.concatenate(both, axis=1) / 2)
    return result


def _reassign_clusters(follows: sparse.csr_array, cluster: Ints) -> Ints:
    """Every segment in the cluster under which its successors and predecessors are likeliest."""
    members = np.flatnonzero(cluster >= 0)
    member = sparse.coo_array(
        (np.ones(len(members)), (members, cluster[members])), shape=(len(cluster), int(cluster.max()) + 1)
    ).tocsr()
    after, before = (follows @ member).toarray(), (follows.T @ member).toarray()  # (segments, clusters)
    table = member.T @ after + 0.1
    given = np.log(table / table.sum(axis=1, keepdims=True))  # log P(second | first)
    reverse = np.log(table / table.sum(axis=0, keepdims=True))  # log P(first | second)
    result: Ints = (after @ given.T + before @ reverse).argmax(axis=1)
    return result


# --- the self-test -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SelfTestRow:
    """One row of the self-test: a source of texts, how well it predicts tokens, and how well it knows the structure."""

    source: str
    word_ppl: float
    latent_ppl: float
    low: float
    high: float
    invalid_segments: float
    """Share of segments that the process never spells."""
    invalid_texts: float
    """Share of texts with such a segment; the authors' script drops them."""
    paper: str
    """Word-level and Latent PPL in this place of the paper's Table 1."""

    def row(self) -> dict[str, object]:
        """As a row of a table."""
        return {
            "source": self.source, "word_ppl": self.word_ppl, "latent_ppl": self.latent_ppl, "low": self.low,
            "high": self.high, "bad_segments": self.invalid_segments, "bad_texts": self.invalid_texts,
            "paper": self.paper,
        }  # fmt: skip


def self_test(
    rng: np.random.Generator,
    training: int = 51_200,
    evaluation: int = 6_400,
    states: int = 256,
    segments: int = 10_000,
    length: int = 50,
    low_order: int = 4,
    high_order: int = 6,
) -> list[SelfTestRow]:
    """The paper's section 3 with models that need no GPU: word-level perplexity hides what Latent PPL shows.

    The process is drawn anew, models are trained on `training` texts, and all is judged on `evaluation` texts each.
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
    drawn = evaluate_texts(
        critic, "drawn texts", held_out, _token_perplexity(float(process.log_prob(test).sum()), held_out), "44.30"
    )
    rows = [exactly, drawn]
    for source, (fit, paper) in track(fits.items(), "fitting, sampling and judging models", len(fits)):
        model = fit()
        word_ppl = _token_perplexity(model.log_prob(held_out), held_out)
        rows.append(evaluate_texts(critic, source, model.sample_segments(rng, evaluation, length), word_ppl, paper))
    return rows


def evaluate_texts(critic: ExactCritic, source: str, texts: Sequence[Ints], word_ppl: float, paper: str) -> SelfTestRow:
    """Texts under the exact critic."""
    corpus = score_documents(
        critic, (as_document(text, f"{source}-{at}", critic.length) for at, text in enumerate(texts))
    )
    ppl = latent_ppl(corpus)
    return SelfTestRow(source, word_ppl, ppl.value, ppl.low, ppl.high, *invalid_shares(corpus), paper)


def invalid_shares(corpus: CriticScores) -> tuple[float, float]:
    """Shares of segments that the process never spells, and of texts with one or without any step to judge."""
    broken = [INVALID_STATE in z for z in corpus.points]
    segments = [state == INVALID_STATE for z in corpus.points for state in z]
    texts = len(corpus.ids) + len(corpus.dropped)
    return float(np.mean(segments)), (sum(broken) + len(corpus.dropped)) / texts


def _token_perplexity(log_prob: float, texts: Sequence[Ints]) -> float:
    return float(np.exp(-log_prob / sum(len(text) for text in texts)))
