from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError, FormatError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.formats import csv_table, detect_format, xlsx_table
from finecomb.formats.base import Options
from finecomb.formats.mark_table import KNOWN_COLUMNS, TABLE_FEATURES, format_cell, parse_cell
from tests.formats.fuzzing import damage_file, file_damages, read_or_reject
from tests.strategies import MULTILINE_ALPHABET, PROTOCOL, canonical_form, round_trip, studies

CSV = '''\
document,text,meta.model,prompt,annotator,kind,label,start,end,quote,severity,explanation,answer.sure
d1,"A cat, a ""cat"" and 3 cats.",gpt2,Cats,ann,,Bad Math,19,25,3 cats,2,12,true
d1,,,,ann,,redundant,9,,"""cat""",,,
d1,,,,bot,llm,,,,,,,
d2,Nothing here.,human,,,,,,,,,,
'''


def read_csv(text: str | bytes, options: Options | None = None, name: str = "t.csv") -> list[StudyItem]:
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return list(csv_table.read(path, options or Options()))


def only(items: list[StudyItem], kind: type[Any]) -> list[Any]:
    return [item for item in items if isinstance(item, kind)]


def test_a_table_gives_documents_annotators_and_marks() -> None:
    items = read_csv(CSV)
    assert only(items, Document) == [
        Document(id="d1", text='A cat, a "cat" and 3 cats.', context={"prompt": "Cats"}, meta={"model": "gpt2"}),
        Document(id="d2", text="Nothing here.", meta={"model": "human"}),
    ]
    assert only(items, Annotator) == [Annotator(id="ann", kind="human"), Annotator(id="bot", kind="llm")]
    first, second = only(items, Annotation)
    assert first == Annotation(
        id="d1/ann",
        document="d1",
        annotator="ann",
        protocol="t@1",
        marks=(
            Mark(
                id="d1/ann/0",
                spans=(Span(19, 25),),
                quotes=("3 cats",),
                label="bad-math",
                answers={"severity": 2, "explanation": "12", "sure": True},
            ),
            Mark(id="d1/ann/1", spans=(Span(9, 14),), quotes=('"cat"',), label="redundant"),
        ),
    )
    assert second == Annotation(id="d1/bot", document="d1", annotator="bot", protocol="t@1")
    assert check_study(Study.from_items(items)) == []


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("between", [",", ";", "\t"])
def test_line_ends_separators_and_byte_order_marks_do_not_matter(end: str, start: str, between: str) -> None:
    lines = ["id,text,annotator,label,quote", "a,one two,x,l,two"]
    assert read_csv(start + "".join(line.replace(",", between) + end for line in lines)) == read_csv("\n".join(lines))


def test_a_table_of_plain_texts_gives_documents_with_their_other_columns_as_meta() -> None:
    items = read_csv("id,text,Prompt,model,top_p\n7,one,say,gpt2,0.9\n8,two,,human,\n")
    assert items == [
        Document(id="7", text="one", context={"prompt": "say"}, meta={"model": "gpt2", "top_p": 0.9}),
        Document(id="8", text="two", meta={"model": "human"}),
    ]


def test_texts_without_ids_are_numbered() -> None:
    assert [each.id for each in only(read_csv("text\none\ntwo\n", name="news.csv"), Document)] == ["news-1", "news-2"]


def test_columns_are_mapped() -> None:
    options = Options(columns={"text": "body", "document": "nr", "meta.label": "label"})
    assert read_csv("nr,body,label\n1,one,news\n", options) == [Document(id="1", text="one", meta={"label": "news"})]


def test_an_unknown_column_that_varies_within_a_document_belongs_to_the_mark() -> None:
    items = read_csv("document,text,annotator,label,quote,tool,lang\nd,a b,x,l,a,t1,en\nd,,x,l,b,t2,en\n")
    assert only(items, Document)[0].meta == {"lang": "en"}
    assert [mark.meta for mark in only(items, Annotation)[0].marks] == [{"tool": "t1"}, {"tool": "t2"}]


def test_quotes_without_offsets_are_placed_in_order_and_counted() -> None:
    table = "document,text,annotator,label,quote\nd,an an an,x,l,an\nd,,x,l,an\nd,,x,l,ox\n"
    kth, first = (read_csv(table, Options(repeats=rule)) for rule in ("kth", "first"))
    assert [mark.spans for mark in only(kth, Annotation)[0].marks] == [(Span(0, 2),), (Span(3, 5),), ()]
    assert [mark.spans for mark in only(first, Annotation)[0].marks] == [(Span(0, 2),), (Span(0, 2),), ()]
    assert only(kth, Annotation)[0].marks[2].unlocated == "the quote is not in the text"
    assert [note.text[:20] for note in only(kth, Note)] == ["1 quotes are not in ", "2 quotes occur more "]


