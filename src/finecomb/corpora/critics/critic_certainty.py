"""How sure a critic is of what it reads: a critic that guesses z cannot judge how likely z is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from finecomb.core import frames
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.corpora.critics.base import Critic
from finecomb.corpora.critics.posteriors import Dirichlet, Factorised, Gaussian, Posterior, Samples
from finecomb.corpora.critics.priors import DirichletPrior, GaussianPrior, ProjectionError
from finecomb.corpora.critics.scoring import critic_identity, document_batches
from finecomb.engine.partitions import Executor, Tables
from finecomb.version import __version__

CERTAINTY_MEANINGS = {
    Factorised: "mean probability of the most probable state",
    Samples: "mean share of samples that agree on a state",
    Gaussian: "share of the prior's variance that the text removes",
    Dirichlet: "share of the posterior's weight that comes from the text",
}
"""What the certainty of each kind of posterior is; 1 is certain, always."""
_MEANING_BY_POSTERIOR = {kind.__name__: meaning for kind, meaning in CERTAINTY_MEANINGS.items()}
_COLUMNS = {"certainty": pl.Float64, "posterior": pl.String}
NO_CERTAINTY_REASON = "it takes z as read and does not say how sure it is"


def certainty(critic: Critic, posterior: Posterior) -> float:
    """How sure a posterior is, at most 1, as `CERTAINTY_MEANINGS` says; NaN where it cannot be told."""
    prior = getattr(critic, "prior", None)
    match posterior:
        case Factorised():
            return float(posterior.probabilities.max(axis=1).mean())
        case Samples() if isinstance(posterior.zs[0], tuple):
            best = posterior.point_estimate()
            return float(np.mean([[a == b for a, b in zip(z, best, strict=True)] for z in posterior.zs]))
        case Gaussian() if isinstance(prior, GaussianPrior):
            return float(1 - np.mean(posterior.variance / np.diag(prior.covariance)))
        case Dirichlet() if isinstance(prior, DirichletPrior):
            return float(1 - prior.alpha.sum() / posterior.alpha.sum())
    return math.nan


def certainty_row(
    critic: Critic, side: str, documents: Iterable[Document], spread: Executor | None = None
) -> dict[str, object]:
    """One row of the table `certainty`: the median over documents, the lowest twentieth, and what it means.

    Documents are projected as `spread` says; those that cannot be are left out.
    """
    spread, work = spread or Executor(), CertaintyWork(critic)
    run = spread.start_run(work, work.tables_for_lost_row, work.cache_key() if spread.is_resumable else "")
    for _ in run.run_partitions(document_batches(documents, critic.batch)):
        pass
    table = run.table("certainties").collect() if run.names else pl.DataFrame(schema=_COLUMNS)
    values = table["certainty"].to_numpy()
    known = values[~np.isnan(values)]
    meaning = _MEANING_BY_POSTERIOR.get(table["posterior"][0], "") if len(known) else ""
    return {
        "critic": critic.name,
        "system": side,
        "documents": len(table),
        "certainty": float(np.median(known)) if len(known) else math.nan,
        "lowest 5%": float(np.quantile(known, 0.05)) if len(known) else math.nan,
        "what": meaning or (NO_CERTAINTY_REASON if len(table) else "no document could be projected"),
    }


@dataclass(frozen=True, slots=True)
class CertaintyWork:
    """How sure a critic is of documents, as work that can be sent to other processes."""

    critic: Critic

    @property
    def uses_all_cores(self) -> bool:
        """As its critic."""
        return self.critic.uses_all_cores

    def cache_key(self) -> str:
        """All that a document's certainty depends on beside the document."""
        return "\x1f".join(["certainty", critic_identity(self.critic), __version__])

    def __call__(self, rows: pl.DataFrame) -> Tables:
        """A row for each document that has a posterior; one at which the critic breaks down has none."""
        documents = list(frames.iter_documents(rows))
        try:
            return _table(self._certainties(documents))
        except FinecombError:
            raise  # what a critic needs and does not have is no document's fault
        except Exception:  # whatever a critic may raise; each document alone tells which one it was
            return _table([row for document in documents for row in self._single_certainty(document)])

    def _certainties(self, documents: Sequence[Document]) -> list[tuple[float, str]]:
        """With all the doubt there is, also where the critic then takes the most probable z."""
        posteriors = [posterior for _, posterior in self.critic.with_full_posterior().project_all(documents)]
        return [
            (certainty(self.critic, posterior), type(posterior).__name__)
            for posterior in posteriors
            if not isinstance(posterior, ProjectionError)
        ]

    def _single_certainty(self, document: Document) -> list[tuple[float, str]]:
        try:
            return self._certainties([document])
        except FinecombError:
            raise
        except Exception:  # the table of scores tells the reason
            return []

    def tables_for_lost_row(self, row: pl.DataFrame, reason: str) -> Tables:
        """Nothing: a document that no process survives is among those without a score, where the reason is told."""
        return _table([])


def _table(rows: Sequence[tuple[float, str]]) -> Tables:
    return {"certainties": pl.DataFrame(rows, _COLUMNS, orient="row")}
