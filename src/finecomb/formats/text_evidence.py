"""Data behind texts, given with `--data`: records with IDs or in text order, a season, or a schedule.

A file of JSON (RotoWire's own list of games, or records by ID) or of JSON lines holds the records of the texts. They
are matched by ID, otherwise by the day and teams in a text's meta, otherwise in order if there are as many records as
texts. A folder holds the games of a season, and a CSV file its schedule. Both provide the previous and next games of
the teams, and the records of texts that have none yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finecomb.annotators.detectors.boxscore.game_record import (
    Season,
    add_neighbouring_games,
    game_record_problem,
    is_game_record,
    parse_game_date,
)
from finecomb.core.errors import FormatError, did_you_mean
from finecomb.core.record_links import get_links, with_links
from finecomb.core.records import Document
from finecomb.formats.source_files import (
    build_record,
    iter_csv_rows,
    iter_nonblank_lines,
    open_text,
    parse_json,
    read_first_characters,
    report_decoding_errors,
    stream_json_items,
)

TEXT_ID_FIELD = "shared_task_text_id"
ID_FIELDS = (TEXT_ID_FIELD, "text_id", "document", "id")
"""Fields of a record that may name its text; the first one present is used."""
HUMAN_TEXT_FIELDS = ("summary", "cleaned_text", "detokenized_text")
"""Fields with a human text about the game, which becomes a reference that is not shown to annotators and judges."""
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
    """Source data of one text, and a human text about the same game."""

    where: str
    id: str
    """ID of the text; empty if the record does not name one."""
    data: Any = field(repr=False)
    references: tuple[str, ...] = ()


def parse_evidence(value: Any, where: str, id: str = "") -> GameEvidence:
    """Parse a record of a file; fields that name its text or hold a human text are separated from the data."""
    if not isinstance(value, dict | list):
        found = "null" if value is None else f"{value!r:.40}"
        raise FormatError(f"{where}: not a record; expected an object or a list of objects, found {found}")
    if not isinstance(value, dict):
        return GameEvidence(where, id, value)
    named = next((name for name in ID_FIELDS if isinstance(value.get(name), str)), "")
    text_id = id or str(value.get(named, "")).strip().removesuffix(".txt")
    written = value.get("cleaned_text") or value.get("summary") or ""
    words = " ".join(map(str, written)) if isinstance(written, list) else str(written)
    if not is_game_record(value):
        return GameEvidence(where, text_id, {name: part for name, part in value.items() if name != named})
    data = {name: part for name, part in value.items() if name not in (named, *HUMAN_TEXT_FIELDS) and part is not None}
    return GameEvidence(where, text_id, data, (words,) if words else ())


def read_evidence_file(path: Path) -> list[GameEvidence]:
    """Read the records of a JSON or JSON lines file, in order."""
    with open_text(path) as file, report_decoding_errors(path):
        start = next((text for block in iter(lambda: file.read(4096), "") if (text := block.lstrip())), "")
    if not start:
        raise FormatError(f"{path}: the file is empty; expected JSON or JSON lines")
    if start.startswith("[") or path.suffix.lower() == ".json":
        items = list(stream_json_items(path))
        if start.startswith("["):
            return [parse_evidence(value, f"{path}:{line}") for _, value, line in items]
        content = {str(key): value for key, value, _ in items}
        if is_game_record(content):
            return [parse_evidence(content, str(path))]
        return [parse_evidence(value, f"{path}:{line}", str(key)) for key, value, line in items]
    return [
        parse_evidence(parse_json(text, f"{path}:{line}"), f"{path}:{line}") for line, text in iter_nonblank_lines(path)
    ]


# --- seasons -----------------------------------------------------------------------------------------------------


def _read_season_folder(path: Path) -> list[GameEvidence]:
    """Read the games of a folder; the name of a file with a single game is the ID of its text."""
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in (".json", ".jsonl", ".ndjson"))
    tables = sorted(file for file in path.rglob("*.csv") if is_schedule_file(file))
    if not files and not tables:
        raise FormatError(
            f"{path}: contains no games; expected files that end in .json or .jsonl, or a schedule in .csv"
        )
    games: list[GameEvidence] = []
    for file in files:
        found = read_evidence_file(file)
        if len(found) == 1 and not found[0].id:
            found = [GameEvidence(found[0].where, file.stem, found[0].data, found[0].references)]
        games += found
    strange = [game for game in games if not is_game_record(game.data)]
    if strange:
        raise FormatError(f"{strange[0].where}: not a game; home_name, vis_name and box_score are missing")
    return [*games, *(game for table in tables for game in _read_schedule(table))]


def is_schedule_file(path: Path) -> bool:
    """Return True if a table has columns for a day and two teams."""
    if path.suffix.lower() != ".csv":
        return False
    names = {name.strip(' "\r').lower() for name in read_first_characters(path).partition("\n")[0].split(",")}
    return all(names & set(_SCHEDULE_COLUMNS[field]) for field in ("day", "home_name", "vis_name"))


def _read_schedule(path: Path) -> list[GameEvidence]:
    games = []
    for line, row in iter_csv_rows(path):
        fields = {name.lower(): value.strip() for name, value in row.items()}
        game = _select_columns(fields, _SCHEDULE_COLUMNS)
        if parse_game_date(game.get("day")) is None:
            raise FormatError(
                f"{path}:{line}: expected a day such as 2017-02-03 or 02_03_17, found {game.get('day', '')!r}"
            )
        points = {name: {"TEAM-PTS": value} for name, value in _select_columns(fields, _POINTS_COLUMNS).items()}
        games.append(GameEvidence(f"{path}:{line}", "", {**game, **points}))
    return games


def _select_columns(fields: Mapping[str, str], spellings: Mapping[str, Iterable[str]]) -> dict[str, str]:
    values = {
        name: next((fields[other] for other in others if fields.get(other)), "") for name, others in spellings.items()
    }
    return {name: value for name, value in values.items() if value}


# --- matching records to texts -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EvidenceSources:
    """Records and games from all sources of `--data`."""

    records: tuple[GameEvidence, ...] = ()
    """Records of the texts."""
    season: tuple[GameEvidence, ...] = ()
    """Games of a season; games from a schedule have no box score."""


def read_evidence(paths: Iterable[Path]) -> EvidenceSources:
    """Read records and games from files and folders."""
    records: list[GameEvidence] = []
    season: list[GameEvidence] = []
    for path in paths:
        if path.is_dir():
            season += _read_season_folder(path)
        elif is_schedule_file(path):
            season += _read_schedule(path)
        else:
            records += read_evidence_file(path)
    return EvidenceSources(tuple(records), tuple(season))


@dataclass(frozen=True, slots=True)
class EvidenceMatch:
    """Texts with their records, and notes about texts without one."""

    documents: tuple[Document, ...]
    notes: tuple[str, ...]


def attach_evidence(documents: Sequence[Document], evidence: EvidenceSources) -> EvidenceMatch:
    """Add its record, and the games before and after it, to each text; an invalid box score is rejected."""
    # Record of each text, by text ID
    ids = {document.id for document in documents}
    full = [game for game in evidence.season if "box_score" in game.data]
    named = {game.id: game for game in (*full, *evidence.records) if game.id in ids}
    unnamed = [game for game in evidence.records if not game.id]
    if unnamed:
        matched = _match_by_day_and_teams(documents, unnamed)
        if not matched and len(unnamed) != len(documents):
            raise FormatError(
                f"{unnamed[0].where}: {len(unnamed):,} records without IDs for {len(documents):,} texts; "
                "provide one record per text in the same order, or name the text in a field `id`"
            )
        named |= matched or {document.id: game for document, game in zip(documents, unnamed, strict=True)}
    elif evidence.records and not named:
        first = evidence.records[0]
        raise FormatError(f"{first.where}: no text has the ID {first.id!r} of this record{did_you_mean(first.id, ids)}")
    record_by_text = {**_match_by_day_and_teams([text for text in documents if text.data is None], full), **named}
    season = Season.from_records(game.data for game in evidence.season)
    games = [_attach_record(document, record_by_text.get(document.id), season) for document in documents]
    return EvidenceMatch(tuple(games), tuple(_build_notes(games, record_by_text, evidence)))


def _attach_record(document: Document, game: GameEvidence | None, season: Season) -> Document:
    kept = document.data
    if game is not None:
        kept = with_links(game.data, get_links(kept))
    data = add_neighbouring_games(kept, season) if season.games else kept
    if data is document.data:
        return document
    if problem := game_record_problem(data):
        raise FormatError(f"{game.where if game else document.id}: the data is not a box score: {problem}")
    values = {name: getattr(document, name) for name in Document.model_fields} | {"data": data}
    if game is not None and game.references:
        values["references"] = game.references
    return build_record(Document, game.where if game else document.id, **values)


def _match_by_day_and_teams(documents: Iterable[Document], games: Sequence[GameEvidence]) -> dict[str, GameEvidence]:
    """Match records to texts by the day and teams in the texts' metadata."""
    season = Season.from_records(game.data for game in games if isinstance(game.data, Mapping))
    by_record = {id(game.data): game for game in games}
    matches = {}
    for document in documents:
        home, vis = (str(document.meta.get(name, "")) for name in ("home_name", "vis_name"))
        day = parse_game_date(document.meta.get("date", document.meta.get("day")))
        if home and vis and (game := season.find_game(day, home, vis)):
            matches[document.id] = by_record[id(game.record)]
    return matches


def _build_notes(
    documents: Sequence[Document], own: Mapping[str, GameEvidence], evidence: EvidenceSources
) -> Iterable[str]:
    bare = [document.id for document in documents if document.data is None]
    if bare:
        yield f"{len(bare):,} of {len(documents):,} texts have no record, e.g. {bare[0]}"
    left = len(evidence.records) - sum(game in evidence.records for game in own.values()) if evidence.records else 0
    if left > 0:
        yield f"{left:,} of {len(evidence.records):,} records match no text and were omitted"
    plain = [id for id, game in own.items() if not is_game_record(game.data)]
    if plain:
        why = "home_name and box_score are missing"
        yield (
            f"{len(plain):,} records are not box scores ({why}), e.g. that of {plain[0]}; they are shown as plain "
            "tables"
        )
