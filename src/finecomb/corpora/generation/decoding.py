"""Settings of decoding, and the grid of them that Dou et al. (2022) compare."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from finecomb.core.errors import ParameterError, param
from finecomb.core.records import Record

Variation = Literal["independently", "cross"]
DEFAULT_TOP_P, DEFAULT_TEMPERATURE = 0.96, 1.0
"""What one setting is while the other varies (Dou et al. 2022, section 5.2)."""


class Decoding(Record):
    """How tokens are chosen from a model's output."""

    top_p: float = Field(default=DEFAULT_TOP_P, gt=0, le=1)
    """Mass of the nucleus; means nothing where temperature is 0."""
    temperature: float = Field(default=DEFAULT_TEMPERATURE, ge=0, le=2)
    """0 is argmax."""
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2)
    """Taken from a token's logit for each time that it was sampled."""

    @property
    def is_argmax(self) -> bool:
        """Whether the likeliest token is taken every time, so that sampling again gives the same."""
        return self.temperature == 0

    @property
    def name(self) -> str:
        """Short, as part of ids.

        >>> Decoding(top_p=0.9).name, Decoding(temperature=0, frequency_penalty=1).name
        ('p0.9-t1-f0', 'argmax-f1')
        """
        penalty = f"f{self.frequency_penalty:g}"
        return f"argmax-{penalty}" if self.is_argmax else f"p{self.top_p:g}-t{self.temperature:g}-{penalty}"

    def meta(self) -> dict[str, float | None]:
        """As meta of a document; argmax has no nucleus."""
        return {
            "top_p": None if self.is_argmax else self.top_p,
            "temperature": self.temperature,
            "frequency_penalty": self.frequency_penalty,
        }


def parse_numbers(name: str, values: float | str | Sequence[float | str], low: float, high: float) -> list[float]:
    """Return the numbers of one option, each once; one string may hold several with commas between them.

    >>> parse_numbers("top_p", ".4,.9", 0, 1), parse_numbers("temperature", 1, 0, 2)
    ([0.4, 0.9], [1.0])
    """
    words = values.split(",") if isinstance(values, str) else [values] if isinstance(values, int | float) else values
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        text = ",".join(map(str, words))
        raise ParameterError(
            f"{param(name, text)}: expected numbers with commas, e.g. 0.4,0.7", parameter=name
        ) from None
    for number in numbers:
        if not low <= number <= high or (name == "top_p" and number == 0):
            lowest = "above 0" if name == "top_p" else f"{low:g}"
            raise ParameterError(f"{param(name, f'{number:g}')}: is outside {lowest} to {high:g}", parameter=name)
    return list(dict.fromkeys(numbers))


def decoding_grid(
    top_ps: Sequence[float],
    temperatures: Sequence[float],
    penalties: Sequence[float],
    variation: Variation = "independently",
) -> list[Decoding]:
    """The settings to compare, each once; argmax counts once for each penalty, since it has no nucleus.

    `independently` varies the nucleus at the plain temperature and the temperature at the plain nucleus, `cross` takes
    every pair. A list with one value is no variation: it is the plain value of that setting.

    >>> len(decoding_grid([0.4, 0.7, 0.9, 0.96], [0, 0.4, 0.7, 1], [0, 1]))
    14
    >>> len(decoding_grid([0.4, 0.7, 0.9, 0.96], [0, 0.4, 0.7, 1], [0, 1], "cross"))
    26
    """
    if not (top_ps and temperatures and penalties):
        raise ParameterError(
            f"there is nothing to vary: {param('top_p')}, {param('temperature')} and {param('frequency_penalty')} need"
            " a value each"
        )
    pairs = list(_decoding_pairs(top_ps, temperatures, variation))
    grid = [
        Decoding(top_p=DEFAULT_TOP_P if temperature == 0 else top_p, temperature=temperature, frequency_penalty=penalty)
        for penalty in penalties
        for top_p, temperature in pairs
    ]
    return list(dict.fromkeys(grid))


def _decoding_pairs(
    top_ps: Sequence[float], temperatures: Sequence[float], variation: Variation
) -> Iterator[tuple[float, float]]:
    if variation == "cross":
        yield from itertools.product(top_ps, temperatures)
        return
    plain_top_p = top_ps[0] if len(top_ps) == 1 else DEFAULT_TOP_P
    plain_temperature = temperatures[0] if len(temperatures) == 1 else DEFAULT_TEMPERATURE
    if len(top_ps) > 1:
        yield from ((top_p, plain_temperature) for top_p in top_ps)
    if len(temperatures) > 1 or len(top_ps) == 1:
        yield from ((plain_top_p, temperature) for temperature in temperatures)
