"""Nothing in the working directory runs as code: not in the commands, their worker processes or the upload process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from finecomb.core.errors import ParameterError
from finecomb.core.records import Document
from finecomb.engine.engines import LocalEngine
from finecomb.engine.user_code import allow_user_code, import_user_code
from finecomb.server.researchers import upload_process
from tests.corpora.critics.test_sections import articles

TRAPS = """
zipfile json pickle struct socket tempfile multiprocessing threading signal logging string random hashlib datetime
numpy polars pydantic yaml regex rapidfuzz typer rich openpyxl scipy resource encodings_extra
""".split()
COMMAND = [sys.executable, "-P", "-c", "import sys; from finecomb.cli import main; sys.exit(main())"]


@pytest.fixture
def downloaded(tmp_path: Path) -> Path:
    """A downloaded folder of texts, next to modules that have the names of installed ones."""
    for name in TRAPS:
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\nraise SystemExit('{name} of the folder ran')\n"
        )
    for name, texts in {"real": articles(0, 40), "other": articles(1, 20)}.items():
        lines = [json.dumps({"id": text.id, "text": text.text, "references": [text.text[9:]]}) for text in texts]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    return tmp_path


def ran(folder: Path) -> str:
    return (folder / "ran").read_text() if (folder / "ran").exists() else ""


def run_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *words], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_an_upload_runs_nothing_of_the_working_directory(downloaded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(downloaded)
    texts = [Document(id=f"d{n}", text=f"Text {n} " * 20) for n in range(200)]
    content = "\n".join(text.to_json() for text in texts).encode()
    documents, _ = upload_process.read_documents_in_subprocess(content, "texts.jsonl", {}, ())
    assert len(documents) == 200
    assert ran(downloaded) == ""


def test_worker_processes_run_nothing_of_the_working_directory(
    downloaded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(downloaded)
    assert list(LocalEngine(2, alone=0.0).map(abs, [-1, 2, -3])) == [1, 2, 3]
    assert ran(downloaded) == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("criticize", "real.jsonl", "other.jsonl", "--critic", "missing_module:f"), "'missing_module' is not"),
        (("criticize", "real.jsonl", "other.jsonl", "--critic", "own_critic:f"), "pass --allow-code own_critic.py"),
        (
            ("criticize", "real.jsonl", "other.jsonl", "--critic", "coreference", "--set", "resolver=own_critic:f"),
            "pass --allow-code own_critic.py",
        ),
        (("stress", "real.jsonl", "--metric", "code:own_critic:f"), "pass --allow-code own_critic.py"),
    ],
)
def test_a_command_runs_nothing_of_the_working_directory(
    downloaded: Path, words: tuple[str, ...], message: str
) -> None:
    (downloaded / "own_critic.py").write_text("open('ran', 'a').write('own_critic ')\n")
    result = run_in(downloaded, *words, "--draws", "0")
    assert message in " ".join(result.stderr.split())
    assert result.returncode == 1
    assert ran(downloaded) == ""


def test_python_m_runs_nothing_of_the_working_directory(downloaded: Path) -> None:
    for name in ("runpy", "os", "sys"):
        (downloaded / f"{name}.py").unlink(missing_ok=True)
    command = [sys.executable, "-m", "finecomb", "stats", "real.jsonl"]
    result = subprocess.run(command, cwd=downloaded, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    assert ran(downloaded) == ""


def test_code_of_an_allowed_file_runs_in_all_processes_and_replaces_nothing(downloaded: Path) -> None:
    (downloaded / "own_critic.py").write_text("def initials(text):\n    return [word[0] for word in text.split()]\n")
    words = ("criticize", "real.jsonl", "other.jsonl", "--critic", "own_critic:initials", "--draws", "0", "--json")
    for place in ("own_critic.py", "."):
        result = run_in(downloaded, *words, "--workers", "2", "--allow-code", place)
        assert result.returncode == 0, result.stderr
        assert json.loads(result.stdout)["table"][0]["critic"] == "initials"
        assert ran(downloaded) == ""


def test_an_allowed_path_must_be_code_and_be_used(downloaded: Path) -> None:
    with pytest.raises(ParameterError, match=r"allow_code=.*gone\.py.* does not exist"):
        allow_user_code([downloaded / "gone.py"])
    with pytest.raises(ParameterError, match=r"is neither a folder nor a \.py file"):
        allow_user_code([downloaded / "real.jsonl"])
    result = run_in(downloaded, "criticize", "real.jsonl", "other.jsonl", "--allow-code", ".")
    assert "--allow-code requires your own code as module:name" in " ".join(result.stderr.split())
    with pytest.raises(ParameterError, match="module 'json' has no attribute 'nothing'"):
        import_user_code("json", "nothing", "critic", "json:nothing")
