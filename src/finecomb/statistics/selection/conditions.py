"""Conditions: the small language of `--where`, from text to a tree. Nothing is ever executed.

    model == "human" or (top_p == 0.96 and temperature == 1)
    label in ("redundant", "off-prompt") and severity >= 2
    condition != missing and not excluded == true

| in words | meaning |
|---|---|
| `NAME == VALUE`, `!=` | equal or not; a number is compared as a number, text as text |
| `<`, `<=`, `>`, `>=` | in order; false where the value is missing or no number |
| `NAME in (A, B)`, `NAME not in (A, B)` | one of several values, or none of them |
| `"VALUE" in NAME` | the value is one of the entries of a list |
| `NAME contains "WORDS"` | the words occur in the value |
| `NAME == missing`, `NAME != missing` | nothing is there, or something is |
| `and`, `or`, `not`, `( )` | as in Python |
| `NAME=VALUE` | short for `NAME == "VALUE"`, without quotes |
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from finecomb.core.errors import ParameterError, param

Value: TypeAlias = str | float | bool | None
"""A literal; None is `missing`."""
Operator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains"]
_WORDS = frozenset({"and", "or", "not", "in", "contains", "missing", "true", "false"})
_MAX_NESTING = 50
_MAX_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class ConditionField:
    """A name in a condition, and where it stands in the text."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """A field beside values; `in` has several, `reversed` is `"VALUE" in NAME`."""

    field: ConditionField
    operator: Operator
    values: tuple[Value, ...]
    reversed: bool = False


@dataclass(frozen=True, slots=True)
class CombinedCondition:
    """Conditions joined by `and` or `or`."""

    joint: Literal["and", "or"]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """A condition that must not hold."""

    condition: Condition


Condition: TypeAlias = FieldComparison | CombinedCondition | Negation


class ConditionError(ParameterError):
    """What is wrong with a condition, with a caret under the place."""

    def __init__(self, text: str, at: int, problem: str) -> None:
        start = max(0, at - 50)
        excerpt = text[start : start + 100].replace("\n", " ")
        caret = " " * (at - start) + "^"
        super().__init__(f"{param('where')}: {problem}\n  {excerpt}\n  {caret}", parameter="where")


def parse_condition(text: str) -> Condition:
    """The tree of a condition.

    >>> parse_condition('model=gpt2')
    FieldComparison(field=ConditionField(name='model', at=0), operator='==', values=('gpt2',), reversed=False)
    >>> parse_condition('top_p >= .9')
    FieldComparison(field=ConditionField(name='top_p', at=0), operator='>=', values=(0.9,), reversed=False)
    >>> parse_condition('model = = 3')
    Traceback (most recent call last):
    finecomb.statistics.selection.conditions.ConditionError: where: expected a value, found '='
      model = = 3
              ^
    """
    if len(text) > _MAX_CHARACTERS:
        limit = f"a condition has at most {_MAX_CHARACTERS:,} characters"
        raise ParameterError(f"{param('where')}: {limit}, this has {len(text):,}", parameter="where")
    if short := parse_name_value_condition(text):
        return FieldComparison(ConditionField(short[0], text.index(short[0])), "==", (short[1],))
    return _Parser(text).parse()


def parse_name_value_condition(text: str) -> tuple[str, str] | None:
    """Name and value of a condition in short, NAME=VALUE; None for any other.

    >>> parse_name_value_condition("model=gpt2 xl"), parse_name_value_condition("top_p >= .9")
    (('model', 'gpt2 xl'), None)
    """
    short = _SHORT.fullmatch(text)
    return (short["name"], short["value"]) if short and not _JOINT.search(short["value"]) else None


def condition_fields(tree: Condition) -> Iterator[ConditionField]:
    """Every field that a condition names."""
    match tree:
        case FieldComparison():
            yield tree.field
        case Negation():
            yield from condition_fields(tree.condition)
        case CombinedCondition():
            for part in tree.conditions:
                yield from condition_fields(part)


def conjuncts(tree: Condition) -> Iterator[Condition]:
    """The conditions that must all hold: the parts of an outermost `and`, else the whole."""
    if isinstance(tree, CombinedCondition) and tree.joint == "and":
        for part in tree.conditions:
            yield from conjuncts(part)
    else:
        yield tree


# --- reading -----------------------------------------------------------------------------------------------------

_SHORT = re.compile(r"\s*(?P<name>[^\W\d][\w.-]*)=(?P<value>[^=\s\"'()][^=<>\"'()]*)")
_JOINT = re.compile(r"\s(?:and|or)\s")
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    | (?P<name>[^\W\d][\w.-]*|`[^`]+`)
    | (?P<sign>==|!=|<=|>=|<|>|=|\(|\)|\[|\]|,)
    | (?P<other>\S)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """Reads one condition from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [
            _Token(str(match.lastgroup), match.group(match.lastgroup or 0), match.start(match.lastgroup or 0))
            for match in _TOKEN.finditer(text)
        ]
        self.tokens.append(_Token("end", "", len(text.rstrip())))
        self.position = 0
        self.depth = 0

    def parse(self) -> Condition:
        tree = self.alternatives()
        if self.token.kind != "end":
            raise self.build_error(f"expected 'and', 'or' or the end, found {self.token.text!r}")
        return tree

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def build_error(self, message: str) -> ConditionError:
        return ConditionError(self.text, self.token.at, message)

    def accept(self, *texts: str) -> str:
        """The next token where it is one of `texts` and no string, else an empty string."""
        token = self.token
        if token.kind == "string" or token.text not in texts:
            return ""
        self.position += 1
        return token.text

    def expect(self, *texts: str) -> str:
        if taken := self.accept(*texts):
            return taken
        expected = " or ".join(repr(text) for text in texts)
        raise self.build_error(
            f"expected {expected}, found {self.token.text!r}" if self.token.text else f"{expected} is missing"
        )

    def alternatives(self) -> Condition:
        parts = [self.conjunction()]
        while self.accept("or"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else CombinedCondition("or", tuple(parts))

    def conjunction(self) -> Condition:
        parts = [self.negation()]
        while self.accept("and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else CombinedCondition("and", tuple(parts))

    def negation(self) -> Condition:
        self.depth += 1
        if self.depth > _MAX_NESTING:
            raise self.build_error(f"conditions are nested at most {_MAX_NESTING} deep")
        if self.accept("not"):
            tree: Condition = Negation(self.negation())
        elif self.accept("("):
            tree = self.alternatives()
            self.expect(")")
        else:
            tree = self.comparison()
        self.depth -= 1
        return tree

    def comparison(self) -> Condition:
        if self.token.kind in ("string", "number"):
            value = self.value()
            self.expect("in")
            return FieldComparison(self.field(), "in", (value,), reversed=True)
        field = self.field()
        if self.accept("contains"):
            return FieldComparison(field, "contains", (self.value(),))
        if self.accept("in"):
            return FieldComparison(field, "in", self.values())
        if self.accept("not"):
            self.expect("in")
            return FieldComparison(field, "not in", self.values())
        sign = self.expect("==", "!=", "<=", ">=", "<", ">", "=")
        if sign == "=" and self.token.kind == "name" and self.token.text not in _WORDS:
            self.position += 1
            return FieldComparison(field, "==", (self.tokens[self.position - 1].text,))
        return FieldComparison(field, "==" if sign == "=" else sign, (self.value(),))  # type: ignore[arg-type]

    def field(self) -> ConditionField:
        token = self.token
        if token.kind != "name" or token.text in _WORDS:
            raise self.build_error(f"expected a name, found {token.text!r}" if token.text else "a name is missing")
        self.position += 1
        return ConditionField(token.text.strip("`"), token.at)

    def values(self) -> tuple[Value, ...]:
        closing = {"(": ")", "[": "]"}[self.expect("(", "[")]
        values = [self.value()]
        while self.accept(","):
            if self.token.text == closing:
                break
            values.append(self.value())
        self.expect(closing)
        return tuple(values)

    def value(self) -> Value:
        token = self.token
        self.position += 1
        if token.kind == "string":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1])
        if token.kind == "number":
            return float(token.text)
        if token.text in ("true", "false", "missing"):
            return {"true": True, "false": False, "missing": None}[token.text]
        self.position -= 1
        if token.kind == "name":
            raise self.build_error(
                f'expected a value, found the name {token.text!r}; text needs quotes: "{token.text}"'
            )
        raise self.build_error(f"expected a value, found {token.text!r}" if token.text else "a value is missing")
