from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from finecomb.core.palette import (
    DARK_INK,
    SLOTS_BY_FAMILY,
    UNLABELLED_SLOT,
    WHITE,
    LabelStyle,
    PaletteSlot,
    assign_lanes,
    label_styles,
)
from finecomb.core.protocol import Group, Label, Protocol
from finecomb.protocols import load_shipped, names
from finecomb.reporting.marked_text import _STYLE

LIGHT_PAPER, DARK_PAPER = "#ffffff", "#1b1d21"

# The tokens of the design: slot, flag and title of a Scarecrow label; then colour, contrast of its line with the paper
# and of the flag's text with the flag, in light and in dark.
SCARECROW = """
A1 | GU Grammar and usage  | #204b7f 8.8 / 8.8 | #5d92d6 5.3 / 5.6
A2 | OP Off-prompt         | #5163f7 4.7 / 4.7 | #929ef6 6.8 / 7.3
A3 | RD Redundant          | #6e34ca 7.0 / 7.0 | #c5bcff 9.7 / 10.4
A4 | SC Self-contradiction | #b95dcc 3.8 / 4.7 | #cf95c8 7.1 / 7.6
A5 | IN Incoherent         | #ca3472 4.9 / 4.9 | #e6578c 4.9 / 5.3
B1 | BM Bad math           | #802b1a 9.2 / 9.2 | #ffb3a8 9.9 / 10.6
B2 | EN Encyclopedic       | #96530b 5.9 / 5.9 | #fe9838 7.8 / 8.4
B3 | CS Commonsense        | #927e30 4.0 / 4.5 | #a99249 5.5 / 5.9
C1 | NG Needs Google       | #24764f 5.6 / 5.6 | #2ec47a 7.5 / 8.0
C2 | TJ Technical jargon   | #289795 3.5 / 5.1 | #6fe3e0 11.0 / 11.9
""".strip().splitlines()
LINES = {"A": "solid", "B": "dashed", "C": "dotted"}

# Ink and other tokens of the design: light on light paper, dark on dark paper, and the contrast of each.
INKS = [
    ("ink", "#1a1d21", 16.9, "#e4e6e9", 13.5),
    ("ink-2", "#474d55", 8.5, "#b3b9c1", 8.5),
    ("ink-3", "#5f666f", 5.8, "#939aa4", 5.9),
    ("edge", "#838a93", 3.5, "#747b85", 3.9),
    ("alert", "#a3161b", 7.8, "#ff9a90", 8.3),
]
ON_OTHERS = [
    ("ink-3 on wash, light", "#5f666f", "#e6e8ea", 4.7),
    ("ink-3 on wash, dark", "#939aa4", "#2a2d33", 4.9),
    ("ink on sel, light", "#1a1d21", "#d5d9de", 11.9),
    ("ink on sel, dark", "#e4e6e9", "#3c424b", 8.1),
]


