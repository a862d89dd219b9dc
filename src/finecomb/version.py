"""The version that packaging reads, and its form in signatures with the commit of a development install."""

from __future__ import annotations

import functools
from pathlib import Path

__version__ = "0.1.0"


@functools.cache
def signature_version() -> str:
    """Return the version, followed by the package's own commit unless a release was installed.

    `0.1.0` is a release, `0.1.0+g1a2b3c4` a wheel built from that commit, and `0.1.0+g1a2b3c4.dev` a source checkout
    at that commit, which may contain further edits.
    """
    package = Path(__file__).parent
    try:
        # Written by hatch_build.py into wheels and source distributions, and empty in releases.
        commit, suffix = (package / "_commit.txt").read_text(encoding="ascii").strip(), ""
    except (OSError, ValueError):
        commit, suffix = _checkout_commit(package)[:7], ".dev"
    return f"{__version__}+g{commit}{suffix}" if commit else __version__


def _checkout_commit(package: Path) -> str:
    """Return the commit of the source tree that contains the package, or an empty string if there is none.

    The commit is read when it is needed, because an editable install stays in place when its checkout moves on. Only
    files below Finecomb's own `.git` are read: `git` itself would also find a repository around the user's environment.
    """
    root = package.parents[1]
    try:
        if 'name = "finecomb"' not in (root / "pyproject.toml").read_text(encoding="utf-8"):
            return ""
        git = root / ".git"
        if git.is_file():  # a linked worktree, whose branches are stored in the main repository
            git = root / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        common = git / (git / "commondir").read_text(encoding="utf-8").strip() if (git / "commondir").is_file() else git
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        branch = head.removeprefix("ref: ")
        if (common / branch).is_file():
            return (common / branch).read_text(encoding="utf-8").strip()
        packed = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {branch}")), "")
    except (OSError, ValueError):
        return ""
