"""Tests that saved models contain only data, and that no file names code to run."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

import finecomb.annotators.detectors
from finecomb.annotators.detectors.boxscore.ranker import load_shipped_ranker, read_ranker
from finecomb.core.errors import FinecombError

SOURCES = sorted(Path(finecomb.annotators.detectors.__path__[0]).rglob("*.py"))
RUNS_CODE = {"pickle", "joblib", "dill", "marshal", "shelve", "runpy"}


@pytest.mark.parametrize("key", ["function", "code", "module", "__class__"])
def test_a_ranker_that_names_code_is_refused_and_nothing_is_imported(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trap.py").write_text("raise SystemExit('the file was obeyed')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    values = json.loads(load_shipped_ranker().to_json()) | {key: "trap:anything"}
    (tmp_path / "weights.json").write_text(json.dumps(values))
    with pytest.raises(FinecombError, match="not weights of the box-score checker"):
        read_ranker(tmp_path / "weights.json")
    assert "trap" not in sys.modules


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_detector_reads_what_can_run_code(source: Path) -> None:
    tree = ast.parse(source.read_text(encoding="utf-8"))
    imported = {
        (alias.name if isinstance(node, ast.Import) else node.module or "").partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert not imported & RUNS_CODE
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert not named & {"eval", "exec", "__import__"}
    unsafe = [
        keyword.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg in ("allow_pickle", "trust_remote_code")
        and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
    ]
    assert unsafe == []
