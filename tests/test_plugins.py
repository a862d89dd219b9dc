"""Plugins: extensions of installed packages, broken ones, name clashes, and the worked example of the documentation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import finecomb as fc
import finecomb.formats
from finecomb import plugins
from finecomb.formats import FORMATS, jsonl
from finecomb.formats.base import Format
from finecomb.plugins import GROUPS, PluginWarning, Registry
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "plugin"


def install(folder: Path, package: str, module: str, **entries: str) -> None:
    """Write a module and the metadata of its package, as pip does."""
    name = package.replace("-", "_")
    (folder / f"{name}.py").write_text(module, encoding="utf-8")
    info = folder / f"{name}-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n", encoding="utf-8")
    lines = [f"[finecomb.{group}]\n{entry}\n" for group, entry in entries.items()]
    (info / "entry_points.txt").write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "_REPORTED_PACKAGES", set())
    modules = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - modules:  # the next test may write a module of the same name
        del sys.modules[name]


def format_registry() -> Registry[Format]:
    """Return a registry that has not read the entry points yet."""
    return Registry("formats", Format, {"jsonl": jsonl.FORMAT, "csv": "finecomb.formats.csv_table:FORMAT"})


GOOD = "from finecomb.formats import Format\nTEXTS = Format('{0}', 'texts', lambda path, options: iter(()))\n"


def test_an_installed_package_adds_an_extension(site: Path) -> None:
    install(site, "finecomb-good", GOOD.format("good"), formats="good = finecomb_good:TEXTS")
    registry = format_registry()
    assert registry["good"].title == "texts"
    assert list(registry) == ["jsonl", "csv", "good"]
    assert [(row.name, row.package, row.version) for row in registry.plugins()] == [("good", "finecomb-good", "1.5")]


def test_a_package_in_the_working_directory_is_not_a_plugin(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "finecomb-good", "raise SystemExit('must not be run')", formats="good = finecomb_good:TEXTS")
    monkeypatch.chdir(site)
    assert list(format_registry()) == ["jsonl", "csv"]


def test_built_in_extensions_are_found_without_reading_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.distributions", lambda **_: pytest.fail("must not be read"))
    registry = format_registry()
    assert "csv" in registry
    assert (registry["csv"].name, registry["jsonl"].name) == ("csv", "jsonl")


@pytest.mark.parametrize(
    ("module", "entry", "problem"),
    [
        ("import nonsuch", "bad = finecomb_bad:TEXTS", "ModuleNotFoundError: No module named 'nonsuch'"),
        ("raise RuntimeError('on\\nimport')", "bad = finecomb_bad:TEXTS", "RuntimeError: on"),
        ("", "bad = finecomb_bad:TEXTS", "AttributeError: module 'finecomb_bad' has no attribute 'TEXTS'"),
        ("TEXTS = 7", "bad = finecomb_bad:TEXTS", "expected an object of type Format, found 7"),
        (GOOD.format("other"), "bad = finecomb_bad:TEXTS", "its object is named 'other'; use one name for both"),
        (GOOD.format("csv"), "csv = finecomb_bad:TEXTS", "'csv' is already used by finecomb; rename the entry point"),
    ],
)
def test_a_broken_plugin_is_one_warning(site: Path, module: str, entry: str, problem: str) -> None:
    install(site, "finecomb-bad", module, formats=f"{entry}\nagain = finecomb_bad:NONSUCH")
    registry = format_registry()
    with pytest.warns(PluginWarning) as caught:
        assert list(registry) == ["jsonl", "csv"]
    (warning,) = caught
    where = r"plugin finecomb-bad 1.5: entry point '\w+' of finecomb.formats cannot be used: "
    assert re.match(where, str(warning.message))
    assert any(row.problem.endswith(problem) for row in registry.plugins())
    assert registry["csv"].title == "a CSV table"


def test_the_first_of_two_plugins_keeps_a_name(site: Path) -> None:
    install(site, "finecomb-b", GOOD.format("same").replace("texts", "of b"), formats="same = finecomb_b:TEXTS")
    install(site, "finecomb-a", GOOD.format("same").replace("texts", "of a"), formats="same = finecomb_a:TEXTS")
    registry = format_registry()
    with pytest.warns(PluginWarning, match="plugin finecomb-b 1.5: .* 'same' is already used by finecomb-a"):
        assert registry["same"].title == "of a"


def test_a_name_of_a_related_registry_is_taken(site: Path) -> None:
    install(site, "finecomb-good", GOOD.format("good"), formats="good = finecomb_good:TEXTS")
    registry = Registry[Format]("formats", Format, {}, taken={"good"})
    with pytest.warns(PluginWarning, match="'good' is already used by finecomb"):
        assert not list(registry)


def test_a_plugin_whose_sniff_raises_does_not_stop_other_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> bool:
        raise KeyError("first line")

    monkeypatch.setitem(FORMATS, "failing", Format("failing", "failing", lambda path, options: iter(()), sniff=fail))
    (tmp_path / "a.csv").write_text("id,text\na,One.\n", encoding="utf-8")
    with pytest.warns(PluginWarning, match="format failing: .*a.csv cannot be inspected: KeyError: 'first line'"):
        assert finecomb.formats.detect_format(tmp_path / "a.csv").name == "csv"


def test_every_format_module_is_registered() -> None:
    modules = {path.stem for path in (ROOT / "src/finecomb/formats").rglob("*.py") if "\nFORMAT = " in path.read_text()}
    assert len(modules) == len([row for row in FORMATS.extensions() if row.package == "finecomb"])


def test_every_extension_of_ours_is_listed_under_its_own_name() -> None:
    table = fc.list_plugins(package="finecomb")
    assert {row.group for row in table} == set(GROUPS)
    assert [row.name for row in table if not row.what or row.problem] == []
    assert {"jsonl", "alpha", "coverage", "rules", "topics", "scarecrow", "local"} <= {row.name for row in table}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(fc.list_plugins(package="nonsuch")) == 0


# --- commands ----------------------------------------------------------------------------------------------------


def run(site: Path, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that finds the packages in `site`."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT / "src")]), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "finecomb", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False, timeout=120
    )


def test_commands_work_with_a_broken_plugin_and_name_it_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    install(
        tmp_path / "site",
        "finecomb-bad",
        "import nonsuch",
        formats="bad = finecomb_bad:F",
        detectors="d = finecomb_bad:D",
    )
    (tmp_path / "a.csv").write_text("id,text\na,One.\n", encoding="utf-8")
    result = run(tmp_path / "site", "convert", "a.csv", "a.jsonl", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "a.jsonl").exists()
    expected = (
        "note: plugin finecomb-bad 1.5: entry point 'bad' of finecomb.formats cannot be used: "
        "ModuleNotFoundError: No module named 'nonsuch'; `finecomb plugins` lists all problems"
    )
    assert result.stderr.splitlines().count(expected) == 1
    assert result.stderr.count("finecomb-bad") == 1


@pytest.mark.long
def test_the_worked_example_adds_a_format_a_statistic_and_a_provider(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    site = tmp_path / "site"
    source = tmp_path / "plugin"
    source.mkdir()
    for file in EXAMPLE.rglob("*.*"):  # a copy, because a build writes into its source
        if file.is_file() and "__pycache__" not in file.parts:
            target = source / file.relative_to(EXAMPLE)
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(file.read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-build-isolation", "-q"]
    subprocess.run([*pip, "--target", str(site), str(source)], check=True, timeout=120)

    listed = run(site, "plugins", "--package", "finecomb-example", "--json", folder=tmp_path)
    rows = json.loads(listed.stdout)["table"]
    assert [(row["group"], row["name"], row["version"]) for row in rows] == [
        ("formats", "lines", "1.0"),
        ("statistics", "late-marks", "1.0"),
        ("providers", "acme", "1.0"),
    ]
    fc.write(fc.demo(readers=2), tmp_path / "study")
    converted = run(site, "convert", "study", "study.lines", folder=tmp_path)
    assert converted.returncode == 0, converted.stderr
    measured = run(site, "measure", "study.lines", "--measure", "late-marks", "--json", folder=tmp_path)
    assert measured.returncode == 0, measured.stderr
    (row,) = json.loads(measured.stdout)["table"]
    assert 0 < row["low"] < row["value"] < row["high"] < 1

    answer = json.dumps({"output": json.dumps({"marks": []}), "cut": False}).encode()
    with ScriptedServer(lambda request, number: ScriptedAnswer(raw=answer)) as server:
        words = ["annotate", "study", "--model", "acme:small", "--base-url", server.url, "-o", "annotated"]
        annotated = run(site, *words, folder=tmp_path)
    assert annotated.returncode == 0, annotated.stderr
    assert {request["model"] for request in server.requests} == {"small"}
    assert len(server.requests) == 16
    kinds = dict(fc.read(tmp_path / "annotated").annotators.select("id", "kind").iter_rows())
    assert [name for name, kind in kinds.items() if kind == "llm"] == ["small"]

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT / "src")])}
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, str(source / "tests")]
    subprocess.run(tests, cwd=tmp_path, env=environment, check=True, timeout=300)
