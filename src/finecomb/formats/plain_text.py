"""Plain texts: a file with one text per line, or a folder with a file per text.

Each line is a text; an empty line is an empty text, so that line n corresponds to record n of a data file. The ID of a
text in a file consists of the file name and the line (`generated-07`); in a folder it is the file name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from finecomb.core.errors import FormatError
from finecomb.core.records import Document
from finecomb.core.study import StudyItem
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import build_record, read_first_characters, read_text

TEXT_SUFFIX = ".txt"


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read documents without marks."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() == TEXT_SUFFIX and file.is_file())
        if not files:
            raise FormatError(f"{path}: contains no text files (*{TEXT_SUFFIX})")
        for file in files:
            yield build_record(Document, str(file), id=file.stem, text=read_text(file).rstrip("\r\n"))
    else:
        lines = read_text(path).replace("\r\n", "\n").removesuffix("\n").split("\n")
        width = len(str(len(lines)))
        for number, line in enumerate(lines, 1):
            yield build_record(Document, f"{path}:{number}", id=f"{path.stem}-{number:0{width}}", text=line)


def sniff(path: Path) -> bool:
    """Return True for a .txt file that is not a table, or a folder of only such files."""
    if path.is_dir():
        names = [file for file in path.iterdir() if not file.name.startswith(".")]
        return bool(names) and all(file.suffix.lower() == TEXT_SUFFIX and file.is_file() for file in names)
    start = read_first_characters(path).partition("\n")[0]
    return path.suffix.lower() == TEXT_SUFFIX and "\t" not in start and not start.startswith("#FORMAT")


FORMAT = Format("text", "plain text: one text per line, or a folder of texts", read, sniff=sniff)
