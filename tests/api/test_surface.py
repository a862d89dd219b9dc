"""The public functions: one for every command, described, small to look at, and without flags in their messages."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

import finecomb as fc
from finecomb.api.parameters import parameter_descriptions
from finecomb.cli.commands import COMMANDS, app, load_commands

ROOT = Path(fc.__file__).parent
FLAG = re.compile(r"(?<![\w-])--[a-z]")
LISTS = {"formats": "list_formats", "protocols": "list_protocols", "detectors": "list_detectors"}
"""Commands that list, and the names of their functions."""
SUBCOMMANDS = {
    "prompts": {"show": "show_prompt", "export": "export_prompt", "attack": "attack_prompt"},
    "protocols": {"show": "show_protocol", "schema": "protocol_schema"},
}
HELPERS = ("draw_audit", "protocol_schema", "tour", "verify_backup")
"""Functions that a command needs beside the one of its own name."""
PUBLIC = sorted(name for name in fc.__all__ if getattr(getattr(fc, name), "__module__", "").startswith("finecomb.api."))


def command_functions() -> set[str]:
    names = {LISTS.get(row.name, row.name) for row in COMMANDS} - set(SUBCOMMANDS)
    return names | {function for group in SUBCOMMANDS.values() for function in group.values()}


def test_there_is_one_function_for_every_command() -> None:
    assert set(PUBLIC) == command_functions() | set(HELPERS)


def test_every_subcommand_has_its_function() -> None:
    load_commands()
    groups = typer.main.get_group(app).commands
    assert {name: set(groups[name].commands) for name in SUBCOMMANDS} == {  # type: ignore[attr-defined]
        name: set(functions) for name, functions in SUBCOMMANDS.items()
    }


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_is_described_and_none_is_collected(name: str) -> None:
    function = getattr(fc, name)
    parameters = inspect.signature(function).parameters
    assert not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    assert set(parameter_descriptions(function)) == set(parameters)
    doc = inspect.getdoc(function) or ""
    assert "Returns\n-------" in doc
    assert ">>>" in doc


def test_pytest_does_not_collect_the_function_test() -> None:
    assert fc.test.__test__ is False  # type: ignore[attr-defined]


def test_only_public_names_are_offered() -> None:
    assert set(dir(fc)) == set(fc.__all__)
    assert not {"Any", "Path", "TYPE_CHECKING", "importlib"} & set(dir(fc))


RESULTS: dict[str, Any] = {
    "agree": lambda study: fc.agree(study),
    "check": lambda study: fc.check(study),
    "gold": lambda study: fc.gold(study),
    "list_detectors": lambda study: fc.list_detectors(),
    "list_formats": lambda study: fc.list_formats(),
    "list_protocols": lambda study: fc.list_protocols(),
    "measure": lambda study: fc.measure(study),
    "score": lambda study: fc.score(study),
    "show": lambda study: fc.show(study),
    "stats": lambda study: fc.stats(study),
    "test": lambda study: fc.test(study),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_small_to_look_at(name: str) -> None:
    shown = repr(RESULTS[name](fc.demo()))
    assert len(shown) < 2_000
    assert len(shown.splitlines()) <= 15


def raised_texts(file: Path) -> list[str]:
    """Return the literal words of every message that a module raises."""
    raised = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Raise)]
    return [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for statement in raised
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_messages_name_parameters_and_not_flags() -> None:
    rooms = [file for file in ROOT.rglob("*.py") if file.relative_to(ROOT).parts[0] not in ("cli", "server")]
    texts = [text for file in rooms for text in raised_texts(file)]
    flags = [text for text in texts if FLAG.search(text) and "`finecomb " not in text]  # whole commands may be quoted
    assert flags == []
