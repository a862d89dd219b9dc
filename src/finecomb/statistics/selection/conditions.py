"""Parser for the conditions of `--where`. A condition is parsed into a tree and never executed.

    model == "human" or (top_p == 0.96 and temperature == 1)
    label in ("redundant", "off-prompt") and severity >= 2
    condition != missing and not excluded == true

| condition | meaning |
|---|---|
| `NAME == VALUE`, `!=` | equal or not equal; numbers are compared as numbers, text as text |
| `<`, `<=`, `>`, `>=` | ordering; false where the value is missing or not a number |
| `NAME in (A, B)`, `NAME not in (A, B)` | one of several values, or none of them |
| `"VALUE" in NAME` | the value is an entry of a list |
| `NAME contains "WORDS"` | the words occur in the value |
| `NAME == missing`, `NAME != missing` | the field has no value, or has one |
| `and`, `or`, `not`, `( )` | as in Python |
| `NAME=VALUE` | short for `NAME == "VALUE"`, without quotes |
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from finecomb.core.errors import ParameterError, param

ConditionValue: TypeAlias = str | float | bool | None
"""A literal in a condition; None stands for `missing`."""
ComparisonOperator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in", "contains"]
_RESERVED_WORDS = frozenset({"and", "or", "not", "in", "contains", "missing", "true", "false"})
_MAX_NESTING = 50  # limits the recursion of the parser
_MAX_CONDITION_CHARACTERS = 10_000


@dataclass(frozen=True, slots=True)
class ConditionField:
    """Field name in a condition, with its offset in the condition's text."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """Comparison of a field with one or more values. `reversed` is True for the form `"VALUE" in NAME`."""

    field: ConditionField
    operator: ComparisonOperator
    values: tuple[ConditionValue, ...]
    reversed: bool = False


@dataclass(frozen=True, slots=True)
class CombinedCondition:
    """Conditions joined by `and` or `or`."""

    joint: Literal["and", "or"]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Negation:
    """A negated condition."""

    condition: Condition


Condition: TypeAlias = FieldComparison | CombinedCondition | Negation


class ConditionError(ParameterError):
    """Syntax error or unknown name in a condition, shown with a caret under its position."""

    def __init__(self, text: str, at: int, problem: str) -> None:
        start = max(0, at - 50)
        excerpt = text[start : start + 100].replace("\n", " ")
        caret = " " * (at - start) + "^"
        super().__init__(f"{param('where')}: {problem}\n  {excerpt}\n  {caret}", parameter="where")


