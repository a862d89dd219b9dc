"""Stress tests: the response of automatic metrics to corrupted texts."""

from finecomb.corpora.stress.corruptions import CORRUPTIONS, Corruption
from finecomb.corpora.stress.stress_metrics import METRICS, Candidate, Metric, metric_by_name
from finecomb.corpora.stress.stress_trial import StressPair, StressTable, corrupt_documents, run_stress_trial

__all__ = [
    "CORRUPTIONS",
    "METRICS",
    "Candidate",
    "Corruption",
    "Metric",
    "StressPair",
    "StressTable",
    "corrupt_documents",
    "metric_by_name",
    "run_stress_trial",
]
