"""What a report is made of: figures as rows of dots with intervals, panels and bars, before anything is drawn."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from finecomb.core.estimate import Estimate
from finecomb.core.palette import LabelStyle

TableRow = Mapping[str, object]


def format_count(number: int, thing: str, plural: str = "") -> str:
    """A number with its word.

    >>> format_count(1, "text"), format_count(1200, "text"), format_count(2, "person", "people")
    ('1 text', '1,200 texts', '2 people')
    """
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


@dataclass(frozen=True, slots=True)
class Axis:
    """The one axis of a figure: its range, its ticks and how numbers on it are written."""

    low: float
    high: float
    ticks: tuple[float, ...]
    digits: int = 1
    percent: bool = False
    """Whether values are shares that are written as per cent."""
    reference: float | None = None
    """Where a dashed line stands."""
    reference_name: str = ""

    def position(self, value: float, width: float, inset: float = 6.0) -> float:
        """Where a value lies on a plot of `width`."""
        span = (self.high - self.low) or 1.0
        inside = min(max(value, self.low), self.high)
        return inset + (inside - self.low) / span * (width - 2 * inset)

    def format_value(self, value: float) -> str:
        """A value in the decimals of its column; a dash where it is undefined."""
        if not math.isfinite(value):
            return "–"
        shown = round(100 * value if self.percent else value, self.digits) or 0.0  # never −0.00
        return f"{shown:.{self.digits}f}".replace("-", "−")

    def format_tick(self, value: float) -> str:
        """A value beside the axis, without needless zeros."""
        shown = 100 * value if self.percent else value
        return f"{shown:g}".replace("-", "−")


def build_axis(
    estimates: Sequence[Estimate],
    *,
    zero: bool = True,
    percent: bool = False,
    bounds: tuple[float, float] | None = None,
) -> Axis:
    """An axis with three to six ticks on round numbers that holds every interval; rates start at 0.

    >>> from finecomb.core.estimate import Signature
    >>> build_axis([Estimate(2.4, 2.0, 4.2, Signature(()))]).ticks
    (0.0, 1.0, 2.0, 3.0, 4.0)
    """
    ends = [end for one in estimates for end in (one.value, one.low, one.high) if math.isfinite(end)]
    low = min([*ends, 0.0]) if zero else min(ends, default=0.0)
    high = max([*ends, 0.0]) if ends else 1.0
    if bounds:
        low, high = bounds
    step = _round_step((high - low) or 1.0)
    first = math.floor(low / step + 1e-9) * step if low < 0 or not zero else 0.0
    count = (
        max(1, math.ceil((high - first) / step - 1e-9)) if bounds else max(1, math.ceil((high - first) / step - 0.35))
    )
    ticks = tuple(round(first + step * number, 10) for number in range(count + 1))
    shown = step * (100 if percent else 1)
    return Axis(first, max(high, ticks[-1]), ticks, digits=_axis_digits(ends, percent, shown), percent=percent)


def _round_step(span: float) -> float:
    """A step of 1, 2 or 5 times a power of ten that gives three to six ticks."""
    power: float = 10.0 ** math.floor(math.log10(span / 4))
    return next(factor * power for factor in (1, 2, 5, 10) if span / (factor * power) <= 5.01)


def _axis_digits(ends: Sequence[float], percent: bool, step: float) -> int:
    """No more decimals than the axis deserves: one more than its ticks have."""
    return max(0, min(3, 1 - math.floor(math.log10(step)))) if ends else 1


@dataclass(frozen=True, slots=True)
class DotRow:
    """One line of a figure: a name, an estimate, and what is said beside it."""

    name: str
    estimate: Estimate
    note: str = ""
    look: LabelStyle | None = None
    """The look of a label, where the row is one."""
    teeth: tuple[float, ...] = ()
    """Values of single texts, drawn below the interval."""
    open: bool = False
    """Whether it is what the page compares with, not what it is about."""
    link: str = ""
    second: Estimate | None = None
    """A further estimate on an axis of its own, in the next column."""
    short: str = ""
    """A shorter name, for narrow columns."""
    nothing: str = ""
    """What stands in place of the dot where nothing was found: that is not 0."""


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """One figure with its caption, signature and table."""

    id: str
    title: str
    caption: str
    table: tuple[TableRow, ...]
    signature: str
    command: str = ""
    """The command that makes its numbers again."""
    empty: str = ""
    """One sentence in place of the plot where there is nothing to draw."""
    behind: str = ""
    """The page with the texts behind it."""

    @property
    def signature_hash(self) -> str:
        """Eight letters of the signature, to be named by."""
        letters = hashlib.sha256(self.signature.encode()).hexdigest()
        return f"{letters[:4]} {letters[4:8]}"


@dataclass(frozen=True, slots=True)
class DotFigure(ReportFigure):
    """Rows of dots with intervals on one axis."""

    rows: tuple[DotRow, ...] = ()
    axis: Axis = field(default_factory=lambda: Axis(0, 1, (0, 0.5, 1)))
    band: Estimate | None = None
    """The yardstick: a grey band through all rows."""
    heads: tuple[str, ...] = ()
    """Heads of the columns, where there are several."""
    second_axis: Axis | None = None
    second_band: Estimate | None = None
    """The yardstick on the second axis."""
    second_is_open: bool = False
    """Whether the second number is what the first is compared with."""


@dataclass(frozen=True, slots=True)
class LabelPanel:
    """A small multiple: one label, one dot for each system."""

    look: LabelStyle
    rows: tuple[DotRow, ...]


@dataclass(frozen=True, slots=True)
class PanelFigure(ReportFigure):
    """Small multiples on one axis."""

    panels: tuple[LabelPanel, ...] = ()
    axis: Axis = field(default_factory=lambda: Axis(0, 1, (0, 0.5, 1)))


@dataclass(frozen=True, slots=True)
class BarFigure(ReportFigure):
    """Things that add up: amounts with a total."""

    bars: tuple[tuple[str, float, str], ...] = ()
    """Name, amount, and the amount as it is written."""
    total: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    """What follows from it, beside the bars."""


@dataclass(frozen=True, slots=True)
class TextBar:
    """One text in the comb of its system."""

    document: str
    value: float
    page: str


@dataclass(frozen=True, slots=True)
class TextBarFigure(ReportFigure):
    """One tooth per text, in combs by system."""

    combs: tuple[tuple[str, tuple[TextBar, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class TableFigure(ReportFigure):
    """Rows without a number to draw: the table itself."""


@dataclass(frozen=True, slots=True)
class AnswerStatement:
    """One of the short columns below the answer: a word and what it says."""

    head: str
    text: str


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    """What a reader takes away: one sentence, the numbers behind it, what it holds against."""

    sentence: str
    numbers: str
    difference: DotFigure | None = None
    statements: tuple[AnswerStatement, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Everything on the first page of a report."""

    title: str
    date: str
    counts: str
    answer: ReportAnswer
    figures: tuple[ReportFigure, ...]
    facts: tuple[tuple[str, str], ...]
    """How it was made: names and values."""
    notes: tuple[str, ...] = ()
    """What is missing and why."""
