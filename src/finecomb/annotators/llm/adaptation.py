"""Adaptation of requests to an endpoint: parameters that it rejected are renamed or omitted from then on.

There are no lists of model names. A parameter is changed only if an error response names it and it was part of the
request. The limit on the reply is never omitted, and parameters that the user chose with `extra`, `effort` or
`thinking_tokens` are never changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from finecomb.annotators.llm.chat import StorableText, Structure
from finecomb.annotators.llm.failures import UNROUTABLE_PARAMETERS, Failure
from finecomb.core.errors import shorten
from finecomb.core.records import Record

LIMIT_NAMES = ("max_tokens", "max_completion_tokens")
"""Names of the limit on the reply in the API of OpenAI."""
_NATIVE_LIMIT_NAMES = ("max_output_tokens", "maxOutputTokens", "num_predict")
_NESTED = ("generationConfig", "options")
"""Objects inside a request whose fields are parameters too."""
_PARAMETER_CODES = {"unsupported_parameter", "unsupported_value", "unknown_parameter"}
_USERS_CHOICE = {"reasoning_effort", "reasoning", "thinking", "think", "thinkingConfig", "prompt_mode"}
_UNROUTABLE_ORDER = ("seed", "frequency_penalty", "top_p", "temperature")
_NAME_PATTERNS = [
    re.compile(pattern)
    for pattern in (
        r"Unsupported (?:parameter|value): '([^']+)'",
        r"Unknown parameter: '([^']+)'",
        r"Unknown name \"([^\"]+)\"(?: at '[^']+')?: Cannot find field",
        r"property '([^']+)' is unsupported",  # a "did you mean" after it is never followed
        r"`?(\w+)`? is deprecated for this model",
        r"(?m)^([\w.]+): Extra inputs are not permitted",
        r"unknown field `([^`]+)`",
    )
]
_PATH_PATTERN = re.compile(r"Unknown name \"[^\"]+\" at '([^']+)'")
_RENAME_PATTERN = re.compile(r"Use '([^']+)' instead")
_STRUCTURE_PATTERN = re.compile(
    r"response_format type is unavailable|response_format\.type|target type: response_format|Failed to parse grammar"
    r"|\b(?:json_schema|response_format|output_config\.format|output_format|guided|structured outputs?)\b.{0,60}"
    r"(?:not supported|unsupported|unavailable|not available|not permitted|not allowed|unknown)"
    r"|(?:does not support|unknown field|unsupported|unrecognized).{0,60}"
    r"\b(?:json_schema|response_format|output_config\.format|output_format|structured outputs?|response schema)\b",
    re.I | re.S,
)


class ParameterChange(Record):
    """A parameter that is sent differently because the endpoint rejected it."""

    name: StorableText
    """Name of the rejected parameter."""
    change: StorableText
    """`omitted`, `renamed to NAME`, or the remaining means of structured output."""
    why: StorableText
    """Message of the endpoint."""

    def describe(self, host: str) -> str:
        """Return the change as a sentence."""
        return f"{self.name} was {self.change}: {host} answered {self.why!r}"


class LimitRejectedError(Exception):
    """Error for an endpoint that accepts no limit on the length of replies."""


@dataclass(slots=True)
class Adaptation:
    """What was learned about an endpoint and a model from error responses."""

    structures: Sequence[Structure] = ("json_schema", "json_object", "none")
    """Means of structured output, the strongest first."""
    structure_fields: Collection[str] = ("response_format",)
    """Parameters that request structured output."""
    renames: Mapping[str, str] = field(default_factory=dict)
    """Names that replace a rejected parameter, where the endpoint's error does not give one."""
    changes: list[ParameterChange] = field(default_factory=list)
    """All changes so far, in order."""

    @property
    def structure(self) -> Structure:
        """The strongest means of structured output that was not rejected."""
        steps = sum(change.name == "structured output" for change in self.changes)
        return self.structures[min(steps, len(self.structures) - 1)]

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request's body with all changes."""
        for change in self.changes:
            for place in (body, *(body[name] for name in _NESTED if name in body)):
                if change.name in place and change.change == "omitted":
                    del place[change.name]
                elif change.name in place and change.change.startswith("renamed to "):
                    place[change.change.removeprefix("renamed to ")] = place.pop(change.name)
        return body

    def learn(self, failure: Failure, body: Mapping[str, Any], fixed: Collection[str] = ()) -> list[ParameterChange]:
        """Return the changes that an error response asks for, and remember them; empty if there is nothing to learn.

        `body` is the rejected request and `fixed` names the parameters that the user chose.
        """
        names = {name: name for name in body}
        for nested in _NESTED:
            names |= {name: name for name in body.get(nested, ())}
        sent = {_plain(name): name for name in names}
        changed = {change.name for change in self.changes if change.name != "structured output"}
        why = shorten(failure.message, 160)
        new: list[ParameterChange] = []
        for rejected in dict.fromkeys(_rejected_names(failure)):
            parts = [_plain(part) for part in rejected.split(".")]
            if any(part in {_plain(name) for name in self.structure_fields} for part in parts):
                new += self._weaker_structure(why)
                continue
            name = sent.get(parts[-1]) or sent.get(parts[0], "")
            if not name or name in changed or name in fixed or name in _USERS_CHOICE:
                continue
            if name in (*LIMIT_NAMES, *_NATIVE_LIMIT_NAMES):
                new.append(self._rename_limit(name, failure, why))
            elif name in self.renames:
                new.append(ParameterChange(name=name, change=f"renamed to {self.renames[name]}", why=why))
            elif name not in ("model", "messages", "prompt", "input", "contents", "system"):
                new.append(ParameterChange(name=name, change="omitted", why=why))
        text = "\n".join(failure.messages) or failure.message
        has_structure = any(name in names for name in self.structure_fields)
        if not new and has_structure and _STRUCTURE_PATTERN.search(text):
            new += self._weaker_structure(why)
        if not new and UNROUTABLE_PARAMETERS in text:
            # The message names no parameter, so the least important ones are omitted one by one.
            new += self._weaker_structure(why) if has_structure else []
            candidates = (name for name in _UNROUTABLE_ORDER if name in body and name not in fixed)
            new += [ParameterChange(name=name, change="omitted", why=why) for name in [*candidates][:1] if not new]
        unique = {(change.name, change.change): change for change in new}
        self.changes += unique.values()
        return list(unique.values())

    def _weaker_structure(self, why: str) -> list[ParameterChange]:
        if self.structure == self.structures[-1]:
            return []
        step = self.structures[self.structures.index(self.structure) + 1]
        change = "omitted" if step == "none" else f"reduced to {step}"
        return [ParameterChange(name="structured output", change=change, why=why)]

    def _rename_limit(self, name: str, failure: Failure, why: str) -> ParameterChange:
        """Return the other name of the limit on replies, or raise an error if the endpoint rejected both."""
        rejected = {change.name for change in self.changes}
        suggestions = [match for text in failure.messages for match in _RENAME_PATTERN.findall(text)]
        for other in (*suggestions, *(LIMIT_NAMES if name in LIMIT_NAMES else ())):
            if other in LIMIT_NAMES and other != name and other not in rejected:
                return ParameterChange(name=name, change=f"renamed to {other}", why=why)
        raise LimitRejectedError(failure.message)


def _plain(name: str) -> str:
    """Return a name without the differences between snake case and camel case."""
    return name.replace("_", "").lower()


def _rejected_names(failure: Failure) -> Iterator[str]:
    """Yield the parameters that an error response names as unsupported."""
    for item in failure.objects:
        if item.get("code") in _PARAMETER_CODES and isinstance(item.get("param"), str):
            yield item["param"]
        location = item.get("loc")
        if item.get("type") == "extra_forbidden" and isinstance(location, list) and len(location) > 1:
            yield ".".join(map(str, location[1:]))
    for text in failure.messages:
        for path in _PATH_PATTERN.findall(text):
            if "response" in path:  # Google names a part of the schema, for example `const`
                yield path.partition("response")[1] + re.split(r"[.\[]", path.partition("response")[2])[0]
        for pattern in _NAME_PATTERNS:
            yield from pattern.findall(text)
