"""Discourse context of sentences: entity mentions, the subject of each word, and the state between sentences."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from finecomb.annotators.detectors.boxscore.claims import Entity, ErrorCandidate, Mention
from finecomb.annotators.detectors.boxscore.game import Game, Player, Team
from finecomb.annotators.detectors.boxscore.report_parser import CodedSentence, Word, compile_pattern

# Word lists that identify subjects: words before a team that is a subject, words before a player who is not one
# (`right behind X`), and words after such a player (`X's absence`).
_WORDS_BEFORE_SUBJECT = set(
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
_NAME_CODES = {"P", "T", "C", "H"}
Mentions = tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class DiscourseState:
    """The state carried over from earlier sentences: teams, players and referents of pronouns."""

    section: Team | None = None
    """The team whose players are the current topic."""
    fresh: Team | None = None
    """The team named in the previous sentence, if that sentence named no player."""
    last_team: Team | None = None
    """The team of the last named player."""
    person: Player | None = None
    """The referent of `he`."""
    subject: Team | None = None
    """The referent of `they`."""
    recent_players: tuple[Player, ...] = ()
    """Players mentioned since the section began."""
    named: Mapping[str, Player] = field(default_factory=dict)
    """The last player mentioned with each surname."""


@dataclass(frozen=True)
class SentenceContext:
    """A sentence with its game and discourse state, from which claims are extracted."""

    game: Game
    sentence: CodedSentence
    story: DiscourseState
    text: str
    first: bool = False
    """True for the first sentence of the report."""

    @property
    def coded_text(self) -> str:
        """The sentence as a line of codes, against which patterns are matched."""
        return self.sentence.view

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of the sentence."""
        return self.sentence.words

    def word_quote(self, index: int) -> str:
        """Return a word as written in the text."""
        return self.text[self.words[index].start : self.words[index].end]

    def word_span(self, index: int) -> tuple[int, int]:
        """Return the position of a word in the text."""
        return self.words[index].start, self.words[index].end

    def find_pattern_matches(self, *names: str) -> Iterator[PatternMatch]:
        """Yield the matches of the named patterns."""
        for match in itertools.chain.from_iterable(compile_pattern(name).finditer(self.coded_text) for name in names):
            yield PatternMatch(self, match)

    def matches_pattern(self, name: str) -> bool:
        """Return whether a pattern occurs in the sentence."""
        return bool(compile_pattern(name).search(self.coded_text))

    # --- topic ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def is_about_next_game(self) -> bool:
        """True if the sentence is about the next game."""
        return self.matches_pattern("upcoming")

    @functools.cached_property
    def has_third_team(self) -> bool:
        """True if the sentence names a team that is not in this game."""
        return any(word.code in "TC" and not isinstance(word.value[0], Team) for word in self.words)

    @functools.cached_property
    def names_both_teams(self) -> bool:
        """True if the sentence names both teams of the game."""
        named = {name.options[0] for name in self.mentions_by_word.values()}
        return named.issuperset(self.game.teams)

    @functools.cached_property
    def is_about_other_games(self) -> bool:
        """True if the sentence is also about other games."""
        return self.has_third_team or self.matches_pattern("elsewhere")

    # --- names ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def mentions_by_word(self) -> dict[int, Mention]:
        """Mentions of players and teams by word index."""
        mentions = {}
        for number, word in enumerate(self.words):
            if word.code == "X":
                mentions[number] = Mention(word.start, word.end, (Player(self.text[word.start : word.end]),))
            elif word.code in _NAME_CODES:
                bearers = tuple(player for player in word.value if player in self.story.named.values())
                options = bearers or tuple(word.value)
                mentions[number] = Mention(word.start, word.end, options, fixed=word.code == "H")
        return mentions

    def game_team_at(self, number: int | None) -> Mention | None:
        """Return the team of this game that a word names, or None."""
        if number is None or self.words[number].code not in "TCH":
            return None
        name = self.mentions_by_word[number]
        return name if isinstance(name.options[0], Team) and len(name.options) == 1 else None

    def subject_team_at(self, number: int | None) -> Mention | None:
        """Return the team that a word is about, directly or through a player, or None."""
        whose = self.word_subjects[number] if number is not None else ()
        if not whose or not whose[0].is_player:
            return whose[0] if whose else None
        player = whose[-1].options[0]
        return make_implicit_mention(player.team) if isinstance(player, Player) and player.team else None

    def section_team_at(self, index: int) -> Team | None:
        """Return the team whose players are the topic at a word.

        This is the last subject team before the word, or otherwise the topic of the earlier sentences.
        """
        named = [self.mentions_by_word[number].options[0] for number in self.subject_team_indices if number < index]
        team = named[-1] if named else self.story.section
        return team if isinstance(team, Team) else None

    @functools.cached_property
    def subject_team_indices(self) -> list[int]:
        """Indices of the words that name a team of this game as a subject."""
        return [
            index
            for index in self.sentence.indices_with_code("TCH")
            if self.game_team_at(index) and self.is_subject_team(index)
        ]

    def is_subject_team(self, number: int) -> bool:
        """Return whether the team named by a word acts, rather than being acted upon."""
        if number + 1 < len(self.words) and self.words[number + 1].code in _PLAYER_DESCRIPTIONS:
            return False
        index = number - 1
        while index >= 0 and self.words[index].code in _TEAM_MODIFIERS:
            index -= 1
        if index < 0 or self.words[index].code in _WORDS_BEFORE_SUBJECT:
            return True
        before = [word.code for word in self.words[max(0, index - 1) : index + 1]]
        # `the key for the Ts was ... , as they`
        if compile_pattern("matters_for").match(self.coded_text[: self.sentence.starts[number]]):
            return True
        # `a coach 's Ts` or `the bench of the Ts`
        return before == ["X", "'s"] or (before[1:] == ["of"] and before[0] in _TEAM_PARTS)

    # --- subjects -------------------------------------------------------------------------------------------------

    @functools.cached_property
    def word_subjects(self) -> list[Mentions]:
        """The players or the team that each word is about."""
        subjects: list[Mentions] = []
        earlier_team, earlier_person = self.story.subject or self.story.section, self.story.person
        team: Mentions = (make_implicit_mention(earlier_team),) if earlier_team else ()
        person: Mentions = ()
        if earlier_person and not earlier_person.absent:
            person = (make_implicit_mention(earlier_person),)
        now: Mentions = ()
        group: Mentions = ()
        people: Mentions = ()
        held = {
            match.word_index("t") if match["t"] else match.word_index("u")
            for match in self.find_pattern_matches("held")
        }
        for number, word in enumerate(self.words):
            of_player = bool(now) and now[0].is_player
            before = [other.code for other in self.words[max(0, number - 2) : number]]
            if word.code in "PX":
                now = self._subjects_from_player_on(number, now)
                group, person = now if len(now) > 1 else group, now[-1:]
                people = (*people, self.mentions_by_word[number])
            elif number in held:
                now = self._defended_team(number, team)
            elif number in self.subject_team_indices:
                now = team = (self.mentions_by_word[number],)
            elif number in self._subject_changes_by_word:
                now = self._subject_changes_by_word[number]
            elif word.code == "team" and of_player and before[1:] == ["his"] and before[0] in _WORDS_BEFORE_SUBJECT:
                player = now[-1].options[0]  # `, but his team shot 44 percent`
                now = (make_implicit_mention(player.team),) if isinstance(player, Player) and player.team else now
            elif word.code == "they" or (word.code == "their" and not of_player):
                now = team
            elif word.code in {"he", "his", "him"} and not of_player:
                now = person
            elif word.code in {"former", "latter"} and len(group or people) > 1:
                pair = group or people[-2:]
                now = pair[:1] if word.code == "former" else pair[-1:]
            subjects.append(now)
        return subjects

    @functools.cached_property
    def _subject_changes_by_word(self) -> dict[int | None, Mentions]:
        """New subjects by word index, where the subject becomes another team or something outside the record.

        Examples are `beat the Ts , who shot 44 percent`, `the Ts , led by X , won`, `the rest of the team`, `the star
        guard`.
        """
        nobody: dict[int | None, Mentions] = {
            match.word_index("w"): () for match in self.find_pattern_matches("of_others", "described")
        }
        resumed = {
            match.word_index("w"): self._team_mentions(match) for match in self.find_pattern_matches("aside_of_team")
        }
        relative = {
            match.word_index("t"): self._team_mentions(match) for match in self.find_pattern_matches("tells_on")
        }
        return nobody | resumed | relative

    @staticmethod
    def _team_mentions(match: PatternMatch) -> Mentions:
        name = match.team("t")
        return (name,) if name else ()

    def opposing_team(self, names: Mentions) -> Mentions:
        """Return the opponent of a team, for events such as `forced 15 turnovers` and `allowed 21 points`."""
        team = names[0].options[0] if names else None
        return (make_implicit_mention(self.game.opponent(team)),) if isinstance(team, Team) else names

    def _defended_team(self, number: int, team: Mentions) -> Mentions:
        """Return the team that is defended against, as in `held the Ts to` and `forced them into`."""
        if self.words[number].code in "TCH":
            name = self.game_team_at(number)
            return (name,) if name else ()
        subject = team[0].options[0] if team else None
        defense = compile_pattern("defense_of").search(" ".join(word.code for word in self.words[: number - 1]) + " ")
        named = (
            [index for index in self.sentence.indices_with_code("TC") if index < number and self.game_team_at(index)]
            if defense
            else []
        )
        subject = self.mentions_by_word[named[-1]].options[0] if named else subject
        return (make_implicit_mention(self.game.opponent(subject)),) if isinstance(subject, Team) else ()

    def _subjects_from_player_on(self, number: int, now: Mentions) -> Mentions:
        """Return the subject of the words after a player's name: the player, the earlier players, or both."""
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

    # --- errors ---------------------------------------------------------------------------------------------------

    def check_number_at(
        self, index: int, kind: str, claim: str, right: int, where: str, *flags: str, unit: str = ""
    ) -> Iterator[ErrorCandidate]:
        """Yield an error for the number at a word unless the number is right."""
        if self.words[index].value != right:
            yield ErrorCandidate(
                *self.word_span(index), "number", kind, claim, str(right), where, unit=unit, flags=frozenset(flags)
            )


