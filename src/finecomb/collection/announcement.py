"""What annotators are told before they start: the phases in force, how long they take, and what they are paid.

Everything is composed from the protocol and the settings of the study, so that nobody is told of a test that was left
out, and nobody learns of one that was not announced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from finecomb.core.design import design_cells
from finecomb.core.protocol import Protocol, TimedPhase
from finecomb.core.records import Settings

PHASES_PLACEHOLDER = "{way}"
"""Where a consent text wants the phases and the pay; at its end when it does not say."""


@dataclass(frozen=True, slots=True)
class AnnouncedPhase:
    """A phase before the work, and about how many minutes it takes."""

    phase: TimedPhase
    minutes: float | None
    is_for_all: bool = True
    """Whether everybody goes through it; a training may belong to some conditions only."""


@dataclass(frozen=True, slots=True)
class ParticipationTerms:
    """What somebody who takes part goes through, for how long and for how much."""

    phases: Sequence[AnnouncedPhase]
    texts: tuple[int, int] | None
    """How many texts one person reads, fewest and most; None where it is as many as they like."""
    text_minutes: float | None
    batch: int | None
    """Texts of one task on the platform."""
    currency: str
    price: float | None
    """For a text."""
    base_pay: float
    pays: tuple[float, float] | None
    """For all texts of one person, lowest and highest, where the design says it."""
    requirements: str = ""

    @property
    def onboarding_minutes(self) -> float | None:
        """About how long everything before the first text takes; None where the protocol does not say."""
        known = [phase.minutes for phase in self.phases]
        return sum(minutes for minutes in known if minutes is not None) if any(known) else None


def build_participation_terms(protocol: Protocol, settings: Settings) -> ParticipationTerms:
    """What people are told of a study: its protocol without the phases that are left out."""
    cells = design_cells(settings.design, protocol) if settings.design else []
    texts = [cell.texts for cell in cells if cell.texts] or ([protocol.work.texts] if protocol.work.texts else [])
    pays = [cell.pay for cell in cells if cell.pay is not None]
    return ParticipationTerms(
        phases=[phase for phase in _announced_phases(protocol, settings) if phase.phase not in settings.skip],
        texts=(min(texts), max(texts)) if texts else None,
        text_minutes=protocol.minutes.get("text"),
        batch=settings.recruitment.batch,
        currency=settings.effective_currency,
        price=settings.price,
        base_pay=settings.base_pay,
        pays=(min(pays), max(pays)) if pays else None,
        requirements=settings.design.requirements if settings.design else "",
    )


def _announced_phases(protocol: Protocol, settings: Settings) -> Iterable[AnnouncedPhase]:
    minutes = protocol.minutes
    trained = [
        bool(arm.examples or arm.pairs)
        for arm in protocol.conditions
        if _is_condition_used(arm.name, settings, protocol)
    ]
    if protocol.survey:
        yield AnnouncedPhase("survey", minutes.get("survey"))
    if protocol.instructions:
        yield AnnouncedPhase("instructions", minutes.get("instructions"))
    if (protocol.training and protocol.training.exercises) or any(trained):
        yield AnnouncedPhase("training", minutes.get("training"), bool(protocol.training) or all(trained))
    if protocol.qualification:
        yield AnnouncedPhase("qualification", minutes.get("qualification"))


def _is_condition_used(condition: str, settings: Settings, protocol: Protocol) -> bool:
    """Whether anybody gets the material of a condition."""
    if settings.design is None:
        return True
    return any(cell.training == condition for cell in design_cells(settings.design, protocol))


# --- in words ----------------------------------------------------------------------------------------------------

_PHASE_CLAUSES: dict[TimedPhase, str] = {
    "survey": "answer some questions about yourself",
    "instructions": "read the instructions",
    "training": "practise",
    "qualification": "take a test, which decides whether you go on",
}
_PHASE_TITLES: dict[TimedPhase, str] = {
    "survey": "questions about oneself",
    "instructions": "instructions",
    "training": "practice",
    "qualification": "test",
}


def consent_text(protocol: Protocol, settings: Settings) -> str:
    """What people agree to, with the phases, times and pay of this study; empty where the study asks for no consent."""
    if "consent" in settings.skip or not protocol.consent:
        return ""
    told = build_participation_terms(protocol, settings)
    way = "\n\n".join(
        sentence for sentence in (_describe_phases(told), _describe_pay(told), _describe_requirements(told)) if sentence
    )
    if PHASES_PLACEHOLDER in protocol.consent:
        return protocol.consent.replace(PHASES_PLACEHOLDER, way)
    return f"{protocol.consent.rstrip()}\n\n{way}" if protocol.language.startswith("en") else protocol.consent


def _describe_phases(told: ParticipationTerms) -> str:
    steps = [
        f"{_optional_prefix(phase)}{_PHASE_CLAUSES[phase.phase]}{_duration_suffix(phase.minutes)}"
        for phase in told.phases
    ]
    first = f"First you {_join_with_and(steps)}. Then you" if steps else "You"
    each = f", about {_format_minutes(told.text_minutes)} each" if told.text_minutes else ""
    return f"{first} work on {_describe_text_count(told)}{each}."


def _optional_prefix(phase: AnnouncedPhase) -> str:
    return "" if phase.is_for_all else "perhaps "


def _duration_suffix(minutes: float | None) -> str:
    return f" (about {_format_minutes(minutes)})" if minutes else ""


def _format_minutes(minutes: float) -> str:
    return "a minute" if minutes == 1 else f"{minutes:g} minutes"


def _describe_text_count(told: ParticipationTerms) -> str:
    if told.batch is not None:
        some = "one text" if told.batch == 1 else f"{told.batch:,} texts"
        return f"{some} in each task, and you may take further tasks"
    if told.texts is None:
        return "one text after the other, as many as you like"
    low, high = told.texts
    if low != high:
        return f"{low:,} to {high:,} texts"
    return "one text" if low == 1 else f"{low:,} texts"


def _describe_pay(told: ParticipationTerms) -> str:
    amounts = _pay_phrases(told)
    if not amounts:
        return ""
    also = ", also if you do not pass the test" if told.base_pay and _has_qualification(told) else ""
    return f"You are paid {_join_with_and(amounts)}{also}."


def _pay_phrases(told: ParticipationTerms) -> list[str]:
    money = told.currency
    amounts = []
    if told.pays is not None:
        low, high = told.pays
        amount = f"{money} {low:.2f}" if low == high else f"between {money} {low:.2f} and {money} {high:.2f}"
        amounts.append(f"{amount} for all texts{'' if low == high else ', depending on how much you read before'}")
    elif told.price:
        amounts.append(f"{money} {told.price:.2f} for each text")
    if told.base_pay:
        amounts.append(f"{money} {told.base_pay:.2f} for taking part")
    return amounts


def _has_qualification(told: ParticipationTerms) -> bool:
    return any(phase.phase == "qualification" for phase in told.phases)


def _describe_requirements(told: ParticipationTerms) -> str:
    return f"Who can take part: {told.requirements}" if told.requirements else ""


def _join_with_and(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def researcher_summary_line(told: ParticipationTerms) -> str:
    """What annotators go through, how long and for how much, in one line for researchers."""
    steps = [
        f"{_PHASE_TITLES[phase.phase]}{f' {phase.minutes:g} min' if phase.minutes else ''}"
        f"{'' if phase.is_for_all else ' (some)'}"
        for phase in told.phases
    ]
    each = f", {told.text_minutes:g} min each" if told.text_minutes else ""
    amounts = _pay_phrases(told)
    pay = _join_with_and(amounts) if amounts else "no pay is set"
    return f"{', '.join([*steps, ''])}{'then ' if steps else ''}{_describe_text_count(told)}{each}; {pay}"
