from __future__ import annotations

from pathlib import Path

import pytest

import finecomb as fc
from finecomb.core.errors import FinecombError, FormatError
from finecomb.core.records import Document
from finecomb.formats import FORMATS, Options, convert, detect_format, format_for_writing, save_records, stream_records
from finecomb.formats.atomic_file import replace_atomically
from finecomb.formats.features import ALL_FEATURES, FEATURE_DESCRIPTIONS, FeatureCounter, item_features


def test_every_format_is_described_and_promises_only_known_features() -> None:
    for name, each in FORMATS.items():
        assert name == each.name
        assert each.title
        assert each.read is not None
        assert each.holds <= ALL_FEATURES, name
        assert each.options <= set(Options.__dataclass_fields__), name


def test_the_formats_of_the_issue_are_all_there() -> None:
    ours = ["folder", "parquet", "csv", "xlsx", "hf"]
    others = [
        "snac",
        "gsml",
        "thomson-reiter",
        "thresh",
        "factgenie",
        "wmt-mqm",
        "label-studio",
        "brat",
        "frank",
        "csabstruct",
        "model-criticism",
    ]
    assert {*ours, *others} <= set(FORMATS)


def test_every_feature_can_be_said_in_plain_words() -> None:
    assert set(FEATURE_DESCRIPTIONS) == ALL_FEATURES
    assert [words for words in FEATURE_DESCRIPTIONS.values() if "_" in words] == []


def test_the_features_of_the_demo_are_known() -> None:
    assert {feature for item in fc.demo().items() for feature in item_features(item)} <= ALL_FEATURES


def test_a_folder_holds_everything() -> None:
    tally = FeatureCounter()
    assert list(tally.count_stream(fc.demo().items()))
    assert tally.describe_losses(FORMATS["folder"]) == ""
    assert "mark explanation" in tally.describe_losses(FORMATS["csabstruct"])


@pytest.mark.parametrize(
    ("name", "format"),
    [("study", "folder"), ("a.csv", "csv"), ("a.tsv", "csv"), ("b.xlsx", "xlsx"), ("c.parquet", "parquet")],
)
def test_the_ending_says_what_to_write(name: str, format: str) -> None:
    assert format_for_writing(Path(name)).name == format


def test_an_ending_that_could_be_several_formats_asks_for_to() -> None:
    with pytest.raises(FormatError, match=r"the suffix does not determine the format; name it with to \(.*snac.*\)"):
        format_for_writing(Path("a.json"))


def test_a_strange_file_asks_for_from(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\x00\x01")
    with pytest.raises(FormatError, match="the format could not be detected; name it with from_"):
        detect_format(tmp_path / "x.bin")


def test_no_format_takes_a_file_of_another_for_its_own(tmp_path: Path) -> None:
    study = fc.demo(readers=2)
    for each in FORMATS.values():
        if each.write is None or each.name in ("gsml", "csabstruct", "frank"):
            continue
        path = tmp_path / f"demo-{each.name}{each.suffixes[0] if each.suffixes else ''}"
        save_records(study.items(), path, each.name)
        assert detect_format(path).name == each.name, each.name


def test_a_failed_writer_leaves_nothing_behind_and_the_old_file_alone(tmp_path: Path) -> None:
    old = tmp_path / "study"
    save_records([Document(id="a", text="old")], old)
    before = sorted(str(path) for path in tmp_path.rglob("*"))

    def broken() -> object:
        yield Document(id="b", text="new")
        raise FinecombError("the source breaks off")

    with pytest.raises(FinecombError, match="breaks off"):
        save_records(broken(), old, force=True)  # type: ignore[arg-type]
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    assert [item.text for item in stream_records(old) if isinstance(item, Document)] == ["old"]


def test_replacing_needs_force_and_a_folder_to_write_in(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(FinecombError, match="already exists"), replace_atomically(tmp_path / "a"):
        pytest.fail("must not get here")
    with pytest.raises(FinecombError, match=r"the folder .* does not exist"), replace_atomically(tmp_path / "no" / "a"):
        pytest.fail("must not get here")
    with replace_atomically(tmp_path / "a", force=True) as temporary:
        temporary.write_text("new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]


def test_an_interrupted_conversion_leaves_nothing_behind(tmp_path: Path) -> None:
    def interrupted() -> None:
        with replace_atomically(tmp_path / "a") as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_converting_onto_itself_loses_nothing(tmp_path: Path) -> None:
    save_records(fc.demo(readers=2).items(), tmp_path / "study")
    before = fc.read(tmp_path / "study")
    convert(tmp_path / "study", tmp_path / "study", force=True)
    assert fc.read(tmp_path / "study") == before


@pytest.mark.parametrize("text", ["", '😀é\u0301 שלום 中文\r\n\tx<y & "z"', "x" * 10_000_000])
def test_any_text_survives_the_folder(text: str, tmp_path: Path) -> None:
    save_records([Document(id="d", text=text)], tmp_path / "s")
    assert fc.read(tmp_path / "s").document("d").text == text


def test_an_empty_study_is_a_study(tmp_path: Path) -> None:
    save_records([], tmp_path / "s")
    study = fc.read(tmp_path / "s")
    assert (len(study.documents), fc.check(study)) == (0, [])
