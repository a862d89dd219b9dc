"""Typed view of an annotation's `meta`: how the task was assigned, and decisions about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class TaskMeta:
    """All values that Finecomb stores in the `meta` of an annotation made on the server."""

    order: int | None = None
    """Position among the annotator's tasks, counted from 1."""
    pilot: bool = False
    """True when the task was assigned in a pilot."""
    shown_first: str = ""
    """Which text of a pair is shown first: `a` or `b`."""
    attention_check: bool = False
    blind: bool = False
    """True when machine marks were hidden to measure the anchoring effect."""
    offered: tuple[str, ...] | None = None
    """IDs of the marks offered to the annotator; None when the task offers no marks."""
    stratum: str = ""
    """Stratum of the text in adaptive allocation."""
    chance: float | None = None
    """Probability with which this text was drawn when the task was assigned."""
    inclusion: float | None = None
    """Share of the texts in the stratum that had been drawn by then, including this one."""
    copies: Mapping[str, str] | None = None
    """ID of the first-pass mark from which each mark of a second pass was copied, by ID of the copy."""
    kept: tuple[str, ...] = ()
    """Screening rules despite which a researcher has kept the annotation."""
    adjudication: Mapping[str, Any] | None = None
    """Adjudication decisions by dispute key, for gold adjudicated in this study."""
    rulings: int | None = None
    """Number of adjudication decisions ever made, including undone ones."""
    no_errors: bool = False
    """True when the annotator confirmed that the text has no errors."""
    clock_back: float | None = None
    """Seconds by which the server's clock was set back while the task was open, which makes its times unreliable."""
    rest: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of the `meta`, which are kept unchanged."""

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> TaskMeta:
        """Parse a `meta` mapping. Values of the wrong type count as other keys, because files may contain anything."""
        ours = {name: meta[name] for name, kind in _TYPE_BY_FIELD.items() if isinstance(meta.get(name), kind)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in ours.items()
        }
        return cls(**values, rest={name: value for name, value in meta.items() if name not in ours})

    def to_meta(self) -> dict[str, Any]:
        """Return the `meta` mapping, without keys that have their default value."""
        values = {
            name: getattr(self, name) for name in _TYPE_BY_FIELD if getattr(self, name) != _DEFAULT_BY_FIELD[name]
        }
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()} | dict(
            self.rest
        )


_TYPE_BY_FIELD: Mapping[str, type | tuple[type, ...]] = {
    "order": int,
    "pilot": bool,
    "shown_first": str,
    "attention_check": bool,
    "blind": bool,
    "offered": (list, tuple),
    "stratum": str,
    "chance": (int, float),
    "inclusion": (int, float),
    "copies": Mapping,
    "kept": (list, tuple),
    "adjudication": Mapping,
    "rulings": int,
    "no_errors": bool,
    "clock_back": (int, float),
}
"""Type of each key of `meta`, in the order in which the keys are written."""
_DEFAULT_BY_FIELD = {name: getattr(TaskMeta(), name) for name in _TYPE_BY_FIELD}
