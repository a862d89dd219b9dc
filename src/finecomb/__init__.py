"""Finecomb: mark errors in generated text as spans, measure them, and validate the judges that mark them.

There is one function for every command of the command line, the records that a study is made of, and the results.

>>> import finecomb as fc
>>> study = fc.demo()
>>> study
Study('Saltby: the demo study': 16 documents, 96 annotations, 307 marks; scarecrow@2)
>>> round(fc.agree(study, measure="alpha").find(label="any").value, 3)
0.625
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from finecomb.version import __version__

if TYPE_CHECKING:
    from finecomb.api.annotators import (
        annotate,
        attack_prompt,
        detect,
        export_prompt,
        list_detectors,
        show_prompt,
        train,
    )
    from finecomb.api.collection import (
        audit,
        backup,
        draw_audit,
        exercise,
        forget,
        links,
        pay,
        preview,
        rehearse,
        repair,
        restore,
        screen,
        serve,
        verify_backup,
    )
    from finecomb.api.corpora import criticize, prepare, stress
    from finecomb.api.generation import generate
    from finecomb.api.judges import calibrate, estimate, gold, rounds, score, validate
    from finecomb.api.reports import report, reproduce
    from finecomb.api.statistics import agree, measure, power, test
    from finecomb.api.studies import (
        check,
        convert,
        demo,
        list_formats,
        list_protocols,
        merge,
        new,
        protocol_schema,
        select,
        show,
        show_protocol,
        simulate,
        stats,
        tour,
    )
    from finecomb.core.errors import FinecombError, ParameterError, Problem
    from finecomb.core.estimate import Estimate
    from finecomb.core.protocol import Protocol
    from finecomb.core.records import Annotation, Annotator, Document, Mark, Unit
    from finecomb.core.results import Findings, Result, Table
    from finecomb.core.span import Span
    from finecomb.core.study import Study
    from finecomb.formats import Options, read, write
    from finecomb.protocols import load as protocol
    from finecomb.statistics.annotator_quality import trust
    from finecomb.statistics.comparisons.system_comparison import compare
    from finecomb.statistics.judges.alt_test import alt_test
    from finecomb.statistics.measures.coverage import coverage
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
    "ParameterError",
    "Problem",
    "Protocol",
    "Result",
    "Span",
    "Study",
    "Table",
    "Unit",
    "View",
    "__version__",
    "agree",
    "alt_test",
    "annotate",
    "attack_prompt",
    "audit",
    "backup",
    "calibrate",
    "check",
    "compare",
    "convert",
    "coverage",
    "criticize",
    "demo",
    "detect",
    "draw_audit",
    "estimate",
    "exercise",
    "export_prompt",
    "forget",
    "generate",
    "gold",
    "links",
    "list_detectors",
    "list_formats",
    "list_protocols",
    "measure",
    "merge",
    "new",
    "pay",
    "power",
    "prepare",
    "preview",
    "protocol",
    "protocol_schema",
    "read",
    "rehearse",
    "repair",
    "report",
    "reproduce",
    "restore",
    "rounds",
    "score",
    "screen",
    "select",
    "serve",
    "show",
    "show_prompt",
    "show_protocol",
    "simulate",
    "stats",
    "stress",
    "test",
    "tour",
    "train",
    "trust",
    "validate",
    "verify_backup",
    "view",
    "write",
]

_HOMES = {
    "annotate": "api.annotators",
    "attack_prompt": "api.annotators",
    "detect": "api.annotators",
    "export_prompt": "api.annotators",
    "list_detectors": "api.annotators",
    "show_prompt": "api.annotators",
    "train": "api.annotators",
    "audit": "api.collection",
    "backup": "api.collection",
    "draw_audit": "api.collection",
    "exercise": "api.collection",
    "forget": "api.collection",
    "links": "api.collection",
    "pay": "api.collection",
    "preview": "api.collection",
    "rehearse": "api.collection",
    "repair": "api.collection",
    "restore": "api.collection",
    "screen": "api.collection",
    "serve": "api.collection",
    "verify_backup": "api.collection",
    "criticize": "api.corpora",
    "prepare": "api.corpora",
    "stress": "api.corpora",
    "generate": "api.generation",
    "calibrate": "api.judges",
    "estimate": "api.judges",
    "gold": "api.judges",
    "rounds": "api.judges",
    "score": "api.judges",
    "validate": "api.judges",
    "report": "api.reports",
    "reproduce": "api.reports",
    "agree": "api.statistics",
    "measure": "api.statistics",
    "power": "api.statistics",
    "test": "api.statistics",
    "check": "api.studies",
    "convert": "api.studies",
    "demo": "api.studies",
    "list_formats": "api.studies",
    "list_protocols": "api.studies",
    "merge": "api.studies",
    "new": "api.studies",
    "protocol_schema": "api.studies",
    "select": "api.studies",
    "show": "api.studies",
    "show_protocol": "api.studies",
    "simulate": "api.studies",
    "stats": "api.studies",
    "tour": "api.studies",
    "FinecombError": "core.errors",
    "ParameterError": "core.errors",
    "Problem": "core.errors",
    "Estimate": "core.estimate",
    "Protocol": "core.protocol",
    "Annotation": "core.records",
    "Annotator": "core.records",
    "Document": "core.records",
    "Mark": "core.records",
    "Unit": "core.records",
    "Findings": "core.results",
    "Result": "core.results",
    "Table": "core.results",
    "Span": "core.span",
    "Study": "core.study",
    "Options": "formats",
    "read": "formats",
    "write": "formats",
    "protocol": "protocols:load",
    "trust": "statistics.annotator_quality",
    "compare": "statistics.comparisons.system_comparison",
    "alt_test": "statistics.judges.alt_test",
    "coverage": "statistics.measures.coverage",
    "Filters": "statistics.selection.view",
    "View": "statistics.selection.view",
    "view": "statistics.selection.view",
}
"""Where each public name lives: a module, and after a colon its name there, if it differs."""

if not TYPE_CHECKING:  # a type checker reads the imports above, and reports a name that does not exist

    def __getattr__(name: str) -> Any:
        """Import a public name or a package of Finecomb when it is first used."""
        if name not in _HOMES:
            return _import_package(name)
        module, _, there = _HOMES[name].partition(":")
        globals()[name] = getattr(importlib.import_module(f"finecomb.{module}"), there or name)
        return globals()[name]


def _import_package(name: str) -> Any:
    if name.startswith("_") or importlib.util.find_spec(f"finecomb.{name}") is None:
        raise AttributeError(f"module 'finecomb' has no attribute {name!r}")
    return importlib.import_module(f"finecomb.{name}")


def __dir__() -> list[str]:
    return list(__all__)
