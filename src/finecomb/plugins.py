"""Registries of extensions, and the entry points by which installed packages add to them.

A package adds a format with two lines of its `pyproject.toml`::

    [project.entry-points."finecomb.formats"]
    lines = "finecomb_example.lines:FORMAT"

Built-in extensions are listed in the table of their registry in the same form, as name and `module:object`. They are
not entry points, because package metadata is not updated when a source tree changes, and because reading it takes about
20 ms. Commands that use only built-in extensions avoid this delay.
"""

from __future__ import annotations

import inspect
import pkgutil
import sys
import warnings
from collections.abc import Callable, Container, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from finecomb.version import __version__

T = TypeVar("T")

GROUPS: dict[str, str] = {
    "formats": "finecomb.formats:FORMATS",
    "protocols": "finecomb.protocols:PROTOCOLS",
    "import_maps": "finecomb.formats.imports.import_map:IMPORT_MAPS",
    "measures": "finecomb.statistics.measures.annotation_measures:ANNOTATION_MEASURES",
    "statistics": "finecomb.statistics.registry:STATISTICS",
    "coefficients": "finecomb.statistics.agreement.registry:AGREEMENT_MEASURES",
    "detectors": "finecomb.annotators.detectors:DETECTORS",
    "critics": "finecomb.corpora.critics.storage:CRITICS",
    "providers": "finecomb.annotators.llm.providers:PROVIDERS",
    "figures": "finecomb.reporting.site.report_content:FIGURES",
}
"""Location of the registry of each group of extensions. The entry points of a group are called `finecomb.GROUP`."""


class PluginWarning(UserWarning):
    """Warning that an extension of an installed package cannot be used."""


@dataclass(frozen=True, slots=True)
class Extension:
    """One extension: its name, the package that adds it, and the object or the reason why it cannot be used."""

    name: str
    package: str
    version: str
    item: object = None
    problem: str = ""


class Registry(MutableMapping[str, T], Generic[T]):
    """Extensions of one group by name: the built-in ones, then those of installed packages.

    Built-in extensions given as `module:object` are imported when they are used. Entry points are read when a name is
    not built in, or when all names are needed.
    """

    def __init__(
        self,
        group: str,
        kind: type,
        built_in: Mapping[str, T | str],
        load: Callable[[str], T] = pkgutil.resolve_name,
        taken: Container[str] = (),
        holds_classes: bool = False,
    ) -> None:
        """Create a registry of objects of type `kind`, or of its subclasses if `holds_classes`.

        `load` imports a built-in extension. Names in `taken` belong to another registry.
        """
        self.group, self._kind, self._load, self._taken = group, kind, load, taken
        self._holds_classes = holds_classes
        self.built_in = tuple(built_in)
        self._items: dict[str, T | str] = dict(built_in)
        self._plugins: list[Extension] | None = None

    def __getitem__(self, name: str) -> T:
        if name not in self._items:
            self.plugins()
        item = self._items[name]
        if isinstance(item, str):
            item = self._items[name] = self._load(item)
        return item

    def __setitem__(self, name: str, item: T) -> None:
        self._items[name] = item

    def __delitem__(self, name: str) -> None:
        del self._items[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._items:
            self.plugins()
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        self.plugins()
        return iter(self._items)

    def __len__(self) -> int:
        self.plugins()
        return len(self._items)

    def extensions(self) -> list[Extension]:
        """Return all extensions, built-in ones first, including those that cannot be used."""
        return [*(Extension(name, "finecomb", __version__, self[name]) for name in self.built_in), *self.plugins()]

    def plugins(self) -> list[Extension]:
        """Return the extensions of installed packages, which are loaded on the first call."""
        if self._plugins is not None:
            return self._plugins
        from importlib.metadata import distributions  # imported here, because it slows down start-up

        self._plugins = []  # set first, because a plugin that is imported may use this registry
        # Metadata in the working directory is ignored, since nothing there may run as code without consent.
        places = [place for place in sys.path if place and Path(place).resolve() != Path.cwd()]
        rows = {
            (package.name.lower(), entry.name): (package.name, package.version, entry)
            for package in reversed(list(distributions(path=places)))  # Python imports the first of two versions
            for entry in package.entry_points
            if entry.group == f"finecomb.{self.group}"
        }
        for _, (package, version, entry) in sorted(rows.items(), key=lambda row: row[0]):
            item: Any = None
            if entry.name in self._items or entry.name in self._taken:
                owners = {plugin.name: plugin.package for plugin in self._plugins if not plugin.problem}
                owner = owners.get(entry.name, "finecomb")
                problem = f"the name {entry.name!r} is already used by {owner}; rename the entry point"
            else:
                try:
                    item = entry.load()
                    problem = self._find_problem(entry.name, item)
                except Exception as error:  # whatever error a plugin raises, other commands must work
                    problem = f"{type(error).__name__}: {error}".partition("\n")[0]
            self._plugins.append(Extension(entry.name, package, version, None if problem else item, problem))
            if not problem:
                self._items[entry.name] = item
            elif package not in _REPORTED_PACKAGES:
                _REPORTED_PACKAGES.add(package)
                where = f"entry point {entry.name!r} of finecomb.{self.group}"
                warnings.warn(
                    f"plugin {package} {version}: {where} cannot be used: {problem}", PluginWarning, stacklevel=3
                )
        return self._plugins

    def _find_problem(self, name: str, item: object) -> str:
        """Return the reason why a plugin's object does not fit this registry, or an empty string."""
        if self._holds_classes and not (inspect.isclass(item) and issubclass(item, self._kind)):
            return f"expected a subclass of {self._kind.__name__}, found {item!r}"
        if not self._holds_classes and not isinstance(item, self._kind):
            return f"expected an object of type {self._kind.__name__}, found {item!r}"
        own_name = getattr(item, "name", name)
        return "" if own_name == name else f"its object is named {own_name!r}; use one name for both"


_REPORTED_PACKAGES: set[str] = set()
"""Packages already named in a warning, because a broken package would otherwise cause one warning per entry point."""


def describe_extension(item: object) -> str:
    """Return a one-line description of an extension: its gloss, title or summary, or the start of its docstring."""
    for attribute in ("gloss", "title", "summary"):
        if isinstance(text := getattr(item, attribute, None), str) and text:
            return text
    return (inspect.getdoc(item) or "").partition("\n")[0].rstrip(".")
