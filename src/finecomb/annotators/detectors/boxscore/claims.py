"""Claims in a sentence, and the interpretation of the sentence with the fewest errors.

A claim is about names in the sentence (players, teams). Its check yields the words that are wrong if the names are
right.
Thomson and Reiter (2020, section 3.3) ask for the interpretation with the fewest errors. Names are therefore replaced
by others from the record if that leaves fewer wrong words.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from finecomb.annotators.detectors.boxscore.game import Game, Player, Team

Entity = Player | Team | str  # a team from another game is represented by its name
Basis = Literal["record", "base-rate"]


@dataclass(frozen=True, slots=True)
class ErrorCandidate:
    """Words of a report that may be wrong, with the claim that they make and its correction."""

    start: int
    end: int
    label: str
    kind: str
    """Kind of the failed claim, such as `player.points`. The ranker has a weight for each kind."""
    claim: str = field(compare=False)
    """The claim that the text makes, in words."""
    correction: str = field(default="", compare=False)
    """The correct value or statement, if the record has it."""
    where: str = field(default="", compare=False)
    """The cell of the record with the correct value."""
    basis: Basis = "record"
    unit: str = ""
    """Unit of counting. Errors with the same unit count as one, for example the two numbers of a win-loss record."""
    flags: frozenset[str] = field(default=frozenset(), compare=False)
    """Circumstances that make it more or less likely that annotators mark the error."""
    otherwise: tuple[ErrorCandidate, ...] = field(default=(), compare=False)
    """Errors that replace this one in the alternative interpretation."""

    @property
    def contradicts_record(self) -> bool:
        """True if a number or a name contradicts the record."""
        return self.basis == "record" and self.label in {"number", "name"}


@dataclass(frozen=True, slots=True)
class Mention:
    """A name or pronoun in the text with the entities it may refer to."""

    start: int
    end: int
    options: tuple[Entity, ...]
    fixed: bool = False
    """True for a pronoun, or for a name that can only be corrected together with another sentence."""

    @property
    def is_player(self) -> bool:
        """True if the mention refers to a person."""
        return not self.options or isinstance(self.options[0], Player)


ClaimCheck = Callable[..., Iterable[ErrorCandidate]]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about named entities. `check` takes one entity per name and yields the errors that follow."""

    names: tuple[Mention, ...]
    check: ClaimCheck


@dataclass(frozen=True, slots=True)
class Interpretation:
    """An interpretation of connected claims: the entity of each name, and the resulting errors."""

    meant: dict[Mention, Entity]
    changed: frozenset[Mention]
    candidates: tuple[ErrorCandidate, ...]
    about: tuple[ErrorCandidate, ...]
    """The errors that concern a changed name."""

    @property
    def cost(self) -> float:
        """Number of corrections in this interpretation.

        A name that conflicts with another costs more, so that replacing it is preferred. A player mentioned among the
        other team's players adds to the cost only if the name was replaced, because reports often mention players
        there.
        """
        candidates = [candidate for candidate in self.candidates if candidate.kind != "context"]
        strange = sum(candidate.kind == "context" and "switched" not in candidate.flags for candidate in self.about)
        names = {(candidate.start, candidate.end) for candidate in candidates if candidate.label == "name"}
        return len(self.changed) + _error_location_count(candidates) + strange + len(names) / 2


def _error_location_count(candidates: Iterable[ErrorCandidate]) -> int:
    return len({candidate.unit or (candidate.start, candidate.end) for candidate in candidates})


_MAX_CONNECTED_NAMES = 12  # names for which other interpretations are searched; real sentences connect far fewer
_MAX_INTERPRETATIONS = 500  # combinations of entities that share a name
_MAX_REMAINING_ERRORS = 1  # a replacement must leave at most this many errors about the name


