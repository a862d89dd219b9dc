"""Currency conversions within one text: impossible exchange rates, or two rates for one pair of currencies.

The rules use no external data. A rate is impossible if it is far outside its range since exchange rates began to
float (1971). Two conversions conflict if no rounding makes their rates equal. Rates change over time, so conversions in
sentences that name different years are not compared.
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
"""Lowest and highest value of one US dollar in each currency, rounded outwards, since 1971 or the currency's start.

`dollar`, `krone` and `yen or yuan` are signs that several countries use."""
_SPELLINGS_BY_CURRENCY = {
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
_PLURAL_BY_CURRENCY = {
    "yen": "yen", "yuan": "yuan", "yen or yuan": "yen or yuan", "won": "won", "krone": "kroner", "rand": "rand",
    "real": "reais",
}  # fmt: skip
_CURRENCY_BY_SPELLING = {
    spelling.casefold(): name for name, list_ in _SPELLINGS_BY_CURRENCY.items() for spelling in list_.split("|")
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
"""Number of characters before a bracket that are searched for the first amount."""
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d\b")
_SENTENCE_END = re.compile(r"[.!?]\s|\n")
_IMPOSSIBLE_RATE_FACTOR = 2.0
"""Factor by which a rate must be outside its historical range to count as impossible."""
_RATE_TOLERANCE_FACTOR = 1.1
"""Maximum ratio of two rates that is tolerated in addition to rounding, because amounts are often rounded twice."""


@dataclass(frozen=True, slots=True)
class MoneyAmount:
    """An amount of money."""

    currency: str
    value: float
    rounding: float
    """Maximum rounding error: half a unit of the last non-zero digit."""


@dataclass(frozen=True, slots=True)
class MoneyConversion:
    """An amount with its conversion to another currency in brackets."""

    first: MoneyAmount
    second: MoneyAmount
    span: tuple[int, int]
    """Position of the second amount."""
    years: frozenset[str]
    """Years named in the sentence."""

    def rate(self, currency: str) -> float:
        """Return the stated value of one unit of `currency` in the other currency."""
        rate = self.second.value / self.first.value
        return rate if currency == self.first.currency else 1 / rate

    def rate_range(self, currency: str) -> tuple[float, float]:
        """Return the lowest and highest value of one unit of `currency` in the other currency, given rounding."""
        least, most = self.second.value - self.second.rounding, self.second.value + self.second.rounding
        if currency == self.first.currency:
            return least / self.first.value, most / self.first.value
        return self.first.value / most, self.first.value / least


def find_currency_errors(document: Document) -> Iterator[RuleFinding]:
    """Find conversions with an impossible rate, such as `$5 million (£30 million)`, or with conflicting rates."""
    earlier: dict[tuple[frozenset[str], frozenset[str]], MoneyConversion] = {}
    for conversion in find_money_conversions(document.text):
        reason = _impossible_rate_reason(conversion)
        if reason:
            yield RuleFinding(*conversion.span, "bad-math", reason)
            continue
        pair = frozenset((conversion.first.currency, conversion.second.currency))
        before = earlier.setdefault((pair, conversion.years), conversion)
        unit = before.first.currency
        (low, high), (least, most) = before.rate_range(unit), conversion.rate_range(unit)
        if most * _RATE_TOLERANCE_FACTOR < low or high * _RATE_TOLERANCE_FACTOR < least:
            earlier_rate, rate = (_format_rate(one.rate(unit)) for one in (before, conversion))
            reason = (
                f"This makes one {unit} worth {rate} {_currency_plural(before.second.currency)};"
                f" earlier in the text it is worth {earlier_rate}."
            )
            yield RuleFinding(*conversion.span, "self-contradiction", reason, before.span)


def find_money_conversions(text: str) -> Iterator[MoneyConversion]:
    """Yield each amount of money that is followed by another one in brackets."""
    for bracket in _BRACKETED_AMOUNT.finditer(text):
        before = _AMOUNT_BEFORE_BRACKET.search(text[max(0, bracket.start() - _MAX_BRACKET_DISTANCE) : bracket.start()])
        if before is None:
            continue
        first, second = _parse_amount(before), _parse_amount(bracket)
        if first.currency != second.currency and first.value > 0 and second.value > 0:
            position = bracket.start()
            begin = max(
                (match.end() for match in _SENTENCE_END.finditer(text, max(0, position - 400), position)),
                default=max(0, position - 400),
            )
            end = _SENTENCE_END.search(text, position, position + 400)
            years = frozenset(_YEAR.findall(text[begin : end.start() if end else position + 400]))
            yield MoneyConversion(first, second, bracket.span("amount"), years)


def _parse_amount(match: re.Match[str]) -> MoneyAmount:
    sign, number, magnitude = (match[name] or match[f"{name}2"] for name in ("sign", "number", "magnitude"))
    digits = number.replace(",", "")
    times = _MAGNITUDES[magnitude.casefold()] if magnitude else 1.0
    integer_digits, _, decimals = digits.partition(".")
    zeros = len(integer_digits) - len(integer_digits.rstrip("0")) if integer_digits.strip("0") else 0
    return MoneyAmount(
        _CURRENCY_BY_SPELLING[sign.casefold()],
        float(digits) * times,
        (0.5 * 10.0 ** (-len(decimals) if decimals else zeros)) * times,
    )


def _impossible_rate_reason(conversion: MoneyConversion) -> str:
    """Return why the rate of a conversion is impossible, or an empty string."""
    unit, other = conversion.first.currency, conversion.second.currency
    low = _RATE_RANGE_PER_DOLLAR[other][0] / _RATE_RANGE_PER_DOLLAR[unit][1]
    high = _RATE_RANGE_PER_DOLLAR[other][1] / _RATE_RANGE_PER_DOLLAR[unit][0]
    least, most = conversion.rate_range(unit)
    if low / _IMPOSSIBLE_RATE_FACTOR <= most and least <= high * _IMPOSSIBLE_RATE_FACTOR:
        return ""
    if conversion.rate(unit) < 0.001:  # large numbers are easier to read than small fractions
        unit, other, low, high = other, unit, 1 / high, 1 / low
    rate = conversion.rate(unit)
    return (
        f"This makes one {unit} worth {_format_rate(rate)} {_currency_plural(other)}; historical rates range from "
        f"{_format_rate(low)} to {_format_rate(high)}."
    )


def _currency_plural(currency: str) -> str:
    return _PLURAL_BY_CURRENCY.get(currency, f"{currency}s")


def _format_rate(rate: float) -> str:
    """Format a rate with two decimals, or with two significant digits if it is small."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.2f}" if rate >= 0.1 else f"{rate:.2g}"
