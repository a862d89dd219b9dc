"""How labels look, everywhere the same: one function from a protocol to each label's colour, line, flag and key."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from finecomb.core.protocol import Label, Protocol

LineStyle = Literal["solid", "dashed", "dotted"]

DARK_INK, WHITE = "#14161a", "#ffffff"


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in the palette: first group cool and solid, second warm and dashed, third green and dotted."""

    name: str
    line: LineStyle
    light: str
    """Colour on white paper."""
    dark: str
    """Colour on dark paper."""
    light_text: str = WHITE
    """Text on a flag of the light colour; on the dark colour it is always dark ink."""


SLOTS: dict[str, tuple[Slot, ...]] = {
    "A": (
        Slot("A1", "solid", "#204b7f", "#5d92d6"),
        Slot("A2", "solid", "#5163f7", "#929ef6"),
        Slot("A3", "solid", "#6e34ca", "#c5bcff"),
        Slot("A4", "solid", "#b95dcc", "#cf95c8", DARK_INK),
        Slot("A5", "solid", "#ca3472", "#e6578c"),
    ),
    "B": (
        Slot("B1", "dashed", "#802b1a", "#ffb3a8"),
        Slot("B2", "dashed", "#96530b", "#fe9838"),
        Slot("B3", "dashed", "#927e30", "#a99249", DARK_INK),
    ),
    "C": (
        Slot("C1", "dotted", "#24764f", "#2ec47a"),
        Slot("C2", "dotted", "#289795", "#6fe3e0", DARK_INK),
    ),
}
_ALL_SLOTS = tuple(slot for slots in SLOTS.values() for slot in slots)
UNLABELLED_SLOT = Slot("none", "dotted", "#474d55", "#b3b9c1")
"""For marks without a label."""


@dataclass(frozen=True, slots=True)
class LabelStyle:
    """How one label looks."""

    label: str
    title: str
    slot: Slot
    flag: str
    key: str


def label_styles(protocol: Protocol) -> dict[str | None, LabelStyle]:
    """The look of every label of `protocol` by name, and under None that of a mark without a label."""
    flags = _flags(protocol.labels)
    keys = _keys(protocol.labels)
    looks_by_label: dict[str | None, LabelStyle] = {
        label.name: LabelStyle(label.name, label.display_title, slot, flags[label.name], keys[label.name])
        for label, slot in zip(protocol.labels, _slots(protocol), strict=True)
    }
    return looks_by_label | {None: LabelStyle("", "No type", UNLABELLED_SLOT, "??", "")}


def _slots(protocol: Protocol) -> Iterable[Slot]:
    """Slots in the order of the protocol; colours are used again within a group when they run out."""
    if not protocol.groups:
        return [_ALL_SLOTS[index % len(_ALL_SLOTS)] for index in range(len(protocol.labels))]
    families = list(SLOTS.values())
    order = {group.name: families[index % len(families)] for index, group in enumerate(protocol.groups)}
    used: dict[str | None, int] = {}
    result = []
    for label in protocol.labels:
        family = order.get(label.group or "", families[-1])
        index = used.get(label.group, 0)
        used[label.group] = index + 1
        result.append(family[index % len(family)])
    return result


def _flags(labels: Iterable[Label]) -> dict[str, str]:
    """Two letters per label, all different: as the protocol says, else initials of the title or its first letters."""
    labels = list(labels)
    flags = {label.name: label.flag for label in labels if label.flag}
    for label in labels:
        if label.name not in flags:
            flags[label.name] = next(
                flag for flag in _flag_candidates(label.display_title) if flag not in flags.values()
            )
    return flags


def _flag_candidates(title: str) -> Iterable[str]:
    letters = [character for character in title.upper() if character.isalnum()] or ["X"]
    words = [word for word in "".join(c if c.isalnum() else " " for c in title.upper()).split() if word != "AND"]
    if len(words) > 1:
        yield words[0][0] + words[1][0]
    yield "".join(letters[:2])
    yield from (letters[0] + other for other in letters[2:])
    yield from (f"{letters[0]}{number}" for number in itertools.count(2))


def _keys(labels: Iterable[Label]) -> dict[str, str]:
    """One key per label: as the protocol says, else the first free letter of its name, else any free key.

    `a` stays free where a label asks for an antecedent.
    """
    labels = list(labels)
    keys = {label.name: label.key.lower() for label in labels if label.key}
    taken = set(keys.values()) | ({"a"} if any(label.antecedent != "none" for label in labels) else set())
    for label in labels:
        if label.name not in keys:
            wanted = [*(letter for letter in label.name if letter.isalpha()), *"abcdefghijklmnopqrstuvwxyz"]
            keys[label.name] = next((letter for letter in wanted if letter not in taken), "")
            taken.add(keys[label.name])
    return keys


def assign_lanes(extents: Iterable[tuple[int, int]]) -> list[int]:
    """A lane for each interval, none of one lane overlapping: who begins first, then the longer, has the inner lane.

    >>> assign_lanes([(0, 9), (2, 5), (6, 8), (3, 12)])
    [0, 1, 1, 2]
    """
    intervals = list(extents)
    order = sorted(range(len(intervals)), key=lambda index: (intervals[index][0], -intervals[index][1]))
    ends: list[int] = []
    result = [0] * len(intervals)
    for index in order:
        start, end = intervals[index]
        lane = next((lane for lane, free in enumerate(ends) if free <= start), len(ends))
        if lane == len(ends):
            ends.append(0)
        ends[lane] = max(end, start + 1)
        result[index] = lane
    return result
