"""The records behind texts, given with `--data`: games with ids or in the order of the texts, a season, a schedule.

A file of JSON (RotoWire's own list of games, or records by id) or of JSON lines holds the records of the texts: joined
by id, else by the day and teams that a text's meta name, else line by line where there are as many as texts. A folder
holds the games of a season, and a CSV file its schedule: from both come the last and next games of the teams, and the
record of a text that has none yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finecomb.annotators.detectors.boxscore.game_record import Season, add_season, game_date, game_problem, is_game
from finecomb.core.errors import FormatError, did_you_mean
from finecomb.core.record_links import links_of, with_links
from finecomb.core.records import Document
from finecomb.formats.source_files import (
    build_record,
    csv_rows,
    json_items,
    json_lines,
    parse_json,
    read_start,
    sibling_names,
)

TEXT_ID_FIELD = "shared_task_text_id"
ID_FIELDS = (TEXT_ID_FIELD, "text_id", "document", "id")
"""Fields of a record that name its text, the first that is there."""
HUMAN_TEXT_FIELDS = ("summary", "cleaned_text", "detokenized_text")
"""What a person wrote about the game: a reference, which nobody who judges a text is shown."""
_SCHEDULE_COLUMNS = {
    "day": ("day", "date"),
    "home_name": ("home_name", "home", "home_team"),
    "vis_name": ("vis_name", "vis", "visitor", "visitors", "away", "away_team"),
    "home_city": ("home_city",),
    "vis_city": ("vis_city",),
}
_POINTS_COLUMNS = {
    "home_line": ("home_points", "home_pts", "home_score"),
    "vis_line": ("vis_points", "vis_pts", "vis_score", "away_points", "away_score"),
}


@dataclass(frozen=True, slots=True)
class GameEvidence:
    """The record of one text, and what a person wrote about the same game."""

    where: str
    id: str
    """The text that it names; empty when it names none."""
    data: Any = field(repr=False)
    references: tuple[str, ...] = ()


def parse_evidence(value: Any, where: str, id: str = "") -> GameEvidence:
    """A record as it stands in a file, without the fields that name its text or tell what a person wrote."""
    if not isinstance(value, dict | list):
        found = "null" if value is None else f"{value!r:.40}"
        raise FormatError(f"{where}: is no record: expected an object or a list of objects, found {found}")
    if not isinstance(value, dict):
        return GameEvidence(where, id, value)
    named = next((name for name in ID_FIELDS if isinstance(value.get(name), str)), "")
    text_id = id or str(value.get(named, "")).strip().removesuffix(".txt")
    written = value.get("cleaned_text") or value.get("summary") or ""
    words = " ".join(map(str, written)) if isinstance(written, list) else str(written)
    if not is_game(value):
        return GameEvidence(where, text_id, {name: part for name, part in value.items() if name != named})
    data = {name: part for name, part in value.items() if name not in (named, *HUMAN_TEXT_FIELDS) and part is not None}
    return GameEvidence(where, text_id, data, (words,) if words else ())


def read_evidence_file(path: Path) -> list[GameEvidence]:
    """The records of a file of JSON or JSON lines, in order."""
    start = read_start(path).lstrip()
    if not start:
        raise FormatError(f"{path}: is empty or not there{did_you_mean(path.name, sibling_names(path))}")
    if start.startswith("[") or path.suffix.lower() == ".json":
        return _read_json_evidence(path, is_list=start.startswith("["))
    return [parse_evidence(parse_json(text, f"{path}:{line}"), f"{path}:{line}") for line, text in json_lines(path)]


def _read_json_evidence(path: Path, is_list: bool) -> list[GameEvidence]:
    items = list(json_items(path))
    if is_list:
        return [parse_evidence(value, f"{path}:{line}") for _, value, line in items]
    whole = {str(key): value for key, value, _ in items}
    if is_game(whole):
        return [parse_evidence(whole, str(path))]
    return [parse_evidence(value, f"{path}:{line}", str(key)) for key, value, line in items]


# --- a season ----------------------------------------------------------------------------------------------------


def _read_season_folder(path: Path) -> list[GameEvidence]:
    """The games of a folder; a file that holds one game names its text by its own name."""
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in (".json", ".jsonl", ".ndjson"))
    tables = sorted(file for file in path.rglob("*.csv") if is_schedule(file))
    if not files and not tables:
        raise FormatError(f"{path}: has no games: no file that ends in .json or .jsonl, and no schedule in .csv")
    games = [game for file in files for game in _name_by_file(read_evidence_file(file), file)]
    strange = [game for game in games if not is_game(game.data)]
    if strange:
        raise FormatError(f"{strange[0].where}: is no game: it has no home_name, vis_name and box_score")
    return [*games, *(game for table in tables for game in _read_schedule(table))]


def _name_by_file(games: Sequence[GameEvidence], file: Path) -> list[GameEvidence]:
    if len(games) != 1 or games[0].id:
        return list(games)
    return [GameEvidence(games[0].where, file.stem, games[0].data, games[0].references)]


def is_schedule(path: Path) -> bool:
    """Whether a table has columns for a day and two teams."""
    if path.suffix.lower() != ".csv":
        return False
    names = {name.strip(' "\r').lower() for name in read_start(path).partition("\n")[0].split(",")}
    return all(names & set(_SCHEDULE_COLUMNS[field]) for field in ("day", "home_name", "vis_name"))


def _read_schedule(path: Path) -> list[GameEvidence]:
    games = []
    for line, row in csv_rows(path):
        fields = {name.lower(): value.strip() for name, value in row.items()}
        game = _select_columns(fields, _SCHEDULE_COLUMNS)
        if game_date(game.get("day")) is None:
            raise FormatError(f"{path}:{line}: {game.get('day', '')!r} is no day such as 2017-02-03 or 02_03_17")
        points = {name: {"TEAM-PTS": value} for name, value in _select_columns(fields, _POINTS_COLUMNS).items()}
        games.append(GameEvidence(f"{path}:{line}", "", {**game, **points}))
    return games


def _select_columns(fields: Mapping[str, str], spellings: Mapping[str, Iterable[str]]) -> dict[str, str]:
    values = {
        name: next((fields[other] for other in others if fields.get(other)), "") for name, others in spellings.items()
    }
    return {name: value for name, value in values.items() if value}


# --- texts with their records ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EvidenceSources:
    """All that `--data` names."""

    records: tuple[GameEvidence, ...] = ()
    """Of the texts."""
    season: tuple[GameEvidence, ...] = ()
    """Games of a season; those without a box score are from a schedule."""


def read_evidence(paths: Iterable[Path]) -> EvidenceSources:
    """The records and the season in files and folders."""
    records: list[GameEvidence] = []
    season: list[GameEvidence] = []
    for path in paths:
        if path.is_dir():
            season += _read_season_folder(path)
        elif is_schedule(path):
            season += _read_schedule(path)
        else:
            records += read_evidence_file(path)
    return EvidenceSources(tuple(records), tuple(season))


@dataclass(frozen=True, slots=True)
class EvidenceMatch:
    """Texts with their records, and what is to be said about the rest."""

    documents: tuple[Document, ...]
    notes: tuple[str, ...]


def attach_evidence(documents: Sequence[Document], evidence: EvidenceSources) -> EvidenceMatch:
    """Texts with their records and the games around them; a broken box score is refused."""
    own = _match_records(documents, evidence)
    season = Season.from_records(game.data for game in evidence.season)
    games = [_attach_record(document, own.get(document.id), season) for document in documents]
    return EvidenceMatch(tuple(games), tuple(_build_notes(games, own, evidence)))


def _attach_record(document: Document, game: GameEvidence | None, season: Season) -> Document:
    kept = document.data
    if game is not None:
        kept = with_links(game.data, links_of(kept))
    data = add_season(kept, season) if season.games else kept
    if data is document.data:
        return document
    if problem := game_problem(data):
        raise FormatError(f"{game.where if game else document.id}: is not a box score: {problem}")
    values = {name: getattr(document, name) for name in Document.model_fields} | {"data": data}
    if game is not None and game.references:
        values["references"] = game.references
    return build_record(Document, game.where if game else document.id, **values)


def _match_records(documents: Sequence[Document], evidence: EvidenceSources) -> dict[str, GameEvidence]:
    """The record of each text, by the text's id."""
    ids = {document.id for document in documents}
    full = [game for game in evidence.season if "box_score" in game.data]
    named = {game.id: game for game in (*full, *evidence.records) if game.id in ids}
    unnamed = [game for game in evidence.records if not game.id]
    if unnamed:
        named |= _match_by_day_and_teams(documents, unnamed) or _match_in_order(documents, unnamed)
    elif evidence.records and not named:
        first = evidence.records[0]
        raise FormatError(
            f"{first.where}: record of {first.id!r}, but no text is called so{did_you_mean(first.id, ids)}"
        )
    return {**_match_by_day_and_teams([text for text in documents if text.data is None], full), **named}


