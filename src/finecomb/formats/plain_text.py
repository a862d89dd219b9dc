"""Plain texts: a file with one text per line, or a folder with a file for each.

A line is a text as it stands; an empty line is an empty text, so that line n goes with record n of a file of records.
Texts of a file are called by it and by their line (`generated-07`), those of a folder by their files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from finecomb.core.errors import FormatError
from finecomb.core.records import Document
from finecomb.core.study import StudyItem
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import build_record, read_start, read_text

ENDING = ".txt"


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Documents without marks."""
    return _read_folder(path) if path.is_dir() else _read_lines(path)


def _read_folder(path: Path) -> Iterator[StudyItem]:
    files = sorted(file for file in path.iterdir() if file.suffix.lower() == ENDING and file.is_file())
    if not files:
        raise FormatError(f"{path}: has no text files (*{ENDING})")
    for file in files:
        yield build_record(Document, str(file), id=file.stem, text=read_text(file).rstrip("\r\n"))


def _read_lines(path: Path) -> Iterator[StudyItem]:
    lines = read_text(path).replace("\r\n", "\n").removesuffix("\n").split("\n")
    width = len(str(len(lines)))
    for number, line in enumerate(lines, 1):
        yield build_record(Document, f"{path}:{number}", id=f"{path.stem}-{number:0{width}}", text=line)


def sniff(path: Path) -> bool:
    """A file that ends in .txt and is no table, or a folder of such files and nothing else."""
    if path.is_dir():
        names = [file for file in path.iterdir() if not file.name.startswith(".")]
        return bool(names) and all(file.suffix.lower() == ENDING and file.is_file() for file in names)
    start = read_start(path).partition("\n")[0]
    return path.suffix.lower() == ENDING and "\t" not in start and not start.startswith("#FORMAT")


FORMAT = Format("text", "plain text: one text per line, or a folder of texts", read, sniff=sniff)
