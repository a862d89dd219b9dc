r"""Base class and statistics of critics.

Deng, Kuleshov and Rush (2022), "Model Criticism for Long-Form Text Generation". A critic is a generative process
P(z) P(x | z) fitted to real text. A document x is projected onto its posterior P(z | x), and its Latent NLL,
$T(x) = -E_{z \sim P(z|x)} \log P(z)$, measures how unlikely its structure is. A critic defines `fit`, `project` and
`log_prior`. Scores, steps, outliers and comparisons are derived from them here and in `compare`.
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
from finecomb.core.records import Document
from finecomb.core.results import Estimate, Signature
from finecomb.corpora.critics.posteriors import Floats, PointPosterior, Posterior, Samples, Z
from finecomb.corpora.critics.priors import Prior, ProjectionError, SavedState
from finecomb.statistics.inference.resampling import Sums, estimate_from_sums, ratio_or_nan, undefined_estimate

Statistic = Literal["nll", "plugin", "kl"]
Ints = NDArray[np.int64]


class Critic(ABC):
    """Base class of fitted critics. Subclasses define `fit`, `project` and `log_prior`.

    `fit` takes options as keyword arguments with defaults, which the command line passes by name.
    """

    name: str
    """Name in tables and `--critic`."""
    discrete: bool = True
    """True if z is a sequence of states, so that Latent PPL is defined."""
    statistic: Statistic = "nll"
    """Default statistic for comparisons."""
    unused: tuple[DroppedDocument, ...] = ()
    """Documents that `fit` could not use, with reasons. They are not saved with the critic."""
    table_names: tuple[str, ...] = ()
    """Names of the critic's own tables, used to reject unknown names before fitting."""
    fitted_on: frozenset[str] = frozenset()
    """Fingerprints of the fitting documents, saved with the critic; empty if unknown."""
    cautions: tuple[str, ...] = ()
    """Warnings about the fit. They are not saved with the critic."""
    usual_surprises: tuple[float, ...] = ()
    """Surprise values of held-out real spans in nats, sorted and saved with the critic; empty if not measured."""
    batch: int = 16
    """Number of documents projected together, which is also the unit of parallel work."""
    uses_all_cores: bool = False
    """True if projection itself uses all cores, as neural models do."""
    damages: tuple[str, ...] = ("sentences shuffled", "half of another text")
    """Kinds of damage that the critic should detect, as keys of `critic_power.DAMAGE_BY_NAME`."""

    @classmethod
    @abstractmethod
    def fit(cls, real: Sequence[Document], rng: np.random.Generator) -> Self:
        """Fit a critic to `real` documents."""

    @abstractmethod
    def project(self, document: Document) -> Posterior:
        """Return P(z | x) of a document; raise `ProjectionError` with the reason if there is none."""

    @abstractmethod
    def log_prior(self, z: Z) -> Floats:
        """Return log P(z) per step, shape (steps,)."""

    def expected_log_prior(self, posterior: Posterior) -> Floats:
        """Return E log P(z) per step under a posterior: exact for a point, and the mean for samples."""
        match posterior:
            case PointPosterior():
                return self.log_prior(posterior.z)
            case Samples():
                return np.asarray(np.mean([self.log_prior(z) for z in posterior.zs], axis=0))
        raise TypeError(f"{type(self).__name__} does not define E log P(z) for a {type(posterior).__name__} posterior")

    def project_via_batch(self, document: Document) -> Posterior:
        """Return P(z | x) of one document by calling `project_all`, for critics that implement only `project_all`."""
        ((_, posterior),) = self.project_all([document])
        if isinstance(posterior, ProjectionError):
            raise posterior
        return posterior

    def project_all(self, documents: Iterable[Document]) -> Iterator[tuple[Document, Posterior | ProjectionError]]:
        """Yield each document with its posterior or the reason why it has none. Subclasses may work in batches."""
        for document in documents:
            try:
                yield document, self.project(document)
            except ProjectionError as error:
                yield document, error

    def word_log_probs(self, text: str, posterior: Posterior | None) -> Floats | None:
        """Return log P of each word under `posterior` (if None, the prior), or None if the critic has no word model."""
        return None

    def with_full_posterior(self) -> Critic:
        """Return the critic in the form that uses the full posterior over z instead of the most probable z."""
        return self

    def known_word_share(self, document: Document) -> float:
        """Return the share of a document's words that the critic knows; NaN if the critic does not use words."""
        return math.nan

    def step_names(self, z: Z) -> Sequence[str]:
        """Return the name of each step of z."""
        return [str(state) for state in z]

    def most_probable_states(self, z: Z) -> Sequence[tuple[str, float]]:
        """Return, per step, the most probable state and its log P under the prior; empty if not available."""
        return ()

    def tables(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, pl.DataFrame]:
        """Return the critic's own tables by name."""
        return {}

    def figures(self, real: CriticScores, systems: Mapping[str, CriticScores]) -> dict[str, str]:
        """Return the critic's own figures by name, as SVG."""
        return {}

    def state(self) -> SavedState:
        """Return JSON values and NumPy arrays from which `from_state` rebuilds the critic."""
        raise FinecombError(f"the {self.name} critic cannot be saved; {type(self).__name__} must define `state`")

    @classmethod
    def user_code_in_state(cls, state: SavedState) -> Sequence[str]:
        """Return names of user code that loading this state would run; `load` requires the user's consent for each."""
        return ()

    @classmethod
    def from_state(cls, state: SavedState) -> Self:
        """Rebuild the critic from its saved state."""
        raise FinecombError(f"the saved critic cannot be loaded; {cls.__name__} must define `from_state`")


