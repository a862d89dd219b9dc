"""The shipped deployment files agree with the server and with each other."""

from __future__ import annotations

import ipaddress
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from finecomb.server import app
from finecomb.server.connections import parse_trusted_proxies

DEPLOY = Path(__file__).parent.parent / "deploy"


@pytest.fixture
def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_image_comes_from_the_hashed_lock_and_runs_without_rights() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    assert "--require-hashes --requirement locks/server.txt" in text
    assert "npm ci" in text
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert text.index("USER finecomb") < text.index("ENTRYPOINT")
    assert "HEALTHCHECK" in text
    assert (DEPLOY.parent / "locks" / "server.txt").is_file()


def test_the_compose_file_trusts_the_proxys_network_and_no_other(compose: Any) -> None:
    words = dict(word.removeprefix("--").split("=", 1) for word in compose["services"]["finecomb"]["command"][2:])
    (network,) = compose["networks"]["inside"]["ipam"]["config"]
    assert words["trusted-proxies"] == network["subnet"]
    assert parse_trusted_proxies([network["subnet"]], words["public-url"])
    assert ipaddress.ip_network(network["subnet"]).is_private
    users = [name for name, service in compose["services"].items() if "inside" in service["networks"]]
    assert users == ["caddy", "finecomb"]
    assert compose["services"]["finecomb"]["read_only"] is True
    assert "ports" not in compose["services"]["finecomb"]


@pytest.mark.parametrize("name", ["nginx.conf", "Caddyfile", "Caddyfile.compose"])
def test_proxies_accept_as_much_as_the_server(name: str) -> None:
    text = (DEPLOY / name).read_text()
    (limit,) = re.findall(r"(?:client_max_body_size|max_size) (\d+)(?:m|MB)", text)
    unit = 2**20 if name == "nginx.conf" else 10**6
    assert app._MAX_UPLOAD_BYTES <= int(limit) * unit < app._MAX_UPLOAD_BYTES * 1.1


def test_each_study_has_its_own_user() -> None:
    text = (DEPLOY / "finecomb.service").read_text()
    assert "User=finecomb-%i\n" in text
    assert "UMask=0077" in text


@pytest.mark.nightly
def test_the_steps_of_the_containerfile_lead_to_a_healthy_server(tmp_path: Path) -> None:
    assert shutil.which("sh")
    result = subprocess.run(
        [DEPLOY / "follow-steps", tmp_path / "plain"], capture_output=True, text=True, timeout=1800, check=False
    )
    assert result.returncode == 0, result.stderr
    assert '{"status":"ok"}' in result.stdout