def _match_by_day_and_teams(documents: Iterable[Document], games: Sequence[GameEvidence]) -> dict[str, GameEvidence]:
    """Records of the games whose day and teams the texts' meta name."""
    season = Season.from_records(game.data for game in games if isinstance(game.data, Mapping))
    by_record = {id(game.data): game for game in games}
    matches = {}
    for document in documents:
        home, vis = (str(document.meta.get(name, "")) for name in ("home_name", "vis_name"))
        day = game_date(document.meta.get("date", document.meta.get("day")))
        if home and vis and (game := season.game(day, home, vis)):
            matches[document.id] = by_record[id(game.record)]
    return matches


def _match_in_order(documents: Sequence[Document], games: Sequence[GameEvidence]) -> dict[str, GameEvidence]:
    if len(games) != len(documents):
        raise FormatError(
            f"{games[0].where}: {len(games):,} records without ids for {len(documents):,} texts; "
            "give one record for each text in the same order, or name the text in a field `id`"
        )
    return {document.id: game for document, game in zip(documents, games, strict=True)}


def _build_notes(
    documents: Sequence[Document], own: Mapping[str, GameEvidence], evidence: EvidenceSources
) -> Iterable[str]:
    bare = [document.id for document in documents if document.data is None]
    if bare:
        yield f"{len(bare):,} of {len(documents):,} texts have no record, e.g. {bare[0]}"
    left = len(evidence.records) - sum(game in evidence.records for game in own.values()) if evidence.records else 0
    if left > 0:
        yield f"{left:,} of {len(evidence.records):,} records belong to no text and were left out"
    plain = [id for id, game in own.items() if not is_game(game.data)]
    if plain:
        why = "no home_name and box_score"
        yield f"{len(plain):,} records are no box scores ({why}), e.g. that of {plain[0]}: shown as plain tables"
