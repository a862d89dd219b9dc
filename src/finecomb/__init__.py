"""Finecomb: go through generated text with a fine-tooth comb.

>>> import finecomb as fc
>>> study = fc.demo()
>>> study
Study('Saltby: the demo study': 16 documents, 96 annotations, 307 marks; scarecrow@2)
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finecomb.core.hooks import FINDINGS_HOOKS, HTML_HOOK
from finecomb.version import __version__

if TYPE_CHECKING:
    from finecomb.agreement.agree import agree
    from finecomb.core.errors import FinecombError, Problem
    from finecomb.core.estimate import Estimate
    from finecomb.core.findings import Findings
    from finecomb.core.protocol import Protocol
    from finecomb.core.records import Annotation, Annotator, Document, Mark, Unit
    from finecomb.core.span import Span
    from finecomb.core.study import Study
    from finecomb.formats import Options, read, write
    from finecomb.gold.merge import gold as gold_standard
    from finecomb.gold.score import score
    from finecomb.judges.alt_test import alt_test
    from finecomb.measure.compare import compare
    from finecomb.measure.coverage import coverage
    from finecomb.measure.measures import measure as measures
    from finecomb.measure.power import power
    from finecomb.measure.view import Filters, View, view
    from finecomb.people.trust import trust
    from finecomb.protocols import load as protocol

__all__ = [
    "Annotation",
    "Annotator",
    "Document",
    "Estimate",
    "Filters",
    "Findings",
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
    "alt_test",
    "check",
    "compare",
    "coverage",
    "demo",
    "gold_standard",
    "measures",
    "power",
    "protocol",
    "read",
    "score",
    "trust",
    "view",
    "write",
]

_HOMES = {
    "agree": "agreement.agree",
    "FinecombError": "core.errors",
    "Problem": "core.errors",
    "Estimate": "core.estimate",
    "Findings": "core.findings",
    "Protocol": "core.protocol",
    "Annotation": "core.records",
    "Annotator": "core.records",
    "Document": "core.records",
    "Mark": "core.records",
    "Unit": "core.records",
    "Span": "core.span",
    "Study": "core.study",
    "Options": "formats",
    "read": "formats",
    "write": "formats",
    "gold_standard": "gold.merge:gold",
    "score": "gold.score",
    "alt_test": "judges.alt_test",
    "compare": "measure.compare",
    "coverage": "measure.coverage",
    "measures": "measure.measures:measure",
    "power": "measure.power",
    "Filters": "measure.view",
    "View": "measure.view",
    "view": "measure.view",
    "trust": "people.trust",
    "protocol": "protocols:load",
}
"""Where each name of the notebook lives: a module, and after a colon what it is called there, if differently."""

if not TYPE_CHECKING:  # a type checker reads the imports above, and says so when a name does not exist

    def __getattr__(name: str) -> Any:
        """A name of the notebook or a package of ours, imported when it is first used."""
        if name not in _HOMES:
            return _package(name)
        module, _, there = _HOMES[name].partition(":")
        globals()[name] = getattr(importlib.import_module(f"finecomb.{module}"), there or name)
        return globals()[name]


def _package(name: str) -> Any:
    if name.startswith("_") or importlib.util.find_spec(f"finecomb.{name}") is None:
        raise AttributeError(f"module 'finecomb' has no attribute {name!r}")
    return importlib.import_module(f"finecomb.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _study_html(study: Study) -> str:
    from finecomb.report.marked_text import study_html

    return study_html(study)


def _findings_html(findings: Findings) -> str:
    from finecomb.report.findings import findings_html

    return findings_html(findings)


def _findings_chart(findings: Findings) -> Any:
    from finecomb.report.findings import findings_chart

    return findings_chart(findings)


HTML_HOOK[:] = [_study_html]
FINDINGS_HOOKS.update({"html": _findings_html, "chart": _findings_chart})


def check(study: Study) -> list[Problem]:
    """Every problem of a study, errors and warnings, with file and line where it was read from a folder."""
    from finecomb.core.check import check as problems
    from finecomb.formats import with_lines

    return with_lines(problems(study), Path(study.origin)) if study.origin else problems(study)


def demo(readers: int = 5, seed: int = 0) -> Study:
    """Our own small study: 16 texts, the errors put into them, and simulated readers."""
    from finecomb.core.study import Study
    from finecomb.simulate.demo import demo_study

    return Study.from_items(demo_study(readers, seed))
