"""Rules for numbers: wrong arithmetic and conversions, impossible dates, times and percentages, conflicting ages."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator

from finecomb.annotators.detectors.rules.rule_finding import RuleFinding
from finecomb.core.records import Document

_NUMBER = r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?"
_ARITHMETIC_PATTERN = re.compile(
    rf"(?P<a>{_NUMBER})\s*(?P<sign>plus|minus|times|\+|−|-|×|x|\*|divided by|/|÷)\s*(?P<b>{_NUMBER})\s*"
    rf"(?:=|is|are|equals|makes|gives)\s*(?P<c>{_NUMBER})(?!\d|[.,]\d|\s*(?:%|percent|per))"
)
_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "plus": lambda a, b: a + b, "minus": lambda a, b: a - b, "times": lambda a, b: a * b,
    "divided by": lambda a, b: a / b if b else float("nan"),
}  # fmt: skip
_OPERATION_BY_SIGN = {
    "+": "plus",
    "-": "minus",
    "−": "minus",
    "×": "times",
    "x": "times",
    "*": "times",
    "/": "divided by",
    "÷": "divided by",
}
_UNIT_CONVERSIONS: dict[tuple[str, str], Callable[[float], float]] = {
    ("mile", "kilometre"): lambda value: value * 1.609344,
    ("kilometre", "mile"): lambda value: value / 1.609344,
    ("foot", "metre"): lambda value: value * 0.3048,
    ("metre", "foot"): lambda value: value / 0.3048,
    ("pound", "kilogram"): lambda value: value * 0.45359237,
    ("kilogram", "pound"): lambda value: value / 0.45359237,
    ("inch", "centimetre"): lambda value: value * 2.54,
    ("centimetre", "inch"): lambda value: value / 2.54,
    ("fahrenheit", "celsius"): lambda value: (value - 32) / 1.8,
    ("celsius", "fahrenheit"): lambda value: value * 1.8 + 32,
}
_SPELLINGS_BY_UNIT = {
    "mile": "mile|miles|mi", "kilometre": "kilometres|kilometers|kilometre|kilometer|km", "foot": "feet|foot|ft",
    "metre": "metres|meters|metre|meter|m", "pound": "pounds|pound|lbs|lb", "kilogram": "kilograms|kilogram|kilos|kg",
    "inch": "inches|inch", "centimetre": "centimetres|centimeters|cm", "fahrenheit": "degrees Fahrenheit|°F|°f",
    "celsius": "degrees Celsius|°C|°c",
}  # fmt: skip
_UNIT_BY_SPELLING = {name.casefold(): unit for unit, names in _SPELLINGS_BY_UNIT.items() for name in names.split("|")}
_ANY_UNIT = "|".join(sorted((re.escape(name) for name in _UNIT_BY_SPELLING), key=len, reverse=True))
_CONVERSION_PATTERN = re.compile(
    rf"(?P<a>{_NUMBER})[\s-]?(?P<from>{_ANY_UNIT})\s*\(\s*(?:about |around |or |roughly |approximately |~)*"
    rf"(?P<b>{_NUMBER})[\s-]?(?P<to>{_ANY_UNIT})\s*\)",
    re.IGNORECASE,
)
_CONVERSION_TOLERANCE = 0.1  # relative; amounts are often rounded twice
_MONTHS = [name for name in calendar.month_name if name]
_MONTH_FIRST_DATE_PATTERN = re.compile(
    rf"\b(?P<month>{'|'.join(_MONTHS)})\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!,?\s*\d{{1,2}}:)"
)
_DAY_FIRST_DATE_PATTERN = re.compile(
    rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{'|'.join(_MONTHS)})\b"
)
_CLOCK_TIME_PATTERN = re.compile(
    r"(?<![\d:])(?P<hour>\d{1,2}):(?P<minute>\d{2})\s*(?P<half>a\.?m\.?|p\.?m\.?|o’clock)", re.IGNORECASE
)
_PERCENT_OF_PATTERN = re.compile(
    rf"(?P<share>{_NUMBER})\s*(?:%|percent|per cent)\s+of\s+(?:all|the|its|their|our|people|adults|voters)\b"
)
_AGE_PATTERN = re.compile(
    r"\b(?P<name>[A-Z]\w+(?:\s[A-Z]\w+)?),\s(?:who is\s|aged\s)?(?P<age>\d{1,3})(?:,|\syears old)"
)


def _parse_number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def find_arithmetic_errors(document: Document) -> Iterator[RuleFinding]:
    """Find wrong sums, differences, products and quotients, such as `12 plus 9 is 22`."""
    for match in _ARITHMETIC_PATTERN.finditer(document.text):
        sign = _OPERATION_BY_SIGN.get(match["sign"], match["sign"])
        right = _OPERATIONS[sign](_parse_number(match["a"]), _parse_number(match["b"]))
        rounding = 0.5 * 10 ** -len(match["c"].partition(".")[2])
        # Division by zero gives NaN, which is never greater.
        if abs(right - _parse_number(match["c"])) > max(0.01 * abs(right), rounding):
            reason = f"{match['a']} {sign} {match['b']} is {right:g}, not {match['c']}."
            yield RuleFinding(*match.span("c"), "bad-math", reason)


def find_unit_conversion_errors(document: Document) -> Iterator[RuleFinding]:
    """Find wrong unit conversions in brackets, such as `5 miles (20 km)`."""
    for match in _CONVERSION_PATTERN.finditer(document.text):
        units = _UNIT_BY_SPELLING[match["from"].casefold()], _UNIT_BY_SPELLING[match["to"].casefold()]
        if units not in _UNIT_CONVERSIONS:
            continue
        right, stated = _UNIT_CONVERSIONS[units](_parse_number(match["a"])), _parse_number(match["b"])
        if abs(right - stated) > max(_CONVERSION_TOLERANCE * abs(right), 1.0):
            reason = f"{match['a']} {match['from']} is about {right:.1f} {match['to']}, not {match['b']}."
            yield RuleFinding(*match.span("b"), "bad-math", reason)


def find_impossible_values(document: Document) -> Iterator[RuleFinding]:
    """Find dates and times that do not exist, and percentages of a whole above 100%."""
    for pattern in (_MONTH_FIRST_DATE_PATTERN, _DAY_FIRST_DATE_PATTERN):
        for match in pattern.finditer(document.text):
            longest = calendar.monthrange(2024, _MONTHS.index(match["month"]) + 1)[1]  # 2024 was a leap year
            if not 1 <= int(match["day"]) <= longest:
                reason = f"{match['month']} has at most {longest} days."
                yield RuleFinding(*match.span(), "encyclopedic", reason)
    for match in _CLOCK_TIME_PATTERN.finditer(document.text):
        if int(match["hour"]) > 12 or int(match["minute"]) > 59:
            yield RuleFinding(*match.span(), "bad-math", "This time does not exist.")
    for match in _PERCENT_OF_PATTERN.finditer(document.text):
        if _parse_number(match["share"]) > 100:
            yield RuleFinding(*match.span("share"), "bad-math", "A percentage of a whole cannot exceed 100%.")


def find_conflicting_ages(document: Document) -> Iterator[RuleFinding]:
    """Find people with two different ages."""
    first: dict[str, re.Match[str]] = {}
    for match in _AGE_PATTERN.finditer(document.text):
        before = first.setdefault(match["name"], match)
        if before["age"] != match["age"]:
            reason = f"Earlier in the text, {match['name']} is {before['age']}."
            yield RuleFinding(*match.span("age"), "self-contradiction", reason, before.span("age"))
