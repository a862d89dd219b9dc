"""The shipped nginx configuration in front of the real server, with clients from many addresses."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import finecomb as fc
from finecomb.server import app, auth

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("nginx", path="/usr/sbin:/usr/bin:/bin") is None, reason="nginx is not installed"),
]
CONFIG = Path(__file__).parents[2] / "deploy" / "nginx.conf"
PROXY = "127.0.0.5"  # not the address that is trusted by default, as in a container


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def nginx(folder: Path, port: int, server_port: int) -> Iterator[None]:
    """Run nginx with the shipped site, without TLS. Clients name their addresses by the PROXY protocol."""
    site = CONFIG.read_text(encoding="utf-8")
    kept = [line for line in site.splitlines() if not line.strip().startswith(("ssl_", "http2", "listen 80"))]
    text = "\n".join(kept).replace("127.0.0.1:8000", f"127.0.0.1:{server_port}")
    text = text.replace("listen 443 ssl;", f"listen 127.0.0.1:{port} proxy_protocol;")
    text = text.replace("proxy_set_header X-Forwarded-Proto https;", f"proxy_bind {PROXY};")
    text = text.partition("server {\n    server_name study.example.org;\n    return")[0]
    paths = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{paths}set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;\n{text}\n}}\n"
    )
    command = ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    process = subprocess.Popen(command, env={"PATH": "/usr/sbin:/usr/bin:/bin"})
    try:
        wait_for(port)
        yield
    finally:
        process.terminate()
        process.wait()


def wait_for(port: int) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port}")


@contextmanager
def serving(folder: Path, port: int, *words: str) -> Iterator[str]:
    """Serve a study, and yield the token of the open link."""
    fc.write(fc.demo(readers=2), folder / "study")
    command = [sys.executable, "-m", "finecomb", "serve", str(folder / "study"), "--port", str(port), *words]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for _ in range(1200):
            text = (folder / "log").read_text()
            if "Press Ctrl-C" in text:
                break
            assert process.poll() is None, text
            time.sleep(0.05)
        yield text.partition("/join/")[2].split()[0]
    finally:
        process.terminate()
        process.wait()


def send(port: int, address: str, path: str, body: bytes = b"", forged: str = "") -> int:
    """Send a request from an address, and return the status."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        claim = f"X-Forwarded-For: {forged}\r\n" if forged else ""
        connection.sendall(
            f"PROXY TCP4 {address} 127.0.0.1 40000 {port}\r\n"
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n{claim}"
            "Connection: close\r\n\r\n".encode()
            + body
        )
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return int(answer.split()[1])


def test_300_addresses_through_a_proxy_are_300_people(tmp_path: Path) -> None:
    port, server_port = free_port(), free_port()
    public = ("--public-url", f"http://127.0.0.1:{port}", "--trusted-proxies", PROXY)
    with serving(tmp_path, server_port, *public) as token, nginx(tmp_path, port, server_port):
        path = f"/api/join/{token}"
        codes = [send(port, f"198.18.{number // 100}.{number % 100 + 1}", path) for number in range(300)]
        assert codes == [200] * 300
        at_once = auth._MAX_JOINS_PER_ADDRESS
        codes = [send(port, "198.51.100.7", path, forged=f"192.0.2.{number}") for number in range(at_once + 2)]
        assert codes == [200] * at_once + [429] * 2  # and no client can claim another address
        assert send(port, "198.51.100.8", path) == 200


def test_the_proxy_accepts_what_the_server_accepts(tmp_path: Path) -> None:
    """An upload just below the server's limit reaches it, and is answered by it rather than by nginx."""
    port, server_port = free_port(), free_port()
    public = ("--public-url", f"http://127.0.0.1:{port}", "--trusted-proxies", PROXY)
    with serving(tmp_path, server_port, *public), nginx(tmp_path, port, server_port):
        body = json.dumps({"text": "x" * (app._MAX_UPLOAD_BYTES - 1000)}).encode()
        assert send(port, "198.18.0.1", "/api/admin/documents", body) == 401  # the server asks for a sign-in
