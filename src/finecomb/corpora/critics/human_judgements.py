"""The human side: what readers of a `sections` study say of each system, beside what critics and metrics say.

Deng et al. (2022), section 4 and Appendix H: Table 4 (which automatic figure follows people?) and Table 18 (which
organisations do people call incoherent?).
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

REAL = "real"
"""The name that real documents have among systems; `meta.model` calls them `human`."""
MetricValues = Mapping[str, Mapping[str, float]]
"""Name of a figure -> system -> its value."""


def coherent_shares(study: Study, by: str = "model") -> dict[str, float]:
    """The share of annotations that call a document coherent, by system; texts written by people are `real`."""
    answered = study.submitted_work().answers.filter(
        (pl.col("of") == "annotation") & (pl.col("question") == "coherent")
    )
    if answered.is_empty():
        raise FinecombError(f"{study.origin or 'the study'}: nobody answered 'coherent', as the sections protocol asks")
    systems = study.documents.select(document="id", system=meta_entry(by))
    verdicts = answered.join(systems, on="document").filter(pl.col("system").is_not_null())
    shares = verdicts.group_by("system").agg(pl.col("number").mean()).sort("system")
    return {REAL if system == "human" else system: float(share) for system, share in shares.iter_rows()}


def incoherent_organisations(study: Study, top: int = 30) -> pl.DataFrame:
    """Table 18: sequences of section types whose documents readers call incoherent, the commonest first."""
    work = study.submitted_work()
    verdicts = work.answers.filter((pl.col("of") == "annotation") & (pl.col("question") == "coherent"))
    wrong = verdicts.filter(pl.col("number") == 0)["annotation"]
    units = work.units.filter(pl.col("annotation").is_in(wrong.implode()))
    types = units.with_columns(type=json_entry("answers", "section").fill_null("?"))
    paths = types.sort("annotation", "start").group_by("annotation", maintain_order=True).agg(pl.col("type"))
    named = paths.select(organisation=pl.col("type").list.join(" > "))
    counted = named.group_by("organisation").agg(annotations=pl.len())
    return counted.sort("annotations", "organisation", descending=[True, False]).head(top)


def latent_values_by_system(rows: Iterable[Comparison]) -> dict[str, dict[str, float]]:
    """What critics say, by critic and statistic, with the value of real documents as that of one more system."""
    figures: dict[str, dict[str, float]] = {}
    for row in rows:
        values = figures.setdefault(f"{row.critic} {row.statistic}", {REAL: row.real})
        values[row.system] = row.generated
    return figures


def metric_values_from_table(table: pl.DataFrame, where: str) -> dict[str, dict[str, float]]:
    """Other figures of systems from a table: a column `system`, all other columns numbers."""
    if "system" not in table.columns:
        raise FinecombError(f"{where}: needs a column 'system'; it has {', '.join(table.columns)}")
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


def correlations(figures: MetricValues, human: Mapping[str, float]) -> list[dict[str, object]]:
    """How each figure of systems follows what people say: Table 4 as correlations over systems.

    NaN with a reason where fewer than three systems have both, or where one of the two does not vary.
    """
    rows = []
    for name, values in figures.items():
        shared = [system for system in human if not math.isnan(values.get(system, math.nan))]
        x, y = (np.array([table[system] for system in shared]) for table in (values, human))
        why = _undefined_reason(x, y)
        pairs = ScoredDocuments(x[None], y[None], np.zeros(len(x), np.int64))
        both = {of.__name__: math.nan if why else float(of(pairs)[0]) for of in (pearson, spearman)}
        rows.append({"figure": name, "systems": len(shared), **both, "why": why})
    return rows


def _undefined_reason(x: np.ndarray, y: np.ndarray) -> str:
    if len(x) < 3:
        return f"{len(x)} systems have both figures, and a correlation needs three"
    return "one of the two does not vary" if np.ptp(x) == 0 or np.ptp(y) == 0 else ""


def add_metric_columns(rows: Iterable[dict[str, object]], figures: MetricValues) -> list[dict[str, object]]:
    """Rows of systems with more columns, after those they have; null where a figure is not known."""
    return [{**row, **{name: values.get(str(row["system"])) for name, values in figures.items()}} for row in rows]
