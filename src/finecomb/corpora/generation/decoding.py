"""Decoding parameters, and the grid of decoding settings that Dou et al. (2022) compared."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from finecomb.core.errors import ParameterError, param
from finecomb.core.records import Record

Variation = Literal["independently", "cross"]
DEFAULT_TOP_P, DEFAULT_TEMPERATURE = 0.96, 1.0
"""Value of each parameter while the other one varies (Dou et al. 2022, section 5.2)."""


class Decoding(Record):
    """Decoding parameters: nucleus sampling (top-p), temperature and frequency penalty."""

    top_p: float = Field(default=DEFAULT_TOP_P, gt=0, le=1)
    """Probability mass of the nucleus; ignored if the temperature is 0."""
    temperature: float = Field(default=DEFAULT_TEMPERATURE, ge=0, le=2)
    """Sampling temperature; 0 selects greedy decoding."""
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2)
    """Amount subtracted from a token's logit for each time it was sampled."""

    @property
    def is_argmax(self) -> bool:
        """True for greedy decoding, where each sample is the same text."""
        return self.temperature == 0

    @property
    def name(self) -> str:
        """Short name, used in document IDs.

        >>> Decoding(top_p=0.9).name, Decoding(temperature=0, frequency_penalty=1).name
        ('p0.9-t1-f0', 'argmax-f1')
        """
        penalty = f"f{self.frequency_penalty:g}"
        return f"argmax-{penalty}" if self.is_argmax else f"p{self.top_p:g}-t{self.temperature:g}-{penalty}"

    def meta(self) -> dict[str, float | None]:
        """Return the parameters as document metadata; `top_p` is None for greedy decoding."""
        return {
            "top_p": None if self.is_argmax else self.top_p,
            "temperature": self.temperature,
            "frequency_penalty": self.frequency_penalty,
        }


def parse_numbers(name: str, values: float | str | Sequence[float | str], low: float, high: float) -> list[float]:
    """Return the distinct numbers of one option, given as numbers or as a comma-separated string.

    >>> parse_numbers("top_p", ".4,.9", 0, 1), parse_numbers("temperature", 1, 0, 2)
    ([0.4, 0.9], [1.0])
    """
    words = values.split(",") if isinstance(values, str) else [values] if isinstance(values, int | float) else values
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        text = ",".join(map(str, words))
        raise ParameterError(
            f"{param(name, text)}: expected comma-separated numbers, e.g. 0.4,0.7", parameter=name
        ) from None
    for number in numbers:
        if not low <= number <= high or (name == "top_p" and number == 0):
            limits = f"above 0 and at most {high:g}" if name == "top_p" else f"between {low:g} and {high:g}"
            raise ParameterError(f"{param(name)} must be {limits}, found {number:g}", parameter=name)
    return list(dict.fromkeys(numbers))


def decoding_grid(
    top_ps: Sequence[float],
    temperatures: Sequence[float],
    penalties: Sequence[float],
    variation: Variation = "independently",
) -> list[Decoding]:
    """Return the distinct decoding settings to compare. Argmax, which ignores the nucleus, occurs once per penalty.

    `independently` varies `top_p` at the default temperature and the temperature at the default `top_p`; `cross` takes
    all pairs. A list with a single value replaces the default of that parameter.

    >>> len(decoding_grid([0.4, 0.7, 0.9, 0.96], [0, 0.4, 0.7, 1], [0, 1]))
    14
    >>> len(decoding_grid([0.4, 0.7, 0.9, 0.96], [0, 0.4, 0.7, 1], [0, 1], "cross"))
    26
    """
    if not (top_ps and temperatures and penalties):
        raise ParameterError(
            f"{param('top_p')}, {param('temperature')} and {param('frequency_penalty')} each require at least one value"
        )
    pairs: list[tuple[float, float]] = []
    if variation == "cross":
        pairs += itertools.product(top_ps, temperatures)
    else:  # each varies alone, the other has its only or its default value
        plain_top_p = top_ps[0] if len(top_ps) == 1 else DEFAULT_TOP_P
        plain_temperature = temperatures[0] if len(temperatures) == 1 else DEFAULT_TEMPERATURE
        if len(top_ps) > 1:
            pairs += ((top_p, plain_temperature) for top_p in top_ps)
        if len(temperatures) > 1 or len(top_ps) == 1:
            pairs += ((plain_top_p, temperature) for temperature in temperatures)
    grid = [
        Decoding(top_p=DEFAULT_TOP_P if temperature == 0 else top_p, temperature=temperature, frequency_penalty=penalty)
        for penalty in penalties
        for top_p, temperature in pairs
    ]
    return list(dict.fromkeys(grid))
