"""Addresses and key variables that a study names are used only after the user confirmed them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import finecomb as fc
from finecomb import formats
from finecomb.annotators.llm.endpoint_consent import (
    KEY_NAMES,
    UnconfirmedEndpointError,
    confirm_endpoint,
    is_endpoint_confirmed,
    require_confirmed_endpoints,
)
from finecomb.core.errors import FinecombError, ParameterError
from finecomb.core.records import Annotation, Annotator, Document, Mark, ModelSettings, Settings
from finecomb.core.span import Span
from finecomb.core.study import StudyItem
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer

SECRET = "AWS_SECRET_ACCESS_KEY"


@pytest.fixture
def thief() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda body, number: ScriptedAnswer('{"marks": []}')) as server:
        yield server


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv(SECRET, "aws-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")


def shared_study(folder: Path, model: ModelSettings) -> Path:
    """A study with gold corrections, so that every command that calls a model can use it."""
    text = "Nine gulls and two terns."
    mark = Mark(
        id="m", spans=(Span(0, 4),), quotes=("Nine",), label="number", answers={"correction": "Ten", "severity": 1}
    )
    items: list[StudyItem] = [
        Settings(protocols=("accuracy@2",), models={"judge": model}),
        fc.protocol("accuracy"),
        Document(id="d", text=text),
        Annotator(id="gold", kind="gold"),
        Annotation(id="a", document="d", annotator="gold", protocol="accuracy@2", status="submitted", marks=(mark,)),
    ]
    formats.save_records(items, folder)
    return folder


@pytest.mark.parametrize("call", ["annotate", "probe", "verify", "validate"])
@pytest.mark.parametrize("trust", [False, True])
def test_a_shared_study_does_not_get_a_variable_of_the_environment(
    call: str, trust: bool, thief: ScriptedServer, tmp_path: Path
) -> None:
    study = shared_study(tmp_path / "study", ModelSettings(model="m", base_url=thief.url, key_env=SECRET))
    calls: dict[str, Callable[[], object]] = {
        "annotate": lambda: fc.annotate(study, "judge", trust_endpoint=trust),
        "probe": lambda: fc.annotate(study, "judge", probe="repeat", trust_endpoint=trust),
        "verify": lambda: fc.annotate(study, "m2", base_url=thief.url, verify="judge", trust_endpoint=trust),
        "validate": lambda: fc.validate(study, "judge", trust_endpoint=trust),
    }
    with pytest.raises(FinecombError, match=f"{SECRET} .* is not a key of a language model"):
        calls[call]()
    assert (thief.requests, thief.keys) == ([], [])


def test_an_address_of_a_study_is_confirmed_once_and_only_for_this_study(thief: ScriptedServer, tmp_path: Path) -> None:
    model = ModelSettings(model="m", base_url=thief.url, key_env="OPENAI_API_KEY")
    study = shared_study(tmp_path / "study", model)
    with pytest.raises(UnconfirmedEndpointError, match=f"to {thief.url} with the key in OPENAI_API_KEY"):
        fc.annotate(study, "judge")
    assert thief.requests == []
    fc.annotate(study, "judge", trust_endpoint=True)
    assert thief.keys == ["Bearer sk-openai"]
    fc.annotate(study, "judge")
    copy = shared_study(tmp_path / "copy", model)
    with pytest.raises(UnconfirmedEndpointError):
        fc.annotate(copy, "judge")
    elsewhere = shared_study(tmp_path / "study2", model.model_copy(update={"base_url": thief.url + "/other"}))
    (study / "study.yaml").write_bytes((elsewhere / "study.yaml").read_bytes())
    with pytest.raises(UnconfirmedEndpointError):
        fc.annotate(study, "judge")
    (file,) = (tmp_path / "state").rglob("*.json")
    (digest,) = json.loads(file.read_text())
    assert len(digest) == 64
    assert file.parent.stat().st_mode & 0o77 == 0


def test_what_the_user_gives_needs_no_confirmation(thief: ScriptedServer, tmp_path: Path) -> None:
    study = shared_study(
        tmp_path / "study", ModelSettings(model="m", base_url="http://thief.example/v1", key_env=SECRET)
    )
    fc.annotate(study, "judge", base_url=thief.url, key_env="OPENAI_API_KEY")
    assert thief.keys == ["Bearer sk-openai"]
    assert fc.annotate(study, "judge", dry_run=True).notes[0] == "nothing was sent"
    with pytest.raises(ParameterError, match="trust_endpoint does not apply"):
        fc.annotate(study, "m", base_url=thief.url, trust_endpoint=True)


def test_confirmations_that_cannot_be_read_or_written_confirm_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ModelSettings(model="m", base_url="http://thief.example/v1")
    confirm_endpoint(model, tmp_path)
    assert is_endpoint_confirmed(model, tmp_path)
    (file,) = (tmp_path / "state").rglob("*.json")
    for content in ("{", "{}", "[1]", "[[[[", "\xff"):
        file.write_bytes(content.encode("latin-1"))
        with pytest.raises(UnconfirmedEndpointError):
            require_confirmed_endpoints([(model, ())], tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    with pytest.raises(FinecombError, match="cannot be remembered"):
        confirm_endpoint(model, tmp_path)


def test_no_listed_variable_holds_anything_but_a_models_key() -> None:
    assert all(name.endswith("_API_KEY") for name in KEY_NAMES)
