"""What is said where a package of an extra is not installed."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import finecomb
from finecomb.cli import main
from finecomb.cli.commands import COMMANDS
from finecomb.core.errors import FinecombError
from finecomb.core.optional_packages import EXTRA_BY_MODULE, import_optional_package, require_packages
from finecomb.formats import write as write_study

SOURCE = Path(finecomb.__file__).parent
PROJECT = tomllib.loads((SOURCE.parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_IN_AN_EXTRA = {"pandas", "compression"}  # the second is in the standard library since Python 3.14
"""For types only, or for who has it anyway."""
MODULE_OF = {"pyyaml": "yaml", "vl-convert-python": "vl_convert"}
COMES_WITH = {"pydantic_core": "pydantic", "starlette": "fastapi"}

WITHOUT_EXTRAS = f"""
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(EXTRA_BY_MODULE)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Without())
from finecomb.cli import main
main()
"""
"""The command line as the default install has it."""


def imported(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"finecomb"}


def test_every_package_that_the_code_imports_comes_with_the_default_install_or_with_an_extra() -> None:
    required = {Requirement(line).name.lower() for line in PROJECT["dependencies"]}
    modules = {MODULE_OF.get(name, name.replace("-", "_")) for name in required}
    used = set().union(*map(imported, SOURCE.rglob("*.py")))
    assert {COMES_WITH.get(name, name) for name in used} - modules - set(EXTRA_BY_MODULE) - NOT_IN_AN_EXTRA == set()


@pytest.mark.parametrize(("module", "extra"), EXTRA_BY_MODULE.items())
def test_an_extra_brings_the_package(module: str, extra: str) -> None:
    name = COMES_WITH.get(module, module).replace("_", "-")
    assert name in {Requirement(line).name.lower() for line in PROJECT["optional-dependencies"][extra]}


def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    message = r"^tokens need the package spacy; run `pip install 'finecomb\[models\]'`$"
    with pytest.raises(FinecombError, match=message):
        import_optional_package("tokens need", "spacy")
    with pytest.raises(FinecombError, match=message):
        require_packages("tokens need", "polars", "spacy")


def default_install(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS, *words], capture_output=True, text=True, check=False)


def test_without_the_servers_packages_a_command_ends_with_one_line(tmp_path: Path) -> None:
    """It was a traceback for links, backup, restore, repair and forget."""
    result = default_install("links", str(tmp_path))
    assert result.returncode == 1
    assert (
        result.stderr == "finecomb: this command needs the package sqlalchemy; run `pip install 'finecomb[server]'`\n"
    )


def test_prompts_can_be_read_without_the_packages_that_calls_need() -> None:
    result = default_install("prompts", "show", "scarecrow")
    assert "Grammar" in result.stdout, result.stderr


def test_figures_are_drawn_in_the_default_install(tmp_path: Path) -> None:
    """Altair was needed for figures of validations and of papers."""
    write_study(finecomb.demo(), tmp_path / "study")
    study, plot, report = (str(tmp_path / name) for name in ("study", "plot.pdf", "report"))
    words = ("score", study, "--judge", "reader-1", "--draws", "20", "--plot", plot, "--report", report)
    result = default_install(*words)
    assert result.returncode == 0, result.stderr
    assert Path(plot).read_bytes().startswith(b"%PDF")
    assert (tmp_path / "report" / "precision-recall.svg").is_file()


@pytest.mark.long
@pytest.mark.parametrize("command", [row.name for row in COMMANDS])
def test_every_command_explains_itself_in_the_default_install(command: str) -> None:
    assert "Example" in default_install(command, "--help").stdout


def test_a_package_that_no_extra_brings_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ModuleNotFoundError("No module named 'nonsuch'", name="nonsuch")

    monkeypatch.setattr("finecomb.cli.app", broken)
    with pytest.raises(ModuleNotFoundError):
        main()


def test_a_file_that_may_not_be_used_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused() -> None:
        raise PermissionError(13, "Permission denied", "texts.csv")

    monkeypatch.setattr("finecomb.cli.app", refused)
    with pytest.raises(SystemExit):
        main()
    assert "finecomb: texts.csv: Permission denied; " in capsys.readouterr().err
