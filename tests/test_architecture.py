"""The map of the code names only what is there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.docs_tables import EXTENSIONS, Extension

ROOT = Path(__file__).parent.parent
MAP = ROOT / "docs" / "architecture.md"
PATH = re.compile(r"`((?:src|tests|docs|frontend)/[^`\s]*)`")
MODULE = re.compile(r"`(\w+\.(?:py|ts|svelte))`")


@pytest.mark.parametrize("page", [MAP, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_every_path_that_the_map_names_is_there(page: Path) -> None:
    named = PATH.findall(page.read_text(encoding="utf-8"))
    assert named
    paths = [ROOT / (Path(name).parent if "NAME" in name else name) for name in named]
    assert [str(path) for path in paths if not path.exists()] == []


@pytest.mark.parametrize("page", [MAP, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_every_module_that_the_map_names_without_its_folder_is_there(page: Path) -> None:
    """CONTRIBUTING named `reading.py` after it had become another module."""
    names = set(MODULE.findall(page.read_text(encoding="utf-8"))) - {"test_MODULE.py"}
    assert [name for name in names if not list((ROOT / "src").rglob(name)) + list((ROOT / "tests").rglob(name))] == []


@pytest.mark.parametrize("row", EXTENSIONS, ids=lambda row: str(row.what))
def test_every_registry_that_the_map_names_is_there(row: Extension) -> None:
    module, _, name = row.registry.partition(":")
    registry = getattr(importlib.import_module(f"finecomb.{module}"), name)
    assert len(
        registry() if callable(registry) and not hasattr(registry, "routes") else getattr(registry, "routes", registry)
    )
    assert (ROOT / row.folder).is_dir()
    assert (ROOT / row.tests).is_dir()


@pytest.mark.parametrize("row", EXTENSIONS, ids=lambda row: str(row.what))
def test_every_extension_has_its_recipe(row: Extension) -> None:
    heading = row.what.partition(":")[0]
    assert f"\n### {heading[0].upper()}{heading[1:]}\n" in MAP.read_text(encoding="utf-8")
