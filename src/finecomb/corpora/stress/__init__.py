"""Stress: does a metric notice when a text is damaged?"""

from finecomb.corpora.stress.corruptions import CORRUPTIONS, Corruption
from finecomb.corpora.stress.stress_metrics import METRICS, Candidate, Metric, metric_named
from finecomb.corpora.stress.stress_trial import Stressed, StressTable, stress, stressed_texts

__all__ = [
    "CORRUPTIONS",
    "METRICS",
    "Candidate",
    "Corruption",
    "Metric",
    "StressTable",
    "Stressed",
    "metric_named",
    "stress",
    "stressed_texts",
]
