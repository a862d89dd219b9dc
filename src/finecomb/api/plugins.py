"""Plugins: extensions that installed packages add."""

from __future__ import annotations

import pkgutil
import warnings

from finecomb.api.parameters import public
from finecomb.core.results import Table
from finecomb.plugins import GROUPS, PluginWarning, describe_extension


@public
def list_plugins(*, package: str = "") -> Table:
    """List all extensions with the package that adds them: formats, protocols, statistics, detectors and others.

    Parameters
    ----------
    package : str
        List only extensions of this package (default: Finecomb and all installed plugins).

    Returns
    -------
    Table
        One row per extension: group, name, package, version, what it adds, and the problem if it cannot be used.

    Examples
    --------
    >>> import finecomb as fc
    >>> fc.list_plugins(package="finecomb").find(name="alpha").group
    'coefficients'
    """
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)  # the table has all problems, not only the first of a package
        for group, place in GROUPS.items():
            rows += [
                {
                    "group": group,
                    "name": extension.name,
                    "package": extension.package,
                    "version": extension.version,
                    "what": "" if extension.problem else describe_extension(extension.item),
                    "problem": extension.problem,
                }
                for extension in pkgutil.resolve_name(place).extensions()
                if package in ("", extension.package)
            ]
    problem_count = sum(bool(row["problem"]) for row in rows)
    notes = [f"{problem_count} of {len(rows)} extensions cannot be used; see the column `problem`"]
    return Table(rows, title="Plugins", notes=notes if problem_count else ())
