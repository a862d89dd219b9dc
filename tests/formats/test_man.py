from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from finecomb.core.errors import FormatError
from finecomb.core.records import Document, Note
from finecomb.formats import detect_format, man
from finecomb.formats.base import Options

PAGE = r""".TH COMB 1 "2026" "Saltby" "Commands"
.SH NAME
comb \- go through \fBwool\fR
.SH DESCRIPTION
A comb has
teeth.
.PP
Some have \fImany\fR.
.SS Care
Keep it dry.
.SH "SEE ALSO"
card(1)
"""
MDOC = """.Dd November 1, 2026
.Dt CARD 1
.Os
.Sh NAME
.Nm card
.Nd straighten wool
.Sh EXAMPLES
Hold it flat.
"""
needs_mandoc = pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")


def pages(folder: Path) -> Path:
    for place, text in {"man1/comb.1": PAGE, "de/man1/card.1": MDOC, "man1/none.1": ".so man1/nowhere.1\n"}.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text)
    packed = folder / "man1" / "comb.1"
    (folder / "man1" / "comb.1.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    (folder / "man1" / "kamm.1.gz").symlink_to("comb.1.gz")
    return folder


@needs_mandoc
def test_each_page_is_a_document_and_each_section_a_segment(tmp_path: Path) -> None:
    card, comb, note = man.read(pages(tmp_path / "man"), Options())
    assert isinstance(comb, Document)
    assert isinstance(card, Document)
    assert comb.id == "man1/comb.1"
    assert [(each.title, comb.text[each.start : each.end]) for each in comb.segments] == [
        ("NAME", "comb - go through wool"),
        ("DESCRIPTION", "A comb has teeth.\n\nSome have many.\n\nCare\nKeep it dry."),
        ("SEE ALSO", "card(1)"),
    ]
    assert comb.meta == {"language": "en", "name": "comb", "section": "1"}
    assert card.meta["language"] == "de"
    assert isinstance(note, Note)
    assert note.text.startswith("1 pages have no sections")


@needs_mandoc
def test_headings_are_not_in_the_text(tmp_path: Path) -> None:
    (tmp_path / "comb.1").write_text(PAGE)
    (document,) = man.read(tmp_path / "comb.1", Options())
    assert isinstance(document, Document)
    assert document.id == "comb.1"
    assert "DESCRIPTION" not in document.text


def test_without_mandoc_the_way_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FormatError, match="apt-get install mandoc"):
        list(man.read(tmp_path, Options()))


def test_bold_and_underlined_letters_are_read_once() -> None:
    rendered = "A(1)\n\nN\bNA\bAM\bME\bE\n       _\bx is b\bb\n\nfooter\n"
    assert man.parse_rendered_page(rendered) == [("NAME", "x is b")]


@pytest.mark.parametrize("rendered", ["", "\n", "one line", "A(1)\n\n       text without a section\n\nA(1)"])
def test_what_has_no_sections_gives_none(rendered: str) -> None:
    assert man.parse_rendered_page(rendered) == []


def test_pages_and_their_folders_are_recognised(tmp_path: Path) -> None:
    pages(tmp_path)
    for place in ("", "man1", "man1/comb.1.gz", "de/man1/card.1"):
        assert detect_format(tmp_path / place).name == "man"
    (tmp_path / "notes.1").write_text("nothing of the kind")
    assert not man.sniff(tmp_path / "notes.1")
