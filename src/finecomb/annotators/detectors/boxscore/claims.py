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

from finecomb.annotators.detectors.boxscore.record import Game, Player, Team

Entity = Player | Team | str  # a team that does not play is its name
Basis = Literal["record", "base-rate"]


@dataclass(frozen=True, slots=True)
class Slip:
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
    otherwise: tuple[Slip, ...] = field(default=(), compare=False)
    """What is wrong instead where this is not taken for the mistake."""

    @property
    def is_hard(self) -> bool:
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


Check = Callable[..., Iterable[Slip]]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim about named entities: `check` takes an entity for each name and gives the words that are then wrong."""

    names: tuple[Mention, ...]
    check: Check


@dataclass(frozen=True, slots=True)
class Interpretation:
    """One way to read connected claims: who is meant, and what is then wrong."""

    meant: dict[Mention, Entity]
    changed: frozenset[Mention]
    slips: tuple[Slip, ...]
    about: tuple[Slip, ...]
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
        return len(self.changed) + _places(slips) + strange + len(names) / 2


def _places(slips: Iterable[Slip]) -> int:
    return len({slip.unit or (slip.start, slip.end) for slip in slips})


_MOST_NAMES = 12  # that are searched for other readings together; people connect far fewer in one sentence
_MOST_READINGS = 500  # of names that several people bear
_MOST_LEFT = 1  # another name must make true all but this much of what is said of it


def solve(claims: Sequence[Claim], game: Game) -> tuple[list[Slip], dict[Mention, Entity]]:
    """The slips of a sentence by its best reading, and whom each name then means."""
    slips: list[Slip] = []
    meant: dict[Mention, Entity] = {}
    for group in _connected(claims):
        names = list(dict.fromkeys(name for claim in group for name in claim.names))
        is_searched = len(names) <= _MOST_NAMES and math.prod(len(name.options) for name in names) <= _MOST_READINGS
        options = [name.options if is_searched else name.options[:1] for name in names]
        plain = min(_readings(group, names, options), key=lambda reading: reading.cost)
        best = _best(group, names, plain, game) if is_searched else plain
        slips += best.slips
        slips += [_renamed(name, best, plain) for name in names if name in best.changed]
        meant |= best.meant
    return slips, meant


def _connected(claims: Sequence[Claim]) -> list[list[Claim]]:
    """Claims that share names, together."""
    groups: list[tuple[set[Mention], list[Claim]]] = []
    for claim in claims:
        names = set(claim.names)
        touching = [group for group in groups if group[0] & names]
        groups = [group for group in groups if not group[0] & names]
        merged = set().union(names, *(group[0] for group in touching))
        groups.append((merged, [*itertools.chain.from_iterable(group[1] for group in touching), claim]))
    return [group[1] for group in groups]


def _readings(
    claims: Sequence[Claim],
    names: Sequence[Mention],
    options: Sequence[Sequence[Entity]],
    changed: Iterable[Mention] = (),
) -> Iterable[Interpretation]:
    new = frozenset(changed)
    for chosen in itertools.product(*options):
        meant = dict(zip(names, chosen, strict=True))
        slips: list[Slip] = []
        about: list[Slip] = []
        for claim in claims:
            wrong = list(claim.check(*(meant[name] for name in claim.names)))
            slips += wrong
            about += wrong if new.intersection(claim.names) else []
        yield Interpretation(meant, new, tuple(slips), tuple(about))


def _best(claims: Sequence[Claim], names: Sequence[Mention], plain: Interpretation, game: Game) -> Interpretation:
    """The reading with fewest changes; names as written win ties, since changing them explains nothing."""
    best = plain
    clashing = _clashing(claims, plain)
    if plain.cost < 2 and not clashing:
        return best
    for changed in _changes(names):
        options = [_others(name, names, game) if name in changed else [plain.meant[name]] for name in names]
        free = any(name in clashing for name in changed)
        for reading in _readings(claims, names, options, changed):
            if reading.cost < best.cost and (free or _places(reading.about) <= _MOST_LEFT):
                best = reading
    return best


def _clashing(claims: Sequence[Claim], plain: Interpretation) -> set[Mention]:
    """Names of claims that are wrong about a name: which of them to replace is open."""
    return {
        name
        for claim in claims
        if any(slip.label == "name" for slip in claim.check(*(plain.meant[name] for name in claim.names)))
        for name in claim.names
    }


def _changes(names: Sequence[Mention]) -> list[tuple[Mention, ...]]:
    """Which names to change together: any one, two teams, or a player and a team."""
    movable = [name for name in reversed(names) if not name.fixed]  # the later of two equal names is the slip
    teams = [name for name in movable if not name.is_player]
    pairs = [(player, team) for player in movable if player.is_player for team in teams]
    return [*((name,) for name in movable), *itertools.combinations(teams, 2), *pairs]


def _others(name: Mention, names: Sequence[Mention], game: Game) -> list[Entity]:
    """Whom a name could have meant: the other team, or anybody who played and is not named beside it."""
    if not name.is_player:
        return [team for team in game.teams if team not in name.options]
    taken = {option for other in names for option in other.options}
    return [player for player in game.players if player.played and player not in taken]


def _renamed(name: Mention, best: Interpretation, plain: Interpretation) -> Slip:
    saved = int(plain.cost - best.cost)
    return Slip(
        name.start,
        name.end,
        "name",
        "rename.player" if name.is_player else "rename.team",
        _options_in_words(name),
        str(best.meant[name]),
        f"line of {best.meant[name]}",
        flags=frozenset({f"saved {min(saved, 3)}", f"left {min(len(best.slips), 2)}"}),
        otherwise=_left_over(plain, best),
    )


def _left_over(plain: Interpretation, best: Interpretation) -> tuple[Slip, ...]:
    """What is wrong with the names as they are written and not with the new ones, once for each place."""
    by_place = {(slip.start, slip.end): slip for slip in reversed(plain.slips) if slip not in best.slips}
    return tuple(by_place[place] for place in sorted(by_place))


def _options_in_words(name: Mention) -> str:
    return " or ".join(str(option) for option in name.options) or "somebody"
