"""Who a sentence is about: names as variables, subjects word by word, and what carries over to the next sentence."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from finecomb.annotators.detectors.boxscore.claims import Entity, ErrorCandidate, Mention
from finecomb.annotators.detectors.boxscore.game import Game, Player, Team
from finecomb.annotators.detectors.boxscore.report_parser import Sentence, Word, compile_pattern

# Words before a team that is a subject; before a player who is not: `right behind X`; and after one: `X's absence`.
_BEFORE_SUBJECT = set(
    "while but and as with where when because since though although that however meanwhile so then fact , ; . ( after "
    "if which whereas especially".split()
)
_TEAM_MODIFIERS = {"the", "host", "visiting", "hosting", "home", "road"}
_WORDS_BEFORE_NON_SUBJECT = set(
    "behind alongside for joined supported matched than another replaced replacing of on against to over guarded "
    "guarding defended outplayed outdueled outscored found fed".split()
)
_PASSIVE_PHRASES = {f"{word} by" for word in "guarded defended fouled outplayed outdueled hounded".split()}
_GROUP_NOUNS = "duo trio pair tandem combination backcourt frontcourt efforts likes"
_GROUP_PHRASES = {f"{word} of" for word in _GROUP_NOUNS.split()}
_POSSESSED_NOUNS = {"stead", "absence", "place", "performance", "total", "effort", "Spoints", "return"}
_PLAYER_DESCRIPTIONS = set("star point Spoints guard forward center rookie shooting big coach bench legend".split())
_TEAM_PARTS = {"bench", "reserves", "unit"}  # `the bench of the Ts`
_NAME_CODES = {"P", "X", "T", "C", "H"}
Mentions = tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class DiscourseState:
    """The context that earlier sentences leave behind: teams, players, whom pronouns mean."""

    section: Team | None = None
    """Whose players are being told about."""
    fresh: Team | None = None
    """The team that the sentence before was about, if it named no player."""
    last_team: Team | None = None
    """Team of the player named last."""
    person: Player | None = None
    """Whom `he` means."""
    subject: Team | None = None
    """Whom `they` means."""
    recent_players: tuple[Player, ...] = ()
    """Players told about since the section began."""
    named: Mapping[str, Player] = field(default_factory=dict)
    """The last bearer of each surname."""


@dataclass(frozen=True)
class SentenceContext:
    """One sentence with its surroundings; what every claim is read from."""

    game: Game
    sentence: Sentence
    story: DiscourseState
    text: str
    first: bool = False
    """Whether it opens the report."""

    @property
    def coded_text(self) -> str:
        """The line that patterns read."""
        return self.sentence.view

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of the sentence."""
        return self.sentence.words

    def quote(self, at: int) -> str:
        """A word as it stands in the text."""
        return self.text[self.words[at].start : self.words[at].end]

    def span(self, at: int) -> tuple[int, int]:
        """Where a word is in the text."""
        return self.words[at].start, self.words[at].end

    def find_patterns(self, *names: str) -> Iterator[PatternMatch]:
        """Matches of any of these patterns."""
        for match in itertools.chain.from_iterable(compile_pattern(name).finditer(self.coded_text) for name in names):
            yield PatternMatch(self, match)

    def has_pattern(self, name: str) -> bool:
        """Whether a pattern fits anywhere."""
        return bool(compile_pattern(name).search(self.coded_text))

    # --- what it tells of -----------------------------------------------------------------------------------------

    @functools.cached_property
    def is_about_next_game(self) -> bool:
        """Whether it tells of the next game."""
        return self.has_pattern("upcoming")

    @functools.cached_property
    def has_third_team(self) -> bool:
        """Whether it names a team that does not play here."""
        return any(word.code in "TC" and not isinstance(word.value[0], Team) for word in self.words)

    @functools.cached_property
    def names_both_teams(self) -> bool:
        """Whether it names both teams of the game."""
        named = {name.options[0] for name in self.mentions_by_word.values()}
        return named.issuperset(self.game.teams)

    @functools.cached_property
    def is_about_other_games(self) -> bool:
        """Whether it also tells of other games."""
        return self.has_third_team or self.has_pattern("elsewhere")

    # --- names ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def mentions_by_word(self) -> dict[int, Mention]:
        """A variable for each name of a player or team, by number of the word."""
        return {number: self._make_mention(word) for number, word in enumerate(self.words) if word.code in _NAME_CODES}

    def _make_mention(self, word: Word) -> Mention:
        if word.code == "X":
            return Mention(word.start, word.end, (Player(self.text[word.start : word.end]),))
        bearers = tuple(player for player in word.value if player in self.story.named.values())
        return Mention(word.start, word.end, bearers or tuple(word.value), fixed=word.code == "H")

    def team(self, number: int | None) -> Mention | None:
        """The team of the game named by this word; None for others."""
        if number is None or self.words[number].code not in "TCH":
            return None
        name = self.mentions_by_word[number]
        return name if isinstance(name.options[0], Team) and len(name.options) == 1 else None

    def subject_team(self, number: int | None) -> Mention | None:
        """The team that something is said of, also through a player."""
        whose = self.subjects[number] if number is not None else ()
        if not whose or not whose[0].is_player:
            return whose[0] if whose else None
        player = whose[-1].options[0]
        return implicit_mention(player.team) if isinstance(player, Player) and player.team else None

    def section_team(self, at: int) -> Team | None:
        """Whose players are told about there: the team that the sentence named as its subject, or else the story's."""
        named = [self.mentions_by_word[number].options[0] for number in self.subject_team_indices if number < at]
        team = named[-1] if named else self.story.section
        return team if isinstance(team, Team) else None

    @functools.cached_property
    def subject_team_indices(self) -> list[int]:
        """Numbers of the words that name a team of the game as a subject."""
        return [at for at in self.sentence.indices_with_code("TCH") if self.team(at) and self.is_subject(at)]

    def is_subject(self, number: int) -> bool:
        """Whether the team named there does something, rather than having it done to it."""
        if number + 1 < len(self.words) and self.words[number + 1].code in _PLAYER_DESCRIPTIONS:
            return False
        at = number - 1
        while at >= 0 and self.words[at].code in _TEAM_MODIFIERS:
            at -= 1
        if at < 0 or self.words[at].code in _BEFORE_SUBJECT:
            return True
        before = [word.code for word in self.words[max(0, at - 1) : at + 1]]
        if compile_pattern("matters_for").match(
            self.coded_text[: self.sentence.starts[number]]
        ):  # `the key for the Ts was ... , as they`
            return True
        return before == ["X", "'s"] or (
            before[1:] == ["of"] and before[0] in _TEAM_PARTS
        )  # a coach 's Ts , the bench of

    # --- subjects -------------------------------------------------------------------------------------------------

    @functools.cached_property
    def subjects(self) -> list[Mentions]:
        """For each word the players, or the team, that it is said of."""
        subjects: list[Mentions] = []
        now: Mentions = ()
        team: Mentions = self._they_referent()
        group: Mentions = ()
        person: Mentions = ()
        people: Mentions = ()
        held = {match.word_index("t") if match["t"] else match.word_index("u") for match in self.find_patterns("held")}
        for number, word in enumerate(self.words):
            of_player = bool(now) and now[0].is_player
            if word.code in "PX":
                now = self._player_subjects(number, now)
                group, person = now if len(now) > 1 else group, now[-1:]
                people = (*people, self.mentions_by_word[number])
            elif number in held:
                now = self._held_team(number, team)
            elif number in self.subject_team_indices:
                now = team = (self.mentions_by_word[number],)
            elif number in self._subject_changes:
                now = self._subject_changes[number]
            elif word.code == "team" and of_player and self._opens_clause(number):
                now = self._player_team(now)
            elif word.code == "they" or (word.code == "their" and not of_player):
                now = team
            elif word.code in {"he", "his", "him"} and not of_player:
                now = person or self._he_referent()
            elif word.code in {"former", "latter"} and len(group or people) > 1:
                pair = group or people[-2:]
                now = pair[:1] if word.code == "former" else pair[-1:]
            subjects.append(now)
        return subjects

    @functools.cached_property
    def _subject_changes(self) -> dict[int | None, Mentions]:
        """Words from which on a clause is about another team, or about nobody whom the record could name.

        `beat the Ts , who shot 44 percent`, `the Ts , led by X , won`, `the rest of the team`, `the star guard`.
        """
        nobody: dict[int | None, Mentions] = {
            match.word_index("w"): () for match in self.find_patterns("of_others", "described")
        }
        resumed = {match.word_index("w"): self._team_mentions(match) for match in self.find_patterns("aside_of_team")}
        relative = {match.word_index("t"): self._team_mentions(match) for match in self.find_patterns("tells_on")}
        return nobody | resumed | relative

    @staticmethod
    def _team_mentions(match: PatternMatch) -> Mentions:
        name = match.team("t")
        return (name,) if name else ()

    def _opens_clause(self, number: int) -> bool:
        """Whether `his team` there begins a clause: `, but his team shot 44 percent`."""
        before = [word.code for word in self.words[max(0, number - 2) : number]]
        return before[1:] == ["his"] and before[0] in _BEFORE_SUBJECT

    def _player_team(self, now: Mentions) -> Mentions:
        player = now[-1].options[0]
        return (implicit_mention(player.team),) if isinstance(player, Player) and player.team else now

    def opposing_team(self, names: Mentions) -> Mentions:
        """The other team in place of a team that something is done to: `forced 15 turnovers`, `allowed 21 points`."""
        team = names[0].options[0] if names else None
        return (implicit_mention(self.game.opponent(team)),) if isinstance(team, Team) else names

    def _they_referent(self) -> Mentions:
        team = self.story.subject or self.story.section
        return (implicit_mention(team),) if team else ()

    def _he_referent(self) -> Mentions:
        person = self.story.person
        return (implicit_mention(person),) if person and not person.absent else ()

    def _held_team(self, number: int, team: Mentions) -> Mentions:
        """`held the Ts to`, `forced them into`: what follows is said of the opponent."""
        if self.words[number].code in "TCH":
            name = self.team(number)
            return (name,) if name else ()
        subject = team[0].options[0] if team else None
        defense = compile_pattern("defense_of").search(" ".join(word.code for word in self.words[: number - 1]) + " ")
        named = [at for at in self.sentence.indices_with_code("TC") if at < number and self.team(at)] if defense else []
        subject = self.mentions_by_word[named[-1]].options[0] if named else subject
        return (implicit_mention(self.game.opponent(subject)),) if isinstance(subject, Team) else ()

    def _player_subjects(self, number: int, now: Mentions) -> Mentions:
        """The subject from this player on: he alone, he with those before him, or still those before him."""
        before = [word.code for word in self.words[max(0, number - 3) : number]]
        after = [word.code for word in self.words[number + 1 : number + 3]]
        if now and now[0].is_player:
            lead_in = " ".join(before[-2:])
            aside = lead_in in _PASSIVE_PHRASES or (
                before[-1:] and before[-1] in _WORDS_BEFORE_NON_SUBJECT and lead_in not in _GROUP_PHRASES
            )
            tells_on = after == [",", "who"]
            if (aside and not tells_on) or (after[:1] == ["'s"] and after[1:] and after[1] in _POSSESSED_NOUNS):
                return now
            if compile_pattern("joined").search(" ".join(before)):
                return (*now, self.mentions_by_word[number])
        return (self.mentions_by_word[number],)

    # --- slips ----------------------------------------------------------------------------------------------------

    def check_number(
        self, at: int, kind: str, claim: str, right: int, where: str, *flags: str, unit: str = ""
    ) -> Iterator[ErrorCandidate]:
        """A slip for the number at a word, unless the number is right."""
        if self.words[at].value != right:
            yield ErrorCandidate(
                *self.span(at), "number", kind, claim, str(right), where, unit=unit, flags=frozenset(flags)
            )


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """A match of a pattern in a sentence, its groups as words."""

    scene: SentenceContext
    raw: re.Match[str]

    def __getitem__(self, group: str) -> str:
        """What a group covers; empty when it is absent."""
        return self.raw.groupdict().get(group) or ""

    def word_index(self, group: str) -> int | None:
        """Number of the word where a group begins; None when the group is absent."""
        return self.scene.sentence.word_index_by_offset.get(self.raw.start(group)) if self[group] else None

    def team(self, group: str) -> Mention | None:
        """The team of the game that a group names."""
        return self.scene.team(self.word_index(group))

    def span(self, group: str) -> tuple[int, int]:
        """Where the words of a group are in the text."""
        return self.scene.sentence.text_span(self.raw.start(group), self.raw.end(group))

    def quote(self, group: str | int = 0) -> str:
        """The words of a group, or of the whole match, as they stand in the text."""
        start, end = self.scene.sentence.text_span(self.raw.start(group), self.raw.end(group))
        return self.scene.text[start:end]

    @property
    def subjects(self) -> Mentions:
        """The mentions that the first word is said of."""
        first = self.scene.sentence.word_index_by_offset.get(self.raw.start())
        return self.scene.subjects[first] if first is not None else ()

    def group_subjects(self, group: str) -> Mentions:
        """The mentions that a group is said of."""
        at = self.word_index(group)
        return self.scene.subjects[at] if at is not None else ()

    def is_preceded_by(self, name: str, width: int = 1000) -> bool:
        """Whether a pattern fits in what precedes, as far back as `width`."""
        start = self.raw.start()
        return bool(compile_pattern(name).search(self.scene.coded_text[max(0, start - width) : start]))

    def match_after(self, name: str) -> PatternMatch | None:
        """The match of a pattern right after this one, or None."""
        match = compile_pattern(name).match(self.scene.coded_text, self.raw.end())
        return PatternMatch(self.scene, match) if match else None


