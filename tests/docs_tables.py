"""Tables of the documentation that are made from the code, so that they cannot go stale."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import typer.main
from pydantic import BaseModel

from finecomb import formats, protocols
from finecomb.cli import app
from finecomb.cli.commands import load_commands
from finecomb.cli.output import with_output_flags
from finecomb.core import frames, practice, protocol, question, records
from finecomb.core.options import option_specs
from finecomb.formats.features import ALL_FEATURES
from finecomb.reporting.reproduce.registry import PAPERS
from finecomb.statistics.agreement.registry import AGREEMENT_MEASURES as AGREEMENTS
from finecomb.statistics.comparisons.registry import TESTS
from finecomb.statistics.measures.annotation_measures import ANNOTATION_MEASURES
from finecomb.statistics.registry import PLANS, STATISTICS
from tests.test_layers import LAYERS

_ROOT = Path(__file__).parent.parent


def _escape_cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def markdown_table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in Markdown."""
    names = list(header)
    lines = [names, ["---"] * len(names), *([_escape_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- frames and records ------------------------------------------------------------------------------------------


def _describe_type(kind: Any) -> str:
    if isinstance(kind, pl.List):
        return f"list of {_describe_type(kind.inner)}"
    if isinstance(kind, pl.Struct):
        return "{" + ", ".join(field.name for field in kind.fields) + "}"
    return "Datetime, UTC" if isinstance(kind, pl.Datetime) else str(kind)


def columns_table(of: frames.ColumnSpecs) -> str:
    """The columns of a frame."""
    rows = ((f"`{name}`", _describe_type(kind), says) for name, (kind, says) in of.items())
    return markdown_table(["column", "type", "content"], rows)


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n\n")[0]


def fields_table(record: type[BaseModel]) -> str:
    """The fields of a record, with the prose under each."""
    prose = records.field_descriptions(record)
    rows = (
        (f"`{name}`", "yes" if field.is_required() else "", _first_line(prose.get(name)))
        for name, field in record.model_fields.items()
    )
    return markdown_table(["field", "required", "content"], rows)


# --- commands ----------------------------------------------------------------------------------------------------


def commands_by_name() -> dict[str, Any]:
    """Every command by its name, e.g. `protocols show`."""
    load_commands()
    return dict(_iter_commands(typer.main.get_command(app), ""))


def _iter_commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    if name:
        yield name, with_output_flags(command)
    for part, inner in getattr(command, "commands", {}).items():
        yield from _iter_commands(inner, f"{name} {part}".strip())


def options_table(command: Any) -> str:
    """What a command takes."""
    rows = []
    for each in command.params:  # of Typer's own kind, which has no public name
        if getattr(each, "hidden", False):
            continue
        flags = ", ".join(f"`{flag}`" for flag in each.opts)
        shown = flags if each.param_type_name == "option" else f"`{(each.name or '').upper()}`"
        default = f"`{each.default}`" if _is_informative(each.default) else ""
        default = "required" if each.required else default
        rows.append((shown, getattr(each, "help", ""), default))
    return markdown_table(["argument or option", "description", "default"], rows)


def _is_informative(default: object) -> bool:
    """Whether a default tells the reader something; absent, false and empty do not."""
    return default is not None and default is not False and str(default) != "" and not callable(default)


# --- formats and protocols ---------------------------------------------------------------------------------------


_FLAG_BY_OPTION = {"columns": "map"}
"""What the command line calls an option."""


def formats_table() -> str:
    """Every format with its ways and options."""
    rows = (
        (
            f"[`{each.name}`](#{each.name})",
            each.title,
            "yes" if each.read else "no",
            "yes" if each.write else "no",
            " ".join(f"`{ending}`" for ending in each.suffixes),
            " ".join(f"`--{_FLAG_BY_OPTION.get(name, name)}`" for name in sorted(each.options)),
        )
        for each in formats.FORMATS.values()
    )
    return markdown_table(["name", "description", "read", "write", "suffixes", "options"], rows)


def features_table() -> str:
    """What survives writing, feature by feature."""
    written = [each for each in formats.FORMATS.values() if each.write]
    rows = (
        (feature, *("yes" if feature in each.holds else "–" for each in written))
        for feature in sorted(ALL_FEATURES)
        if not feature.endswith(" id")
    )
    return markdown_table(["", *(each.name for each in written)], rows)


def protocols_table() -> str:
    """Every shipped protocol in a line."""
    rows = []
    for name in protocols.names():
        each = protocols.load_shipped(name)
        test = each.qualification
        passed = f"{test.pass_at:g} of {test.max_points:g} points" if test else "none"
        rows.append((f"[`{name}`](#{name})", len(each.labels), each.work.unit, each.work.annotators, passed))
    return markdown_table(["name", "labels", "work by", "annotators per text", "qualification"], rows)


# --- the map -----------------------------------------------------------------------------------------------------


def layers_table() -> str:
    """Every package from the top layer to the lowest, with the first line of its docstring."""
    rows = (
        (number, f"`{package}`", purpose)
        for number, layer in zip(range(len(LAYERS), 0, -1), reversed(LAYERS), strict=True)
        for package in sorted(layer)
        if (purpose := _package_summary(package))
    )
    return markdown_table(["layer", "package", "purpose"], rows)


def _package_summary(package: str) -> str:
    """Return the first paragraph of a package's docstring, or an empty text for single modules such as `version`."""
    if importlib.util.find_spec(f"finecomb.{package}") is None:
        return ""
    module = importlib.import_module(f"finecomb.{package}")
    return (module.__doc__ or "").partition("\n\n")[0] if hasattr(module, "__path__") else ""


class Extension(NamedTuple):
    """One thing that Finecomb can be given more of."""

    what: str
    folder: str
    """Where its module or file goes."""
    registry: str
    """`module:name` of what lists them all."""
    tests: str


EXTENSIONS = (
    Extension(
        "a statistic: a mean over annotations",
        "src/finecomb/statistics/measures/",
        "statistics.measures.annotation_measures:ANNOTATION_MEASURES",
        "tests/statistics/measures/",
    ),
    Extension(
        "a statistic: any other",
        "src/finecomb/statistics/",
        "statistics.registry:STATISTICS",
        "tests/statistics/measures/",
    ),
    Extension(
        "a statistic: agreement",
        "src/finecomb/statistics/agreement/",
        "statistics.agreement.registry:AGREEMENT_MEASURES",
        "tests/statistics/agreement/",
    ),
    Extension(
        "a statistic: a test",
        "src/finecomb/statistics/comparisons/",
        "statistics.comparisons.registry:TESTS",
        "tests/statistics/agreement/",
    ),
    Extension("a format", "src/finecomb/formats/", "formats:FORMATS", "tests/formats/"),
    Extension("a protocol", "src/finecomb/protocols/", "protocols:PROTOCOLS", "tests/protocols/"),
    Extension(
        "a detector",
        "src/finecomb/annotators/detectors/",
        "annotators.detectors:DETECTORS",
        "tests/annotators/detectors/",
    ),
    Extension(
        "a provider of models",
        "src/finecomb/annotators/llm/",
        "annotators.llm.providers:PROVIDERS",
        "tests/annotators/llm/",
    ),
    Extension("a critic", "src/finecomb/corpora/critics/", "corpora.critics.storage:CRITICS", "tests/corpora/critics/"),
    Extension("a type of question", "src/finecomb/core/", "core.scales:SCALES", "tests/core/"),
    Extension(
        "a page for researchers",
        "src/finecomb/server/researchers/",
        "server.researchers.routes:router",
        "tests/server/",
    ),
    Extension(
        "an export", "src/finecomb/formats/", "server.researchers.study_export:writable_formats", "tests/formats/"
    ),
    Extension("a command", "src/finecomb/cli/", "cli.commands:COMMANDS", "tests/cli/"),
)


def extensions_table() -> str:
    """Where each thing is added: its folder, and the registry that lists it."""
    rows = ((row.what, f"`{row.folder}`", f"`finecomb.{row.registry}`", f"`{row.tests}`") for row in EXTENSIONS)
    return markdown_table(["extension", "folder", "registry", "tests"], rows)


# --- statistics --------------------------------------------------------------------------------------------------


def statistics_table() -> str:
    """Every statistic of every registry: its command, name, what it is, and its own options, from their dataclasses."""
    tables: list[tuple[str, Mapping[str, Any]]] = [
        ("measure", {**ANNOTATION_MEASURES, **STATISTICS}),
        ("agree", AGREEMENTS),
        ("test", TESTS),
        ("power", PLANS),
    ]
    rows = [
        (
            f"`{command}`",
            f"[`{name}`](statistics/{row.page}.md)",
            row.gloss,
            _format_flags(row.options),
        )
        for command, registry in tables
        for name, row in registry.items()
    ]
    return markdown_table(["command", "name", "description", "options"], rows)


def _format_flags(options: type) -> str:
    return " ".join(f"`{spec.flag}`" for spec in option_specs(options).values())


_RECORDS: Mapping[str, type[BaseModel]] = {
    kind.__name__.lower(): kind
    for module in (records, question, practice, protocol)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, BaseModel)
}


def exhibits_table() -> str:
    """Every table and figure of the papers: the function that makes it, and what a study must have."""
    rows = (
        (paper.name, exhibit.number, exhibit.title, f"`{exhibit.function_name}`", exhibit.needs)
        for paper in PAPERS.values()
        for exhibit in paper.exhibits
    )
    return markdown_table(["paper", "exhibit", "title", "function", "requires"], rows)


def benchmarks_table() -> str:
    """Every benchmark with what it measures."""
    files = sorted(path for path in (_ROOT / "benchmarks").glob("*.py") if not path.name.startswith("_"))
    texts = [ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in files]
    purposes = [" ".join(text.partition("\n\n")[0].split()).removesuffix(".") for text in texts]
    rows = [(f"`{path.stem}`", purpose) for path, purpose in zip(files, purposes, strict=True)]
    return markdown_table(["benchmark", "measurement"], rows)


TABLES: Mapping[str, Callable[[], str]] = {
    **{f"frame {name}": functools.partial(columns_table, of) for name, of in frames.COLUMNS_BY_FRAME.items()},
    **{f"fields {name}": functools.partial(fields_table, kind) for name, kind in _RECORDS.items()},
    **{f"options {name}": functools.partial(options_table, command) for name, command in commands_by_name().items()},
    "formats": formats_table,
    "holdings": features_table,
    "protocols": protocols_table,
    "layers": layers_table,
    "extensions": extensions_table,
    "exhibits": exhibits_table,
    "benchmarks": benchmarks_table,
    "statistics": statistics_table,
}
"""By the name that stands in the page: `<!-- table: frame marks -->`."""

MARKER = re.compile(
    r"^<!-- table: (?P<name>[^>]+?) -->\n\n(?P<table>(?:\|[^\n]*\n)*)\n?<!-- end of table -->$", re.MULTILINE
)
