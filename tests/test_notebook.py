"""The names of `import finecomb as fc`, which are imported when they are first used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import finecomb as fc

SOURCE = ast.parse(Path(fc.__file__).read_text(encoding="utf-8"))


def imports() -> dict[str, str]:
    """What the type checker reads: name -> module, or module:name where it is called differently there."""
    (block,) = (node for node in SOURCE.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {
        alias.asname or alias.name: f"{node.module}:{alias.name}" if alias.asname else str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_the_type_checker_and_the_notebook_import_the_same_names() -> None:
    assert imports() == {name: f"finecomb.{home}" for name, home in vars(fc)["_HOMES"].items()}


@pytest.mark.parametrize("name", dir(fc))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(fc, name) is not None
    assert name in dir(fc)


def test_packages_are_reached_through_finecomb() -> None:
    code = "import finecomb as fc; fc.measure; print(fc.statistics.selection.view.View.__name__, fc.formats.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "View finecomb.formats\n"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(fc, "nothing")  # noqa: B009 (a type checker knows that it is not there)
