"""The public functions about studies, called from Python and compared with their commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import finecomb as fc
from finecomb.api import studies as api
from finecomb.cli import app
from finecomb.core.errors import FinecombError, ParameterError, StudyError, format_as_flag
from finecomb.core.study import Study

TEXTS = [{"id": "a", "text": "Boston won 30-20."}, {"id": "b", "text": " "}]


@pytest.fixture(scope="module")
def demo() -> Study:
    return fc.demo()


@pytest.fixture(scope="module")
def folder(demo: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "demo"
    fc.write(demo, path)
    return path


def printed(*words: object) -> Any:
    result = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["table"]


def is_short(value: object) -> bool:
    return len(repr(value).splitlines()) <= 15 and len(repr(value)) <= 2000


# --- counts and checks ---------------------------------------------------------------------------------------------


def test_stats_count_what_the_command_prints(demo: Study, folder: Path) -> None:
    for by in ((), "model,topic", ["annotator"], "none"):
        counts = api.stats(folder, by=by)
        words = by if isinstance(by, str) else ",".join(by)
        assert json.loads(json.dumps(counts.to_dicts())) == printed("stats", folder, *(["--by", words] if by else []))
    assert api.stats(demo).rows() == api.stats(folder).rows()
    assert api.stats(demo, where="model=human").totals["documents"] == 4
    assert api.stats(demo, drop=["redundant"])["labels"].find(label="redundant").marks == 0
    with pytest.raises(ParameterError, match="unknown table 'label'; did you mean 'labels'"):
        api.stats(demo)["label"]


def test_stats_take_tables() -> None:
    assert api.stats(TEXTS[:1]).totals["documents"] == api.stats(pl.DataFrame(TEXTS[:1])).totals["documents"] == 1


def test_check_lists_the_problems_that_the_command_prints(demo: Study, folder: Path, tmp_path: Path) -> None:
    assert api.check(demo) == api.check(folder) == []
    broken = tmp_path / "broken"
    fc.write(demo, broken)
    file = broken / "annotations.jsonl"
    file.write_text(file.read_text().replace('"label":"redundant"', '"label":"redundent"'))
    problems = api.check(broken)
    output = CliRunner().invoke(app, ["check", str(broken), "--json"]).stdout
    assert problems.to_dicts() == json.loads(output)["table"]
    assert problems.errors
    assert problems.errors[0].where.startswith("annotations.jsonl:") or "annotations.jsonl" in problems.errors[0].where
    file.write_text("{not json\n")
    unreadable = api.check(broken)
    assert unreadable.study is None
    assert "invalid JSON" in unreadable[0].message
    assert is_short(problems)
    assert is_short(unreadable)


def test_check_warns_of_empty_texts_in_tables() -> None:
    (warning,) = api.check(pl.DataFrame(TEXTS)).warnings
    assert warning.message == "1 text without words (b)"


# --- parts, conversions and merges -----------------------------------------------------------------------------------


def test_select_returns_the_part_that_the_command_writes(demo: Study, folder: Path, tmp_path: Path) -> None:
    part = api.select(demo, where="model=human", drop="redundant")
    words = ["--where", "model=human", "--drop", "redundant"]
    result = CliRunner().invoke(app, ["select", str(folder), "-o", str(tmp_path / "part"), *words])
    assert result.stdout == f"{tmp_path / 'part'}: {part.title}\n"
    assert fc.read(tmp_path / "part") == part.study
    with pytest.raises(ParameterError, match="select requires where or drop") as error:
        api.select(demo)
    assert error.value.format_message(format_as_flag).startswith("select requires --where or --drop: a condition")


def test_select_passes_marks_from_parquet_to_parquet(demo: Study, tmp_path: Path) -> None:
    api.convert(demo, tmp_path / "all.parquet")
    written = api.select(tmp_path / "all.parquet", where='label == "redundant"', output=tmp_path / "some.parquet")
    assert written.study == demo.where('label == "redundant"')
    with pytest.raises(FinecombError, match="already exists; use another name or replace it with force"):
        api.select(demo, where="model=human", output=tmp_path / "some.parquet")


def test_convert_writes_studies_files_and_parts(demo: Study, folder: Path, tmp_path: Path) -> None:
    streamed = api.convert(folder, tmp_path / "streamed")
    assert streamed.study == demo
    assert api.convert(demo, tmp_path / "held").study == demo
    assert api.convert(folder, tmp_path / "part", where="model=human").study == demo.where("model=human")
    assert any("cannot store" in note for note in api.convert(demo, tmp_path / "marks.csv").notes)
    calls: list[int] = []
    api.convert(folder, tmp_path / "watched", progress=lambda done, total: calls.append(done))
    assert calls[-1] == len(list(demo))


def test_convert_maps_columns_by_mapping_or_pairs(tmp_path: Path) -> None:
    table = tmp_path / "texts.csv"
    table.write_text("id,Body\na,One two.\n")
    spellings: list[dict[str, str] | str | list[str]] = [{"text": "Body"}, "text=Body", ["text=Body"]]
    for number, names in enumerate(spellings):
        (document,) = api.convert(table, tmp_path / f"study-{number}", map=names).study.iter_documents()
        assert document.text == "One two."
    with pytest.raises(ParameterError, match=r"map=text: expected OURS=THEIRS, e.g. map=text=Body"):
        api.convert(table, tmp_path / "x", map="text")


def test_options_of_files_and_of_corrections_are_refused(demo: Study, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="map applies only to files; omit it"):
        api.convert(demo, tmp_path / "x", map={"text": "Body"})
    with pytest.raises(ParameterError, match="corrector requires corrected"):
        api.convert(demo, tmp_path / "x", corrector="truth")
    with pytest.raises(ParameterError, match=r"repeats must be one of kth, first, found 'last'"):
        api.convert(demo, tmp_path / "x", repeats="last")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="from_ applies only to files"):
        api.new(TEXTS, protocol="scarecrow", from_="csv")
    assert list(tmp_path.iterdir()) == []


def test_merge_joins_studies_files_and_tables(demo: Study, tmp_path: Path) -> None:
    people, truth = demo.where('annotator != "truth"'), demo.where("annotator=truth")
    fc.write(people, tmp_path / "people")
    fc.write(truth, tmp_path / "truth")
    merged = api.merge(tmp_path / "people", [tmp_path / "truth"])
    assert merged.title == api.merge(people, truth).title == "16 annotations merged from 1 file"
    words = ["merge", str(tmp_path / "people"), str(tmp_path / "truth"), "-o", str(tmp_path / "all")]
    assert merged.title in CliRunner().invoke(app, words).stdout
    assert fc.read(tmp_path / "all") == merged.study
    row = {"document": "d", "text": "Boston won 30-20.", "annotator": "ann", "label": "number", "quote": "30"}
    both = api.merge([row | {"annotator": "ben"}], [row], annotator="").study
    assert sorted(both.annotators["id"]) == ["ann", "ben"]
    with pytest.raises(FinecombError, match=r"'truth' already has an annotation of .* with annotator$"):
        api.merge(demo, truth)


# --- new, simulated and demo studies ---------------------------------------------------------------------------------


def test_new_creates_the_study_that_the_command_writes(tmp_path: Path) -> None:
    table = tmp_path / "texts.csv"
    table.write_text("id,text\na,Boston won 30-20.\n")
    created = api.new(table, protocol="scarecrow", annotators=3, skip="training,consent", title="Games")
    flags = ["-p", "scarecrow", "--annotators", "3", "--skip", "training,consent", "--title", "Games"]
    result = CliRunner().invoke(app, ["new", str(tmp_path / "command"), "-d", str(table), *flags])
    assert result.stdout == f"{tmp_path / 'command'}: {created.title}\nannotators: {created.announcement}\n"
    created.write(tmp_path / "python")
    assert fc.read(tmp_path / "python") == fc.read(tmp_path / "command") == created.study
    assert created.study.settings.skip == ("consent", "training")
    assert api.new(TEXTS[:1], protocol=fc.protocol("scarecrow")).title.startswith("1 text, protocol scarecrow@2")


def test_new_keeps_drops_or_refuses_empty_texts() -> None:
    (note,) = api.new(TEXTS, protocol="scarecrow").notes
    assert note == "1 text without words (b): kept; drop them with empty=drop"
    assert note.format_text(format_as_flag).endswith("drop them with --empty drop")  # type: ignore[attr-defined]
    assert len(api.new(TEXTS, protocol="scarecrow", empty="drop").study.documents) == 1
    with pytest.raises(ParameterError, match=r"documents: 1 text without words \(b\); drop them with empty=drop"):
        api.new(TEXTS, protocol="scarecrow", empty="refuse")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"skip": "traning"}, "skip=traning: expected one of .*did you mean 'training'"),
        ({"design": "nowhere.yaml"}, "design=nowhere.yaml: no such file"),
        ({"data": "games.json"}, "data: scarecrow@2 does not show data next to the text"),
        ({"annotators": 0}, "annotators must be at least 1, found 0"),
        ({"annotator": 2}, r"new\(\) has no parameter 'annotator'; did you mean 'annotators'"),
    ],
)
def test_new_names_the_parameter_to_blame(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        api.new(TEXTS[:1], protocol="scarecrow", **options)


def test_the_demo_study_is_the_same_as_before(tmp_path: Path) -> None:
    assert api.demo() == fc.demo()
    assert api.demo(3, 1) == fc.demo(3, 1)
    tour = api.tour(tmp_path / "demo", readers=3)
    assert tour.study == api.demo(3)
    assert api.tour(tmp_path / "demo").notes == (f"{tmp_path / 'demo'} already exists and is used unchanged",)
    assert tour.agreement.find(label="any")["two-agree %"] > 0
    with pytest.raises(ParameterError, match="readers must be at least 2, found 1"):
        api.tour(tmp_path / "other", readers=1)


def test_simulate_returns_what_the_command_writes(demo: Study, folder: Path, tmp_path: Path) -> None:
    held = api.simulate(demo, truth="truth", annotators=3, recall=0.5)
    words = ["simulate", str(folder), "-o", str(tmp_path / "sim"), "--truth", "truth", "--annotators", "3"]
    result = CliRunner().invoke(app, [*words, "--recall", "0.5"])
    assert result.stdout == f"{tmp_path / 'sim'}: {held.title}\n"
    streamed = api.simulate(folder, truth="truth", annotators=3, recall=0.5, output=tmp_path / "streamed")
    assert fc.read(tmp_path / "sim") == streamed.study == held.study
    with pytest.raises(ParameterError, match="recall must be at most 1, found 2"):
        api.simulate(demo, recall=2)


# --- texts, formats and protocols ------------------------------------------------------------------------------------


def test_show_returns_what_the_command_prints(demo: Study, folder: Path, tmp_path: Path) -> None:
    shown = api.show(demo, "harbour-c", annotator="truth", columns=60)
    words = ["show", str(folder), "harbour-c", "-a", "truth", "--columns", "60"]
    lines = [line.rstrip() for line in CliRunner().invoke(app, words).stdout.splitlines()]
    # after the text comes the table of marks, which is as wide as the console
    end = next(number for number, line in enumerate(lines) if line.startswith("GU1  Grammar"))
    assert [line.rstrip() for line in str(shown).splitlines()][:end] == lines[:end]
    assert end > 10
    assert [row.id for row in shown.rows()] == [mark.id for mark in shown.annotations[0].marks]
    assert shown.to_html(tmp_path / "page.html") == (tmp_path / "page.html").read_text()
    assert "first of 16 documents" in api.show(demo).notes[0]
    with pytest.raises(FinecombError, match="unknown annotator 'trut'; did you mean 'truth'"):
        api.show(demo, annotator="trut")


def test_formats_and_protocols_are_listed(tmp_path: Path) -> None:
    rows = printed("formats")
    assert [row["name"] for row in rows] == [row.name for row in api.list_formats()]
    options = api.list_formats().find(name="jsonl").options.split()
    assert next(row for row in rows if row["name"] == "jsonl")["options"].split() == [f"--{name}" for name in options]
    assert api.list_protocols().to_dicts() == printed("protocols")
    details = api.show_protocol("scarecrow")
    assert [row.name for row in details.rows()] == [label.name for label in details.protocol.labels]
    assert json.loads(CliRunner().invoke(app, ["protocols", "schema"]).stdout) == api.protocol_schema()


RESULTS: dict[str, Callable[[Study, Path], object]] = {
    "stats": lambda study, path: api.stats(study),
    "check": lambda study, path: api.check(study),
    "select": lambda study, path: api.select(study, where="model=human"),
    "convert": lambda study, path: api.convert(study, path / "marks.csv"),
    "merge": lambda study, path: api.merge(study.where('annotator != "truth"'), study.where("annotator=truth")),
    "new": lambda study, path: api.new(study, protocol="scarecrow"),
    "demo": lambda study, path: api.demo(),
    "tour": lambda study, path: api.tour(path / "demo"),
    "simulate": lambda study, path: api.simulate(study),
    "show": lambda study, path: api.show(study),
    "list_formats": lambda study, path: api.list_formats(),
    "list_protocols": lambda study, path: api.list_protocols(),
    "show_protocol": lambda study, path: api.show_protocol("mqm"),
    "protocol_schema": lambda study, path: api.protocol_schema(),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_short_and_has_a_page_also_in_an_event_loop(name: str, demo: Study, tmp_path: Path) -> None:
    async def call() -> Any:
        return RESULTS[name](demo, tmp_path)

    result = asyncio.run(call())
    assert is_short(result), repr(result)
    assert result._repr_html_()


# --- methods of a study ----------------------------------------------------------------------------------------------


def test_a_study_is_split_filtered_and_joined(demo: Study) -> None:
    parts = demo.by("model")
    assert list(parts) == ["comb-large", "comb-medium", "comb-small", "human"]
    assert sum(len(part.annotations) for part in parts.values()) == len(demo.annotations)
    assert parts["human"] == demo.where("model=human")
    assert sum(len(part.marks) for part in demo.by("label").values()) == len(demo.marks)
    assert demo.where() is demo
    with pytest.raises(FinecombError, match="unknown field 'modle'; did you mean 'model'"):
        demo.by("modle")


def test_annotations_join_a_study_with_their_annotators(demo: Study) -> None:
    people, truth = demo.where('annotator != "truth"'), demo.where("annotator=truth")
    assert people.with_annotations(truth).annotators.sort("id").equals(demo.annotators.sort("id"))
    joined = people.with_annotations(truth.iter_annotations())
    assert {person.id: person.kind for person in joined.iter_annotators()}["truth"] == "human"
    assert len(joined.marks) == len(demo.marks)
    with pytest.raises(StudyError):
        demo.with_annotations(truth)


def test_records_of_a_study_are_iterated(demo: Study) -> None:
    assert list(demo) == list(demo.items())
    assert [mark.id for mark in demo.iter_marks()] == demo.marks["id"].to_list()