@dataclass(frozen=True, slots=True)
class PatternMatch:
    """A match of a pattern in a sentence, with the words, teams and positions of its groups."""

    scene: SentenceContext
    raw: re.Match[str]

    def __getitem__(self, group: str) -> str:
        """Return the text of a group, or an empty string if the group is absent."""
        return self.raw.groupdict().get(group) or ""

    def word_index(self, group: str) -> int | None:
        """Return the index of a group's first word, or None if the group is absent."""
        return self.scene.sentence.word_index_by_offset.get(self.raw.start(group)) if self[group] else None

    def team(self, group: str) -> Mention | None:
        """Return the team of this game that a group names, or None."""
        return self.scene.game_team_at(self.word_index(group))

    def span(self, group: str) -> tuple[int, int]:
        """Return the position of a group in the text."""
        return self.scene.sentence.text_span(self.raw.start(group), self.raw.end(group))

    def quote(self, group: str | int = 0) -> str:
        """Return a group, or the whole match, as written in the text."""
        start, end = self.scene.sentence.text_span(self.raw.start(group), self.raw.end(group))
        return self.scene.text[start:end]

    @property
    def subjects(self) -> Mentions:
        """The subject of the first word of the match."""
        first = self.scene.sentence.word_index_by_offset.get(self.raw.start())
        return self.scene.word_subjects[first] if first is not None else ()

    def group_subjects(self, group: str) -> Mentions:
        """Return the subject of a group's first word."""
        index = self.word_index(group)
        return self.scene.word_subjects[index] if index is not None else ()

    def is_preceded_by(self, name: str, width: int = 1000) -> bool:
        """Return whether a pattern occurs in the `width` characters before the match."""
        start = self.raw.start()
        return bool(compile_pattern(name).search(self.scene.coded_text[max(0, start - width) : start]))

    def match_after(self, name: str) -> PatternMatch | None:
        """Return the match of a pattern directly after this one, or None."""
        match = compile_pattern(name).match(self.scene.coded_text, self.raw.end())
        return PatternMatch(self.scene, match) if match else None


