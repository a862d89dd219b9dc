"""Ratios of ours to a peer or a floor, kept in the repository: a later run says what has become worse."""

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
"""How many times a kept ratio may be exceeded: machines differ, and a busy one measures unevenly."""
measured_ratios: dict[str, float] = {}
"""What this run has measured so far: our cost over theirs, so that more is worse."""


def record_ratio(name: str, ours: float, theirs: float) -> float:
    """Our cost over theirs (seconds, megabytes), noted under a name; returns it."""
    measured_ratios[name] = ours / theirs
    return measured_ratios[name]


def read_stored_ratios(file: Path = RATIOS_FILE) -> dict[str, float]:
    """The ratios of earlier runs by name."""
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def store_ratios(ratios: Mapping[str, float], file: Path = RATIOS_FILE) -> None:
    """Write ratios over those of the same names; the others stay."""
    whole = read_stored_ratios(file) | {name: float(f"{ratio:.4g}") for name, ratio in ratios.items()}
    file.write_text(json.dumps(whole, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def describe_regressions(
    ratios: Mapping[str, float], kept: Mapping[str, float], tolerance: float = TOLERANCE
) -> list[str]:
    """A line for each ratio that is worse than the kept one by more than the tolerance; new ones are no regression."""
    return [
        f"{name}: {ratio:.3g} times the peer's cost, {kept[name]:.3g} before"
        for name, ratio in ratios.items()
        if name in kept and ratio > tolerance * kept[name]
    ]


def describe_conditions(*packages: str) -> str:
    """A line about when and where something was measured: date, versions, machine, load."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    load = f", a load of {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    machine = f"{os.cpu_count()} cores, {platform.machine()}{load}"
    day = f"{datetime.now(UTC):%d %B %Y}".lstrip("0")
    return f"{day}; Python {platform.python_version()}{f', {versions}' if versions else ''}; {machine}."
