"""Computations on a study that only pages of the server show: monitoring, adjudication and the validity of judges.

No command prints them, so they are not exported as `fc.` functions. The server calls them here, as it calls the public
functions, and imports only types and constants from `statistics`. Functions that need no coercion are passed on.
"""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from finecomb.core.results import Finding
from finecomb.core.study import Study, document_meta_names
from finecomb.statistics.agreement.agreement import most_influential_text_by_label
from finecomb.statistics.agreement.agreement_options import AgreeOptions
from finecomb.statistics.agreement.alpha import alpha_from_coincidences
from finecomb.statistics.agreement.rating_sources import build_rating_source
from finecomb.statistics.agreement.second_pass_changes import second_pass_progress
from finecomb.statistics.gold.disputes import (
    dispute_count_by_document,
    find_disputes,
    is_adjudication_finished,
    pair_disputes_with_decisions,
)
from finecomb.statistics.judges.calibration import read_judge_binding
from finecomb.statistics.judges.calibration_record import CalibrationRecord
from finecomb.statistics.judges.monitored_means import monitored_means
from finecomb.statistics.judges.text_allocation import build_study_strata
from finecomb.statistics.judges.validity import StaleCondition, expiry_conditions, text_counts_by_system
from finecomb.statistics.selection.view import Filters, RoundSelection, View, view

__all__ = [
    "agreement_by_document",
    "dispute_count_by_document",
    "document_meta_names",
    "expiry_states",
    "find_disputes",
    "is_adjudication_finished",
    "monitor_means",
    "most_influential_text_by_label",
    "pair_disputes_with_decisions",
    "second_pass_progress",
    "select_work_to_adjudicate",
]


def agreement_by_document(work: View) -> pl.DataFrame:
    """Compute Krippendorff's alpha on the words of each document, for any label.

    Columns: document, alpha (null if undefined, e.g. with one annotator). No intervals are drawn, since the list of
    documents sorts by alpha and is computed with every change of the study.
    """
    tally = build_rating_source(work, AgreeOptions(by_label=False)).tallies[0]
    values = alpha_from_coincidences(tally.coincidences[:, 0], tally.values)
    documents = pl.Series("document", work.study.documents["id"], pl.String)
    return pl.DataFrame({"document": documents, "alpha": pl.Series(values, dtype=pl.Float64).fill_nan(None)})


def monitor_means(study: Study, work: View) -> list[Finding]:
    """Estimate the share of texts with an error and the marks per text, with intervals that are valid at any time.

    `work` is the part of the study to average. Texts that adaptive assignment drew with unequal probabilities are
    weighted by stratum.
    """
    allocation = study.settings.allocation
    return monitored_means(work, build_study_strata(study, allocation) if allocation else None)


def select_work_to_adjudicate(study: Study, protocol: str) -> View:
    """Return the submitted human work to adjudicate: the first pass, or the last once a second has started."""
    rounds: RoundSelection = "last" if study.settings.round else "first"
    return view(study, Filters(protocol=protocol, kinds=("human",), rounds=rounds))


def expiry_states(study: Study, record: CalibrationRecord) -> list[StaleCondition]:
    """Return each condition that ends the validity of a stored calibration, with its state in the study now."""
    binding = read_judge_binding(study, record.judge, record.contract.binding.protocol)
    metas = (document.meta for document in study.iter_documents())
    return expiry_conditions(record.contract, binding, datetime.now(UTC), text_counts_by_system(record.contract, metas))
