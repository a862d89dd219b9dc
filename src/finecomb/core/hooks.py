"""Hooks of the core: functions from further up, set by `finecomb`. Light, so that setting one costs nothing."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from finecomb.core.study import Study

HTML_HOOK: list[Callable[[Study], str]] = [lambda study: html.escape(repr(study))]
"""What shows a study in a notebook: one function, since pages are made further up."""
