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

from finecomb.version import __version__

if TYPE_CHECKING:
    from finecomb.core.errors import FinecombError, Problem
    from finecomb.core.estimate import Estimate
    from finecomb.core.protocol import Protocol
    from finecomb.core.records import Annotation, Annotator, Document, Mark, Unit
    from finecomb.core.results import Findings
    from finecomb.core.span import Span
    from finecomb.core.study import Study
    from finecomb.formats import Options, read, write
    from finecomb.protocols import load as protocol
    from finecomb.statistics.agreement.agreement import agree
    from finecomb.statistics.annotator_quality import trust
    from finecomb.statistics.comparisons.system_comparison import compare
    from finecomb.statistics.gold.gold_merge import gold as gold_standard
    from finecomb.statistics.gold.scores import score
    from finecomb.statistics.judges.alt_test import alt_test
    from finecomb.statistics.measures.annotation_measures import measure as measures
    from finecomb.statistics.measures.coverage import coverage
    from finecomb.statistics.power import power
    from finecomb.statistics.selection.view import Filters, View, view

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
    "agree": "statistics.agreement.agreement",
    "FinecombError": "core.errors",
    "Problem": "core.errors",
    "Estimate": "core.estimate",
    "Findings": "core.results",
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
    "gold_standard": "statistics.gold.gold_merge:gold",
    "score": "statistics.gold.scores",
    "alt_test": "statistics.judges.alt_test",
    "compare": "statistics.comparisons.system_comparison",
    "coverage": "statistics.measures.coverage",
    "measures": "statistics.measures.annotation_measures:measure",
    "power": "statistics.power",
    "Filters": "statistics.selection.view",
    "View": "statistics.selection.view",
    "view": "statistics.selection.view",
    "trust": "statistics.annotator_quality",
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


def check(study: Study) -> list[Problem]:
    """Every problem of a study, errors and warnings, with file and line where it was read from a folder."""
    from finecomb.annotators.detectors.boxscore.game_record import box_score_problem
    from finecomb.core.study_checks import check as problems_of
    from finecomb.formats import locate_problems

    problems = problems_of(study, [box_score_problem])
    return locate_problems(problems, Path(study.origin)) if study.origin else problems


def demo(readers: int = 5, seed: int = 0) -> Study:
    """Our own small study: 16 texts, the errors put into them, and simulated readers."""
    from finecomb.annotators.simulated.demo_study import demo_study
    from finecomb.core.study import Study

    return Study.from_items(demo_study(readers, seed))
