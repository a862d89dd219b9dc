r"""The seam of every critic, and what follows from it once and for all.

Deng, Kuleshov and Rush (2022), "Model Criticism for Long-Form Text Generation". A critic is a generative process
P(z) P(x | z) fitted to real text. A document x is projected to its posterior P(z | x), and its Latent NLL is
$T(x) = -E_{z \sim P(z|x)} \log P(z)$: how unlikely its structure is. A critic says how to `fit`, to `project`, and
`log_prior`; scores, parts, outliers and comparisons are here and in `compare`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError
from finecomb.core.estimate import Estimate, Signature
from finecomb.core.records import Document
from finecomb.corpora.critics.posteriors import Floats, PointPosterior, Posterior, Samples, Z
from finecomb.corpora.critics.priors import Prior, ProjectionError, SavedState
from finecomb.statistics.inference.resampling import Sums, estimate_from_sums, ratio_or_nan, undefined_estimate

Statistic = Literal["nll", "plugin", "kl"]
Ints = NDArray[np.int64]


class Critic(ABC):
    """A fitted critic. Subclasses say how to fit, to project and to weigh z; all else is derived.

    `fit` takes options as keyword arguments with defaults, which the command line passes on by name.
    """

    name: str
    """As in tables and `--critic`."""
    discrete: bool = True
    """Whether z is a sequence of states, so that Latent PPL is defined."""
    statistic: Statistic = "nll"
    """What is compared unless another statistic is asked for."""
    unused: tuple[DroppedDocument, ...] = ()
    """Documents that `fit` was given and could not use, and why; not stored."""
    table_names: tuple[str, ...] = ()
    """Names of the tables that it adds, so that a wish for another is refused before the work."""
    fitted_on: frozenset[str] = frozenset()
    """Fingerprints of the documents it was fitted on, stored with it; empty where they are not known."""
    cautions: tuple[str, ...] = ()
    """What whoever reads its figures should know about how it was fitted; not stored."""
    usual_surprises: tuple[float, ...] = ()
    """Nats of the spans of real documents that it was not fitted on, sorted; stored with it. Empty: not measured."""
    batch: int = 16
    """So many documents are projected together, and are the work that one process is given at a time."""
    uses_all_cores: bool = False
    """Whether projection keeps all cores busy by itself, as a neural model does."""
    damages: tuple[str, ...] = ("sentences shuffled", "half of another text")
    """What it should notice: the rows of its power curve, names of `finecomb.corpora.critics.critic_power.DAMAGES`."""

    @classmethod
    @abstractmethod
    def fit(cls, real: Sequence[Document], rng: np.random.Generator) -> Self:
        """A critic of what `real` documents are like."""

    @abstractmethod
    def project(self, document: Document) -> Posterior:
        """P(z | x) of one document; raises `ProjectionError` with the reason where there is none."""

    @abstractmethod
    def log_prior(self, z: Z) -> Floats:
        """log P(z) of each step, (steps,)."""

    def expected_log_prior(self, posterior: Posterior) -> Floats:
        """E log P(z) of each step under a posterior; exact for a point, a mean for samples."""
        match posterior:
            case PointPosterior():
                return self.log_prior(posterior.z)
            case Samples():
                return np.asarray(np.mean([self.log_prior(z) for z in posterior.zs], axis=0))
        raise TypeError(f"{type(self).__name__} does not say E log P(z) under a {type(posterior).__name__} posterior")

    def project_as_batch(self, document: Document) -> Posterior:
        """P(z | x) of one document, for critics that project many at once."""
        ((_, posterior),) = self.project_all([document])
        if isinstance(posterior, ProjectionError):
            raise posterior
        return posterior

    def project_all(self, documents: Iterable[Document]) -> Iterator[tuple[Document, Posterior | ProjectionError]]:
        """Every document with its posterior, or with the reason why it has none; critics that gain by it do batches."""
        for document in documents:
            try:
                yield document, self.project(document)
            except ProjectionError as error:
                yield document, error

    def word_log_probs(self, text: str, posterior: Posterior | None) -> Floats | None:
        """log P of each word of a text given a posterior, or in any document for None; None: it gives words none."""
        return None

    def with_full_posterior(self) -> Critic:
        """The same critic with all the doubt it has about z, where it otherwise takes the most probable z."""
        return self

    def familiarity(self, document: Document) -> float:
        """The share of a document's words that the critic knows; NaN where it reads no words."""
        return math.nan

    def step_names(self, z: Z) -> Sequence[str]:
        """What each step of z is called."""
        return [str(state) for state in z]

    def most_probable_states(self, z: Z) -> Sequence[tuple[str, float]]:
        """Of each step: what the prior expected most there, and its log P; empty where a critic cannot say."""
        return ()

    def tables(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, pl.DataFrame]:
        """Tables particular to the critic, by name."""
        return {}

    def figures(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, str]:
        """Figures particular to the critic, by name, as SVG."""
        return {}

    def state(self) -> SavedState:
        """JSON values and NumPy arrays that the critic can be made from again."""
        raise FinecombError(f"a {self.name} critic cannot be saved: {type(self).__name__} has no `state`")

    @classmethod
    def user_code_in_state(cls, state: SavedState) -> Sequence[str]:
        """Names of code outside Finecomb that a stored state would have run; `load` asks the user about each."""
        return ()

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        """The critic that had this state."""
        raise FinecombError(f"a saved critic cannot be read: {cls.__name__} has no `from_state`")


