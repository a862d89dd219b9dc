"""Fitted critics in a folder: what is read from it, and what a folder never gets to run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from finecomb.annotators.coreference.resolver import resolve_coreference
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.records import Document
from finecomb.corpora.critics import load, save
from finecomb.corpora.critics.coreference import Coreference, _load_resolver
from finecomb.corpora.critics.custom_critic import CustomCritic
from finecomb.corpora.critics.sections import Sections
from finecomb.corpora.critics.storage import import_attribute, required_user_code
from finecomb.corpora.critics.synthetic import ExactCritic
from tests.cli.test_criticize import corpora  # noqa: F401
from tests.corpora.critics.test_sections import articles
from tests.test_cli import refused, run

WORDS = "tests.corpora.critics.test_storage:words"


def words(text: str) -> list[str]:
    return text.split()


def saved(folder: Path) -> Path:
    documents = [Document(id=str(at), text="a b a") for at in range(3)]
    save(CustomCritic.fit(documents, np.random.default_rng(0), WORDS), folder)
    return folder


def edit(folder: Path, **changes: object) -> None:
    """Change what the folder says of itself."""
    head = json.loads((folder / "critic.json").read_text())
    head["state"] |= {name: value for name, value in changes.items() if name != "critic"}
    head |= {name: value for name, value in changes.items() if name == "critic"}
    (folder / "critic.json").write_text(json.dumps(head))


def test_a_function_that_a_folder_names_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tmp_path / "kept")
    (tmp_path / "trap.py").write_text("raise SystemExit('the folder was obeyed')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("os:system", "trap:anything"):
        edit(folder, function=name)
        with pytest.raises(FinecombError, match=f"the critic runs the code '{name}'.*code={name}") as error:
            load(folder)
        assert error.value.format_message(format_as_flag).endswith(f"pass --code {name}")
    assert "trap" not in sys.modules


def test_a_class_that_a_folder_names_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tmp_path / "kept")
    (tmp_path / "snare.py").write_text("raise SystemExit('the folder was obeyed')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    edit(folder, critic="snare:Critic")
    with pytest.raises(FinecombError, match="the critic runs the code 'snare:Critic'"):
        load(folder)
    assert "snare" not in sys.modules


def test_a_resolver_and_an_encoder_that_a_folder_names_are_not_loaded(tmp_path: Path) -> None:
    people = [Document(id=str(at), text="Anna met Paul. She thanked him.") for at in range(3)]
    save(Coreference.fit(people, np.random.default_rng(0)), tmp_path / "people")
    assert load(tmp_path / "people").name == "coreference"
    edit(tmp_path / "people", resolver="os:system")
    with pytest.raises(FinecombError, match="the critic runs the code 'os:system'"):
        load(tmp_path / "people")
    critic = Sections.fit(articles(0, 40), np.random.default_rng(0), min_count=5)
    save(critic, tmp_path / "sections")
    classifier = json.loads((tmp_path / "sections" / "critic.json").read_text())["state"]["classifier"]
    edit(tmp_path / "sections", classifier=classifier | {"features": {"features": "encoder", "name": "./model"}})
    with pytest.raises(FinecombError, match=r"the critic runs the code .encoder:\./model."):
        load(tmp_path / "sections")


def test_code_that_the_user_names_is_used(tmp_path: Path) -> None:
    folder = saved(tmp_path / "kept")
    critic = load(folder, code=[WORDS])
    assert critic.project(Document(id="x", text="a b")).point_estimate() == ("a", "b")
    assert required_user_code(critic) == [WORDS]


@pytest.mark.parametrize(
    "state", ["[]", '{"critic": "own"}', '{"critic": "own", "state": []}', '{"critic": 1, "state": {}}']
)
def test_nonsense_in_a_folder_is_one_line(tmp_path: Path, state: str) -> None:
    folder = saved(tmp_path / "kept")
    (folder / "critic.json").write_text(state)
    with pytest.raises(FinecombError, match="kept: "):
        load(folder)


def test_the_command_asks_for_your_code_each_time(corpora: Path) -> None:  # noqa: F811
    made = ("criticize", "real.jsonl", "alike.jsonl", "--critic", "mine:initials", "--draws", "0", "--save", "kept")
    assert "use it with --critic kept --code mine:initials" in " ".join(run(*made).stderr.split())
    again = ("criticize", "alike.jsonl", "swapped.jsonl", "--critic", "kept", "--draws", "0")
    assert "pass --code mine:initials" in refused(*again)
    assert run(*again, "--code", "mine:initials").stdout
    message = refused(*again, "--code", "mine:initials", "--code", "mine:finals")
    assert message == "--code mine:finals is not used by any saved critic in --critic; omit it"


def test_a_folder_that_has_a_shipped_critics_name_does_not_take_its_place(corpora: Path) -> None:  # noqa: F811
    saved(corpora / "languages")
    words = ("criticize", "real.jsonl", "alike.jsonl", "--critic", "languages", "--draws", "0", "--json")
    assert json.loads(run(*words, "--set", "most=1").stdout)["table"][0]["critic"] == "languages"


def test_code_is_found_under_the_module_path_of_an_earlier_version() -> None:
    assert import_attribute("finecomb.critics.synthetic:Exact", "old") is ExactCritic
    assert _load_resolver("finecomb.critics.coreference_sieve:sieve") is resolve_coreference
