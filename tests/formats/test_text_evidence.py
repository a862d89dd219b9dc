"""Tests of the records that `--data` names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from finecomb.core.errors import FormatError
from finecomb.core.records import Document
from finecomb.formats.text_evidence import attach_evidence, read_evidence

BOX = {"PLAYER_NAME": {"0": "Lena Brandt"}, "PTS": {"0": "17"}}


def game(day: str, home: str = "Foxes", vis: str = "Cranes", **fields: Any) -> dict[str, Any]:
    return {"home_name": home, "vis_name": vis, "day": day, "box_score": BOX} | fields


GAMES = [game("2017-02-01"), game("2017-02-03")]
TEXTS = [Document(id=id, text="The Foxes won.") for id in ("a", "b")]


def records(path: Path, *paths: Path) -> list[Any]:
    return [document.data for document in attach_evidence(TEXTS, read_evidence([path, *paths])).documents]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("games.json", json.dumps(GAMES)),
        ("games.json", json.dumps({"b": GAMES[1], "a": GAMES[0]})),
        ("games.jsonl", "\n".join(map(json.dumps, GAMES))),
        (
            "games.jsonl",
            "\n".join(json.dumps({**each, "text_id": id}) for id, each in zip("ba", GAMES[::-1], strict=True)),
        ),
    ],
)
def test_records_find_their_texts_by_id_or_in_order(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    assert records(tmp_path / name) == GAMES


def test_what_a_person_wrote_becomes_a_reference(tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_text("\n".join(json.dumps({**each, "summary": ["They", "won"]}) for each in GAMES))
    documents = attach_evidence(TEXTS, read_evidence([tmp_path / "g.jsonl"])).documents
    assert documents[0].references == ("They won",)
    assert documents[0].data == GAMES[0]


def test_texts_find_their_games_by_day_and_teams(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(json.dumps([*GAMES, game("2017-03-03")]))
    text = Document(id="x", text="…", meta={"home_name": "Foxes", "vis_name": "Cranes", "date": "02_03_17"})
    match = attach_evidence([text], read_evidence([tmp_path / "g.json"]))
    assert match.documents[0].data == GAMES[1]
    assert match.notes == ("2 of 3 records match no text and were omitted",)


def test_a_folder_is_a_season_and_a_table_its_schedule(tmp_path: Path) -> None:
    season = tmp_path / "season"
    season.mkdir()
    (season / "a.json").write_text(json.dumps(game("2017-02-01")))
    (season / "b.json").write_text(json.dumps(game("2017-02-03")))
    (tmp_path / "next.csv").write_text("Date,Home,Visitor,Home_Points\n2017-02-05,Cranes,Owls,88\n")
    first, second = records(season, tmp_path / "next.csv")
    assert first["season"]["home"] == {"last": None, "next": GAMES[1]}
    assert second["season"]["vis"]["next"] == {
        "day": "2017-02-05", "home_name": "Cranes", "vis_name": "Owls", "home_line": {"TEAM-PTS": "88"}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps([GAMES[0]]), "1 records without IDs for 2 texts"),
        (json.dumps({"c": GAMES[0]}), "no text has the ID 'c' of this record"),
        (json.dumps([{**GAMES[0], "box_score": []}] * 2), "the data is not a box score: box_score must be an object"),
        ("", "the file is empty; expected JSON or JSON lines"),
        ("[1,", "invalid JSON"),
        ("[1, 2]", r"g\.json:1: not a record; expected an object or a list of objects, found 1"),
        ('{"a": null, "b": {}}', "not a record; expected an object or a list of objects, found null"),
    ],
)
def test_records_that_cannot_be_used_are_refused_in_one_line(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "g.json").write_text(content)
    with pytest.raises(FormatError, match=message) as error:
        records(tmp_path / "g.json")
    assert "\n" not in str(error.value)


def test_a_missing_file_and_an_empty_one_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "games.json").write_text("")
    with pytest.raises(FormatError, match=r"game\.json: no such file; did you mean 'games\.json'\?$"):
        read_evidence([tmp_path / "game.json"])
    with pytest.raises(FormatError, match=r"games\.json: the file is empty; expected JSON or JSON lines$"):
        read_evidence([tmp_path / "games.json"])


def test_an_unreadable_file_is_not_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "games.json"
    path.symlink_to(path)
    with pytest.raises(FormatError, match=r"games\.json: cannot be opened: "):
        read_evidence([path])
    path.unlink()
    path.write_bytes(b"\xff\xff")
    with pytest.raises(FormatError, match=r"games\.json:1: byte 0xff is not UTF-8"):
        read_evidence([path])


def test_records_may_follow_many_empty_lines(tmp_path: Path) -> None:
    (tmp_path / "plain.json").write_text('[{"id": "a", "x": 1}]')
    (tmp_path / "spaced.json").write_text("\n" * 10_000 + '[{"id": "a", "x": 1}]')
    plain, spaced = (records(tmp_path / name) for name in ("plain.json", "spaced.json"))
    assert spaced == plain
    assert {"x": 1} in spaced


def test_a_folder_without_games_and_a_schedule_without_days_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="contains no games"):
        read_evidence([tmp_path])
    (tmp_path / "s.csv").write_text("date,home,away\nsoon,Foxes,Owls\n")
    with pytest.raises(FormatError, match=r"s\.csv:2: expected a day such as .*, found 'soon'"):
        read_evidence([tmp_path / "s.csv"])


def test_other_records_are_said_to_be_no_box_scores(tmp_path: Path) -> None:
    (tmp_path / "w.jsonl").write_text('{"wind": 3}\n{"wind": 4}\n')
    match = attach_evidence(TEXTS, read_evidence([tmp_path / "w.jsonl"]))
    assert [document.data for document in match.documents] == [{"wind": 3}, {"wind": 4}]
    assert "2 records are not box scores" in match.notes[0]


def test_records_that_are_lists_are_tables_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text('[[{"wind": 3}], [{"wind": 4}]]')
    match = attach_evidence(TEXTS, read_evidence([tmp_path / "w.json"]))
    assert [document.data for document in match.documents] == [[{"wind": 3}], [{"wind": 4}]]
