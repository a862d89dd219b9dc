"""Cost ratios of Finecomb to a peer or a floor, stored in the repository to detect regressions."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

RATIOS_FILE = Path(__file__).parent / "ratios.json"
TOLERANCE = 1.5
"""Factor by which a stored ratio may be exceeded, since machines differ and load adds noise."""
measured_ratios: dict[str, float] = {}
"""Ratios measured in this run: our cost divided by the peer's, so higher is worse."""


def record_ratio(name: str, ours: float, theirs: float) -> float:
    """Record our cost divided by the peer's (seconds, megabytes) under a name, and return it."""
    measured_ratios[name] = ours / theirs
    return measured_ratios[name]


def read_stored_ratios(file: Path = RATIOS_FILE) -> dict[str, float]:
    """Return the stored ratios of earlier runs by name."""
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def store_ratios(ratios: Mapping[str, float], file: Path = RATIOS_FILE) -> None:
    """Store ratios, replacing those of the same names and keeping the others."""
    whole = read_stored_ratios(file) | {name: float(f"{ratio:.4g}") for name, ratio in ratios.items()}
    file.write_text(json.dumps(whole, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def describe_regressions(
    ratios: Mapping[str, float], kept: Mapping[str, float], tolerance: float = TOLERANCE
) -> list[str]:
    """Describe each ratio that exceeds its stored value by more than the tolerance; new ratios do not count."""
    return [
        f"{name}: {ratio:.3g} times the peer's cost, {kept[name]:.3g} before"
        for name, ratio in ratios.items()
        if name in kept and ratio > tolerance * kept[name]
    ]


def describe_conditions(*packages: str) -> str:
    """Return a line with the date, versions, machine and load of a measurement."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    machine = f"{os.cpu_count()} cores, {platform.machine()}{load}"
    day = f"{datetime.now(UTC):%d %B %Y}".lstrip("0")
    return f"{day}; Python {platform.python_version()}{f', {versions}' if versions else ''}; {machine}."
