from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.formats import read
from finecomb.protocols import load
from finecomb.reporting.site.report_content import ReportSource, build_report_source
from finecomb.reporting.site.report_folder import hash_by_file, short_data_hash, verify_report, write_report

HOSTILE = "</script><img src=x onerror=alert(1)>\"'=cmd|"


class Tags(HTMLParser):
    """The tags and ids of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("report") / "report"
    write_report(build_report_source(fc.demo(), "demo", draws=100), target, "1 May 2026", images=("png",))
    return target


def test_every_link_of_the_first_page_leads_somewhere(folder: Path) -> None:
    page = (folder / "index.html").read_text()
    tags = Tags(page).tags
    ids = {attributes.get("id") for _, attributes in tags}
    for tag, attributes in tags:
        href = attributes.get("href") or ""
        if tag == "a" and href.startswith("#"):
            assert href[1:] in ids, href
        elif tag in ("a", "link"):
            assert (folder / href).exists(), href
    assert len(list((folder / "texts").glob("*.html"))) == 16
    assert (folder / "figures" / "systems.png").read_bytes().startswith(b"\x89PNG")


def test_paper_and_the_last_section_name_the_hash_of_the_data(folder: Path) -> None:
    data = short_data_hash(hash_by_file(folder))
    assert f'· data {data}"' in (folder / "assets" / "report.css").read_text()
    assert f"sha256 {data}" in (folder / "index.html").read_text()


def test_nothing_is_fetched_and_no_script_is_inside_a_page(folder: Path) -> None:
    for file in folder.rglob("*.html"):
        for tag, attributes in Tags(file.read_text()).tags:
            address = (attributes.get("src") or "") + (attributes.get("href") or "")
            assert "//" not in address, f"{file}: {tag} {address}"
            assert not any(name.startswith("on") for name in attributes), file


def test_every_number_comes_out_again_and_a_changed_one_is_found(folder: Path) -> None:
    def again(study: Study, manifest: object) -> ReportSource:
        return build_report_source(study, "demo", draws=100)

    assert verify_report(folder, read, again) == []
    table = folder / "tables" / "systems.csv"
    before = table.read_text()
    table.write_text(before.replace("0.", "1.", 1))
    assert verify_report(folder, read, again) == ["tables/systems.csv: is not the table of the data"]
    table.write_text(before)
    for name in ("index.html", "texts/3.html", "figures/systems.svg", "datasheet.md"):
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes(kept.replace(b"2", b"7"))  # `--verify` once looked at tables only
        assert verify_report(folder, read, again) == [f"{name}: is not the page of the data"]
        (folder / name).write_bytes(kept)
    data = folder / "data" / "documents.jsonl"
    kept = data.read_bytes()
    data.write_bytes(kept.replace(b"ferry", b"merry", 1))
    assert "data/documents.jsonl: is not the file that the report was made from" in verify_report(folder, read, again)
    data.write_bytes(kept)
    manifest = json.loads((folder / "report.json").read_text())
    assert set(manifest["figures"]) == {"systems", "kinds", "trust", "readers", "texts"}


def hostile_study() -> Study:
    protocol = load("scarecrow")
    documents = [Document(id=f"{HOSTILE}{n}", text=HOSTILE + " more words", meta={"model": HOSTILE}) for n in range(2)]
    mark = Mark(id="m", spans=(Span(0, 4),), quotes=(HOSTILE[:4],), label="redundant", answers={"explanation": HOSTILE})
    annotation = Annotation(id="a", document=documents[0].id, annotator=HOSTILE, protocol=protocol.id, marks=(mark,))
    return Study.from_items([protocol, *documents, Annotator(id=HOSTILE, kind="human"), annotation])


def test_texts_names_and_answers_are_never_markup(tmp_path: Path) -> None:
    write_report(build_report_source(hostile_study(), HOSTILE, draws=20), tmp_path / "report", "today")
    for file in (tmp_path / "report").rglob("*.html"):
        tags = {tag for tag, _ in Tags(file.read_text()).tags}
        assert "img" not in tags, file
    assert not any(cell.startswith("=") for cell in (tmp_path / "report/tables/texts.csv").read_text().split(","))


@pytest.mark.parametrize("name", ["turing", "likert"])
def test_a_study_without_labels_or_readers_says_so(tmp_path: Path, name: str) -> None:
    empty = Study.from_items([load(name), Document(id="d", text="Words.")])
    content = write_report(build_report_source(empty, name, draws=20), tmp_path / "report", "today")
    assert content.answer.sentence == "Nobody has read these texts yet."
    assert "Nobody has read these texts yet." in (tmp_path / "report/index.html").read_text()


def test_one_text_one_reader_right_to_left_and_labels_never_used(tmp_path: Path) -> None:
    protocol = load("scarecrow")
    document = Document(id="d", text="מילים ישנות")
    mark = Mark(id="m", spans=(Span(0, 5),), quotes=("מילים",), label="redundant")
    annotation = Annotation(id="a", document="d", annotator="r", protocol=protocol.id, marks=(mark,))
    study = Study.from_items([protocol, document, Annotator(id="r", kind="human"), annotation])
    content = write_report(build_report_source(study, "one", draws=20), tmp_path / "report", "today")
    assert content.answer.sentence == "All texts were read; there is nothing to compare them with."
    assert content.counts == "1 text, 1 annotation by 1 person."
    assert 'dir="auto"' in (tmp_path / "report/texts/1.html").read_text()
    page = (tmp_path / "report/index.html").read_text()
    assert "none in 1 text" in page
    assert "nan" not in page.lower()


def test_another_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FinecombError, match="is no report"):
        write_report(build_report_source(fc.demo(), "demo", draws=10), tmp_path, "today")
