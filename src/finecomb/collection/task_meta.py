"""What is kept about how a task was given out and what became of it: a typed view of the annotation's `meta`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class TaskMeta:
    """Everything that our own code keeps in the `meta` of an annotation made here."""

    order: int | None = None
    """Which task of its annotator it is, counted from 1."""
    pilot: bool = False
    """Whether it was given out while the study was a pilot."""
    shown_first: str = ""
    """Which text of a pair is shown first: `a` or `b`."""
    attention_check: bool = False
    blind: bool = False
    """Whether machine marks were held back, so that anchoring can be measured."""
    offered: tuple[str, ...] | None = None
    """Ids of the marks that were offered; None where none were to be offered."""
    stratum: str = ""
    """The stratum of the text, where texts are drawn so that an interval shrinks."""
    chance: float | None = None
    """How likely it was, when the task was given out, that this text would be given."""
    inclusion: float | None = None
    """Share of the texts of its stratum that had been drawn by then, this one included."""
    copies: Mapping[str, str] | None = None
    """In a second pass: the mark of the first pass by the id of its copy."""
    kept: tuple[str, ...] = ()
    """Rules of screening in spite of which a researcher keeps the work."""
    adjudication: Mapping[str, Any] | None = None
    """Decisions about disputes by their keys, where the annotation is gold that was decided here."""
    rulings: int | None = None
    """How many decisions were ever made there, those taken back included."""
    no_errors: bool = False
    """Whether its annotator says that there is nothing to mark."""
    clock_back: float | None = None
    """Seconds by which the server's clock stood before the moment when the task was opened, where it was set back;
    the times of the annotation are then not to be trusted."""
    rest: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else the `meta` holds."""

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> TaskMeta:
        """The circumstances in a `meta`; a value of the wrong type counts as not ours, as anybody may write files."""
        ours = {name: meta[name] for name, kind in _TYPES.items() if isinstance(meta.get(name), kind)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in ours.items()
        }
        return cls(**values, rest={name: value for name, value in meta.items() if name not in ours})

    def to_meta(self) -> dict[str, Any]:
        """The `meta` as it is stored: only what differs from its default."""
        values = {name: getattr(self, name) for name in _TYPES if getattr(self, name) != _DEFAULTS[name]}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()} | dict(
            self.rest
        )


_TYPES: Mapping[str, type | tuple[type, ...]] = {
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
"""The types of our names in `meta`, in the order in which they are written."""
_DEFAULTS = {name: getattr(TaskMeta(), name) for name in _TYPES}
