"""Certainty of a critic's posteriors. A critic that is unsure about z cannot judge how likely z is."""

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
    Gaussian: "share of the prior variance that the text explains",
    Dirichlet: "share of the posterior's weight that comes from the text",
}
"""Meaning of the certainty, by type of posterior; 1 always means certain."""
_MEANING_BY_POSTERIOR = {kind.__name__: meaning for kind, meaning in CERTAINTY_MEANINGS.items()}
_CERTAINTY_COLUMNS = {"certainty": pl.Float64, "posterior": pl.String}
NO_CERTAINTY_REASON = "the critic's posterior does not define a certainty"


def posterior_certainty(critic: Critic, posterior: Posterior) -> float:
    """Return the certainty of a posterior, at most 1, as defined by `CERTAINTY_MEANINGS`; NaN if undefined."""
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
    """Return one row of the table `certainty`: its median and 5% quantile over documents, and its meaning.

    Documents that cannot be projected are excluded.
    """
    spread, work = spread or Executor(), CertaintyWork(critic)
    run = spread.start_run(work, work.tables_for_lost_row, work.cache_key() if spread.is_resumable else "")
    for _ in run.run_partitions(document_batches(documents, critic.batch)):
        pass
    table = run.result_table("certainties").collect() if run.names else pl.DataFrame(schema=_CERTAINTY_COLUMNS)
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
    """Task for worker processes: compute the certainty of a critic for each document."""

    critic: Critic

    @property
    def uses_all_cores(self) -> bool:
        """True if the critic itself uses all cores."""
        return self.critic.uses_all_cores

    def cache_key(self) -> str:
        """Return a cache key for everything that a document's certainty depends on, except the document itself."""
        return "\x1f".join(["certainty", critic_identity(self.critic), __version__])

    def __call__(self, rows: pl.DataFrame) -> Tables:
        """Return one row per document with a posterior; documents that the critic fails on have none."""
        documents = list(frames.iter_documents(rows))
        try:
            return _certainty_table(self._certainties(documents))
        except FinecombError:
            raise  # a missing requirement of the critic is not the fault of a document
        except Exception:  # critics can raise anything; projecting documents one by one shows which one failed
            certainties: list[tuple[float, str]] = []
            for document in documents:
                try:
                    certainties += self._certainties([document])
                except FinecombError:
                    raise
                except Exception:  # the table of scores gives the reason
                    continue
            return _certainty_table(certainties)

    def _certainties(self, documents: Sequence[Document]) -> list[tuple[float, str]]:
        """Return certainties under the full posterior, even if the critic uses only the most probable z."""
        posteriors = [posterior for _, posterior in self.critic.with_full_posterior().project_all(documents)]
        return [
            (posterior_certainty(self.critic, posterior), type(posterior).__name__)
            for posterior in posteriors
            if not isinstance(posterior, ProjectionError)
        ]

    def tables_for_lost_row(self, row: pl.DataFrame, reason: str) -> Tables:
        """Return no rows; a document whose worker died is listed with its reason in the table of scores."""
        return _certainty_table([])


def _certainty_table(rows: Sequence[tuple[float, str]]) -> Tables:
    return {"certainties": pl.DataFrame(rows, _CERTAINTY_COLUMNS, orient="row")}
