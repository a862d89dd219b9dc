"""A release, rehearsed: `python -m release [FOLDER]`.

Builds the source distribution and, from it, the wheel with the pages inside; twice, to see that the bytes are the same;
installs the wheel in an empty environment where no node can be found, and runs the demo there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

from .locks import ROOT, lock_file

PAGES = ("finecomb/server/static/admin.html", "finecomb/server/static/annotate.html")
BEGINNING_OF_2026 = "1767225600"


def build(folder: Path) -> Path:
    """The wheel, with the source distribution beside it, dated by the last commit."""
    stamp = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    moment = stamp.stdout.strip() or BEGINNING_OF_2026
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"SOURCE_DATE_EPOCH": moment})
    return next(folder.glob("*.whl"))


def digest(file: Path) -> str:
    """The SHA-256 of a file's bytes."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def missing_pages(wheel: Path) -> list[str]:
    """Pages that a server needs and the wheel does not have."""
    with zipfile.ZipFile(wheel) as archive:
        return sorted(set(PAGES) - set(archive.namelist()))


def try_out(wheel: Path, folder: Path) -> str:
    """What the demo prints, installed from the wheel where nothing else is."""
    venv.create(folder / "empty", with_pip=True)
    programs = folder / "empty" / "bin"
    pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "--requirement", str(lock_file("demo"))], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    without_node = {"PATH": str(programs), "HOME": str(folder), "COLUMNS": "100"}
    command = [str(programs / "finecomb"), "demo", str(folder / "study")]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=without_node).stdout


def main() -> None:
    """Build, compare, install, run."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    with tempfile.TemporaryDirectory() as name:
        first, second = (build(Path(name) / part) for part in ("first", "second"))
        if digest(first) != digest(second):
            sys.exit("The same source gave two different wheels.")
        if missing_pages(first):
            sys.exit(f"The wheel lacks {', '.join(missing_pages(first))}: run `make frontend`.")
        print(try_out(first, Path(name)))
        shutil.copytree(first.parent, target, dirs_exist_ok=True)
        print(f"{target / first.name}: sha256 {digest(first)}")


if __name__ == "__main__":
    main()
