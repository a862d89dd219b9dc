"""Import of tables and JSON: roles, paths, offsets, sheets, bad input, and nothing lost in silence."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pandas
import polars as pl
import pytest

import finecomb as fc
from finecomb.core.errors import FinecombError, ParameterError
from finecomb.core.study import Study
from finecomb.formats import detect_format
from finecomb.formats.imports.sources import decompress_zstd, detect_encoding

TEXT = "The mill in Saltby opened in 2031. 😀 It were closed."
MARK = {"start": 29, "end": 33, "label": "conflict"}


def spans(study: Study) -> list[tuple[int, int, str]]:
    return [
        (span["start"], span["end"], quote)
        for row in study.marks.iter_rows(named=True)
        for span, quote in zip(row["spans"], row["quotes"], strict=True)
    ]


@pytest.mark.parametrize("field", ["spans", "labels", "annotations", "entities", "marks", "hard_labels", "errors"])
def test_marks_are_found_under_any_name(field: str, tmp_path: Path) -> None:
    """Such lines were read as a text with 0 marks, without a word about it."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": TEXT, field: [MARK]}) + "\n")
    assert spans(fc.read(path)) == [(29, 33, "2031")]
    assert spans(fc.import_table([{"text": TEXT, field: [MARK]}]).study) == [(29, 33, "2031")]


@pytest.mark.parametrize("item", [[29, 33], [29, 33, "conflict"]])
def test_pairs_and_triples_are_marks(item: list[Any]) -> None:
    assert spans(fc.import_table([{"text": TEXT, "hard_labels": [item]}]).study) == [(29, 33, "2031")]


def test_two_lists_of_marks_need_a_choice_and_the_shown_mapping_works() -> None:
    rows = [{"text": TEXT, "human": [MARK], "machine": [MARK]}]
    with pytest.raises(ParameterError, match="look like marks and are not mapped") as error:
        fc.import_table(rows)
    assert "start=human[].start" in str(error.value)
    roles = {"start": "human[].start", "end": "human[].end", "label": "human[].label", "ignore": "machine"}
    assert spans(fc.import_table(rows, map=roles).study) == [(29, 33, "2031")]


def test_paths_lead_into_nested_data() -> None:
    rows = [{"key": 0, "response": {"output": TEXT}, "messages": [{"content": "Write."}, {"content": "x"}]}]
    study = fc.import_table(rows, text="response.output", id="key", prompt="messages[0].content").study
    document = study.document("0")
    assert (document.text, document.context["prompt"]) == (TEXT, "Write.")


CONVENTIONS = [
    (29, 33, "code points from 0, end exclusive"),
    (29, 32, "code points from 0, end inclusive"),
    (30, 34, "code points from 1, end exclusive"),
    (30, 33, "code points from 1, end inclusive"),
]


@pytest.mark.parametrize(("start", "end", "name"), CONVENTIONS)
def test_the_offset_convention_is_found_from_the_quotes(start: int, end: int, name: str) -> None:
    rows = [{"text": TEXT, "spans": [{"start": start, "end": end, "text": "2031", "label": "conflict"}]}]
    result = fc.import_table(rows)
    assert spans(result.study) == [(29, 33, "2031")]
    assert result.find(what="placed by offsets").detail == f"{name}: 100.0% of 1 quotes fit"


@pytest.mark.parametrize("unit", ["UTF-16 units", "bytes", "tokens"])
def test_units_after_an_emoji_are_told_apart(unit: str) -> None:
    text = "The mill in Saltby opened in 2031, 😀 it were closed."
    place = text.index("were")
    real = {"UTF-16 units": place + 1, "bytes": place + 3, "tokens": text.split().index("were")}[unit]
    size = 1 if unit == "tokens" else 4
    mark = {"start": real, "end": real + size, "text": "were", "label": "grammar"}
    result = fc.import_table([{"text": text, "spans": [mark]}])
    assert spans(result.study) == [(place, place + 4, "were")]
    assert result.find(what="placed by offsets").detail.startswith(unit)


def test_offsets_that_fit_no_convention_need_a_choice() -> None:
    mark = {"start": 3, "end": 5, "text": "2031", "label": "conflict"}
    with pytest.raises(ParameterError, match="no offset convention fits 90% of the 1 quotes"):
        fc.import_table([{"text": TEXT, "spans": [mark]}])
    assert spans(fc.import_table([{"text": TEXT, "spans": [mark]}], offsets="quotes").study) == [(29, 33, "2031")]


def study_of_texts() -> Study:
    texts = [{"id": f"t{number}", "text": f"{TEXT} {number}"} for number in range(3)]
    return fc.new(texts, protocol="scarecrow").study