def implicit_mention(entity: Entity) -> Mention:
    """A mention of somebody who is meant without being named."""
    return Mention(-1, -1, (entity,), fixed=True)


def update_discourse(scene: SentenceContext, meant: Mapping[Mention, Entity], paired: Mention | None) -> DiscourseState:
    """The story after a sentence; `meant` corrects names, `paired` is a team said to have a player."""
    story = _add_players(scene, meant)
    acting = [scene.mentions_by_word[at] for at in scene.subject_team_indices]
    name = paired or (acting[-1] if acting else None)
    section = meant.get(name, name.options[0]) if name else None
    if not isinstance(section, Team):
        return replace(story, fresh=None)
    players = (
        story.recent_players
        if section is story.section
        else tuple(player for player in story.recent_players if player.team is section)
    )
    alone = not scene.sentence.indices_with_code("P") and not scene.is_about_next_game
    return replace(story, section=section, subject=section, recent_players=players, fresh=section if alone else None)


def _add_players(scene: SentenceContext, meant: Mapping[Mention, Entity]) -> DiscourseState:
    story = scene.story
    for at in scene.sentence.indices_with_code("P"):
        name = scene.mentions_by_word[at]
        player = meant.get(name, name.options[0])
        if isinstance(player, Player):
            surnames = {bearer.name_words[-1]: player for bearer in name.options if isinstance(bearer, Player)}
            story = replace(
                story,
                person=player,
                last_team=player.team or story.last_team,
                recent_players=story.recent_players
                if player in story.recent_players
                else (*story.recent_players, player),
                named={**story.named, **surnames},
            )
    return story