class PriorCritic(Critic):
    """A critic whose P(z) is a `Prior`, stock or its own."""

    prior: Prior

    def log_prior(self, z: Z) -> Floats:
        """As the prior says."""
        return self.prior.log_prob(z)

    def expected_log_prior(self, posterior: Posterior) -> Floats:
        """As the prior says, in closed form where the posterior is neither a point nor samples."""
        if isinstance(posterior, PointPosterior | Samples):
            return super().expected_log_prior(posterior)
        return self.prior.expected_log_prob(posterior)

    def step_names(self, z: Z) -> Sequence[str]:
        """As the prior says."""
        return self.prior.step_names(z)

    def most_probable_states(self, z: Z) -> Sequence[tuple[str, float]]:
        """As the prior says."""
        return self.prior.most_probable_states(z)


# --- T(x) --------------------------------------------------------------------------------------------------------


def nll(critic: Critic, posterior: Posterior) -> Floats:
    r"""The paper's statistic, step by step: $-E_{z \sim P(z|x)} \log P(z)$."""
    return -critic.expected_log_prior(posterior)


def plugin_nll(critic: Critic, posterior: Posterior) -> Floats:
    r"""$-\log P(\hat z)$ at the most probable states, or at the mean of vectors, step by step."""
    return -critic.log_prior(posterior.point_estimate())


def kl_divergence(critic: Critic, posterior: Posterior) -> Floats:
    """KL(P(z|x) || P(z)): the paper's statistic less the posterior's entropy (Appendix A), spread evenly over steps."""
    terms = nll(critic, posterior)
    return terms - posterior.entropy() / len(terms)


STATISTICS: dict[Statistic, Callable[[Critic, Posterior], Floats]] = {
    "nll": nll,
    "plugin": plugin_nll,
    "kl": kl_divergence,
}


@dataclass(frozen=True, slots=True)
class DroppedDocument:
    """A document without a score, and why."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class CriticScores:
    """What a critic says of a corpus: one value a document, and nothing of the texts."""

    critic: str
    statistic: Statistic
    discrete: bool
    ids: tuple[str, ...]
    values: Floats
    """(documents,): T(x), in nats."""
    steps: Ints
    """(documents,): transitions of z; 1 where z is a vector."""
    lengths: Ints
    """(documents,): steps of a sequence; where z is a vector, words of the text."""
    points: tuple[Z, ...]
    """The most probable z of each document, for tables and figures."""
    dropped: tuple[DroppedDocument, ...] = ()
    clusters: tuple[str, ...] = ()
    """What each document belongs to, e.g. its prompt; empty where every document stands for itself."""
    familiarity: float = math.nan
    """The median share of a document's words that the critic knows."""

    def select(self, ids: Collection[str]) -> CriticScores:
        """The scores of some documents."""
        at = [place for place, id in enumerate(self.ids) if id in ids]
        return replace(
            self,
            ids=tuple(self.ids[place] for place in at),
            values=self.values[at],
            steps=self.steps[at],
            lengths=self.lengths[at],
            points=tuple(self.points[place] for place in at),
            dropped=tuple(loss for loss in self.dropped if loss.id in ids),
            clusters=tuple(self.clusters[place] for place in at) if self.clusters else (),
        )

    @property
    def document_sums(self) -> Sums:
        """(documents, 3): T(x), steps and 1, so that resampling needs no texts."""
        return np.stack([self.values, self.steps, np.ones(len(self.values))], axis=1)

    @property
    def values_per_step(self) -> Floats:
        """(documents,): T(x) per step, by which documents of any length are ranked."""
        return self.values / self.steps