def test_rows_of_one_annotation_need_not_stand_together() -> None:
    table = "document,text,annotator,label,quote\nd,a b,x,l,a\nd,,y,l,a\nd,,x,l,b\n"
    assert [len(each.marks) for each in only(read_csv(table), Annotation)] == [1, 2]


def test_rows_with_the_same_mark_id_are_one_mark_with_several_spans() -> None:
    table = "document,text,annotator,mark,label,start,end\nd,abcdef,x,m,l,4,6\nd,,x,m,,0,1\n"
    (mark,) = only(read_csv(table), Annotation)[0].marks
    assert (mark.id, mark.spans, mark.quotes) == ("m", (Span(0, 1), Span(4, 6)), ("a", "ef"))


def test_a_shipped_protocol_translates_labels_and_severities() -> None:
    table = "document,text,annotator,protocol,label,quote,severity\nd,a b,x,scarecrow@2,Grammar_Usage,a,2\n"
    items = read_csv(table)
    (protocol,) = only(items, Protocol)
    assert protocol.id == "scarecrow@2"
    assert only(items, Annotation)[0].marks[0].label == "grammar-usage"


def test_the_annotator_can_be_said_by_the_user() -> None:
    items = read_csv("document,text,label,quote\nd,a b,l,a\ne,fine,,\n", Options(annotator="me"))
    assert [(each.annotator, len(each.marks)) for each in only(items, Annotation)] == [("me", 1), ("me", 0)]


HEAD = "document,text,annotator,label,start,end,quote,part,round\n"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "t.csv: the file has no rows"),
        (
            "document,body\nd,x\n",
            "t.csv:1: column 'text' is missing; available: document, body; name it with map=text=",
        ),
        ("document,txt\nd,x\n", "t.csv:1: column 'text' is missing; did you mean 'txt'?"),
        ("text,annotator\nd,x\n", "t.csv:1: column 'document' is missing, but required with 'annotator'"),
        ("text,text\nd,x\n", "t.csv:1: column 'text' occurs more than once"),
        ("text,document\nd,x,y\n", "t.csv:2: this row has more cells than the header, which has 2"),
        (HEAD + ",x,,,,,,,\n", "t.csv:2: column 'document' is empty"),
        (HEAD + "d,x,,l,,,,,\n", "t.csv:2: this row has label 'l' but no annotator; add a column 'annotator'"),
        (HEAD + "d,x,a,l,one,,,,\n", "t.csv:2: column 'start': expected an integer of at least 0, found 'one'"),
        (HEAD + "d,x,a,l,-1,1,,,\n", "t.csv:2: column 'start': expected an integer of at least 0, found '-1'"),
        (HEAD + "d,x,a,l,1,0,,,\n", "t.csv:2: column 'end': must be at least the start, 1, found 0"),
        (HEAD + "d,x,a,l,0,,,,\n", "t.csv:2: column 'start': has a value, but 'end' and 'quote'"),
        (HEAD + "d,x,a,l,,1,,,\n", "t.csv:2: column 'end': has a value, but 'start'"),
        (
            HEAD + "d,xyz,a,l,0,2,yz,,\n",
            "t.csv:2: column 'quote': quote 'yz' differs from the text at [0, 2), which is 'xy'",
        ),
        (HEAD + "d,x,a,l,0,9,,,\n", "t.csv:2: column 'end': span [0, 9) ends after the text"),
        (HEAD + "d,x,a,l,0,1,,prompt,\n", "t.csv:2: column 'part': document 'd' has no 'prompt'; available: text"),
        (HEAD + "d,x,a,l,0,1,,,\nd,y,a,l,0,1,,,\n", "t.csv:3: column 'text': document 'd' has 'y' here, but 'x' at "),
        (HEAD + "d,x,a,,,,,,first\n", "t.csv:2: round: expected a valid integer"),
        (HEAD + "d,\0,a,,,,,,\n", "t.csv:2: column 'text': contains a NUL character at position 0"),
        (HEAD + 'd,"x', "cannot be read as a table with delimiter ',': unexpected end of data"),
        ("text,document,annotator,protocol,label,quote\nx,d,a,snac,Charr,x\n", "t.csv:2: column 'label': label 'Ch"),
        ("text,document,annotator,kind\nx,d,a,robot\n", "t.csv: annotator 'a': kind: expected"),
    ],
)
def test_a_slip_is_named_with_row_and_column(table: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_csv(table)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"txet": "a"}, "map=txet=a: unknown column 'txet'; did you mean 'text'?"),
        ({"text": "bdoy"}, "t.csv:1: column 'bdoy' is missing; did you mean 'body'?"),
    ],
)
def test_a_slip_in_the_mapping_is_named(columns: dict[str, str], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_csv("body,id\nx,1\n", Options(columns=columns))
    assert message in str(caught.value)


@given(
    st.one_of(
        st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.lists(st.text())
    )
)
def test_cells_give_back_their_value(value: Any) -> None:
    assert parse_cell(format_cell(value)) == value
    assert type(parse_cell(format_cell(value))) is type(value)


@settings(max_examples=40)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
@pytest.mark.parametrize("without", ["mark omission", "mark unlocated"])
@given(data=st.data())
def test_csv_gives_back_every_record(name: str, without: str, data: st.DataObject) -> None:
    items = data.draw(studies(TABLE_FEATURES - {without}, MULTILINE_ALPHABET))
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(csv_table.FORMAT, items, Path(place) / name, Options(protocol=PROTOCOL))
    assert canonical_form(again, TABLE_FEATURES) == canonical_form(items, TABLE_FEATURES)


def test_every_row_has_the_text_its_meta_and_the_marks_label(tmp_path: Path) -> None:
    """Text, meta, kind and label stood in the first row of each only, so that nothing could be grouped by them."""
    text, spans = "One two three.", (Span(0, 3), Span(8, 13))
    marks = (
        Mark(id="m1", spans=spans, quotes=("One", "three"), label="red", answers={"severity": 2}),
        Mark(id="m2", spans=(Span(4, 7),), quotes=("two",), label="blue"),
    )
    items: list[StudyItem] = [
        Document(id="d", text=text, context={"prompt": "Count."}, meta={"model": "gpt2"}),
        Annotator(id="p", kind="llm", condition="short"),
        Annotation(id="a", document="d", annotator="p", protocol="t@1", marks=marks),
    ]
    csv_table.FORMAT.write(items, tmp_path / "t.csv", Options())  # type: ignore[misc]
    rows = pl.read_csv(tmp_path / "t.csv")
    names = ["text", "context.prompt", "meta.model", "kind", "condition", "annotation"]
    assert rows.select(names).unique().rows() == [(text, "Count.", "gpt2", "llm", "short", "a")]
    assert rows.select("mark", "label", "severity", "quote").rows() == [
        ("m1", "red", 2, "One"),
        ("m1", "red", 2, "three"),
        ("m2", "blue", None, "two"),
    ]


@settings(max_examples=25)
@given(studies(TABLE_FEATURES - {"mark unlocated"}, MULTILINE_ALPHABET + "=_x0D"))
def test_xlsx_gives_back_every_record(items: list[StudyItem]) -> None:
    with tempfile.TemporaryDirectory() as place:
        again = round_trip(xlsx_table.FORMAT, items, Path(place) / "t.xlsx")
    assert canonical_form(again, TABLE_FEATURES) == canonical_form(items, TABLE_FEATURES)


def test_a_text_that_looks_like_a_formula_stays_text(tmp_path: Path) -> None:
    document = Document(id="=1+1", text="=HYPERLINK(1)\r\n_x000D_", meta={"@x": "+1"})
    assert round_trip(xlsx_table.FORMAT, [document], tmp_path / "t.xlsx") == [document]
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").worksheets[0]
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} == {"s"}


