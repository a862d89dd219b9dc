"""Generator of hostile folders, files and databases: `python -m tests.hostile.corpus FOLDER` writes them.

Each case is a small study or file with one thing that a careless reader would obey, follow or choke on.
"""

from __future__ import annotations

import functools
import io
import json
import os
import sqlite3
import struct
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

DEEP = 200_000
CASES: dict[str, Callable[[Path], Path]] = {}
"""Functions that write one case into a folder and return the path to give to a command."""


def case(make: Callable[[Path], Path]) -> Callable[[Path], Path]:
    CASES[make.__name__] = make
    return make


def small_study(folder: Path, settings: str = "protocols: [scarecrow@2]\n") -> Path:
    folder.mkdir(parents=True)
    (folder / "study.yaml").write_text(settings, encoding="utf-8")
    lines = [{"id": f"d{n}", "text": f"They saw the the sea on day {n}.", "meta": {"model": "m"}} for n in range(3)]
    (folder / "documents.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "annotators.jsonl").write_text('{"id": "ann", "kind": "human"}\n')
    mark = {"id": "m1", "spans": [[9, 16]], "quotes": ["the the"], "label": "grammar-usage", "answers": {"severity": 1}}
    work = {"id": "a1", "document": "d0", "annotator": "ann", "protocol": "scarecrow@2", "marks": [mark]}
    (folder / "annotations.jsonl").write_text(json.dumps(work) + "\n")
    return folder


@case
def deep_settings(folder: Path) -> Path:
    return small_study(folder / "study", "title: " + "[" * DEEP)


@case
def alias_bomb(folder: Path) -> Path:
    lines = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    return small_study(folder / "study", "a0: &a0 [x]\n" + lines)


@case
def yaml_that_names_code(folder: Path) -> Path:
    marker = folder / "ran"
    return small_study(folder / "study", f"title: !!python/object/apply:os.system ['touch {marker}']\n")


@case
def deep_documents(folder: Path) -> Path:
    study = small_study(folder / "study")
    (study / "documents.jsonl").write_text('{"id": "d", "text": "x", "data": ' + '{"a":' * DEEP + "\n")
    return study


@case
def bad_bytes(folder: Path) -> Path:
    study = small_study(folder / "study")
    (study / "documents.jsonl").write_bytes(b'{"id": "d0", "text": "\xff\xfe"}\n\x00\n')
    return study


@case
def endless_line(folder: Path) -> Path:
    study = small_study(folder / "study")
    (study / "annotations.jsonl").write_text('{"id": "' + "x" * 5_000_000)
    return study


@case
def link_to_a_secret(folder: Path) -> Path:
    study = small_study(folder / "study")
    (folder / "secret.txt").write_text("TOP-SECRET-OF-ANOTHER-USER")
    (study / "annotators.jsonl").unlink()
    (study / "annotators.jsonl").symlink_to(folder / "secret.txt")
    return study


@case
def link_to_itself(folder: Path) -> Path:
    study = small_study(folder / "study")
    (study / "documents.jsonl").unlink()
    (study / "documents.jsonl").symlink_to(study / "documents.jsonl")
    return study


@case
def pipe_instead_of_a_file(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    os.mkfifo(folder / "texts.jsonl")
    return folder / "texts.jsonl"


@case
def modules_beside_the_data(folder: Path) -> Path:
    study = small_study(folder / "study")
    for name in ("json", "yaml", "polars", "rapidfuzz", "zipfile"):
        (study / f"{name}.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n")
    return study


@case
def address_and_secret(folder: Path) -> Path:
    models = "models:\n  judge: {model: m, base_url: 'http://127.0.0.1:9/v1', key_env: AWS_SECRET_ACCESS_KEY}\n"
    return small_study(folder / "study", "protocols: [scarecrow@2]\n" + models)


@case
def zip_bomb_as_workbook(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.xlsx").write_bytes(_zip_bomb())
    return folder / "texts.xlsx"


@functools.cache
def _zip_bomb() -> bytes:
    content = io.BytesIO()
    with (
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as member,
    ):
        for _ in range(2_000):
            member.write(b"<row/>" * 170_000)
    return content.getvalue()


@case
def archive_with_paths(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "texts.xlsx", "w") as archive:
        archive.writestr("../../escaped.txt", "x")
        archive.writestr("xl/workbook.xml", "<x/>")
    return folder / "texts.xlsx"


@case
def entities_in_a_workbook(folder: Path) -> Path:
    import openpyxl

    folder.mkdir(parents=True, exist_ok=True)
    book, content = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["id", "text"])  # type: ignore[union-attr]
    book.save(content)
    entity = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY f SYSTEM "file:///etc/passwd">]>'
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(folder / "texts.xlsx", "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            if name.endswith("sheet1.xml"):
                head, _, rest = text.partition("?>") if text.startswith("<?xml") else ("", "", text)
                text = (f"{head}?>" if head else "") + entity + rest.replace("</sheetData>", "&b;&f;</sheetData>")
            new.writestr(name, text)
    return folder / "texts.xlsx"


@case
def csv_with_formulas(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.csv").write_text('id,text\n"=cmd|\' /C calc\'!A0","=HYPERLINK(""http://x"")"\n@x,+1\n')
    return folder / "texts.csv"


@case
def database_that_is_text(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.db").write_bytes(b"SQLite format 3\0" + b"\xee" * 4096)
    return folder / "study.db"


@case
def database_with_foreign_tables(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "study.db")) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('4')")
        connection.execute("CREATE VIEW study AS SELECT 1 AS key, 'x' AS name")
        connection.commit()
    return folder / "study.db"


@case
def parquet_that_is_none(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.parquet").write_bytes(b"PAR1" + b"\xff" * 100 + struct.pack("<I", 2**31 - 1) + b"PAR1")
    return folder / "texts.parquet"


@case
def protocol_with_a_slow_expression(folder: Path) -> Path:
    study = small_study(folder / "study", "protocols: [slow@1]\n")
    (study / "protocols").mkdir()
    (study / "protocols" / "slow@1.yaml").write_text(
        "name: slow\nversion: '1'\ntitle: Slow\nlabels:\n  - {name: a, gloss: x}\n"
        "normalise:\n  - {quote: '(a+)+$', action: split}\n"
    )
    return study


@case
def manifest_deep(folder: Path) -> Path:
    study = small_study(folder / "study")
    (study / "report.json").write_text("[" * DEEP)
    return study


def write_all(folder: Path) -> dict[str, Path]:
    """Write every case into its own folder."""
    made = {}
    for name, make in CASES.items():
        (folder / name).mkdir(parents=True)
        made[name] = make(folder / name)
    return made


if __name__ == "__main__":
    for name, path in write_all(Path(sys.argv[1])).items():
        print(name, path)
