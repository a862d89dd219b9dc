"""Known faults and licences of what is installed: `python -m release.audit`.

Licences are read from the packages themselves, without a connection. The public list of advisories is asked about every
pin. Where it cannot be reached, or what asks it is not installed, it is said how many packages were not looked up: they
are not called sound.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .licences import closure, not_permissive
from .locks import EXTRAS, lock_file, pins

SHIPPED = frozenset({"server", "llm"})
"""The extras whose licences must be permissive, beside the default install."""


def answers(purpose: str) -> list[dict[str, Any]]:
    """What `pip-audit` says of each package of a lock file; where it is not installed, that nothing was looked up."""
    if importlib.util.find_spec("pip_audit") is None:
        text = lock_file(purpose).read_text(encoding="utf-8")
        return [{"name": pin.name, "skip_reason": "pip-audit is not installed"} for pin in pins(text)]
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
    return f"{words}; {skipped} were not: {_reasons(packages)}" if skipped else words


def _reasons(packages: Sequence[Mapping[str, Any]]) -> str:
    """Why packages were not looked up: a reason for all, or that the list did not answer."""
    reasons = {str(package["skip_reason"]) for package in packages if "skip_reason" in package}
    return next(iter(reasons)) if len(reasons) == 1 else "the list of advisories did not answer"


def licence_faults() -> list[str]:
    """A line for each package of the default install and the server whose licence asks for more than a notice."""
    return [f"{name}: licence {words}" for name, words in not_permissive(closure("finecomb", SHIPPED)).items()]


def main() -> None:
    """Read licences, ask about all lock files; end with 1 where a licence or an advisory stands against a package."""
    print(f"licences: {len(closure('finecomb', SHIPPED))} packages of the default install and the server read")
    problems = licence_faults()
    for purpose in EXTRAS:
        packages = answers(purpose)
        print(summary(purpose, packages))
        problems += faults(packages)
    sys.exit("\n".join(sorted(set(problems))) if problems else 0)


if __name__ == "__main__":
    main()
