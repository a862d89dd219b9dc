"""The answer of a report: which system makes fewer errors, by how much, and what that holds against.

Fixed rules write it from the numbers: a word for a ratio ("half") only if the interval of the ratio allows no other,
"makes fewer errors" if the interval of the difference excludes 0, else "cannot be told apart".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from finecomb.core.estimate import Estimate, Signature
from finecomb.reporting.figures.figure_model import AnswerStatement, Axis, DotFigure, DotRow, ReportAnswer, build_axis
from finecomb.statistics.inference.resampling import Floats, percentile_interval, resampled_positions

HUMAN = "human"
ALL_TEXTS = "all texts"
"""The system of all texts, where they name none."""
_RATIO_WORDS = (
    (1 / 4, "a quarter of"),
    (1 / 3, "a third of"),
    (1 / 2, "half"),
    (2 / 3, "two thirds of"),
    (3 / 4, "three quarters of"),
)
_AGREEMENT_WORDS = ((0.2, "poorly"), (0.4, "fairly"), (0.6, "moderately"), (0.8, "well"), (math.inf, "very well"))


def rank_systems(systems: Mapping[str, Estimate]) -> list[str]:
    """Systems by estimate, most errors first, human last."""
    machines = sorted((name for name in systems if name != HUMAN), key=lambda name: -_sort_value(systems[name]))
    return [*machines, *([HUMAN] if HUMAN in systems else [])]


def _sort_value(estimate: Estimate) -> float:
    return -math.inf if math.isnan(estimate.value) else estimate.value


def choose_compared_pair(systems: Sequence[str]) -> tuple[str, str] | None:
    """The two systems that the answer is about, better first: the two best machines, else the machine and people."""
    machines = [name for name in systems if name != HUMAN]
    if len(machines) >= 2:
        return machines[-1], machines[-2]
    return (HUMAN, machines[0]) if machines and HUMAN in systems else None


def estimate_difference(first: Floats, second: Floats, draws: int, seed: int) -> tuple[Estimate, Estimate]:
    """How many fewer errors per text value the first has, and its ratio to the second, over resampled texts."""
    rng = np.random.default_rng(seed)
    signature = Signature.from_fields(statistic="difference of means over texts", draws=draws, seed=seed)
    one, other = (
        values[resampled_positions(len(values), draws, rng)].mean(axis=1) if len(values) else np.full(draws, math.nan)
        for values in (first, second)
    )
    if len(first) < 2 or len(second) < 2:
        why = "fewer than two texts of a system"
        return (Estimate(math.nan, math.nan, math.nan, signature, why),) * 2
    gap = Estimate(float(second.mean() - first.mean()), *percentile_interval(other - one), signature)
    if second.mean() == 0 or (other == 0).any():
        return gap, Estimate(math.nan, math.nan, math.nan, signature, "a system without errors")
    return gap, Estimate(float(first.mean() / second.mean()), *percentile_interval(one / other), signature)


def ratio_word(ratio: Estimate) -> str:
    """The word for a ratio, where its interval allows no other.

    >>> ratio_word(Estimate(.5, .45, .55, Signature(()))), ratio_word(Estimate(.5, .3, .7, Signature(())))
    ('half', '')
    """
    if math.isnan(ratio.value) or math.isnan(ratio.low):
        return ""
    near = [
        min(_RATIO_WORDS, key=lambda known: abs(math.log(known[0] / max(end, 1e-9)))) for end in (ratio.low, ratio.high)
    ]
    inside = ratio.low > 0.2 and ratio.high < 0.87
    return near[0][1] if near[0] == near[1] and inside else ""


def headline_sentence(
    pair: tuple[str, str] | None, systems: Mapping[str, Estimate], gap: Estimate | None, ratio: Estimate | None
) -> str:
    """The first sentence of a report."""
    if pair is None or gap is None or ratio is None:
        known = [name for name, estimate in systems.items() if not math.isnan(estimate.value)]
        if not known:
            return "Nobody has read these texts yet."
        be = "were" if known[0] == ALL_TEXTS else "was"
        return (
            f"{_system_title(known[0])} {be} read; there is nothing to compare {'them' if be == 'were' else 'it'} with."
        )
    better, worse = (_system_title(name) for name in pair)
    if math.isnan(gap.low) or gap.low <= 0 <= gap.high:
        return f"{better} and {worse} cannot be told apart."
    if gap.value < 0:
        better, worse = worse, better
    word = ratio_word(ratio)
    return f"{better} makes {word} the errors of {worse}." if word else f"{better} makes fewer errors than {worse}."


def _system_title(name: str) -> str:
    return "Human text" if name == HUMAN else "All texts" if name == ALL_TEXTS else name


def describe_agreement(alpha: Estimate | None) -> str:
    """`Readers agree moderately: α 0.42 [0.38, 0.45].`"""
    if alpha is None or math.isnan(alpha.value):
        return f"Agreement is not known: {alpha.why if alpha else 'one reader for each text'}."
    word = next(word for bound, word in _AGREEMENT_WORDS if alpha.value < bound)
    return f"Readers agree {word}: α {alpha.short(2).replace('-', '−')}."


def headline_numbers(
    pair: tuple[str, str] | None, systems: Mapping[str, Estimate], gap: Estimate | None, measure: str, scale: Axis
) -> str:
    """The numbers behind the sentence, with the human yardstick where there is one."""
    parts = []
    if pair and gap:
        better, worse = pair
        ends = f" [{scale.format_value(gap.low)}, {scale.format_value(gap.high)}]" if not math.isnan(gap.low) else ""
        parts.append(
            f"{scale.format_value(systems[better].value)} against {scale.format_value(systems[worse].value)} "
            f"{measure}; "
            f"difference {scale.format_value(gap.value)}{ends}."
        )
    elif systems:
        name, estimate = next(iter(systems.items()))
        parts.append(f"{_system_title(name)}: {scale.format_value(estimate.value)} {measure}.")
    if HUMAN in systems and not (pair and HUMAN in pair):
        human = systems[HUMAN]
        parts.append(
            f"Human text has {scale.format_value(human.value)} [{scale.format_value(human.low)}, "
            f"{scale.format_value(human.high)}]."
        )
    return " ".join(parts)


def describe_gap_with_excluded(gap: Estimate, scale: Axis) -> str:
    """`With them the difference is 1.1 [0.8, 1.4].`"""
    if math.isnan(gap.value):
        return ""
    return (
        f"With them the difference is {scale.format_value(gap.value)} [{scale.format_value(gap.low)}, "
        f"{scale.format_value(gap.high)}]."
    )


def difference_figure(
    pair: tuple[str, str], gap: Estimate, with_all: Estimate | None, measure: str, command: str
) -> DotFigure:
    """The one difference against "no difference"; below it, open, what it would be with what was left out."""
    rows = [DotRow(pair[0], gap)]
    if with_all is not None and not math.isnan(with_all.value):
        rows.append(DotRow("with what was left out", with_all, open=True))
    scale = build_axis([row.estimate for row in rows])
    marked = Axis(scale.low, scale.high, scale.ticks, scale.digits, reference=0.0, reference_name="no difference")
    table = tuple(
        {"better": row.name, "worse": pair[1], "difference": estimate.value, "low": estimate.low, "high": estimate.high}
        for row in rows
        if (estimate := row.estimate)
    )
    caption = f"Fewer {measure} than {_system_title(pair[1])}" + ("; open: with what was left out" if rows[1:] else "")
    return DotFigure("answer", "Difference", caption, table, str(gap.signature), command, rows=tuple(rows), axis=marked)


def robustness_statement(gap: Estimate, resampled: float, left_out: Sequence[tuple[str, float]]) -> AnswerStatement:
    """What the answer holds against: resamples of texts, and each reader left out."""
    share = f"in {resampled:.0%} of the resamples of texts"
    turned = [name for name, value in left_out if value * gap.value <= 0]
    if len(left_out) < 2:
        readers = ""
    elif turned:
        readers = f", but not with {turned[0]} left out" + (
            f" (nor {len(turned) - 1} others)" if len(turned) > 1 else ""
        )
    else:
        readers = ", and with any one reader left out"
    return AnswerStatement("Holds", f"{share}{readers}.")


def exception_statement(by_label: Mapping[str, Estimate], digits: int = 2) -> AnswerStatement:
    """The label for which the answer holds least, or that it holds for all."""
    open_ = {name: gap for name, gap in by_label.items() if not math.isnan(gap.low) and gap.low <= 0}
    if not open_:
        return AnswerStatement("Does not hold", "for no kind of error: every difference points the same way.")
    name, gap = min(open_.items(), key=lambda item: item[1].value)
    more = f"; nor for {len(open_) - 1} other kinds" if len(open_) > 1 else ""
    shown = f"{gap.value:.{digits}f} [{gap.low:.{digits}f}, {gap.high:.{digits}f}]".replace("-", "−")
    return AnswerStatement("Does not hold", f"for {name}: difference {shown}{more}.")


def build_answer(
    systems: Mapping[str, Estimate], pair: tuple[str, str] | None, gap: Estimate | None, ratio: Estimate | None,
    alpha: Estimate | None, measure: str, statements: Sequence[AnswerStatement], command: str, scale: Axis,
    with_all: Estimate | None = None,
) -> ReportAnswer:  # fmt: skip
    """The whole answer; `with_all` is the difference with what was left out."""
    words = f"{headline_numbers(pair, systems, gap, measure, scale)} {describe_agreement(alpha)}".strip()
    is_known = pair and gap and not math.isnan(gap.value)
    drawn = difference_figure(pair, gap, with_all, measure, command) if is_known and pair and gap else None
    return ReportAnswer(headline_sentence(pair, systems, gap, ratio), words, drawn, tuple(statements))
