"""Options declared once as fields of a frozen dataclass, e.g. of a statistic or a detector.

A field is declared with `option_field(default)`. Options of built-in statistics and detectors are described in the
Parameters section of the public function that takes them. Options of other packages have no keyword there, so they
define their own `help`, and `finecomb.cli.options` turns them into flags.

>>> @dataclass(frozen=True)
... class CountOptions:
...     min_marks: int = option_field(1, help="Minimum number of marks of a text that is counted.")
>>> option_specs(CountOptions)["min_marks"].flag
'--min-marks'
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param

Options = TypeVar("Options")


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """Specification of one option: name, type, limits and help."""

    name: str
    """Name in Python."""
    kind: Any
    """Type of the value."""
    default: Any
    help: str
    flags: tuple[str, ...] = ()
    """Flags on the command line if they differ from the name, e.g. `--measure`, `-m`."""
    minimum: int | None = None
    commas: bool = False
    """True if several values are comma-separated; otherwise the option is repeated."""

    @property
    def flag(self) -> str:
        """Command-line flag shown in messages."""
        return self.flags[0] if self.flags else f"--{self.name.replace('_', '-')}"

    @property
    def parameter(self) -> str:
        """Keyword argument of public functions that sets the option: the flag without its leading dashes."""
        return self.flag.lstrip("-").replace("-", "_")


def option_field(default: Any, *flags: str, help: str = "", minimum: int | None = None, commas: bool = False) -> Any:
    """Return a field of an options dataclass."""
    metadata = {"help": help, "flags": flags, "minimum": minimum, "commas": commas}
    return dataclasses.field(default=default, metadata=metadata)


def option_specs(options: type) -> dict[str, OptionSpec]:
    """Return the options that a dataclass declares, by name; fields not made by `option_field` are internal."""
    kinds = typing.get_type_hints(options)
    return {
        field.name: OptionSpec(field.name, kinds[field.name], field.default, **field.metadata)
        for field in dataclasses.fields(options)
        if "help" in field.metadata
    }


def merge_option_specs(choices: Iterable[type]) -> dict[str, OptionSpec]:
    """Return the options of several dataclasses without duplicates; the first declaration of an option is used."""
    specs: dict[str, OptionSpec] = {}
    for options in choices:
        for name, spec in option_specs(options).items():
            specs.setdefault(name, spec)
    return specs


def build_options(options: type[Options], **values: Any) -> Options:
    """Build an options dataclass from keywords; lists become tuples and unknown names are rejected."""
    names = [field.name for field in dataclasses.fields(options)]  # type: ignore[arg-type]
    for name in values:
        if name not in names:
            raise FinecombError(f"unknown option {name!r}{did_you_mean(name, names)}")
    return options(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def reject_unknown_options(given: Iterable[str], chosen: Mapping[str, type], choices: Mapping[str, type]) -> None:
    """Reject the first `given` option that no `chosen` item accepts; the error names the items that accept it.

    Both mappings are from public names to options dataclasses; `choices` holds all available items.
    """
    specs = merge_option_specs(choices.values())
    parameters = [specs[name].parameter for name in given if name in specs]
    reject_inapplicable_parameters(parameters, chosen, parameters_by_choice({**choices, **chosen}))


def parameters_by_choice(choices: Mapping[str, type]) -> dict[str, frozenset[str]]:
    """Return the parameters that each choice accepts, from its options dataclass."""
    return {
        name: frozenset(spec.parameter for spec in option_specs(options).values()) for name, options in choices.items()
    }


def reject_inapplicable_parameters(
    given: Iterable[str], chosen: Iterable[str], parameters_by_choice: Mapping[str, Collection[str]]
) -> None:
    """Reject the first `given` parameter that no `chosen` item accepts; the error names the choices that accept it.

    A parameter that no choice at all accepts belongs to the caller and is not rejected.
    """
    chosen = list(chosen)
    for parameter in given:
        owners = [name for name, parameters in parameters_by_choice.items() if parameter in parameters]
        if owners and not any(name in owners for name in chosen):
            raise ParameterError(
                f"{param(parameter)} does not apply to {join_names(chosen)}; it applies to {join_names(owners)}",
                parameter=parameter,
            )


def join_names(names: Iterable[str], max_names: int = 6) -> str:
    """Join names with commas; only the first `max_names` are listed.

    >>> join_names(["coverage", "count"])
    'coverage, count'
    """
    every = list(dict.fromkeys(names))
    more = f" and {len(every) - max_names} more" if len(every) > max_names else ""
    return ", ".join(every[:max_names]) + more


@dataclass(frozen=True, slots=True)
class OptionValues:
    """Options that a user gave, by name; options not given keep their defaults."""

    given: Mapping[str, Any]

    def build_options(self, options: type[Options], **more: Any) -> Options:
        """Build an options dataclass from those given values that it declares; `more` takes precedence."""
        names = {field.name for field in dataclasses.fields(options)}  # type: ignore[arg-type]
        return options(**{name: value for name, value in {**self.given, **more}.items() if name in names})
