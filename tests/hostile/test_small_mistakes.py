"""Small mistakes and deep files end in one line, never in a traceback or a crash."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import finecomb as fc
from finecomb.core.errors import FinecombError, ParameterError
from finecomb.core.protocol_yaml import load_yaml
from finecomb.corpora.critics import storage
from finecomb.corpora.critics.sections import Sections
from tests.corpora.critics.test_sections import articles

WITH_SEED = [name for name in dir(fc) if "seed" in getattr(inspect.unwrap(getattr(fc, name)), "__annotations__", {})]


def test_many_functions_take_a_seed() -> None:
    assert len(WITH_SEED) > 10


@pytest.mark.parametrize("name", WITH_SEED)
def test_a_negative_seed_is_one_line(name: str) -> None:
    function = getattr(fc, name)
    parameters = inspect.signature(function).parameters.values()
    required = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_POSITIONAL]
    positions = ["x" for each in required if each.kind is not each.KEYWORD_ONLY]
    keywords = {each.name: "x" for each in required if each.kind is each.KEYWORD_ONLY}
    with pytest.raises(ParameterError, match="seed must be at least 0, found -1"):
        function(*positions, **keywords, seed=-1)


DEEP = {"flow": "[" * 200_000, "block": "\n".join(" " * n + "a:" for n in range(3_000))}


@pytest.mark.parametrize("deep", DEEP.values(), ids=DEEP)
def test_deep_yaml_next_to_data_is_one_line(deep: str, tmp_path: Path) -> None:
    with pytest.raises(FinecombError, match="nested more than 60 levels deep"):
        load_yaml(deep, "token_lookup.yaml")
    (tmp_path / "gsml.csv").write_text("TEXT_ID,SENTENCE_ID,ANNOTATION_ID,TOKENS,SENT_TOKEN_START,SENT_TOKEN_END\n")
    (tmp_path / "token_lookup.yaml").write_text(deep)
    code = "from finecomb.formats.gsml import TokenLookup; from pathlib import Path; import sys\n"
    code += "TokenLookup(Path(sys.argv[1])).table"
    command = [sys.executable, "-P", "-c", code, str(tmp_path / "token_lookup.yaml")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 1  # an exception, not a crash of the interpreter
    assert "nested more than 60 levels deep" in result.stderr


def test_aliases_that_expand_without_end_are_refused() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    with pytest.raises(FinecombError, match="after aliases are expanded"):
        load_yaml(bomb, "token_lookup.yaml")


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"critic": "sections", "state": ' + '{"a":' * 50_000])
def test_a_deep_critic_is_one_line(deep: str, tmp_path: Path) -> None:
    critic = Sections.fit(articles(0, 40), np.random.default_rng(0), min_count=5)
    storage.save(critic, tmp_path / "critic")
    (tmp_path / "critic" / "critic.json").write_text(deep)
    with pytest.raises(FinecombError, match="cannot be read as a saved critic"):
        storage.load(tmp_path / "critic")


@pytest.mark.parametrize("blocks", [1, 16, 60, 240])
def test_serving_on_a_full_disk_is_one_line(tmp_path: Path, blocks: int) -> None:
    fc.write(fc.demo(), tmp_path / "study")
    serve = f"exec {sys.executable} -m finecomb serve {tmp_path / 'study'} --port 0"
    command = ["bash", "-c", f"trap '' XFSZ; ulimit -f {blocks}; {serve}"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 1
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert re.search(r"study\.db(\.part)?: cannot be", result.stderr)