def make_implicit_mention(entity: Entity) -> Mention:
    """Build a mention of an entity that is implied but not named."""
    return Mention(-1, -1, (entity,), fixed=True)


def next_discourse_state(
    scene: SentenceContext, meant: Mapping[Mention, Entity], paired: Mention | None
) -> DiscourseState:
    """Return the discourse state after a sentence.

    `meant` holds the entity of each mention, and `paired` is a team that the sentence links to a player.
    """
    story = scene.story
    for index in scene.sentence.indices_with_code("P"):
        mention = scene.mentions_by_word[index]
        player = meant.get(mention, mention.options[0])
        if isinstance(player, Player):
            bearers = [bearer for bearer in mention.options if isinstance(bearer, Player)]
            is_new = player not in story.recent_players
            story = replace(
                story,
                person=player,
                last_team=player.team or story.last_team,
                recent_players=(*story.recent_players, player) if is_new else story.recent_players,
                named={**story.named, **{bearer.name_words_without_suffix[-1]: player for bearer in bearers}},
            )
    acting = [scene.mentions_by_word[index] for index in scene.subject_team_indices]
    name = paired or (acting[-1] if acting else None)
    section = meant.get(name, name.options[0]) if name else None
    if not isinstance(section, Team):
        return replace(story, fresh=None)
    players = story.recent_players
    if section is not story.section:
        players = tuple(player for player in players if player.team is section)
    alone = not scene.sentence.indices_with_code("P") and not scene.is_about_next_game
    return replace(story, section=section, subject=section, recent_players=players, fresh=section if alone else None)
