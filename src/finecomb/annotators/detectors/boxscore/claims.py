"""What a sentence claims, and the fewest changes that make it true.

A claim is about names of the sentence (players, teams) and says which of its words would be wrong if the names were
right. Thomson and Reiter (2020, section 3.3) ask for the reading with the fewest mistakes; so names are replaced by
others of the record wherever that leaves fewer words wrong.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from finecomb.annotators.detectors.boxscore.game import Game, Player, Team

Entity = Player | Team | str  # a team that does not play is its name
Basis = Literal["record", "base-rate"]


@dataclass(frozen=True, slots=True)
class ErrorCandidate:
    """Words that should have been something else."""

    start: int
    end: int
    label: str
    kind: str
    """What sort of claim failed, e.g. `player.points`; the ranker knows how often each is right."""
    claim: str = field(compare=False)
    """What the text says, in words."""
    correction: str = field(default="", compare=False)
    """What it should have said, where the record knows."""
    where: str = field(default="", compare=False)
    """Where the record says so."""
    basis: Basis = "record"
    unit: str = ""
    """Slips of one unit cost as much as one: the two halves of a win-loss record say one thing."""
    flags: frozenset[str] = field(default=frozenset(), compare=False)
    """Circumstances that make it more or less likely to be an error in the eyes of readers."""
    otherwise: tuple[ErrorCandidate, ...] = field(default=(), compare=False)
    """What is wrong instead where this is not taken for the mistake."""

    @property
    def contradicts_record(self) -> bool:
        """Whether the record decides it alone: a number or a name that it contradicts."""
        return self.basis == "record" and self.label in {"number", "name"}


@dataclass(frozen=True, slots=True)
class Mention:
    """A name or pronoun of the text and whom it may mean."""

    start: int
    end: int
    options: tuple[Entity, ...]
    fixed: bool = False
    """A pronoun, or a name that only another sentence could correct."""

    @property
    def is_player(self) -> bool:
        """Whether it names a person."""
        return not self.options or isinstance(self.options[0], Player)


ClaimCheck = Callable[..., Iterable[ErrorCandidate]]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about named entities: `check` takes an entity for each name and gives the words that are then wrong."""

    names: tuple[Mention, ...]
    check: ClaimCheck


@dataclass(frozen=True, slots=True)
class Interpretation:
    """One way to read connected claims: who is meant, and what is then wrong."""

    meant: dict[Mention, Entity]
    changed: frozenset[Mention]
    slips: tuple[ErrorCandidate, ...]
    about: tuple[ErrorCandidate, ...]
    """Those that are about a changed name."""

    @property
    def cost(self) -> float:
        """The cost of a reading: how many places must be mended.

        A name that clashes with another is better replaced than only marked. Being told about among the other team's
        players counts against a new name only: as written it is common, and no reason to look for another name.
        """
        slips = [slip for slip in self.slips if slip.kind != "context"]
        strange = sum(slip.kind == "context" and "switched" not in slip.flags for slip in self.about)
        names = {(slip.start, slip.end) for slip in slips if slip.label == "name"}
        return len(self.changed) + _location_count(slips) + strange + len(names) / 2


def _location_count(slips: Iterable[ErrorCandidate]) -> int:
    return len({slip.unit or (slip.start, slip.end) for slip in slips})


_MAX_NAMES = 12  # that are searched for other readings together; people connect far fewer in one sentence
_MAX_INTERPRETATIONS = 500  # of names that several people bear
_MAX_REMAINING_ERRORS = 1  # another name must make true all but this much of what is said of it


def interpret_claims(claims: Sequence[Claim], game: Game) -> tuple[list[ErrorCandidate], dict[Mention, Entity]]:
    """The slips of a sentence by its best reading, and whom each name then means."""
    slips: list[ErrorCandidate] = []
    meant: dict[Mention, Entity] = {}
    for group in _group_connected_claims(claims):
        names = list(dict.fromkeys(name for claim in group for name in claim.names))
        is_searched = (
            len(names) <= _MAX_NAMES and math.prod(len(name.options) for name in names) <= _MAX_INTERPRETATIONS
        )
        options = [name.options if is_searched else name.options[:1] for name in names]
        plain = min(_iter_interpretations(group, names, options), key=lambda reading: reading.cost)
        best = _best_interpretation(group, names, plain, game) if is_searched else plain
        slips += best.slips
        slips += [_rename_candidate(name, best, plain) for name in names if name in best.changed]
        meant |= best.meant
    return slips, meant


