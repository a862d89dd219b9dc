"""Manual pages in man or mdoc, as they are installed: each page a document, each section a segment with its title.

`mandoc` renders them; headings become titles and are not part of the text, so that whoever reads a section must tell
its kind from its words. `-O width=1000` keeps paragraphs on one line.
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
_FOLDER = re.compile(r"man[0-9n][a-z0-9]*$")
_OVERSTRUCK = re.compile(".\b", re.DOTALL)  # bold and underlined characters are struck over
_TIMEOUT_SECONDS = 60


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """The pages of a file or of a folder with all its folders, in order; a page with several names comes once."""
    program = shutil.which("mandoc")
    if program is None:
        raise FormatError(
            f"{path}: manual pages are read with the program `mandoc`, which is not installed; on Debian: "
            "apt-get install mandoc"
        )
    empty = 0
    for page, id in _find_pages(path):
        sections = parse_page(_render_page(program, page))
        if sections:
            yield _build_document(page, id, sections)
        empty += not sections
    if empty:
        yield Note(text=f"{empty} pages have no sections, e.g. because they only point to others, and were left out")


def _find_pages(path: Path) -> Iterator[tuple[Path, str]]:
    """Every page with its id; links to pages of the same folder are left out."""
    if path.is_file():
        yield path, path.name.removesuffix(".gz")
        return
    earlier: set[Path] = set()
    for page in sorted(file for file in path.rglob("*") if _PAGE_NAME.match(file.name) and file.is_file()):
        real = page.resolve()
        if real not in earlier:
            earlier.add(real)
            yield page, page.relative_to(path).as_posix().removesuffix(".gz")


def _render_page(program: str, page: Path) -> str:
    command = [program, "-T", "utf8", "-O", "width=1000", str(page)]
    try:
        run = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise FormatError(f"{page}: mandoc did not finish in {_TIMEOUT_SECONDS} seconds; leave the page out") from None
    return run.stdout.decode("utf-8", errors="replace")


def parse_page(rendered: str) -> list[tuple[str, str]]:
    """Title and text of each section of a page as mandoc prints it; the lines at top and bottom are left out.

    >>> parse_page("LS(1)  Commands  LS(1)\\n\\nNAME\\n       ls - list\\n\\nSEE ALSO\\n       cat(1)\\n\\n2024\\n")
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
    meta = {"language": _page_language(page), **(name.groupdict() if name else {})}
    return build_record(Document, str(page), id=id, text=text, segments=tuple(segments), meta=meta)


def _page_language(page: Path) -> str:
    """The folder above `man1`, where that is a language's: .../de/man1/ls.1."""
    above = page.absolute().parent.parent.name
    return above if re.fullmatch(r"(?!man$)[a-z]{2,3}(_[A-Z]{2})?(@\w+)?", above) else "en"


def sniff(path: Path) -> bool:
    """A page by its name and first characters, or a folder that is or holds `man1` and the like."""
    if path.is_dir():
        return any(_FOLDER.match(folder.name) for folder in (path, *path.iterdir()) if folder.is_dir())
    if not _PAGE_NAME.match(path.name):
        return False
    with path.open("rb") as file:
        start = file.read(4096)
    return start.startswith(b"\x1f\x8b") or re.search(rb"^\.(TH|Dd|so)\b", start, re.MULTILINE) is not None


FORMAT = Format("man", "manual pages", read, sniff=sniff)
