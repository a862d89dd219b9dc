"""Hooks of the core: functions from further up, set by `finecomb`. Light, so that setting one costs nothing."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from finecomb.core.findings import Findings
    from finecomb.core.study import Study

HTML_HOOK: list[Callable[[Study], str]] = [lambda study: html.escape(repr(study))]
"""What shows a study in a notebook: one function, since pages are made further up."""
FINDINGS_HOOKS: dict[str, Callable[[Findings], Any]] = {"html": lambda findings: html.escape(repr(list(findings)))}
"""What shows findings in a notebook: `html` as a page, `chart` as a chart."""