class PriorCritic(Critic):
    """Critic whose P(z) is a `Prior`."""

    prior: Prior

    def log_prior(self, z: Z) -> Floats:
        """Return log P(z) per step from the prior."""
        return self.prior.log_prob(z)

    def expected_log_prior(self, posterior: Posterior) -> Floats:
        """Return E log P(z) per step, in closed form if the posterior is neither a point nor samples."""
        if isinstance(posterior, PointPosterior | Samples):
            return super().expected_log_prior(posterior)
        return self.prior.expected_log_prob(posterior)

    def step_names(self, z: Z) -> Sequence[str]:
        """Return the name of each step from the prior."""
        return self.prior.step_names(z)

    def most_probable_states(self, z: Z) -> Sequence[tuple[str, float]]:
        """Return the prior's most probable state and its log P per step."""
        return self.prior.most_probable_states(z)


# --- T(x) --------------------------------------------------------------------------------------------------------


def nll(critic: Critic, posterior: Posterior) -> Floats:
    r"""Return the paper's statistic per step, $-E_{z \sim P(z|x)} \log P(z)$."""
    return -critic.expected_log_prior(posterior)


def plugin_nll(critic: Critic, posterior: Posterior) -> Floats:
    r"""Return $-\log P(\hat z)$ per step at the most probable states, or at the mean of vectors."""
    return -critic.log_prior(posterior.point_estimate())


def kl_divergence(critic: Critic, posterior: Posterior) -> Floats:
    """Return KL(P(z|x) || P(z)) per step: the paper's statistic minus an equal share of the entropy (Appendix A)."""
    terms = nll(critic, posterior)
    return terms - posterior.entropy() / len(terms)


STATISTICS: dict[Statistic, Callable[[Critic, Posterior], Floats]] = {
    "nll": nll,
    "plugin": plugin_nll,
    "kl": kl_divergence,
}


@dataclass(frozen=True, slots=True)
class DroppedDocument:
    """Document without a score, and the reason why it has none."""

    id: str
    why: str


@dataclass(frozen=True, slots=True)
class CriticScores:
    """Scores of a corpus under a critic, one value per document, without the texts."""

    critic: str
    statistic: Statistic
    discrete: bool
    ids: tuple[str, ...]
    values: Floats
    """T(x) in nats, shape (documents,)."""
    steps: Ints
    """Number of transitions of z, shape (documents,); 1 if z is a vector."""
    lengths: Ints
    """Length of each document, shape (documents,): steps of a sequence, or words of the text if z is a vector."""
    points: tuple[Z, ...]
    """Most probable z of each document, for tables and figures."""
    dropped: tuple[DroppedDocument, ...] = ()
    clusters: tuple[str, ...] = ()
    """Cluster of each document, e.g. its prompt; empty if documents are independent."""
    familiarity: float = math.nan
    """Share of a document's words that the critic knows, as the median over documents."""

    def select(self, ids: Collection[str]) -> CriticScores:
        """Return the scores of the documents with these IDs."""
        kept_positions = [position for position, id in enumerate(self.ids) if id in ids]
        return replace(
            self,
            ids=tuple(self.ids[position] for position in kept_positions),
            values=self.values[kept_positions],
            steps=self.steps[kept_positions],
            lengths=self.lengths[kept_positions],
            points=tuple(self.points[position] for position in kept_positions),
            dropped=tuple(loss for loss in self.dropped if loss.id in ids),
            clusters=tuple(self.clusters[position] for position in kept_positions) if self.clusters else (),
        )

    @property
    def document_sums(self) -> Sums:
        """T(x), number of steps and 1 for each document, shape (documents, 3); the input of resampling."""
        return np.stack([self.values, self.steps, np.ones(len(self.values))], axis=1)

    @property
    def values_per_step(self) -> Floats:
        """T(x) per step, shape (documents,), for ranking documents of different lengths."""
        return self.values / self.steps


