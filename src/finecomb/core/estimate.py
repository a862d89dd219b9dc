"""A number with its interval, and the signature that says how it was made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from finecomb.version import __version__


@dataclass(frozen=True, slots=True)
class Signature:
    """All that is needed to make a number again, as `name:value` pairs in a fixed order, the version last."""

    fields: tuple[tuple[str, str], ...]

    @classmethod
    def from_fields(cls, **fields: object) -> Signature:
        """From keywords, in their order; None is left out, the version is added.

        >>> print(Signature.from_fields(statistic="alpha", unit="token", seed=0))  # doctest: +ELLIPSIS
        statistic:alpha|unit:token|seed:0|version:...
        """
        named = [(name, str(value)) for name, value in fields.items() if value is not None]
        return cls((*named, ("version", __version__)))

    def __getitem__(self, name: str) -> str:
        return dict(self.fields)[name]

    def __str__(self) -> str:
        return "|".join(f"{name}:{value}" for name, value in self.fields)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its interval; `value` is NaN when undefined and `why` then says why."""

    value: float
    low: float
    high: float
    signature: Signature
    why: str = ""

    def __post_init__(self) -> None:
        if math.isnan(self.value) and not self.why:
            raise ValueError("an undefined estimate needs a reason in `why`")

    def __str__(self) -> str:
        return f"{self.short()}  {self.signature}"

    def short(self, digits: int = 3) -> str:
        """`0.412 [0.380, 0.450]`, or the reason why there is no number."""
        if math.isnan(self.value):
            return self.why
        if math.isnan(self.low):
            return f"{self.value:.{digits}f}"
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of a result: what it is about, and the estimate."""

    columns: Mapping[str, object]
    """E.g. `{"measure": "coverage", "label": "redundant", "model": "gpt2"}`."""
    estimate: Estimate