def interpret_claims(claims: Sequence[Claim], game: Game) -> tuple[list[ErrorCandidate], dict[Mention, Entity]]:
    """Return the errors of a sentence in its best interpretation, and the entity of each name."""
    # Claims that share names are interpreted together.
    groups: list[tuple[set[Mention], list[Claim]]] = []
    for claim in claims:
        claim_names = set(claim.names)
        touching = [group for group in groups if group[0] & claim_names]
        groups = [group for group in groups if not group[0] & claim_names]
        merged = claim_names.union(*(group[0] for group in touching))
        groups.append((merged, [*itertools.chain.from_iterable(group[1] for group in touching), claim]))
    candidates: list[ErrorCandidate] = []
    meant: dict[Mention, Entity] = {}
    for _, group in groups:
        names = list(dict.fromkeys(name for claim in group for name in claim.names))
        is_searched = (
            len(names) <= _MAX_CONNECTED_NAMES
            and math.prod(len(name.options) for name in names) <= _MAX_INTERPRETATIONS
        )
        options = [name.options if is_searched else name.options[:1] for name in names]
        plain = min(_iter_interpretations(group, names, options), key=lambda reading: reading.cost)
        best = _best_interpretation(group, names, plain, game) if is_searched else plain
        candidates += best.candidates
        fixed = {(one.start, one.end): one for one in reversed(plain.candidates) if one not in best.candidates}
        saved = int(plain.cost - best.cost)
        for name in (name for name in names if name in best.changed):
            candidates.append(
                ErrorCandidate(
                    name.start,
                    name.end,
                    "name",
                    "rename.player" if name.is_player else "rename.team",
                    " or ".join(str(option) for option in name.options) or "somebody",
                    str(best.meant[name]),
                    f"line of {best.meant[name]}",
                    flags=frozenset({f"saved {min(saved, 3)}", f"left {min(len(best.candidates), 2)}"}),
                    otherwise=tuple(fixed[span] for span in sorted(fixed)),
                )
            )
        meant |= best.meant
    return candidates, meant


def _iter_interpretations(
    claims: Sequence[Claim],
    names: Sequence[Mention],
    options: Sequence[Sequence[Entity]],
    changed: Iterable[Mention] = (),
) -> Iterable[Interpretation]:
    new = frozenset(changed)
    for chosen in itertools.product(*options):
        meant = dict(zip(names, chosen, strict=True))
        candidates: list[ErrorCandidate] = []
        about: list[ErrorCandidate] = []
        for claim in claims:
            wrong = list(claim.check(*(meant[name] for name in claim.names)))
            candidates += wrong
            about += wrong if new.intersection(claim.names) else []
        yield Interpretation(meant, new, tuple(candidates), tuple(about))


def _best_interpretation(
    claims: Sequence[Claim], names: Sequence[Mention], plain: Interpretation, game: Game
) -> Interpretation:
    """Return the interpretation with the fewest errors; on a tie, the one with the original names."""
    best = plain
    clashing = {
        name
        for claim in claims
        if any(candidate.label == "name" for candidate in claim.check(*(plain.meant[name] for name in claim.names)))
        for name in claim.names
    }
    if plain.cost < 2 and not clashing:
        return best
    # Later names are tried first: of two names that could be wrong, the later one is more likely to be.
    movable = [name for name in reversed(names) if not name.fixed]
    teams = [name for name in movable if not name.is_player]
    pairs = [(player, team) for player in movable if player.is_player for team in teams]
    mentioned = {option for name in names for option in name.options}
    other_players = [player for player in game.players if player.has_played and player not in mentioned]
    for changed in [*((name,) for name in movable), *itertools.combinations(teams, 2), *pairs]:
        options: list[list[Entity]] = [[plain.meant[name]] for name in names]
        for index, name in enumerate(names):
            if name in changed and name.is_player:
                options[index] = [*other_players]
            elif name in changed:
                options[index] = [team for team in game.teams if team not in name.options]
        free = any(name in clashing for name in changed)
        for reading in _iter_interpretations(claims, names, options, changed):
            if reading.cost < best.cost and (free or _error_location_count(reading.about) <= _MAX_REMAINING_ERRORS):
                best = reading
    return best