def parse_condition(text: str) -> Condition:
    """Parse a condition into a tree.

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
    if len(text) > _MAX_CONDITION_CHARACTERS:
        limit = f"a condition can have at most {_MAX_CONDITION_CHARACTERS:,} characters"
        raise ParameterError(f"{param('where')}: {limit}, found {len(text):,}", parameter="where")
    if short := parse_name_value_condition(text):
        return FieldComparison(ConditionField(short[0], text.index(short[0])), "==", (short[1],))
    return _ConditionParser(text).parse()


def parse_name_value_condition(text: str) -> tuple[str, str] | None:
    """Return the name and value of a condition of the form NAME=VALUE, or None for any other condition.

    >>> parse_name_value_condition("model=gpt2 xl"), parse_name_value_condition("top_p >= .9")
    (('model', 'gpt2 xl'), None)
    """
    short = _NAME_VALUE_PATTERN.fullmatch(text)
    return (short["name"], short["value"]) if short and not _AND_OR_PATTERN.search(short["value"]) else None


def condition_fields(tree: Condition) -> Iterator[ConditionField]:
    """Yield every field that a condition names."""
    match tree:
        case FieldComparison():
            yield tree.field
        case Negation():
            yield from condition_fields(tree.condition)
        case CombinedCondition():
            for part in tree.conditions:
                yield from condition_fields(part)


def split_into_conjuncts(tree: Condition) -> Iterator[Condition]:
    """Yield the parts of an outermost `and`, which must all hold, or the condition itself if it is not an `and`."""
    if isinstance(tree, CombinedCondition) and tree.joint == "and":
        for part in tree.conditions:
            yield from split_into_conjuncts(part)
    else:
        yield tree


# --- parsing -----------------------------------------------------------------------------------------------------

_NAME_VALUE_PATTERN = re.compile(r"\s*(?P<name>[^\W\d][\w.-]*)=(?P<value>[^=\s\"'()][^=<>\"'()]*)")
_AND_OR_PATTERN = re.compile(r"\s(?:and|or)\s")
_TOKEN_PATTERN = re.compile(
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
class _ConditionToken:
    kind: str
    text: str
    at: int


class _ConditionParser:
    """Recursive-descent parser for one condition."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [
            _ConditionToken(str(match.lastgroup), match.group(match.lastgroup or 0), match.start(match.lastgroup or 0))
            for match in _TOKEN_PATTERN.finditer(text)
        ]
        self.tokens.append(_ConditionToken("end", "", len(text.rstrip())))
        self.position = 0
        self.depth = 0

    def parse(self) -> Condition:
        tree = self.parse_alternatives()
        if self.next_token.kind != "end":
            raise self.build_error(f"expected 'and', 'or' or the end, found {self.next_token.text!r}")
        return tree

    @property
    def next_token(self) -> _ConditionToken:
        return self.tokens[self.position]

    def build_error(self, message: str) -> ConditionError:
        return ConditionError(self.text, self.next_token.at, message)

    def accept_token(self, *texts: str) -> str:
        """Consume the next token and return its text if it is one of `texts` and not a string, else return ""."""
        token = self.next_token
        if token.kind == "string" or token.text not in texts:
            return ""
        self.position += 1
        return token.text

    def expect_token(self, *texts: str) -> str:
        if taken := self.accept_token(*texts):
            return taken
        expected = " or ".join(repr(text) for text in texts)
        raise self.build_error(
            f"expected {expected}, found {self.next_token.text!r}" if self.next_token.text else f"{expected} is missing"
        )

    def parse_alternatives(self) -> Condition:
        parts = [self.parse_conjunction()]
        while self.accept_token("or"):
            parts.append(self.parse_conjunction())
        return parts[0] if len(parts) == 1 else CombinedCondition("or", tuple(parts))

    def parse_conjunction(self) -> Condition:
        parts = [self.parse_negation()]
        while self.accept_token("and"):
            parts.append(self.parse_negation())
        return parts[0] if len(parts) == 1 else CombinedCondition("and", tuple(parts))

    def parse_negation(self) -> Condition:
        self.depth += 1
        if self.depth > _MAX_NESTING:
            raise self.build_error(f"conditions can be nested at most {_MAX_NESTING} levels deep")
        if self.accept_token("not"):
            tree: Condition = Negation(self.parse_negation())
        elif self.accept_token("("):
            tree = self.parse_alternatives()
            self.expect_token(")")
        else:
            if self.next_token.kind in ("string", "number"):
                value = self.parse_value()
                self.expect_token("in")
                tree = FieldComparison(self.parse_field(), "in", (value,), reversed=True)
            else:
                field = self.parse_field()
                if self.accept_token("contains"):
                    tree = FieldComparison(field, "contains", (self.parse_value(),))
                elif self.accept_token("in"):
                    tree = FieldComparison(field, "in", self.parse_values())
                elif self.accept_token("not"):
                    self.expect_token("in")
                    tree = FieldComparison(field, "not in", self.parse_values())
                else:
                    sign = self.expect_token("==", "!=", "<=", ">=", "<", ">", "=")
                    if sign == "=" and self.next_token.kind == "name" and self.next_token.text not in _RESERVED_WORDS:
                        self.position += 1
                        tree = FieldComparison(field, "==", (self.tokens[self.position - 1].text,))
                    else:
                        tree = FieldComparison(field, "==" if sign == "=" else sign, (self.parse_value(),))  # type: ignore[arg-type]
        self.depth -= 1
        return tree

    def parse_field(self) -> ConditionField:
        token = self.next_token
        if token.kind != "name" or token.text in _RESERVED_WORDS:
            raise self.build_error(f"expected a name, found {token.text!r}" if token.text else "a name is missing")
        self.position += 1
        return ConditionField(token.text.strip("`"), token.at)

    def parse_values(self) -> tuple[ConditionValue, ...]:
        closing = {"(": ")", "[": "]"}[self.expect_token("(", "[")]
        values = [self.parse_value()]
        while self.accept_token(","):
            if self.next_token.text == closing:
                break
            values.append(self.parse_value())
        self.expect_token(closing)
        return tuple(values)

    def parse_value(self) -> ConditionValue:
        token = self.next_token
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
