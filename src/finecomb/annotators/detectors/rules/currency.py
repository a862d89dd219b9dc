"""Conversions of money inside one text: a rate that never was, or two rates for one pair of currencies.

Nothing is looked up. A rate is impossible when it is far outside of what it has been since currencies float (1971), and
two conversions disagree when no rounding makes them one rate. Rates change, so conversions that are told of different
years are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from finecomb.annotators.detectors.rules.rule_finding import RuleFinding
from finecomb.core.records import Document

_RATE_RANGE_PER_DOLLAR: dict[str, tuple[float, float]] = {
    "US dollar": (1, 1), "Canadian dollar": (0.9, 1.62), "Australian dollar": (0.66, 2.1),
    "New Zealand dollar": (0.66, 2.6), "Hong Kong dollar": (4.6, 9.7), "Singapore dollar": (1.2, 3.1),
    "dollar": (0.66, 9.7), "pound": (0.37, 0.97), "euro": (0.62, 1.22), "yen": (75, 360), "yuan": (1.4, 8.8),
    "yen or yuan": (1.4, 360), "franc": (0.7, 4.4), "rupee": (7, 100), "won": (310, 2000), "krone": (3.8, 12.5),
    "rand": (0.65, 20), "real": (0.8, 6.4), "rouble": (5.9, 160), "zloty": (2, 5.1), "Mexican peso": (3, 26),
}  # fmt: skip
"""The least and the most of each currency that one US dollar was worth, rounded outwards: since 1971, or since the
currency is what it is. `dollar`, `krone` and `yen or yuan` are signs that several countries use."""
_SPELLINGS = {
    "US dollar": "US$|USD|US dollars|US dollar|American dollars|U.S. dollars",
    "Canadian dollar": "C$|CA$|CAD|Canadian dollars", "Australian dollar": "A$|AU$|AUD|Australian dollars",
    "New Zealand dollar": "NZ$|NZD|New Zealand dollars", "Hong Kong dollar": "HK$|HKD|Hong Kong dollars",
    "Singapore dollar": "S$|SGD|Singapore dollars", "dollar": "$|dollars|dollar",
    "pound": "£|GBP|pounds|pound|British pounds",
    "euro": "€|EUR|euros|euro", "yen": "JPY|yen|Japanese yen", "yuan": "CNY|RMB|yuan|Chinese yuan", "yen or yuan": "¥",
    "franc": "CHF|Swiss francs", "rupee": "₹|INR|Indian rupees", "won": "₩|KRW|Korean won",
    "krone": "SEK|NOK|DKK|kr|kronor|kroner", "rand": "ZAR|rand", "real": "R$|BRL|reais",
    "rouble": "₽|RUB|roubles|rubles", "zloty": "PLN|zlotys", "Mexican peso": "MXN|Mexican pesos",
}  # fmt: skip
_PLURALS = {
    "yen": "yen", "yuan": "yuan", "yen or yuan": "yen or yuan", "won": "won", "krone": "kroner", "rand": "rand",
    "real": "reais",
}  # fmt: skip
_CURRENCY_BY_SPELLING = {
    spelling.casefold(): name for name, list_ in _SPELLINGS.items() for spelling in list_.split("|")
}
_ANY_CURRENCY = "|".join(sorted((re.escape(spelling) for spelling in _CURRENCY_BY_SPELLING), key=len, reverse=True))
_MAGNITUDES = {
    "thousand": 1e3, "k": 1e3, "million": 1e6, "mn": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12,
}  # fmt: skip
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_AMOUNT = (
    rf"(?:(?P<sign>{_ANY_CURRENCY})\s?(?P<number>{_NUMBER})(?:[\s-]?(?P<magnitude>{'|'.join(_MAGNITUDES)})\b)?"
    rf"|(?P<number2>{_NUMBER})(?:[\s-]?(?P<magnitude2>{'|'.join(_MAGNITUDES)})\b)?[\s-]?(?P<sign2>{_ANY_CURRENCY}))"
)
_AMOUNT_BEFORE_BRACKET = re.compile(rf"(?<![\w$.,]){_AMOUNT}\s*$", re.IGNORECASE)
_BRACKETED_AMOUNT = re.compile(
    rf"\(\s*(?:about |around |or |roughly |approximately |some |nearly |equivalent to |worth |~|≈)*"
    rf"(?P<amount>{_AMOUNT})\s*\)",
    re.IGNORECASE,
)
_MAX_BRACKET_DISTANCE = 60
"""Characters before a bracket in which its first amount stands."""
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")
_SENTENCE_END = re.compile(r"[.!?]\s|\n")
_IMPOSSIBLE_RATE_FACTOR = 2.0
"""So many times outside of what a rate has been is impossible."""
_TOLERANCE = 1.1
"""So far apart may two rates be, beyond rounding: people round, and round again."""


@dataclass(frozen=True, slots=True)
class MoneyAmount:
    """A sum of money."""

    currency: str
    value: float
    rounding: float
    """Half a unit of its last digit that is no zero: what rounding may have hidden."""


@dataclass(frozen=True, slots=True)
class MoneyConversion:
    """A sum and, in brackets, the same in another currency."""

    first: MoneyAmount
    second: MoneyAmount
    span: tuple[int, int]
    """Where the second sum stands."""
    years: frozenset[str]
    """Years that its sentence names."""

    def rate(self, currency: str) -> float:
        """The worth of one `currency` in the other one, as it stands there."""
        rate = self.second.value / self.first.value
        return rate if currency == self.first.currency else 1 / rate

    def rate_range(self, currency: str) -> tuple[float, float]:
        """The lowest and the highest worth of one `currency` in the other one that rounding allows."""
        least, most = self.second.value - self.second.rounding, self.second.value + self.second.rounding
        if currency == self.first.currency:
            return least / self.first.value, most / self.first.value
        return self.first.value / most, self.first.value / least


def find_currency_errors(document: Document) -> Iterator[RuleFinding]:
    """`$5 million (£30 million)`: a rate that never was, or another rate than before in the text."""
    earlier: dict[tuple[frozenset[str], frozenset[str]], MoneyConversion] = {}
    for conversion in find_money_conversions(document.text):
        reason = _impossible_rate_reason(conversion)
        if reason:
            yield RuleFinding(*conversion.span, "bad-math", reason)
            continue
        pair = frozenset((conversion.first.currency, conversion.second.currency))
        before = earlier.setdefault((pair, conversion.years), conversion)
        if _has_conflicting_rates(before, conversion):
            yield RuleFinding(
                *conversion.span, "self-contradiction", _conflicting_rates_reason(before, conversion), before.span
            )


def find_money_conversions(text: str) -> Iterator[MoneyConversion]:
    """Every sum of money that is followed by another one in brackets."""
    for bracket in _BRACKETED_AMOUNT.finditer(text):
        before = _AMOUNT_BEFORE_BRACKET.search(text[max(0, bracket.start() - _MAX_BRACKET_DISTANCE) : bracket.start()])
        if before is None:
            continue
        first, second = _parse_amount(before), _parse_amount(bracket)
        if first.currency != second.currency and first.value > 0 and second.value > 0:
            years = frozenset(_YEAR.findall(_enclosing_sentence(text, bracket.start())))
            yield MoneyConversion(first, second, bracket.span("amount"), years)


def _parse_amount(match: re.Match[str]) -> MoneyAmount:
    sign, number, magnitude = (match[name] or match[f"{name}2"] for name in ("sign", "number", "magnitude"))
    digits = number.replace(",", "")
    times = _MAGNITUDES[magnitude.casefold()] if magnitude else 1.0
    return MoneyAmount(
        _CURRENCY_BY_SPELLING[sign.casefold()], float(digits) * times, _rounding_half_unit(digits) * times
    )


def _rounding_half_unit(digits: str) -> float:
    """Half a unit of the last digit that is no zero: 0.05 of `2.5`, 5 of `120`; of decimals every digit counts."""
    whole, _, decimals = digits.partition(".")
    zeros = len(whole) - len(whole.rstrip("0")) if whole.strip("0") else 0
    return 0.5 * 10.0 ** (-len(decimals) if decimals else zeros)


def _enclosing_sentence(text: str, at: int) -> str:
    """From the last end of a sentence before a place to the next one after it."""
    begin = max((match.end() for match in _SENTENCE_END.finditer(text, max(0, at - 400), at)), default=max(0, at - 400))
    end = _SENTENCE_END.search(text, at, at + 400)
    return text[begin : end.start() if end else at + 400]


def _impossible_rate_reason(conversion: MoneyConversion) -> str:
    """Why a rate cannot be, or an empty string."""
    one, other = conversion.first.currency, conversion.second.currency
    low = _RATE_RANGE_PER_DOLLAR[other][0] / _RATE_RANGE_PER_DOLLAR[one][1]
    high = _RATE_RANGE_PER_DOLLAR[other][1] / _RATE_RANGE_PER_DOLLAR[one][0]
    least, most = conversion.rate_range(one)
    if low / _IMPOSSIBLE_RATE_FACTOR <= most and least <= high * _IMPOSSIBLE_RATE_FACTOR:
        return ""
    if conversion.rate(one) < 0.001:  # thousands read better than a fraction
        one, other, low, high = other, one, 1 / high, 1 / low
    rate = conversion.rate(one)
    return (
        f"One {one} would be {_format_rate(rate)} {_plural(other)}; rates have been between "
        f"{_format_rate(low)} and {_format_rate(high)}."
    )


def _has_conflicting_rates(before: MoneyConversion, after: MoneyConversion) -> bool:
    """Whether no rounding makes both conversions one rate."""
    unit = before.first.currency
    (low, high), (least, most) = before.rate_range(unit), after.rate_range(unit)
    return most * _TOLERANCE < low or high * _TOLERANCE < least


def _conflicting_rates_reason(before: MoneyConversion, after: MoneyConversion) -> str:
    unit, other = before.first.currency, before.second.currency
    rates = [_format_rate(conversion.rate(unit)) for conversion in (before, after)]
    return f"Here one {unit} is {rates[1]} {_plural(other)}; earlier in the text it is {rates[0]}."


def _plural(currency: str) -> str:
    return _PLURALS.get(currency, f"{currency}s")


def _format_rate(rate: float) -> str:
    """A rate with two digits after the point, or two that count, and no power of ten."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.2f}" if rate >= 0.1 else f"{rate:.2g}"
