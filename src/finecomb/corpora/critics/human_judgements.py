"""Human judgements of a `sections` study by system, compared with critics and metrics.

Deng et al. (2022), section 4 and Appendix H: Table 4 (correlation of automatic metrics with human judgements) and Table
18 (sequences of sections that people call incoherent).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from finecomb.core.errors import FinecombError
from finecomb.core.frames import json_entry, meta_entry
from finecomb.core.study import Study
from finecomb.corpora.critics.comparison import Comparison
from finecomb.statistics.inference.metric_correlation import ScoredDocuments, pearson, spearman

REAL_SYSTEM = "real"
"""Name of real documents among systems; `meta.model` calls them `human`."""
MetricValues = Mapping[str, Mapping[str, float]]
"""Values by metric, then by system."""


def coherent_share_by_system(study: Study, by: str = "model") -> dict[str, float]:
    """Return, by system, the share of annotations that call a document coherent; human texts are the system `real`."""
    answers = study.submitted_work().answers.filter((pl.col("of") == "annotation") & (pl.col("question") == "coherent"))
    if answers.is_empty():
        raise FinecombError(
            f"{study.origin or 'the study'}: no submitted annotation answers question 'coherent'; use a study "
            "annotated with the sections protocol"
        )
    systems = study.documents.select(document="id", system=meta_entry(by))
    verdicts = answers.join(systems, on="document").filter(pl.col("system").is_not_null())
    shares = verdicts.group_by("system").agg(pl.col("number").mean()).sort("system")
    return {REAL_SYSTEM if system == "human" else system: float(share) for system, share in shares.iter_rows()}


def incoherent_section_sequences(study: Study, top: int = 30) -> pl.DataFrame:
    """Return Table 18: section sequences of documents that annotators call incoherent, most frequent first."""
    work = study.submitted_work()
    verdicts = work.answers.filter((pl.col("of") == "annotation") & (pl.col("question") == "coherent"))
    incoherent = verdicts.filter(pl.col("number") == 0)["annotation"]
    units = work.units.filter(pl.col("annotation").is_in(incoherent.implode()))
    types = units.with_columns(type=json_entry("answers", "section").fill_null("?"))
    paths = types.sort("annotation", "start").group_by("annotation", maintain_order=True).agg(pl.col("type"))
    sequences = paths.select(organisation=pl.col("type").list.join(" > "))
    counted = sequences.group_by("organisation").agg(annotations=pl.len())
    return counted.sort("annotations", "organisation", descending=[True, False]).head(top)


def latent_values_by_statistic(rows: Iterable[Comparison]) -> dict[str, dict[str, float]]:
    """Return values by critic and statistic, then by system; real documents count as one more system."""
    figures: dict[str, dict[str, float]] = {}
    for row in rows:
        values = figures.setdefault(f"{row.critic} {row.statistic}", {REAL_SYSTEM: row.real})
        values[row.system] = row.generated
    return figures


def metric_values_from_table(table: pl.DataFrame, where: str) -> dict[str, dict[str, float]]:
    """Return metric values by metric and system from a table with a column `system` and numeric columns."""
    if "system" not in table.columns:
        raise FinecombError(f"{where}: column 'system' is missing; found {', '.join(table.columns)}")
    figures: dict[str, dict[str, float]] = {}
    for name in table.columns:
        if name != "system":
            pairs = zip(table["system"].cast(pl.String), table[name].to_list(), strict=True)
            figures[name] = {system: _parse_number(value, f"{where}: {name} of {system}") for system, value in pairs}
    return figures


def _parse_number(value: object, where: str) -> float:
    if value is None:
        return math.nan
    if not isinstance(value, int | float):
        raise FinecombError(f"{where}: expected a number, found {value!r}")
    return float(value)


def human_correlations(figures: MetricValues, human: Mapping[str, float]) -> list[dict[str, object]]:
    """Return the correlation of each metric with human judgements over systems (Table 4).

    A correlation is NaN, with a reason, if fewer than three systems have both values or if either is constant.
    """
    rows = []
    for name, values in figures.items():
        shared = [system for system in human if not math.isnan(values.get(system, math.nan))]
        x, y = (np.array([table[system] for system in shared]) for table in (values, human))
        if len(x) < 3:
            why = f"a correlation needs at least three systems with both values, found {len(x)}"
        else:
            why = (
                "the metric or the human judgement is the same for all systems"
                if np.ptp(x) == 0 or np.ptp(y) == 0
                else ""
            )
        pairs = ScoredDocuments(x[None], y[None], np.zeros(len(x), np.int64))
        both = {
            correlation.__name__: math.nan if why else float(correlation(pairs)[0])
            for correlation in (pearson, spearman)
        }
        rows.append({"figure": name, "systems": len(shared), **both, "why": why})
    return rows


def add_metric_columns(rows: Iterable[dict[str, object]], figures: MetricValues) -> list[dict[str, object]]:
    """Return rows of systems with the metrics as additional columns; null if a value is missing."""
    return [{**row, **{name: values.get(str(row["system"])) for name, values in figures.items()}} for row in rows]
