"""Rule-based detection without training.

Each rule marks one error type and explains the mark; see docs/detect/rules.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from finecomb.annotators.detectors.base import DetectorFactory, detector_signature
from finecomb.annotators.detectors.rules import (
    currency,
    discourse_rules,
    grammar_tagger,
    numbers,
    package_rules,
    repetition,
    surface_rules,
)
from finecomb.annotators.detectors.rules.rule_finding import Rule, RuleFinding
from finecomb.core.errors import ParameterError, did_you_mean, param
from finecomb.core.options import option_field
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Antecedents, Document, Mark
from finecomb.core.span import Span

NAME = "rules"
RULES_BY_NAME: dict[str, Rule] = {
    "repetition": repetition.find_repetitions,
    "doubled-words": surface_rules.find_doubled_words,
    "unbalanced": surface_rules.find_unbalanced_signs,
    "broken-ending": surface_rules.find_unfinished_ending,
    "arithmetic": numbers.find_arithmetic_errors,
    "conversions": numbers.find_unit_conversion_errors,
    "currency": currency.find_currency_errors,
    "impossible": numbers.find_impossible_values,
    "ages": numbers.find_conflicting_ages,
    "contradictions": discourse_rules.find_contradicting_facts,
    "drift": discourse_rules.find_topic_drift,
    "people": discourse_rules.find_unintroduced_people,
    "definite": discourse_rules.find_unintroduced_definites,
    "grammar": package_rules.find_grammar_errors,
    "grammar-tagger": grammar_tagger.find_tagger_edits,
    "meaning": package_rules.find_paraphrased_sentences,
}
"""All rules by name. To add a rule, write a function of a document and list it here."""
OPT_IN_RULES = ("people", "definite", "grammar", "grammar-tagger", "meaning")
"""Rules that run only on request, because they need a package or have low precision."""
LOADERS_BY_RULE: dict[str, Callable[[], object]] = {
    "grammar": package_rules.load_harper_linter,
    "grammar-tagger": grammar_tagger.load_edit_tagger,
    "meaning": package_rules.load_sentence_encoder,
}
"""Functions called before the first text, so that a missing package or model is not attributed to a text."""

DEFAULT_RULES = tuple(name for name in RULES_BY_NAME if name not in OPT_IN_RULES)


@dataclass(frozen=True, slots=True)
class RulesOptions:
    """Options of the rule detector."""

    rules: tuple[str, ...] = option_field((), commas=True)

    def __post_init__(self) -> None:
        for name in self.rules:
            if name not in RULES_BY_NAME:
                raise ParameterError(
                    f"{param('rules')}: unknown rule {name!r}{did_you_mean(name, RULES_BY_NAME)}",
                    parameter="rules",
                )


class RuleDetector:
    """A detector that applies rules. Each mark records its rule and the reason."""

    def __init__(self, protocol: Protocol, options: RulesOptions) -> None:
        self.protocol = protocol
        self.rules = {name: RULES_BY_NAME[name] for name in options.rules or DEFAULT_RULES}
        for name in self.rules.keys() & LOADERS_BY_RULE.keys():
            LOADERS_BY_RULE[name]()
        self.signature = detector_signature(NAME, protocol, RulesOptions(tuple(self.rules)))

    def __call__(self, document: Document) -> Annotation:
        """Annotate a document with the findings of all rules whose label the protocol has, in text order."""
        hints = [
            (hint, name)
            for name, rule in self.rules.items()
            for hint in rule(document)
            if self.protocol.has_label(hint.label)
        ]
        hints.sort(key=lambda entry: (entry[0].start, entry[0].end, entry[1]))
        marks = tuple(_build_mark(document, number, *entry) for number, entry in enumerate(hints, 1))
        return Annotation(
            id=f"{document.id}/{NAME}",
            document=document.id,
            annotator=NAME,
            protocol=self.protocol.id,
            status="submitted",
            marks=marks,
        )


def _build_mark(document: Document, number: int, hint: RuleFinding, rule: str) -> Mark:
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


RULE_DETECTOR = DetectorFactory(
    name=NAME,
    title="repetition, doubled words, unbalanced quotes and brackets, impossible numbers, each with an explanation",
    needs="a text",
    protocol="scarecrow",
    kind="detector",
    options=RulesOptions,
    make=RuleDetector,
)
