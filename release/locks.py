"""Lock files: every package that tests, demo and server install, with its version and the hashes of its files.

`python -m release.locks` writes them anew from `pyproject.toml`; they name no registry, so that any mirror serves.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "locks"
EXTRAS = {"test": ("server", "dev"), "demo": ("server", "local"), "server": ("llm", "postgres", "server")}
"""The extras of `pyproject.toml` that each lock file covers."""
OLDEST_PYTHON = "3.11"

PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)")


@dataclass(frozen=True)
class Pin:
    """One version of one package, and the files it may come from."""

    name: str
    version: str
    hashes: tuple[str, ...]


def lock_file(purpose: str) -> Path:
    """The lock file of `test`, `demo` or `server`."""
    return FOLDER / f"{purpose}.txt"


def pins(text: str) -> Iterator[Pin]:
    """The packages that a lock file names."""
    for entry in re.split(r"\n(?=\S)", text):
        match = PIN.match(entry)
        if match:
            yield Pin(match["name"], match["version"], tuple(re.findall(r"--hash=(\S+)", entry)))


def compile_lock(purpose: str) -> None:
    """Resolve the extras for every platform and Python at once, and write their pins."""
    extras = [word for extra in EXTRAS[purpose] for word in ("--extra", extra)]
    options = ["--universal", "--python-version", OLDEST_PYTHON, "--generate-hashes"]
    quiet = ["--quiet", "--no-emit-index-url", "--no-header", "--no-annotate"]
    command = [
        "uv",
        "pip",
        "compile",
        *quiet,
        *options,
        *extras,
        "pyproject.toml",
        "--output-file",
        str(lock_file(purpose)),
    ]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"})


def main() -> None:
    """Write all lock files."""
    FOLDER.mkdir(exist_ok=True)
    for purpose in EXTRAS:
        compile_lock(purpose)
        print(
            f"{lock_file(purpose).relative_to(ROOT)}: {sum(1 for _ in pins(lock_file(purpose).read_text()))} packages"
        )


if __name__ == "__main__":
    main()