def test_numbers_truth_and_dates_in_a_workbook_are_read_as_they_look(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["id", "text", "meta.a", "meta.b", "meta.c"])
    sheet.append([7.0, "one", 0.5, True, None])
    sheet.append([])
    book.save(tmp_path / "t.xlsx")
    items = list(xlsx_table.read(tmp_path / "t.xlsx", Options()))
    assert items == [Document(id="7", text="one", meta={"a": 0.5, "b": True})]
    assert detect_format(tmp_path / "t.xlsx") is xlsx_table.FORMAT


LIKELY = ["", "d1", "ann", "0", "1", "3", "2.0", "text", "x", "snac", "[1]", "\0"]
CELLS = st.one_of(st.sampled_from(LIKELY), st.text())


@settings(max_examples=150)
@given(
    st.lists(st.one_of(st.sampled_from([*KNOWN_COLUMNS, "meta.a", "context.b", "answer.c", "z"]), st.text(max_size=3))),
    st.lists(st.lists(CELLS, max_size=12), max_size=5),
)
def test_any_table_is_read_or_refused(header: list[str], rows: list[list[str]]) -> None:
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in [["text", *header], *rows]]
    with contextlib.suppress(FinecombError):
        read_csv("\n".join(quoted).encode("utf-8", "surrogatepass"))


@settings(max_examples=60)
@given(file_damages)
def test_a_damaged_workbook_is_read_or_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.xlsx"
        xlsx_table.write(read_csv(CSV), path, Options())
        damage_file(path, place)
        read_or_reject(xlsx_table.FORMAT, path)


@settings(max_examples=100)
@given(file_damages)
def test_a_damaged_table_is_read_or_refused(place: tuple[float, bytes, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text(CSV, encoding="utf-8")
        damage_file(path, place)
        read_or_reject(csv_table.FORMAT, path)
