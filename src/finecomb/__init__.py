"""Mark errors in generated text as spans, measure them, and validate the judges that mark them.

There is one function per command of the command line. `help(fc.agree)` describes one of them.

Create and inspect a study
    demo, tour, next_steps, new, read, write, convert, import_table, merge, edit, select, check, repair, show, stats,
    simulate, list_formats, list_protocols, list_plugins, show_protocol, protocol_schema, protocol
Produce texts
    prepare, generate
Collect annotations from people
    preview, serve, rehearse, links, exercise, screen, audit, draw_audit, pay, forget, backup, verify_backup, restore
Collect annotations from models
    annotate, list_runs, list_models, test_model, prices, show_prompt, export_prompt, attack_prompt, list_detectors,
    train, detect
Analyse
    measure, agree, test, power, rounds
Validate judges
    gold, score, calibrate, validate, estimate
Compare corpora
    criticize, stress
Report
    report, reproduce
Write your own statistic
    view, View, Filters, Estimate
Records, results and errors
    Document, Span, Mark, Unit, Annotation, Annotator, Protocol, Study, Options, Result, Table, Findings,
    FinecombError, ParameterError, Problem

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
        list_runs,
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
    from finecomb.api.imports import import_table
    from finecomb.api.judges import calibrate, estimate, gold, rounds, score, validate
    from finecomb.api.model_catalogue import list_models, prices, test_model
    from finecomb.api.plugins import list_plugins
    from finecomb.api.reports import report, reproduce
    from finecomb.api.statistics import agree, measure, power, test
    from finecomb.api.studies import (
        check,
        convert,
        demo,
        edit,
        list_formats,
        list_protocols,
        merge,
        new,
        next_steps,
        protocol_schema,
        select,
        show,
        show_protocol,
        simulate,
        stats,
        tour,
    )
    from finecomb.core.errors import FinecombError, ParameterError, Problem
    from finecomb.core.protocol import Protocol
    from finecomb.core.records import Annotation, Annotator, Document, Mark, Unit
    from finecomb.core.results import Estimate, Findings, Result, Table
    from finecomb.core.span import Span
    from finecomb.core.study import Study
    from finecomb.formats import Options, read, write
    from finecomb.protocols import load as protocol
    from finecomb.statistics.selection.view import Filters, View, view

    # For type checkers only. At run time `__dir__` has the public names: with `__all__`, `help(finecomb)` would print
    # the docstring of every function, some 6,000 lines.
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
        "annotate",
        "attack_prompt",
        "audit",
        "backup",
        "calibrate",
        "check",
        "convert",
        "criticize",
        "demo",
        "detect",
        "draw_audit",
        "edit",
        "estimate",
        "exercise",
        "export_prompt",
        "forget",
        "generate",
        "gold",
        "import_table",
        "links",
        "list_detectors",
        "list_formats",
        "list_models",
        "list_plugins",
        "list_protocols",
        "list_runs",
        "measure",
        "merge",
        "new",
        "next_steps",
        "pay",
        "power",
        "prepare",
        "preview",
        "prices",
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
        "test_model",
        "tour",
        "train",
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
    "list_runs": "api.annotators",
    "show_prompt": "api.annotators",
    "train": "api.annotators",
    "list_models": "api.model_catalogue",
    "prices": "api.model_catalogue",
    "test_model": "api.model_catalogue",
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
    "list_plugins": "api.plugins",
    "report": "api.reports",
    "reproduce": "api.reports",
    "agree": "api.statistics",
    "measure": "api.statistics",
    "power": "api.statistics",
    "test": "api.statistics",
    "check": "api.studies",
    "convert": "api.studies",
    "import_table": "api.imports",
    "demo": "api.studies",
    "list_formats": "api.studies",
    "list_protocols": "api.studies",
    "edit": "api.studies",
    "merge": "api.studies",
    "new": "api.studies",
    "next_steps": "api.studies",
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
    "Estimate": "core.results",
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
    return sorted([*_HOMES, "__version__"])