CorpusStatistic = Callable[[Sums], Floats]
"""From (draws, 3) sums of T(x), steps and documents to one value a draw."""


def mean_nll(sums: Sums) -> Floats:
    """Mean T(x) over documents."""
    return ratio_or_nan(sums[:, 0], sums[:, 2])


def perplexity(sums: Sums) -> Floats:
    """exp(sum of T(x) / sum of steps)."""
    return np.asarray(np.exp(ratio_or_nan(sums[:, 0], sums[:, 1])))


def latent_nll(corpus: CriticScores, draws: int = 1000, seed: int = 0) -> Estimate:
    """Mean T(x) over documents, with an interval that resamples documents."""
    why = "" if corpus.ids else "no document could be projected"
    return _estimate_statistic(corpus, "latent-nll", mean_nll, why, draws, seed)


def latent_ppl(corpus: CriticScores, draws: int = 1000, seed: int = 0) -> Estimate:
    """exp(sum of T(x) / sum of steps), with an interval that resamples documents; NaN where z is no sequence."""
    why = ppl_undefined_reason(corpus) or ("" if corpus.ids else "no document could be projected")
    return _estimate_statistic(corpus, "latent-ppl", perplexity, why, draws, seed)


def ppl_undefined_reason(corpus: CriticScores) -> str:
    """Why there is no Latent PPL; empty where there is."""
    if not corpus.discrete:
        return "Latent PPL is a mean over the states of a sequence, and here z is a vector; see the Latent NLL"
    return "Latent PPL is exp of a mean log-likelihood, and kl is a divergence" if corpus.statistic == "kl" else ""


def _estimate_statistic(
    corpus: CriticScores, name: str, corpus_statistic: CorpusStatistic, why: str, draws: int, seed: int
) -> Estimate:
    signature = Signature.from_fields(
        statistic=f"{name}:{corpus.statistic}", critic=corpus.critic, documents=len(corpus.ids),
        dropped=len(corpus.dropped) or None, draws=draws, seed=seed,
    )  # fmt: skip
    if why:
        return undefined_estimate(signature, why)
    return estimate_from_sums(corpus.document_sums, corpus_statistic, draws, seed, signature)


# --- where it comes from -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StateStep:
    """One step of a document: its text, the state it has, and what the critic expected there."""

    step: int
    start: int | None
    """Where its text is; None for steps that have none, such as the end."""
    end: int | None
    text: str
    state: str
    nll: float
    likeliest: str
    """The prior's own choice given the step before; empty where a critic cannot say."""
    likeliest_nll: float


def state_steps(critic: Critic, document: Document, statistic: Statistic | None = None) -> list[StateStep]:
    """T(x) taken apart into its steps, each with its text and the critic's argmax."""
    posterior = critic.project(document)
    terms = STATISTICS[statistic or critic.statistic](critic, posterior)
    z = posterior.point_estimate()
    names, best = critic.step_names(z), critic.most_probable_states(z) or [("", math.nan)] * len(terms)
    rows = []
    for step, (term, name, (expected, log_prob)) in enumerate(zip(terms, names, best, strict=True)):
        start, end = posterior.spans[step] if step < len(posterior.spans) else (None, None)
        text = document.text[start:end] if start is not None else ""
        rows.append(StateStep(step, start, end, text, name, float(term), expected, -log_prob))
    return rows


ERROR_LOG_PROB = math.log(0.01)
"""log P below which a step is called an error, as in the paper's Table 12."""


def render_annotated_text(text: str, steps: Sequence[StateStep], below: float = ERROR_LOG_PROB) -> str:
    """A text with every step as `[she]1{-0.9}`: its state and log P; under `below`, also what was expected there.

    The paper's Figures 10 to 13 as text: `[he]4{-11.7 expected she:4 -1.8}`. Of a state such as `she:4` only the number
    is written, since the text has the word. Steps without a text, as the end, have no place in it.
    """
    pieces, at = list[str](), 0
    for part in steps:
        if part.start is None or part.end is None or part.start < at or part.end == part.start:
            continue
        surprise = f" expected {part.likeliest} {_format_log_prob(-part.likeliest_nll)}" if -part.nll < below else ""
        name = part.state.partition(":")[2] or part.state
        pieces += [text[at : part.start], f"[{part.text}]{name}{{{_format_log_prob(-part.nll)}{surprise}}}"]
        at = part.end
    return "".join(pieces) + text[at:]


def _format_log_prob(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}"  # never -0.0
