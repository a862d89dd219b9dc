"""Terms shown to annotators before they start: phases, durations and pay.

The text is composed from the protocol and the settings of the study, so that it never mentions a phase that is
skipped and never omits one that takes place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from finecomb.core.design import design_cells
from finecomb.core.protocol import Protocol, TimedPhase
from finecomb.core.records import Settings

PHASES_PLACEHOLDER = "{way}"
"""Placeholder in a consent text for the phases and the pay. Without it, they are added at the end."""


@dataclass(frozen=True, slots=True)
class AnnouncedPhase:
    """Onboarding phase with its approximate duration in minutes."""

    phase: TimedPhase
    minutes: float | None
    is_for_all: bool = True
    """False when the phase is part of only some conditions."""


@dataclass(frozen=True, slots=True)
class ParticipationTerms:
    """Phases, workload and pay announced to a participant."""

    phases: Sequence[AnnouncedPhase]
    texts: tuple[int, int] | None
    """Minimum and maximum number of texts per person; None when the number is not limited."""
    text_minutes: float | None
    batch: int | None
    """Number of texts per task on the recruiting platform; None without such tasks."""
    currency: str
    price: float | None
    """Pay per text."""
    base_pay: float
    pays: tuple[float, float] | None
    """Lowest and highest pay per person for all their texts; None when the design does not set the pay."""
    requirements: str = ""

    @property
    def onboarding_minutes(self) -> float | None:
        """Approximate duration of the onboarding in minutes; None when the protocol does not state durations."""
        known = [phase.minutes for phase in self.phases]
        return sum(minutes for minutes in known if minutes is not None) if any(known) else None


def build_participation_terms(protocol: Protocol, settings: Settings) -> ParticipationTerms:
    """Build the participation terms of a study from its protocol and settings, without skipped phases."""
    cells = design_cells(settings.design, protocol) if settings.design else []
    texts = [cell.texts for cell in cells if cell.texts] or ([protocol.work.texts] if protocol.work.texts else [])
    pays = [cell.pay for cell in cells if cell.pay is not None]
    used = {cell.training for cell in cells}
    trained = [
        bool(arm.examples or arm.pairs) for arm in protocol.conditions if settings.design is None or arm.name in used
    ]
    has_exercises = bool(protocol.training and protocol.training.exercises)
    is_planned: dict[TimedPhase, bool] = {
        "survey": bool(protocol.survey),
        "instructions": bool(protocol.instructions),
        "training": has_exercises or any(trained),
        "qualification": bool(protocol.qualification),
    }
    return ParticipationTerms(
        phases=[
            AnnouncedPhase(
                phase,
                protocol.minutes.get(phase),
                is_for_all=phase != "training" or bool(protocol.training) or all(trained),
            )
            for phase, planned in is_planned.items()
            if planned and phase not in settings.skip
        ],
        texts=(min(texts), max(texts)) if texts else None,
        text_minutes=protocol.minutes.get("text"),
        batch=settings.recruitment.batch,
        currency=settings.effective_currency,
        price=settings.price,
        base_pay=settings.base_pay,
        pays=(min(pays), max(pays)) if pays else None,
        requirements=settings.design.requirements if settings.design else "",
    )


# --- sentences ---------------------------------------------------------------------------------------------------

_PHASE_CLAUSES: dict[TimedPhase, str] = {
    "survey": "answer a few questions about yourself",
    "instructions": "read the instructions",
    "training": "practise",
    "qualification": "take a qualification test",
}
_PHASE_TITLES: dict[TimedPhase, str] = {
    "survey": "background questions",
    "instructions": "instructions",
    "training": "practice",
    "qualification": "test",
}


def consent_text(protocol: Protocol, settings: Settings) -> str:
    """Return the consent text with the study's phases, durations and pay; empty when the study has no consent text."""
    if "consent" in settings.skip or not protocol.consent:
        return ""
    told = build_participation_terms(protocol, settings)
    steps = [
        ("" if phase.is_for_all else "perhaps ")
        + _PHASE_CLAUSES[phase.phase]
        + (f" (about {_format_minutes(phase.minutes)})" if phase.minutes else "")
        for phase in told.phases
    ]
    first = f"First, you will {_join_with_and(steps)}. Then you will" if steps else "You will"
    duration = f", about {_format_minutes(told.text_minutes)} each" if told.text_minutes else ""
    more = " You can take more than one task." if told.batch is not None else ""
    way = "\n\n".join(
        sentence
        for sentence in (
            f"{first} annotate {_describe_text_count(told)}{duration}.{more}",
            _describe_pay(told),
            f"Eligibility: {told.requirements}" if told.requirements else "",
        )
        if sentence
    )
    if PHASES_PLACEHOLDER in protocol.consent:
        return protocol.consent.replace(PHASES_PLACEHOLDER, way)
    return f"{protocol.consent.rstrip()}\n\n{way}" if protocol.language.startswith("en") else protocol.consent


def _format_minutes(minutes: float) -> str:
    return "a minute" if minutes == 1 else f"{minutes:g} minutes"


def _describe_text_count(told: ParticipationTerms) -> str:
    if told.batch is not None:
        some = "one text" if told.batch == 1 else f"{told.batch:,} texts"
        return f"{some} per task"
    if told.texts is None:
        return "as many texts as you like"
    low, high = told.texts
    if low != high:
        return f"{low:,} to {high:,} texts"
    return "one text" if low == 1 else f"{low:,} texts"


def _describe_pay(told: ParticipationTerms) -> str:
    amounts = _pay_phrases(told)
    if not amounts:
        return ""
    also = (
        ", even if you do not pass the test"
        if told.base_pay and any(phase.phase == "qualification" for phase in told.phases)
        else ""
    )
    return f"You will be paid {_join_with_and(amounts)}{also}."


def _pay_phrases(told: ParticipationTerms) -> list[str]:
    money = told.currency
    amounts = []
    if told.pays is not None:
        low, high = told.pays
        amount = f"{money} {low:.2f}" if low == high else f"between {money} {low:.2f} and {money} {high:.2f}"
        amounts.append(
            f"{amount} for all texts{'' if low == high else ', depending on the amount of reading before you start'}"
        )
    elif told.price:
        amounts.append(f"{money} {told.price:.2f} per text")
    if told.base_pay:
        amounts.append(f"{money} {told.base_pay:.2f} for taking part")
    return amounts


def _join_with_and(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def researcher_summary_line(told: ParticipationTerms) -> str:
    """Summarise the phases, workload and pay of a participant in one line for researchers."""
    steps = [
        f"{_PHASE_TITLES[phase.phase]}{f' {phase.minutes:g} min' if phase.minutes else ''}"
        f"{'' if phase.is_for_all else ' (some)'}"
        for phase in told.phases
    ]
    duration = f", {told.text_minutes:g} min each" if told.text_minutes else ""
    amounts = _pay_phrases(told)
    pay = _join_with_and(amounts) if amounts else "pay not set"
    return f"{', '.join([*steps, ''])}{'then ' if steps else ''}{_describe_text_count(told)}{duration}; {pay}"
