"""Finecomb: go through generated text with a fine-tooth comb.

>>> import finecomb as fc
>>> study = fc.demo()
>>> study
Study('Saltby: the demo study': 16 documents, 96 annotations, 307 marks; scarecrow@1)
"""

from __future__ import annotations

from pathlib import Path

from finecomb.agreement.agree import agree
from finecomb.agreement.alpha import agreement
from finecomb.core.check import check as _check
from finecomb.core.errors import FinecombError, Problem
from finecomb.core.estimate import Estimate
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark, Unit
from finecomb.core.span import Span
from finecomb.core.study import HTML_HOOK, Study
from finecomb.formats import Options, read, with_lines, write
from finecomb.gold.merge import gold
from finecomb.gold.score import score
from finecomb.judges.alt_test import alt_test
from finecomb.measure.compare import compare
from finecomb.measure.coverage import coverage
from finecomb.measure.measures import measure
from finecomb.measure.power import power
from finecomb.measure.view import Filters, View, view
from finecomb.people.trust import trust
from finecomb.protocols import load as protocol
from finecomb.simulate.demo import demo_study as _demo_study
from finecomb.version import __version__

__all__ = [
    "Annotation",
    "Annotator",
    "Document",
    "Estimate",
    "Filters",
    "FinecombError",
    "Mark",
    "Options",
    "Problem",
    "Protocol",
    "Span",
    "Study",
    "Unit",
    "View",
    "__version__",
    "agree",
    "agreement",
    "alt_test",
    "check",
    "compare",
    "coverage",
    "demo",
    "gold",
    "measure",
    "power",
    "protocol",
    "read",
    "score",
    "trust",
    "view",
    "write",
]


def _study_html(study: Study) -> str:
    from finecomb.report.marked_text import study_html

    return study_html(study)


HTML_HOOK[:] = [_study_html]


def check(study: Study) -> list[Problem]:
    """Every problem of a study, errors and warnings, with file and line where it was read from a folder."""
    return with_lines(_check(study), Path(study.origin)) if study.origin else _check(study)


def demo(readers: int = 5, seed: int = 0) -> Study:
    """Our own small study: 16 texts, the errors put into them, and simulated readers."""
    return Study.from_items(_demo_study(readers, seed))