CorpusStatistic = Callable[[Sums], Floats]
"""Function from sums of T(x), steps and documents, shape (draws, 3), to one value per draw."""


def mean_nll(sums: Sums) -> Floats:
    """Return mean T(x) over documents."""
    return ratio_or_nan(sums[:, 0], sums[:, 2])


def perplexity(sums: Sums) -> Floats:
    """Return exp(sum of T(x) / sum of steps)."""
    return np.asarray(np.exp(ratio_or_nan(sums[:, 0], sums[:, 1])))


def latent_nll(corpus: CriticScores, draws: int = 1000, seed: int = 0) -> Estimate:
    """Estimate mean T(x) over documents, with an interval from resampled documents."""
    why = "" if corpus.ids else "no document could be projected"
    return _estimate_statistic(corpus, "latent-nll", mean_nll, why, draws, seed)


def latent_ppl(corpus: CriticScores, draws: int = 1000, seed: int = 0) -> Estimate:
    """Estimate exp(sum of T(x) / sum of steps), with an interval over documents; NaN if z is not a sequence."""
    why = ppl_undefined_reason(corpus) or ("" if corpus.ids else "no document could be projected")
    return _estimate_statistic(corpus, "latent-ppl", perplexity, why, draws, seed)


def ppl_undefined_reason(corpus: CriticScores) -> str:
    """Return the reason why Latent PPL is undefined, or an empty string."""
    if not corpus.discrete:
        return "Latent PPL is a mean over the states of a sequence, but z is a vector; use the Latent NLL"
    return "Latent PPL is exp of a mean log-likelihood, but kl is a divergence" if corpus.statistic == "kl" else ""


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


# --- steps of a document -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StateStep:
    """One step of a document: its text, its state, and the state that the critic expected."""

    step: int
    start: int | None
    """Start of the step's text; None for a step without text, such as the end state."""
    end: int | None
    text: str
    state: str
    nll: float
    likeliest: str
    """Most probable state under the prior given the previous step; empty if not available."""
    likeliest_nll: float


def state_steps(critic: Critic, document: Document, statistic: Statistic | None = None) -> list[StateStep]:
    """Split T(x) of a document into its steps, each with its text and the critic's most probable state."""
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


MAX_ERROR_LOG_PROB = math.log(0.01)
"""log P below which a step counts as an error, as in the paper's Table 12."""


def render_annotated_text(text: str, steps: Sequence[StateStep], below: float = MAX_ERROR_LOG_PROB) -> str:
    """Return the text with each step marked as `[she]1{-0.9}`, its state and log P.

    Steps below `below` also show the expected state, as in the paper's Figures 10 to 13: `[he]4{-11.7 expected she:4
    -1.8}`. A state such as `she:4` is shortened to its number, because the text contains the word. Steps without text
    are omitted.
    """
    pieces, position = list[str](), 0
    for part in steps:
        if part.start is None or part.end is None or part.start < position or part.end == part.start:
            continue
        surprise = f" expected {part.likeliest} {_format_log_prob(-part.likeliest_nll)}" if -part.nll < below else ""
        name = part.state.partition(":")[2] or part.state
        pieces += [text[position : part.start], f"[{part.text}]{name}{{{_format_log_prob(-part.nll)}{surprise}}}"]
        position = part.end
    return "".join(pieces) + text[position:]


def _format_log_prob(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}"  # avoid -0.0
