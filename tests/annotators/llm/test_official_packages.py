"""The providers' official Python packages work with the fakes, which shows that the fakes follow their APIs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.annotators.llm.fakes.base import KEY, FakeServer
from tests.annotators.llm.fakes.chat_servers import FakeMistral, FakeOpenAI
from tests.annotators.llm.fakes.native_servers import FakeAnthropic, FakeGemini

pytestmark = pytest.mark.long
OPENAI = """
import io, openai
client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
assert [model.id for model in client.models.list()] == ["judge-large", "judge-small"]
reply = client.chat.completions.create(model="judge-large", messages=[{"role": "user", "content": "x"}], seed=1)
assert reply.choices[0].message.content == text
assert client.responses.create(model="judge-large", input="x").output_text == text
try:
    client.chat.completions.create(model="judge-large", messages=[], extra_body={"nonsense": 1})
except openai.BadRequestError as error:
    assert error.param == "nonsense"
body = '{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": %s}'
body %= '{"model": "judge-large", "messages": []}'
file = client.files.create(file=io.BytesIO(body.encode()), purpose="batch")
batch = client.batches.create(
    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"a": "b"}
)
while batch.status != "completed":
    batch = client.batches.retrieve(batch.id)
assert '"custom_id": "a"' in client.files.content(batch.output_file_id).text
assert [item.id for item in client.batches.list()] == [batch.id]
"""
ANTHROPIC = """
import anthropic
client = anthropic.Anthropic(base_url=url, api_key=key, max_retries=0)
assert [model.id for model in client.models.list()] == ["judge-large", "judge-small"]
request = {"model": "judge-large", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
assert client.messages.create(**request).content[0].text == text
try:
    client.messages.create(**request, extra_body={"nonsense": 1})
except anthropic.BadRequestError as error:
    assert "nonsense" in str(error)
batch = client.messages.batches.create(requests=[{"custom_id": "a", "params": request}])
while batch.processing_status != "ended":
    batch = client.messages.batches.retrieve(batch.id)
assert [item.id for item in client.messages.batches.list()] == [batch.id]
"""
GEMINI = """
from google import genai
client = genai.Client(api_key=key, http_options={"base_url": url, "api_version": "v1beta"})
reply = client.models.generate_content(
    model="judge-large", contents="x", config={"system_instruction": "s", "seed": 1, "max_output_tokens": 9}
)
assert reply.text == text
assert [model.name for model in client.models.list()] == ["models/judge-large", "models/judge-small"]
"""
MISTRAL = """
try:
    from mistralai.client import Mistral
except ImportError:
    from mistralai import Mistral
client = Mistral(server_url=url.removesuffix("/v1"), api_key=key)
reply = client.chat.complete(model="judge-large", messages=[{"role": "user", "content": "x"}], random_seed=1)
assert reply.choices[0].message.content[1].text == text
assert [model.id for model in client.models.list().data] == ["judge-large", "judge-small"]
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install the packages in an environment of their own, or use that in FINECOMB_PROVIDER_PACKAGES."""
    if ready := os.environ.get("FINECOMB_PROVIDER_PACKAGES"):
        return ready
    folder = tmp_path_factory.mktemp("packages")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    executable = folder / "bin" / "python"
    packages = ["openai", "anthropic", "google-genai", "mistralai"]
    install = [str(executable), "-m", "pip", "install", "--quiet", *packages]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        pytest.skip(f"the providers' packages cannot be installed: {done.stderr[-200:]}")
    return str(executable)


@pytest.mark.parametrize(
    ("kind", "script"),
    [(FakeOpenAI, OPENAI), (FakeAnthropic, ANTHROPIC), (FakeGemini, GEMINI), (FakeMistral, MISTRAL)],
)
def test_the_official_package_works_with_the_fake(
    kind: type[FakeServer], script: str, python: str, tmp_path: Path
) -> None:
    with kind() as server:
        lines = f"url, key, text = {server.url!r}, {KEY!r}, {server.text!r}\n{script}"
        environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        done = subprocess.run(
            [python, "-c", lines],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=120,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr[-3000:]