ERRORS = "doc_id,quote,category,rater\nt0,were,Grammar / Usage,ann\nt1,2031,bad-math,ann\n"


def test_a_sheet_of_errors_uses_the_texts_of_the_study(tmp_path: Path) -> None:
    path = tmp_path / "errors.csv"
    path.write_text(ERRORS)
    with pytest.raises(ParameterError, match="1 of 3 pairs of text and annotator have no row"):
        fc.import_table(path, into=study_of_texts())
    read = fc.import_table(path, into=study_of_texts(), no_row="read").study
    unread = fc.import_table(path, into=study_of_texts(), no_row="unread").study
    assert (len(read.annotations), len(unread.annotations)) == (3, 2)
    assert spans(read) == [(40, 44, "were"), (29, 33, "2031")]


def test_unknown_labels_are_listed_and_can_be_mapped(tmp_path: Path) -> None:
    path = tmp_path / "errors.csv"
    path.write_text(ERRORS.replace("bad-math", "Style"))
    with pytest.raises(ParameterError, match=r"labels that scarecrow@2 does not have: 'Style' \(1 marks\)"):
        fc.import_table(path, into=study_of_texts(), no_row="read")
    study = fc.import_table(path, into=study_of_texts(), no_row="read", labels="Style=incoherent").study
    assert sorted(study.marks["label"]) == ["grammar-usage", "incoherent"]


def test_rows_of_unknown_documents_are_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "errors.csv"
    path.write_text(ERRORS + "t9,mill,bad-math,ann\n")
    result = fc.import_table(path, into=study_of_texts(), no_row="unread")
    assert result.find(what="left out", detail="the document is not in the study")["count"] == 1


def test_metrics_need_a_direction_and_correlate_with_quality() -> None:
    texts = [{"id": f"t{number}", "text": TEXT} for number in range(5)]
    study = fc.new(texts, protocol="scarecrow").study
    errors = [
        {"id": f"t{number}", "quote": "mill", "label": "bad-math", "annotator": "gold"}
        for number in range(5)
        for _ in range(number)
    ]
    study = fc.import_table(errors, into=study, no_row="read").study
    scores = [{"id": f"t{number}", "errors_found": number, "quality": -number} for number in range(5)]
    with pytest.raises(ParameterError, match="state whether higher scores of errors_found, quality are better"):
        fc.import_table(scores, into=study)
    study = fc.import_table(scores, into=study, higher_is_better="quality", lower_is_better="errors_found").study
    result = fc.score(study, judge=["quality", "errors_found"], gold="gold", draws=0)
    values = {row.metric: row.value for row in result.rows() if row.measure == "pearson"}
    assert values == pytest.approx({"quality": 1.0, "errors_found": 1.0})
    assert "a good metric has a positive correlation" in result.notes[0]


BAD = [
    ('{"id": 1, "text": "a"}\n{"id": 1, "text": "b"}\n', "document '1' has another text"),
    ('{"text": "a"}\n{"text": \n', "line 2: invalid JSON"),
    ('{"text": "a"}\n[1]\n', "line 2: expected an object"),
    (
        '{"text": "a", "spans": [{"start": "x1", "end": 2}]}\n{"text": "b", "spans": [{"start": -4, "end": 1}]}\n',
        "start must be",
    ),
]


