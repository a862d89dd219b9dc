"""Conformance checks for extensions, to be called in tests, for example with pytest.

Each function takes the name of an extension, either built in or from an installed plugin, and raises an
`AssertionError` that states which rule the extension breaks.

>>> from finecomb.testing import check_format
>>> check_format("jsonl")
"""

from __future__ import annotations

from finecomb.testing.annotators import check_detector
from finecomb.testing.critics import check_critic
from finecomb.testing.formats import build_sample_study, check_format
from finecomb.testing.providers import check_provider
from finecomb.testing.statistics import check_coefficient, check_interval_coverage, check_statistic

__all__ = [
    "build_sample_study",
    "check_coefficient",
    "check_critic",
    "check_detector",
    "check_format",
    "check_interval_coverage",
    "check_provider",
    "check_statistic",
]
