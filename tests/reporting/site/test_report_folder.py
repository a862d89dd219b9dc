from __future__ import annotations

import json
import re
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
from finecomb.reporting.site.report_folder import hash_by_file, short_data_hash, table_csv, verify_report, write_report

HOSTILE = "</script><img src=x onerror=alert(1)>\"'=cmd|"


class Tags(HTMLParser):
    """Tags and IDs of a page."""

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


def test_every_css_variable_of_a_page_is_defined(folder: Path) -> None:
    """An undefined variable invalidates the whole background, which once made all marks invisible."""
    style = (folder / "assets/report.css").read_text()
    for file in folder.rglob("*.html"):
        page = file.read_text()
        used = set(re.findall(r"var\((--[\w-]+)\)", page))
        assert not used - set(re.findall(r"(--[\w-]+):", style + page)), file


def test_every_number_comes_out_again_and_a_changed_one_is_found(folder: Path) -> None:
    def again(study: Study, manifest: object) -> ReportSource:
        return build_report_source(study, "demo", draws=100)

    assert verify_report(folder, read, again) == []
    table = folder / "tables" / "systems.csv"
    before = table.read_text()
    table.write_text(before.replace("0.", "1.", 1))
    assert verify_report(folder, read, again) == ["tables/systems.csv differs from the table computed from the data"]
    table.write_text(before)
    for name in ("index.html", "texts/3.html", "figures/systems.svg", "datasheet.md"):
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes(kept.replace(b"2", b"7"))  # `--verify` once compared only tables
        assert verify_report(folder, read, again) == [f"{name} differs from the page computed from the data"]
        (folder / name).write_bytes(kept)
    data = folder / "data" / "documents.jsonl"
    kept = data.read_bytes()
    data.write_bytes(kept.replace(b"ferry", b"merry", 1))
    assert "data/documents.jsonl differs from the file that the report was made from" in verify_report(
        folder, read, again
    )
    data.write_bytes(kept)
    manifest = json.loads((folder / "report.json").read_text())
    assert set(manifest["figures"]) == {"systems", "kinds", "trust", "readers", "texts"}


def test_wording_of_another_version_is_no_difference_but_a_number_is(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    write_report(build_report_source(fc.demo(), "demo", draws=100), folder, "today")
    manifest = json.loads((folder / "report.json").read_text())
    (folder / "report.json").write_text(json.dumps(manifest | {"finecomb": "0.0.1", "answer": "In other words."}))
    table = folder / "tables" / "trust.csv"
    table.write_text(table.read_text().replace("few", "in other words"))

    def again(study: Study, manifest: object) -> ReportSource:
        return build_report_source(study, "demo", draws=100)

    assert verify_report(folder, read, again) == []
    table.write_text(table.read_text().replace("0.", "1.", 1))
    assert verify_report(folder, read, again) == ["tables/trust.csv differs from the table computed from the data"]


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
    assert content.headline.sentence == "No annotations yet."
    assert "No annotations yet." in (tmp_path / "report/index.html").read_text()


def test_one_text_one_reader_right_to_left_and_labels_never_used(tmp_path: Path) -> None:
    protocol = load("scarecrow")
    document = Document(id="d", text="מילים ישנות")
    mark = Mark(id="m", spans=(Span(0, 5),), quotes=("מילים",), label="redundant")
    annotation = Annotation(id="a", document="d", annotator="r", protocol=protocol.id, marks=(mark,))
    study = Study.from_items([protocol, document, Annotator(id="r", kind="human"), annotation])
    content = write_report(build_report_source(study, "one", draws=20), tmp_path / "report", "today")
    assert content.headline.sentence == "The texts name no system, so there is no comparison between systems."
    assert content.counts == "1 text, 1 annotation by 1 person."
    assert 'dir="auto"' in (tmp_path / "report/texts/1.html").read_text()
    page = (tmp_path / "report/index.html").read_text()
    assert "none in 1 text" in page
    assert "nan" not in page.lower()


def test_another_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(FinecombError, match="exists and is not a report"):
        write_report(build_report_source(fc.demo(), "demo", draws=10), tmp_path, "today")


def test_a_missing_and_a_damaged_manifest_are_told_apart(tmp_path: Path) -> None:
    def unused(study: Study, manifest: object) -> ReportSource:
        raise AssertionError

    with pytest.raises(FinecombError, match=r"is not a report; report\.json cannot be read \(No such file"):
        verify_report(tmp_path, read, unused)
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(FinecombError, match=r"report\.json: invalid JSON; write the report again$"):
        verify_report(tmp_path, read, unused)


def test_cells_of_tables_are_empty_where_undefined_and_never_formulas() -> None:
    rows = [{"name": "=1+1", "note": "", "value": float("nan"), "difference": "-0.5"}, {"name": "it's", "value": 2}]
    assert table_csv(rows) == "name,note,value,difference\n'=1+1,,,-0.5\nit's,,2,\n"
