"""Installed manual pages in man or mdoc: each page is a document, each section a segment with its title.

`mandoc` renders the pages. Headings become titles and are not part of the text, so that the type of a section must be
inferred from its words. `-O width=1000` keeps each paragraph on one line.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from finecomb.core.errors import FormatError
from finecomb.core.records import Document, Note, Segment
from finecomb.core.study import StudyItem
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import build_record

_PAGE_NAME = re.compile(r"(?P<name>.+)\.(?P<section>[0-9n][a-z0-9]*)(?:\.gz)?$")
_SECTION_FOLDER = re.compile(r"man[0-9n][a-z0-9]*$")
_OVERSTRUCK = re.compile(".\b", re.DOTALL)  # bold and underlined characters are overstruck
_TIMEOUT_SECONDS = 60


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read the pages of a file or folder, recursively and in order; a page with several names is read once."""
    program = shutil.which("mandoc")
    if program is None:
        raise FormatError(
            f"{path}: reading manual pages requires the program `mandoc`; on Debian, install it with "
            "`apt-get install mandoc`"
        )
    empty = 0
    for page, id in _find_pages(path):
        command = [program, "-T", "utf8", "-O", "width=1000", str(page)]
        try:
            run = subprocess.run(
                command, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=_TIMEOUT_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise FormatError(
                f"{page}: mandoc did not finish within {_TIMEOUT_SECONDS} seconds; remove the page"
            ) from None
        sections = parse_rendered_page(run.stdout.decode("utf-8", errors="replace"))
        if sections:
            yield _build_document(page, id, sections)
        empty += not sections
    if empty:
        yield Note(text=f"{empty} pages have no sections, e.g. because they only refer to others, and were omitted")


def _find_pages(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield every page with its ID; links to pages in the same folder are skipped."""
    if path.is_file():
        yield path, path.name.removesuffix(".gz")
        return
    earlier: set[Path] = set()
    for page in sorted(file for file in path.rglob("*") if _PAGE_NAME.match(file.name) and file.is_file()):
        real = page.resolve()
        if real not in earlier:
            earlier.add(real)
            yield page, page.relative_to(path).as_posix().removesuffix(".gz")


def parse_rendered_page(rendered: str) -> list[tuple[str, str]]:
    """Return the title and text of each section of a page rendered by mandoc, without header and footer lines.

    >>> parse_rendered_page("LS(1)  Cmd  LS(1)\\n\\nNAME\\n       ls - list\\n\\nSEE ALSO\\n       cat(1)\\n\\n2024\\n")
    [('NAME', 'ls - list'), ('SEE ALSO', 'cat(1)')]
    """
    lines = _OVERSTRUCK.sub("", rendered).replace("\0", "").splitlines()
    sections: list[tuple[str, list[str]]] = []
    for line in lines[1:-1]:
        if line and not line[0].isspace():
            sections.append((line.strip(), []))
        elif sections:
            sections[-1][1].append(line.strip())
    return [(title, text) for title, body in sections if (text := "\n".join(body).strip())]


def _build_document(page: Path, id: str, sections: list[tuple[str, str]]) -> Document:
    start, segments = 0, []
    for title, text in sections:
        segments.append(Segment(start=start, end=start + len(text), title=title))
        start += len(text) + 2
    text, name = "\n\n".join(text for _, text in sections), _PAGE_NAME.match(page.name)
    # Language if it is the name of the folder above `man1`, as in .../de/man1/ls.1.
    above = page.absolute().parent.parent.name
    meta = {
        "language": (above if re.fullmatch(r"(?!man$)[a-z]{2,3}(_[A-Z]{2})?(@\w+)?", above) else "en"),
        **(name.groupdict() if name else {}),
    }
    return build_record(Document, str(page), id=id, text=text, segments=tuple(segments), meta=meta)


def sniff(path: Path) -> bool:
    """Return True for a manual page, or for a folder that is or contains `man1` or similar."""
    if path.is_dir():
        return any(_SECTION_FOLDER.match(folder.name) for folder in (path, *path.iterdir()) if folder.is_dir())
    if not _PAGE_NAME.match(path.name):
        return False
    with path.open("rb") as file:
        start = file.read(4096)
    return start.startswith(b"\x1f\x8b") or re.search(rb"^\.(TH|Dd|so)\b", start, re.MULTILINE) is not None


FORMAT = Format("man", "manual pages", read, sniff=sniff)
