"""What is installed is named with its hashes, its licences are permissive, and a wheel is the same twice."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version
from release import audit, licences, locks
from release.__main__ import build, digest, missing_pages

PROJECT = tomllib.loads((locks.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def direct_requirements(extras: tuple[str, ...]) -> dict[str, Requirement]:
    """What `pyproject.toml` names for these extras, and for the extras that these name."""
    lines = list(PROJECT["dependencies"])
    waiting, done = list(extras), set()
    while waiting:
        extra = waiting.pop()
        if extra in done:
            continue
        done.add(extra)
        for line in PROJECT["optional-dependencies"][extra]:
            requirement = Requirement(line)
            if requirement.name == PROJECT["name"]:
                waiting += requirement.extras
            else:
                lines.append(line)
    return {requirement.name.lower(): requirement for requirement in map(Requirement, lines)}


@pytest.mark.parametrize("purpose", sorted(locks.EXTRAS))
def test_a_lock_file_has_every_requirement_in_a_version_that_is_allowed(purpose: str) -> None:
    versions = {pin.name: Version(pin.version) for pin in locks.pins(locks.lock_file(purpose).read_text())}
    for name, requirement in direct_requirements(locks.EXTRAS[purpose]).items():
        assert name in versions, f"run `make lock`: {name} is not in locks/{purpose}.txt"
        assert requirement.specifier.contains(versions[name], prereleases=True), requirement


@pytest.mark.parametrize("purpose", sorted(locks.EXTRAS))
def test_a_lock_file_has_hashes_and_names_no_registry(purpose: str) -> None:
    text = locks.lock_file(purpose).read_text()
    assert "://" not in text
    assert [pin.name for pin in locks.pins(text) if not pin.hashes] == []


def test_all_is_every_extra_but_the_developers() -> None:
    (line,) = PROJECT["optional-dependencies"]["all"]
    assert Requirement(line).extras == set(PROJECT["optional-dependencies"]) - {"all", "dev"}


def test_a_pin_is_read_with_its_marker_and_hashes() -> None:
    text = "a==1.0 ; sys_platform == 'win32' \\\n    --hash=sha256:12 \\\n    --hash=sha256:34\nb-c==2\n"
    assert list(locks.pins(text)) == [locks.Pin("a", "1.0", ("sha256:12", "sha256:34")), locks.Pin("b-c", "2", ())]


def test_the_default_install_and_the_server_have_permissive_licences() -> None:
    packages = licences.closure("finecomb", audit.SHIPPED)
    assert {"numpy", "polars", "fastapi", "starlette", "uvicorn"} <= set(packages)
    assert audit.licence_faults() == []


def test_a_licence_that_asks_for_more_is_named() -> None:
    assert list(licences.not_permissive(licences.closure("psycopg"))) == ["psycopg"]


@pytest.mark.long
def test_a_wheel_is_the_same_twice_and_has_the_pages(tmp_path: Path) -> None:
    first, second = (build(tmp_path / name) for name in ("first", "second"))
    assert digest(first) == digest(second)
    assert missing_pages(first) == []


def test_an_advisory_is_named_and_what_was_not_looked_up_is_counted() -> None:
    packages: list[dict[str, Any]] = [
        {"name": "sound", "version": "1", "vulns": []},
        {"name": "faulty", "version": "2", "vulns": [{"id": "PYSEC-1"}, {"id": "PYSEC-2"}]},
        {"name": "unknown", "skip_reason": "no answer"},
    ]
    assert audit.faults(packages) == ["faulty 2: PYSEC-1, PYSEC-2"]
    assert audit.summary("demo", packages) == "locks/demo.txt: 2 of 3 packages looked up; 1 were not: no answer"
    assert audit.summary("demo", packages[:2]) == "locks/demo.txt: 2 of 2 packages looked up"


def test_without_what_asks_for_advisories_the_audit_says_that_nothing_was_looked_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pip_audit", None)
    with pytest.raises(SystemExit) as end:
        audit.main()
    assert end.value.code == 0
    printed = capsys.readouterr().out
    assert re.search(r"^licences: \d+ packages", printed)
    assert re.search(r"demo.txt: 0 of \d+ packages looked up; \d+ were not: pip-audit is not installed$", printed, re.M)


# --- configuration on GitHub and of pre-commit ---------------------------------------------------------------------


def read_yaml(path: str) -> Any:
    return yaml.safe_load((locks.ROOT / path).read_text(encoding="utf-8"))


def test_pre_commit_uses_the_locked_version_of_ruff() -> None:
    (ruff,) = (pin.version for pin in locks.pins(locks.lock_file("test").read_text()) if pin.name == "ruff")
    revisions = {repo["repo"]: repo.get("rev") for repo in read_yaml(".pre-commit-config.yaml")["repos"]}
    assert revisions["https://github.com/astral-sh/ruff-pre-commit"] == f"v{ruff}"


def test_the_workflow_tests_every_python_version_of_the_classifiers() -> None:
    matrix = read_yaml(".github/workflows/tests.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    classifiers = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert matrix == classifiers


def test_only_a_tag_publishes_a_release_after_its_tests() -> None:
    workflow = read_yaml(".github/workflows/release.yml")
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads the key `on` as true
    assert workflow["jobs"]["publish"]["needs"] == "build"
    steps = [step.get("run", "") for step in workflow["jobs"]["build"]["steps"]]
    assert "make test PYTHON=python" in steps
    assert "make release" in steps


def test_workflows_run_targets_that_the_makefile_has() -> None:
    makefile = (locks.ROOT / "Makefile").read_text(encoding="utf-8")
    for file in sorted((locks.ROOT / ".github" / "workflows").glob("*.yml")):
        for target in re.findall(r"run: make ([\w-]+)", file.read_text(encoding="utf-8")):
            assert re.search(rf"^{target}:", makefile, re.M), f"{file.name}: make {target}"


@pytest.mark.parametrize("name", ["bug", "feature", "number"])
def test_an_issue_form_has_a_description_and_labelled_fields(name: str) -> None:
    form = read_yaml(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["id"] and field["attributes"]["label"] for field in fields)