@pytest.mark.parametrize(("content", "message"), BAD)
def test_bad_rows_are_refused_by_line_or_skipped(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    with pytest.raises(FinecombError, match="nothing was written") as error:
        fc.import_table(path)
    assert message in str(error.value)
    result = fc.import_table(path, bad_rows="skip")
    assert len(result.study.documents) == 1
    assert result.find(what="bad rows left out")["count"] == 1


def test_offsets_past_the_end_and_missing_values_are_kept_without_spans() -> None:
    rows = [{"id": 0, "text": "short", "spans": [{"start": 2, "end": 99, "label": "x"}], "score": float("nan")}]
    result = fc.import_table(rows)
    assert result.find(what="not placed").detail == "the offsets are not within the text"
    assert result.study.documents["id"].to_list() == ["0"]


def test_an_open_quotation_mark_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('id,text\n1,fine\n2,"opens here\n3,next\n4,last\n')
    with pytest.raises(FinecombError, match="line 3: the quotation mark that opens here"):
        fc.import_table(path)


def test_duplicate_rows_of_a_table_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,text\n1,a\n1,a\n2,b\n")
    result = fc.import_table(path)
    assert result.find(what="left out").detail == "exact duplicates of an earlier row"
    assert len(result.study.documents) == 2


def test_a_row_with_too_many_cells_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,text\n1,a\n2,b,c\n")
    with pytest.raises(FinecombError, match="line 3: has 3 cells; the header has 2"):
        fc.import_table(path)


def test_encodings_are_detected_or_given(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("id,text\n1,Café\n".encode("cp1252"))
    assert fc.import_table(path).study.document("1").text == "Café"
    path.write_bytes("id,text\n1,Žďár\n".encode("iso-8859-2"))
    assert fc.import_table(path, encoding="iso-8859-2").study.document("1").text == "Žďár"
    path.write_bytes("id,text\n1,Café 😀\n".encode() + "2,Café\n".encode("cp1252"))
    with pytest.raises(FinecombError, match="line 3: byte 0xe9 is not UTF-8"):
        fc.import_table(path)
    assert detect_encoding("a".encode("utf-16"))[0] == "utf-16"


def test_compressed_files_sheets_and_parquet_are_read(tmp_path: Path) -> None:
    lines = json.dumps({"id": "a", "text": TEXT, "spans": [MARK]}) + "\n"
    packed = tmp_path / "rows.jsonl.gz"
    packed.write_bytes(gzip.compress(lines.encode()))
    archive = tmp_path / "rows.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("inner/rows.jsonl", lines)
    frame = pl.DataFrame([{"id": "a", "text": TEXT, "spans": [MARK]}])
    table = tmp_path / "rows.parquet"
    frame.write_parquet(table)
    for path in (packed, archive, table):
        assert spans(fc.read(path)) == [(29, 33, "2031")]
        assert spans(fc.import_table(path).study) == [(29, 33, "2031")]
    book = openpyxl.Workbook()
    book.active.append(["nothing"])  # type: ignore[union-attr]
    sheet = book.create_sheet("Texts")
    for row in ([], ["id", "text"], [None, None], ["a", TEXT]):
        sheet.append(row)
    book.save(tmp_path / "book.xlsx")
    assert fc.import_table(tmp_path / "book.xlsx", sheet="Texts").study.document("a").text == TEXT


def test_zstandard_is_decompressed() -> None:
    stream = io.BytesIO()
    pl.DataFrame({"a": [1]}).write_ndjson(stream)
    frame = bytes.fromhex("28b52ffd") + b"\x20\x05" + b"\x29\x00\x00" + b"hello"  # one raw block
    assert decompress_zstd(frame) == b"hello"


def test_data_frames_lists_and_datasets_are_sources() -> None:
    rows = [{"id": 1, "output": TEXT, "model": "m", "labels": [MARK]}]
    for source in (rows, pl.DataFrame(rows), pandas.DataFrame(rows)):
        study = fc.import_table(source, text="output", system="model", marks="labels[]").study
        assert spans(study) == [(29, 33, "2031")]
        assert study.document("1").meta["model"] == "m"
    datasets = pytest.importorskip("datasets")
    study = fc.import_table(datasets.Dataset.from_list(rows), text="output", marks="labels[]").study
    assert spans(study) == [(29, 33, "2031")]


def test_a_map_is_saved_and_used_again(tmp_path: Path) -> None:
    rows = [{"nr": 1, "out": {"words": TEXT}, "found": [{"a": 29, "b": 33, "what": "conflict"}]}]
    roles = {"text": "out.words", "id": "nr", "start": "found[].a", "end": "found[].b", "label": "found[].what"}
    first = fc.import_table(rows, map=roles, save_map=tmp_path / "own.yaml")
    again = fc.import_table(rows, use_map=str(tmp_path / "own.yaml"))
    assert spans(first.study) == spans(again.study) == [(29, 33, "2031")]


def test_files_are_joined_by_a_key(tmp_path: Path) -> None:
    (tmp_path / "marks.csv").write_text("item,quote,label,annotator\nx,2031,conflict,ann\n")
    (tmp_path / "texts.csv").write_text(f"key,body\nx,{TEXT}\n")
    study = fc.import_table(
        tmp_path / "marks.csv", join=f"{tmp_path / 'texts.csv'}:item=key", text="texts.body", id="item"
    ).study
    assert spans(study) == [(29, 33, "2031")]


def test_sniffing_reads_only_the_head(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    line = json.dumps({"generation": TEXT, "spans": [MARK]}) + "\n"
    with path.open("w") as file:
        file.write(line * 2_000)
        file.truncate(2 << 30)  # a sparse file of 2 GB
    assert detect_format(path).name == "rows"


def test_an_option_that_does_not_apply_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,text\n1,a\n")
    with pytest.raises(ParameterError, match="sheet applies only to Excel"):
        fc.import_table(path, sheet="2")
    with pytest.raises(ParameterError, match="unknown role 'txt'; did you mean 'text'"):
        fc.import_table(path, map="txt=id")
    with pytest.raises(ParameterError, match="field 'body' is missing"):
        fc.import_table(path, text="body")
