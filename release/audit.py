"""Known faults of what is installed: `python -m release.audit` asks the public list of advisories about every pin.

Where the list cannot be reached, it says how many packages were not looked up instead of calling them sound.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .locks import EXTRAS, lock_file


def answers(purpose: str) -> list[dict[str, Any]]:
    """What `pip-audit` says of each package of a lock file."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--format", "json"]
    result = subprocess.run([*command, "--requirement", lock_file(purpose)], capture_output=True, text=True)
    try:
        packages: list[dict[str, Any]] = json.loads(result.stdout)["dependencies"]
    except (ValueError, KeyError):
        sys.exit(f"pip-audit gave no list: {result.stderr.strip() or result.stdout.strip()}")
    return packages


def faults(packages: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each package with an advisory against it."""
    lines = []
    for package in packages:
        advisories = [advisory["id"] for advisory in package.get("vulns", ())]
        if advisories:
            lines.append(f"{package['name']} {package['version']}: {', '.join(advisories)}")
    return lines


def summary(purpose: str, packages: Sequence[Mapping[str, Any]]) -> str:
    """How many packages were looked up, and how many could not be."""
    skipped = sum("skip_reason" in package for package in packages)
    words = f"locks/{purpose}.txt: {len(packages) - skipped} of {len(packages)} packages looked up"
    return f"{words}; the list of advisories did not answer for {skipped}" if skipped else words


def main() -> None:
    """Ask about all lock files; end with 1 where an advisory stands against a pin."""
    problems: list[str] = []
    for purpose in EXTRAS:
        packages = answers(purpose)
        print(summary(purpose, packages))
        problems += faults(packages)
    sys.exit("\n".join(sorted(set(problems))) if problems else 0)


if __name__ == "__main__":
    main()
