"""The public functions: one for every command, described, small to look at, and without flags in their messages."""

from __future__ import annotations

import ast
import inspect
import pydoc
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
LISTS = {
    "formats": "list_formats",
    "protocols": "list_protocols",
    "detectors": "list_detectors",
    "plugins": "list_plugins",
    "runs": "list_runs",
    "next": "next_steps",
    "import": "import_table",
}
"""Commands whose functions have another name: lists, `next` (a built-in function) and `import` (a keyword)."""
SUBCOMMANDS = {
    "prompts": {"show": "show_prompt", "export": "export_prompt", "attack": "attack_prompt"},
    "protocols": {"show": "show_protocol", "schema": "protocol_schema"},
    "models": {"list": "list_models", "test": "test_model"},
}
HELPERS = ("draw_audit", "protocol_schema", "tour", "verify_backup")
"""Functions that a command needs beside the one of its own name."""
PUBLIC = sorted(name for name in dir(fc) if getattr(getattr(fc, name), "__module__", "").startswith("finecomb.api."))


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
    assert not {"Any", "Path", "TYPE_CHECKING", "importlib"} & set(dir(fc))
    assert all(hasattr(fc, name) for name in dir(fc))
    assert set(dir(fc)) == set(type_checked_names()) | {"__version__"}


def type_checked_names() -> list[str]:
    """Return `__all__`, which only type checkers see."""
    tree = ast.parse(Path(fc.__file__).read_text(encoding="utf-8"))
    lists = [node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) and "__all__" in ast.dump(node)]
    return [name for name in ast.literal_eval(lists[0]) if name != "__version__"]


def test_help_is_short_and_lists_every_public_name() -> None:
    assert len(pydoc.TextDoc().document(fc).splitlines()) < 400
    listed = re.findall(r"\w+", " ".join(re.findall(r"^    (.*)$", inspect.cleandoc(fc.__doc__ or ""), re.M)))
    assert sorted(listed) == sorted(set(dir(fc)) - {"__version__"})


def test_no_command_has_a_body_over_forty_lines() -> None:
    sizes = {
        f"{file.name}: {node.name}": node.end_lineno - node.body[0].lineno + 1
        for file in (ROOT / "cli").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.end_lineno
    }
    assert [name for name, lines in sizes.items() if lines > 40] == []


RESULTS: dict[str, Any] = {
    "agree": lambda study: fc.agree(study),
    "check": lambda study: fc.check(study),
    "gold": lambda study: fc.gold(study),
    "list_detectors": lambda study: fc.list_detectors(),
    "list_formats": lambda study: fc.list_formats(),
    "list_plugins": lambda study: fc.list_plugins(),
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
