"""Options declared once, as the fields of a frozen dataclass: of a statistic, a detector, or whatever has a registry.

A field is declared with `option(default, help)`. `option_specs` reads the fields, `reject_unknown_options` names an
option that
what was chosen does not have, and `OptionValues` makes the dataclass of each choice. `finecomb.cli.options` turns the
same fields into flags of the command line. Statistics and detectors' factories both use it:

>>> @dataclass(frozen=True)
... class CountOptions:
...     least: int = option(1, "Count texts with so many marks or more.")
>>> option_specs(CountOptions)["least"].flag
'--least'
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param

Options = TypeVar("Options")


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """One option: what it is called, what it may be, and what it does."""

    name: str
    """As in Python."""
    kind: Any
    """The type of its value."""
    default: Any
    help: str
    flags: tuple[str, ...] = ()
    """As on the command line, where that is not simply the name, e.g. `--measure`, `-m`."""
    minimum: int | None = None
    commas: bool = False
    """Whether several values are written with commas between them; otherwise the option is repeated."""

    @property
    def flag(self) -> str:
        """The flag by which it is named to people."""
        return self.flags[0] if self.flags else f"--{self.name.replace('_', '-')}"


def option(default: Any, help: str, *flags: str, minimum: int | None = None, commas: bool = False) -> Any:
    """A field of an options dataclass."""
    metadata = {"help": help, "flags": flags, "minimum": minimum, "commas": commas}
    return dataclasses.field(default=default, metadata=metadata)


def option_specs(options: type) -> dict[str, OptionSpec]:
    """The options that a dataclass declares, by name; fields without a help are not for users."""
    kinds = typing.get_type_hints(options)
    return {
        field.name: OptionSpec(field.name, kinds[field.name], field.default, **field.metadata)
        for field in dataclasses.fields(options)
        if "help" in field.metadata
    }


def merge_option_specs(choices: Iterable[type]) -> dict[str, OptionSpec]:
    """The options of several dataclasses, each once; the first that has an option says what it does."""
    specs: dict[str, OptionSpec] = {}
    for options in choices:
        for name, spec in option_specs(options).items():
            specs.setdefault(name, spec)
    return specs


def build_options(options: type[Options], **values: Any) -> Options:
    """An options dataclass from keywords; lists become tuples, and a name that it does not have is refused."""
    names = [field.name for field in dataclasses.fields(options)]  # type: ignore[arg-type]
    for name in values:
        if name not in names:
            raise FinecombError(f"no option is called {name!r}{did_you_mean(name, names)}")
    return options(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def reject_unknown_options(given: Iterable[str], chosen: Mapping[str, type], choices: Mapping[str, type]) -> None:
    """An error that names the first of the `given` options that nothing `chosen` has, and what has it.

    Both mappings are from names, as users know them, to options dataclasses; `choices` are all there are.
    """
    allowed = merge_option_specs(chosen.values())
    specs = merge_option_specs(choices.values())
    for name in given:
        if name in specs and name not in allowed:
            owners = [choice for choice, options in choices.items() if name in option_specs(options)]
            keyword = specs[name].flag.removeprefix("--").replace("-", "_")
            raise ParameterError(
                f"{param(keyword)} does not apply to {join_names(chosen)}; it applies to {join_names(owners)}",
                parameter=keyword,
            )


def join_names(names: Iterable[str], max_names: int = 6) -> str:
    """Names with commas, the first few of many.

    >>> listed(["coverage", "count"])
    'coverage, count'
    """
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - max_names} more" if len(every) > max_names else ""
    return ", ".join(every[:max_names]) + more


@dataclass(frozen=True, slots=True)
class OptionValues:
    """The options that a user gave, by name; what was not given is left to each dataclass's default."""

    given: Mapping[str, Any]

    def build_options(self, options: type[Options], **more: Any) -> Options:
        """The options dataclass of one choice, with those of the given values that it has, `more` before them."""
        names = {field.name for field in dataclasses.fields(options)}  # type: ignore[arg-type]
        return options(**{name: value for name, value in {**self.given, **more}.items() if name in names})