def _group_connected_claims(claims: Sequence[Claim]) -> list[list[Claim]]:
    """Claims that share names, together."""
    groups: list[tuple[set[Mention], list[Claim]]] = []
    for claim in claims:
        names = set(claim.names)
        touching = [group for group in groups if group[0] & names]
        groups = [group for group in groups if not group[0] & names]
        merged = set().union(names, *(group[0] for group in touching))
        groups.append((merged, [*itertools.chain.from_iterable(group[1] for group in touching), claim]))
    return [group[1] for group in groups]


def _iter_interpretations(
    claims: Sequence[Claim],
    names: Sequence[Mention],
    options: Sequence[Sequence[Entity]],
    changed: Iterable[Mention] = (),
) -> Iterable[Interpretation]:
    new = frozenset(changed)
    for chosen in itertools.product(*options):
        meant = dict(zip(names, chosen, strict=True))
        slips: list[ErrorCandidate] = []
        about: list[ErrorCandidate] = []
        for claim in claims:
            wrong = list(claim.check(*(meant[name] for name in claim.names)))
            slips += wrong
            about += wrong if new.intersection(claim.names) else []
        yield Interpretation(meant, new, tuple(slips), tuple(about))


def _best_interpretation(
    claims: Sequence[Claim], names: Sequence[Mention], plain: Interpretation, game: Game
) -> Interpretation:
    """The reading with fewest changes; names as written win ties, since changing them explains nothing."""
    best = plain
    clashing = _conflicting_names(claims, plain)
    if plain.cost < 2 and not clashing:
        return best
    for changed in _name_changes(names):
        options = [
            _replacement_entities(name, names, game) if name in changed else [plain.meant[name]] for name in names
        ]
        free = any(name in clashing for name in changed)
        for reading in _iter_interpretations(claims, names, options, changed):
            if reading.cost < best.cost and (free or _location_count(reading.about) <= _MAX_REMAINING_ERRORS):
                best = reading
    return best


def _conflicting_names(claims: Sequence[Claim], plain: Interpretation) -> set[Mention]:
    """Names of claims that are wrong about a name: which of them to replace is open."""
    return {
        name
        for claim in claims
        if any(slip.label == "name" for slip in claim.check(*(plain.meant[name] for name in claim.names)))
        for name in claim.names
    }


def _name_changes(names: Sequence[Mention]) -> list[tuple[Mention, ...]]:
    """Which names to change together: any one, two teams, or a player and a team."""
    movable = [name for name in reversed(names) if not name.fixed]  # the later of two equal names is the slip
    teams = [name for name in movable if not name.is_player]
    pairs = [(player, team) for player in movable if player.is_player for team in teams]
    return [*((name,) for name in movable), *itertools.combinations(teams, 2), *pairs]


def _replacement_entities(name: Mention, names: Sequence[Mention], game: Game) -> list[Entity]:
    """Whom a name could have meant: the other team, or anybody who played and is not named beside it."""
    if not name.is_player:
        return [team for team in game.teams if team not in name.options]
    taken = {option for other in names for option in other.options}
    return [player for player in game.players if player.has_played and player not in taken]


def _rename_candidate(name: Mention, best: Interpretation, plain: Interpretation) -> ErrorCandidate:
    saved = int(plain.cost - best.cost)
    return ErrorCandidate(
        name.start,
        name.end,
        "name",
        "rename.player" if name.is_player else "rename.team",
        _describe_options(name),
        str(best.meant[name]),
        f"line of {best.meant[name]}",
        flags=frozenset({f"saved {min(saved, 3)}", f"left {min(len(best.slips), 2)}"}),
        otherwise=_avoided_candidates(plain, best),
    )


def _avoided_candidates(plain: Interpretation, best: Interpretation) -> tuple[ErrorCandidate, ...]:
    """What is wrong with the names as they are written and not with the new ones, once for each place."""
    by_place = {(slip.start, slip.end): slip for slip in reversed(plain.slips) if slip not in best.slips}
    return tuple(by_place[place] for place in sorted(by_place))


def _describe_options(name: Mention) -> str:
    return " or ".join(str(option) for option in name.options) or "somebody"
