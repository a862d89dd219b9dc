"""Licences of what a default install brings along, read from the packages themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

PERMISSIVE = re.compile(
    r"\b(MIT|MIT-0|BSD|0BSD|Apache|ISC|PSF|Python|Zlib|HPND|Unlicense|CNRI|CC0|MPL)\b", re.IGNORECASE
)
"""Licences that ask for no more than their notice; MPL stays within its own files."""
COPYLEFT = re.compile(r"\b[AL]?GPL|General Public Licen[cs]e", re.IGNORECASE)


def requirements(package: Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    """What a package needs on this machine with these extras."""
    for line in package.requires or ():
        requirement = Requirement(line)
        environments = [{"extra": extra} for extra in (*extras, "")]
        if requirement.marker is None or any(requirement.marker.evaluate(environment) for environment in environments):
            yield requirement


def closure(name: str, extras: frozenset[str] = frozenset()) -> dict[str, Distribution]:
    """The package and all that it brings along, by name."""
    packages: dict[str, Distribution] = {}
    waiting = [(name, extras)]
    while waiting:
        current, wanted = waiting.pop()
        if current in packages and not wanted:
            continue
        try:
            package = distribution(current)
        except PackageNotFoundError:  # a marker of another platform that `packaging` cannot judge
            continue
        packages[current] = package
        needs = requirements(package, wanted)
        waiting += [(need.name.lower(), frozenset(need.extras)) for need in needs if need.name.lower() not in packages]
    return packages


def licence(package: Distribution) -> str:
    """The licence in the package's own words: its expression, else its classifiers, else the first line of its text."""
    fields = package.metadata
    expression, text = (next(iter(fields.get_all(field) or ()), "") for field in ("License-Expression", "License"))
    classifiers = [
        line.rsplit("::", 1)[-1].strip() for line in fields.get_all("Classifier") or () if "License ::" in line
    ]
    return expression or ", ".join(classifiers) or text.strip().split("\n")[0] or "unknown"


def not_permissive(packages: dict[str, Distribution]) -> dict[str, str]:
    """The packages whose licence asks for more than a notice, or does not say, with their licences."""
    licences = {name: licence(package) for name, package in packages.items()}
    return {name: words for name, words in licences.items() if COPYLEFT.search(words) or not PERMISSIVE.search(words)}
