"""Your own code, named as `module:object`: imported if it is installed, or if its file or folder was allowed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from finecomb.core.errors import ParameterError, param


class _AllowedCodeFinder(MetaPathFinder):
    """Finder of modules in the files and folders that the user allowed, after all installed modules."""

    def __init__(self) -> None:
        self.places: list[Path] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a top-level module in an allowed place, or None."""
        for place in self.places if path is None else ():
            if place.is_file():
                spec = importlib.util.spec_from_file_location(fullname, place) if place.stem == fullname else None
            else:
                spec = PathFinder.find_spec(fullname, [str(place)])
            if spec is not None and spec.loader is not None:  # a plain folder is not a module
                return spec
        return None


_FINDER = _AllowedCodeFinder()


def allow_user_code(paths: Iterable[str | PathLike[str]]) -> None:
    """Let this process and its worker processes import modules from the given Python files and folders.

    Installed modules come first, so that nothing in an allowed folder replaces one. Nothing is added to `sys.path`.
    """
    for path in map(Path, paths):
        place = path.resolve()
        if not (place.is_dir() or (place.is_file() and place.suffix == ".py")):
            found = "does not exist" if not place.exists() else "is neither a folder nor a .py file"
            raise ParameterError(f"{param('allow_code', path)}: {path} {found}", parameter="allow_code")
        if place not in _FINDER.places:
            _FINDER.places.append(place)
    if _FINDER.places and _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)


def allowed_code_paths() -> tuple[Path, ...]:
    """Return the files and folders that were allowed in this process."""
    return tuple(_FINDER.places)


def allowed_modules() -> list[ModuleType]:
    """Return the loaded modules whose files are in an allowed place."""
    places = _FINDER.places
    return [
        module
        for module in list(sys.modules.values())
        if (file := getattr(module, "__file__", None)) and any(Path(file).is_relative_to(place) for place in places)
    ]


def import_user_code(module: str, name: str, parameter: str, value: str) -> Any:
    """Import `name` from a module; `parameter` and `value` say where the user named it."""
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        file = f"{str(error.name).partition('.')[0]}.py"
        raise ParameterError(
            f"{param(parameter, value)}: module {error.name!r} is not installed; if it is your own file, pass "
            f"{param('allow_code', file)}",
            parameter=parameter,
        ) from None
    except (AttributeError, ImportError, ValueError) as error:
        raise ParameterError(f"{param(parameter, value)}: {error}", parameter=parameter) from None