def channels(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def luminance(colour: tuple[float, float, float]) -> float:
    """Relative luminance, WCAG 2.2."""
    linear = [value / 255 for value in colour]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in linear]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """Contrast ratio, WCAG 2.2."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def between(one: str, other: str) -> float:
    return contrast(channels(one), channels(other))


def over(
    colour: tuple[float, float, float], share: float, under: tuple[float, float, float]
) -> tuple[float, float, float]:
    """What a tint of `share` looks like on what lies under it, in the whole numbers of a screen."""
    red, green, blue = (round(share * top + (1 - share) * below) for top, below in zip(colour, under, strict=True))
    return red, green, blue


ALL_SLOTS = [slot for slots in SLOTS_BY_FAMILY.values() for slot in slots]
each_slot = pytest.mark.parametrize("slot", ALL_SLOTS, ids=lambda slot: slot.name)


@pytest.mark.parametrize("row", SCARECROW, ids=lambda row: row[:5])
def test_a_scarecrow_label_looks_as_designed_and_every_contrast_is_as_printed(row: str) -> None:
    name, label, light, dark = (cell.strip() for cell in row.split("|"))
    look = next(each for each in label_styles(load_shipped("scarecrow")).values() if each.flag == label[:2])
    slot = look.slot
    assert (slot.name, look.title, slot.line) == (name, label[3:], LINES[name[0]])
    light_colour, light_line, light_flag = re.fullmatch(r"(#\w{6}) ([\d.]+) / ([\d.]+)", light).groups()  # type: ignore[union-attr]
    dark_colour, dark_line, dark_flag = re.fullmatch(r"(#\w{6}) ([\d.]+) / ([\d.]+)", dark).groups()  # type: ignore[union-attr]
    assert (slot.light, slot.dark) == (light_colour, dark_colour)
    assert round(between(slot.light, LIGHT_PAPER), 1) == float(light_line)
    assert round(between(slot.light_text, slot.light), 1) == float(light_flag)
    assert round(between(slot.dark, DARK_PAPER), 1) == float(dark_line)
    assert round(between(DARK_INK, slot.dark), 1) == float(dark_flag)


@pytest.mark.parametrize(("name", "light", "on_light", "dark", "on_dark"), INKS, ids=[row[0] for row in INKS])
def test_an_ink_has_the_printed_contrast(name: str, light: str, on_light: float, dark: str, on_dark: float) -> None:
    assert round(between(light, LIGHT_PAPER), 1) == on_light
    assert round(between(dark, DARK_PAPER), 1) == on_dark


@pytest.mark.parametrize(("name", "ink", "surface", "printed"), ON_OTHERS, ids=[row[0] for row in ON_OTHERS])
def test_ink_on_other_surfaces_has_the_printed_contrast(name: str, ink: str, surface: str, printed: float) -> None:
    assert round(between(ink, surface), 1) == printed


@each_slot
def test_a_line_can_be_seen_and_a_flag_can_be_read(slot: PaletteSlot) -> None:
    assert between(slot.light, LIGHT_PAPER) >= 3
    assert between(slot.dark, DARK_PAPER) >= 3
    assert between(slot.light_text, slot.light) >= 4.5
    assert between(DARK_INK, slot.dark) >= 4.5


def test_flag_text_is_white_where_the_design_says() -> None:
    assert {slot.name for slot in ALL_SLOTS if slot.light_text == WHITE} == set("A1 A2 A3 A5 B1 B2 C1".split())


@pytest.mark.parametrize(
    ("ink", "paper", "theme", "strongest", "single", "stack"),
    [("#1a1d21", LIGHT_PAPER, "light", 0.27, 10.4, 7.4), ("#e4e6e9", DARK_PAPER, "dark", 0.22, 7.8, 4.7)],
)
def test_ink_on_tints_has_the_printed_contrast(
    ink: str, paper: str, theme: str, strongest: float, single: float, stack: float
) -> None:
    colours = [channels(getattr(slot, theme)) for slot in ALL_SLOTS]
    words, sheet = channels(ink), channels(paper)
    singles = [contrast(words, over(colour, strongest, sheet)) for colour in colours]
    assert round(min(singles), 1) == single
    stacks = []
    for three in itertools.product(colours, repeat=3):
        for chosen in range(3):
            surface = sheet
            for index, colour in enumerate(three):
                surface = over(colour, strongest if index == chosen else 0.12, surface)
            stacks.append(contrast(words, surface))
    assert round(min(stacks), 1) == stack


TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def oklab(colour: str) -> NDArray[np.float64]:
    """Ottosson (2020), A perceptual color space for image processing."""
    shares = np.array(channels(colour)) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    cones = np.cbrt(TO_CONES @ linear)
    return np.asarray(TO_LAB @ cones, dtype=np.float64)


@pytest.mark.parametrize(("theme", "printed"), [("light", 0.11), ("dark", 0.09)])
def test_two_labels_are_at_least_as_far_apart_as_printed(theme: str, printed: float) -> None:
    colours = [oklab(getattr(slot, theme)) for slot in ALL_SLOTS]
    nearest = min(float(np.linalg.norm(one - other)) for one, other in itertools.combinations(colours, 2))
    assert round(nearest, 2) == printed


def test_a_mark_without_a_label_looks_like_second_ink() -> None:
    assert (UNLABELLED_SLOT.light, UNLABELLED_SLOT.dark) == ("#474d55", "#b3b9c1")
    assert label_styles(load_shipped("scarecrow"))[None] == LabelStyle("", "No type", UNLABELLED_SLOT, "??", "")


def test_notebooks_use_colours_of_the_design() -> None:
    light = {"#1a1d21", "#fff", "#dcdfe2", "#474d55", "#c6cbd0", "#5f666f", "#eff0f1"}
    dark = {"#e4e6e9", "#1b1d21", "#2e3238", "#b3b9c1", "#3d424a", "#939aa4", "#131518"}
    assert set(re.findall(r"#[0-9a-f]{3,6}\b", _STYLE)) <= light | dark


# --- flags, keys and slots of any protocol ---

label_names = st.from_regex(r"[a-z0-9][a-z0-9._/-]{0,6}", fullmatch=True)


@st.composite
def protocols(draw: st.DrawFn) -> Protocol:
    groups = [Group(name=f"g{number}") for number in range(draw(st.integers(0, 5)))]
    wanted = draw(st.lists(label_names, max_size=40, unique=True))
    labels = [
        Label(
            name=name,
            title=draw(st.sampled_from(["", "Same title", "日本語", "!!", "x"])),
            group=draw(st.sampled_from([None, *(group.name for group in groups)])),
            antecedent=draw(st.sampled_from(["none", "required"])),
        )
        for name in wanted
    ]
    fixed = draw(st.integers(0, min(3, len(labels))))
    labels[:fixed] = [
        label.model_copy(update={"key": key, "flag": flag})
        for label, key, flag in zip(labels, "XyZ", ("ST", "!", "X2"), strict=False)
    ][:fixed]
    return Protocol(name="p", version="1", title="", summary="", groups=tuple(groups), labels=tuple(labels))


@given(protocols())
def test_flags_are_short_and_all_different(protocol: Protocol) -> None:
    flags = [look.flag for look in label_styles(protocol).values()]
    assert len(set(flags)) == len(flags) == len(protocol.labels) + 1
    assert all(1 <= len(flag) <= 3 for flag in flags)


@given(protocols())
def test_keys_are_different_and_leave_a_free_for_antecedents(protocol: Protocol) -> None:
    keys = [look.key for name, look in label_styles(protocol).items() if name is not None and look.key]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 1 and key == key.lower() for key in keys)
    if any(label.antecedent != "none" for label in protocol.labels):
        assert "a" not in keys
    assert len(keys) >= min(25, len(protocol.labels))


@given(protocols())
def test_what_the_protocol_says_is_kept(protocol: Protocol) -> None:
    for label in protocol.labels:
        look = label_styles(protocol)[label.name]
        assert look.title == label.display_title
        assert label.flag in (None, look.flag)
        assert label.key is None or label.key.lower() == look.key


@given(protocols())
def test_labels_of_a_group_share_its_line_and_use_its_colours_before_using_them_again(protocol: Protocol) -> None:
    families = list(SLOTS_BY_FAMILY.values())
    if not protocol.groups:
        own = [label_styles(protocol)[label.name].slot for label in protocol.labels]
        assert own == [ALL_SLOTS[index % 10] for index in range(len(own))]
    for index, group in enumerate(protocol.groups):
        own = [label_styles(protocol)[label.name].slot for label in protocol.labels if label.group == group.name]
        family = families[index % 3]
        assert own == [family[at % len(family)] for at in range(len(own))]


@pytest.mark.parametrize("name", names())
def test_a_look_does_not_depend_on_which_labels_are_used(name: str) -> None:
    protocol = load_shipped(name)
    found = label_styles(protocol)
    assert list(found) == [*(label.name for label in protocol.labels), None]
    assert len({(look.slot.name, look.flag) for look in found.values()}) == len(found)


# --- lanes ---

intervals = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 8)).map(lambda place: (place[0], sum(place))), max_size=12
)


def positions(interval: tuple[int, int]) -> set[int]:
    """The slow definition: what an interval takes up; an omission takes up the place of one character."""
    return set(range(interval[0], max(interval[1], interval[0] + 1)))


@given(intervals)
def test_no_two_marks_of_one_lane_overlap(extents: list[tuple[int, int]]) -> None:
    for (one, own), (other, its) in itertools.combinations(zip(extents, assign_lanes(extents), strict=True), 2):
        assert own != its or not positions(one) & positions(other)


@given(intervals)
def test_there_are_no_more_lanes_than_marks_on_the_busiest_place(extents: list[tuple[int, int]]) -> None:
    busiest = max((sum(at in positions(each) for each in extents) for at in range(30)), default=0)
    assert len(set(assign_lanes(extents))) == busiest
    assert set(assign_lanes(extents)) == set(range(busiest))


@given(intervals)
def test_who_begins_first_then_the_longer_takes_the_inner_lane(extents: list[tuple[int, int]]) -> None:
    found = assign_lanes(extents)
    for one, other in itertools.permutations(range(len(extents)), 2):
        (start, end), (its_start, its_end) = extents[one], extents[other]
        if (start, -end) < (its_start, -its_end) and found[one] > found[other]:
            inner = [at for at in range(len(extents)) if found[at] == found[other] and extents[at][0] <= start]
            assert any(positions(extents[at]) & {start} for at in inner)  # the inner lane was taken then


def test_without_marks_there_are_no_lanes() -> None:
    assert assign_lanes([]) == []
