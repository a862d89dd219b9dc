"""Files of others are read by guarded readers only: a call that bypasses them fails here."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

import finecomb

ROOT = Path(finecomb.__file__).parent
GUARDED: dict[str, set[str]] = {
    "yaml.load": {"core/protocol_yaml.py"},
    "yaml.safe_load": set(),
    "yaml.full_load": set(),
    "yaml.unsafe_load": set(),
    "yaml.load_all": set(),
    "yaml.safe_load_all": set(),
    "yaml.compose": {"core/protocol_yaml.py"},
    "yaml.parse": {"core/protocol_yaml.py"},
    "json.load": set(),
    "json.loads": {"core/guarded_json.py"},
    "sqlite3.connect": {
        "collection/database/connection.py",
        "collection/database/backup.py",
        "collection/database/salvage.py",
    },
    "zipfile.ZipFile": {"engine/guarded_files.py", "server/researchers/study_export.py"},  # the second writes one
    "tarfile.open": set(),
    "shutil.unpack_archive": set(),
    "gzip.open": set(),
    "np.load": {"engine/guarded_files.py"},
    "np.loadtxt": set(),
    "np.genfromtxt": set(),
    "openpyxl.load_workbook": {"engine/guarded_files.py"},
    "torch.load": set(),
    "pickle.load": {"formats/imports/reader.py"},  # from a temporary file that the reader wrote itself
    "pickle.loads": {"engine/engines.py"},  # from the parent process
    "marshal.loads": set(),
    "joblib.load": set(),
    "shelve.open": set(),
    "eval": set(),
    "exec": set(),
    "os.system": set(),
}
"""Calls that read what others wrote, and the modules that may make them."""


def called_name(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}"
    return ""


@functools.cache
def sources() -> dict[str, str]:
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in ROOT.rglob("*.py")}


@functools.cache
def nodes_of(file: str) -> list[ast.AST]:
    """Return the calls and imports of a module. Parsing is slow, so callers look for words first."""
    kinds = (ast.Call, ast.Import, ast.ImportFrom)
    return [node for node in ast.walk(ast.parse(sources()[file])) if isinstance(node, kinds)]


def find_calls(name: str) -> set[str]:
    return {
        file
        for file, source in sources().items()
        if f"{name}(" in source
        and any(isinstance(node, ast.Call) and called_name(node) == name for node in nodes_of(file))
    }


@pytest.mark.parametrize("name", GUARDED)
def test_only_guarded_readers_call(name: str) -> None:
    assert find_calls(name) == GUARDED[name]


@pytest.mark.parametrize("module", ["pickle", "json", "yaml", "zipfile", "sqlite3", "openpyxl"])
def test_no_reader_is_imported_under_another_name(module: str) -> None:
    """`from json import loads` would hide a call from the test above; exceptions and classes may be imported."""
    readers = {name.rpartition(".")[2] for name in GUARDED}
    hidden = [
        f"{file}: {alias.name}"
        for file, source in sources().items()
        if f"from {module} import" in source or f"import {module} as" in source
        for node in nodes_of(file)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (isinstance(node, ast.ImportFrom) and node.module == module and alias.name in readers)
        or (isinstance(node, ast.Import) and alias.name == module and alias.asname)
    ]
    assert hidden == []


def test_nothing_is_inserted_into_the_path_and_every_child_is_isolated() -> None:
    for file, source in sources().items():
        assert "sys.path.insert" not in source, file
        assert "sys.path.append" not in source, file
        assert ("sys.executable" in source) == (file == "engine/isolation.py"), file


def test_expressions_of_users_are_searched_within_a_time_limit() -> None:
    """Patterns that a protocol or a user writes go through `core/safe_patterns.py`, whose engine has a timeout."""
    own = {"core/safe_patterns.py", "core/protocol.py"}
    users = {
        file
        for file, source in sources().items()
        if re.search(r"\b(re|regex)\.\w+\(\s*\w+\.\w", source)
        for node in nodes_of(file)
        if isinstance(node, ast.Call)
        and called_name(node).partition(".")[0] in ("re", "regex")
        and called_name(node) != "re.escape"
        and node.args
        and isinstance(node.args[0], ast.Attribute)  # a field of a record, such as `rule.quote`
        and node.args[0].attr not in ("pattern",)
    }
    assert users <= own
