"""Rules that need no training: each marks one kind of slip and says why; docs/detect/rules.md lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from finecomb.annotators.detectors.base import Factory, detector_signature
from finecomb.annotators.detectors.rules import (
    currency,
    discourse_rules,
    grammar_tagger,
    numbers,
    package_rules,
    repetition,
    surface,
)
from finecomb.annotators.detectors.rules.rule_finding import Rule, RuleHint
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.options import option
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Antecedents, Document, Mark
from finecomb.core.span import Span

NAME = "rules"
RULES: dict[str, Rule] = {
    "repetition": repetition.repetition,
    "doubled-words": surface.doubled_words,
    "unbalanced": surface.unbalanced,
    "broken-ending": surface.broken_ending,
    "arithmetic": numbers.arithmetic,
    "conversions": numbers.conversions,
    "currency": currency.currency,
    "impossible": numbers.impossible,
    "ages": numbers.ages,
    "contradictions": discourse_rules.contradictions,
    "drift": discourse_rules.drift,
    "people": discourse_rules.people,
    "definite": discourse_rules.definite,
    "grammar": package_rules.grammar,
    "grammar-tagger": grammar_tagger.grammar_tagger,
    "meaning": package_rules.meaning,
}
"""Every rule by name: a new one is a function of a document and one more row here."""
ON_REQUEST = ("people", "definite", "grammar", "grammar-tagger", "meaning")
"""Rules that run only when they are named: they need a package, or are wrong too often for more than a hint."""
LOADED: dict[str, Callable[[], object]] = {
    "grammar": package_rules.linter,
    "grammar-tagger": grammar_tagger.edit_tagger,
    "meaning": package_rules.encoder,
}
"""What a rule loads before the first text, so that a package or model that is missing is no text's fault."""

DEFAULT = tuple(name for name in RULES if name not in ON_REQUEST)


@dataclass(frozen=True, slots=True)
class RulesOptions:
    """Options of the rules."""

    rules: tuple[str, ...] = option(
        (), "Only these rules, with commas; all but those on request without it.", commas=True
    )

    def __post_init__(self) -> None:
        for name in self.rules:
            if name not in RULES:
                raise FinecombError(f"--rules: no rule is called {name!r}{did_you_mean(name, RULES)}")


class RuleDetector:
    """Applies rules to a text; a mark says which rule made it and why."""

    def __init__(self, protocol: Protocol, options: RulesOptions) -> None:
        self.protocol = protocol
        self.rules = {name: RULES[name] for name in options.rules or DEFAULT}
        for name in self.rules.keys() & LOADED.keys():
            LOADED[name]()
        self.signature = detector_signature(NAME, protocol, RulesOptions(tuple(self.rules)))

    def __call__(self, document: Document) -> Annotation:
        """The hints of all rules in text order; those whose label the protocol lacks are left out."""
        hints = [
            (hint, name)
            for name, rule in self.rules.items()
            for hint in rule(document)
            if self.protocol.has_label(hint.label)
        ]
        hints.sort(key=lambda entry: (entry[0].start, entry[0].end, entry[1]))
        marks = tuple(_mark(document, number, *entry) for number, entry in enumerate(hints, 1))
        return Annotation(
            id=f"{document.id}/{NAME}",
            document=document.id,
            annotator=NAME,
            protocol=self.protocol.id,
            status="submitted",
            marks=marks,
        )


def _mark(document: Document, number: int, hint: RuleHint, rule: str) -> Mark:
    before = hint.antecedent
    return Mark(
        id=f"{document.id}/{NAME}/{number}",
        spans=(Span(hint.start, hint.end),),
        quotes=(document.text[hint.start : hint.end],),
        label=hint.label,
        answers={"explanation": hint.reason},
        antecedents=Antecedents(spans=(Span(*before),), quotes=(document.text[slice(*before)],)) if before else None,
        meta={"rule": rule},
    )


RULE_DETECTOR = Factory(
    name=NAME,
    title="repetition, doubled words, signs that do not close, numbers that cannot be; each mark says why",
    needs="a text",
    protocol="scarecrow",
    kind="detector",
    options=RulesOptions,
    make=RuleDetector,
)
