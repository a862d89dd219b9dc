"""Appearance of labels: colour, line style, flag and key of each label of a protocol, the same in all clients."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from finecomb.core.protocol import Label, Protocol

LineStyle = Literal["solid", "dashed", "dotted"]

DARK_INK, WHITE = "#14161a", "#ffffff"


@dataclass(frozen=True, slots=True)
class PaletteSlot:
    """One style of the palette. Its family is cool and solid, warm and dashed, or green and dotted."""

    name: str
    line: LineStyle
    light: str
    """Colour in the light theme."""
    dark: str
    """Colour in the dark theme."""
    light_text: str = WHITE
    """Text colour on a flag in the light theme; in the dark theme it is always `DARK_INK`."""


SLOTS_BY_FAMILY: dict[str, tuple[PaletteSlot, ...]] = {
    "A": (
        PaletteSlot("A1", "solid", "#204b7f", "#5d92d6"),
        PaletteSlot("A2", "solid", "#5163f7", "#929ef6"),
        PaletteSlot("A3", "solid", "#6e34ca", "#c5bcff"),
        PaletteSlot("A4", "solid", "#b95dcc", "#cf95c8", DARK_INK),
        PaletteSlot("A5", "solid", "#ca3472", "#e6578c"),
    ),
    "B": (
        PaletteSlot("B1", "dashed", "#802b1a", "#ffb3a8"),
        PaletteSlot("B2", "dashed", "#96530b", "#fe9838"),
        PaletteSlot("B3", "dashed", "#927e30", "#a99249", DARK_INK),
    ),
    "C": (
        PaletteSlot("C1", "dotted", "#24764f", "#2ec47a"),
        PaletteSlot("C2", "dotted", "#289795", "#6fe3e0", DARK_INK),
    ),
}
_ALL_SLOTS = tuple(slot for slots in SLOTS_BY_FAMILY.values() for slot in slots)
UNLABELLED_SLOT = PaletteSlot("none", "dotted", "#474d55", "#b3b9c1")
"""Style of marks without a label."""


@dataclass(frozen=True, slots=True)
class LabelStyle:
    """Appearance of one label."""

    label: str
    title: str
    slot: PaletteSlot
    flag: str
    key: str


def label_styles(protocol: Protocol) -> dict[str | None, LabelStyle]:
    """Return the style of every label of `protocol` by name; the key None is for marks without a label."""
    # Assign a distinct two-letter flag to each label: the protocol's, or initials or first letters of the title
    labels = protocol.labels
    flags = {label.name: label.flag for label in labels if label.flag}
    for label in labels:
        if label.name not in flags:
            title = label.display_title.upper()
            letters = [character for character in title if character.isalnum()] or ["X"]
            words = [word for word in "".join(c if c.isalnum() else " " for c in title).split() if word != "AND"]
            candidates = itertools.chain(
                [words[0][0] + words[1][0]] if len(words) > 1 else [],
                ["".join(letters[:2])],
                (letters[0] + other for other in letters[2:]),
                (f"{letters[0]}{number}" for number in itertools.count(2)),
            )
            flags[label.name] = next(flag for flag in candidates if flag not in flags.values())
    keys = _assign_keys(protocol.labels)
    looks_by_label: dict[str | None, LabelStyle] = {
        label.name: LabelStyle(label.name, label.display_title, slot, flags[label.name], keys[label.name])
        for label, slot in zip(protocol.labels, _assign_slots(protocol), strict=True)
    }
    return looks_by_label | {None: LabelStyle("", "No type", UNLABELLED_SLOT, "??", "")}


def _assign_slots(protocol: Protocol) -> Iterable[PaletteSlot]:
    """Assign a palette slot to each label in the protocol's order; slots of a family are reused when they run out."""
    if not protocol.groups:
        return [_ALL_SLOTS[index % len(_ALL_SLOTS)] for index in range(len(protocol.labels))]
    families = list(SLOTS_BY_FAMILY.values())
    order = {group.name: families[index % len(families)] for index, group in enumerate(protocol.groups)}
    used: dict[str | None, int] = {}
    result = []
    for label in protocol.labels:
        family = order.get(label.group or "", families[-1])
        index = used.get(label.group, 0)
        used[label.group] = index + 1
        result.append(family[index % len(family)])
    return result


def _assign_keys(labels: Iterable[Label]) -> dict[str, str]:
    """Assign a key to each label: the protocol's, or the first free letter of its name, or any free key.

    `a` stays free if a label asks for an antecedent.
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
    """Assign a lane to each interval so that no lane has overlaps; earlier, then longer intervals get the inner lanes.

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
