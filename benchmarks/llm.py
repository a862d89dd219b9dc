"""Calls to an endpoint with a latency of 0.5 s: utilisation with 32 concurrent calls, and CPU time per call.

The first call is made alone, to learn which parameters the endpoint accepts, and is part of the measurement.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from finecomb.annotators.llm import annotate
from finecomb.core.records import Document, ModelSettings
from finecomb.core.study import Study
from finecomb.protocols import load

CALL_COUNT, CONCURRENCY, SECONDS = 1280, 32, 0.5
MIN_BUSY_SHARE, MAX_CPU_MS = 0.95, 4.0
SERVER = """
import asyncio, json
CONTENT = json.dumps({"answers": {"coherence": 4}})
ANSWER = json.dumps({
    "choices": [{"message": {"content": CONTENT}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 900, "completion_tokens": 12},
}).encode()
HEAD = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(ANSWER)
def length_of(head):
    lines = head.lower().split(b"\\r\\n")
    return int(next(line for line in lines if line.startswith(b"content-length")).split(b":")[1])
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            await reader.readexactly(length_of(head))
            await asyncio.sleep(SECONDS)
            writer.write(HEAD + ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def main() -> None:
    source = SERVER.replace("SECONDS", str(SECONDS))
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        try:
            measure_calls(url)
        finally:
            server.terminate()


def measure_calls(url: str) -> None:
    documents = [Document(id=f"d{number}", text=f"Text {number}. It has a few words.") for number in range(CALL_COUNT)]
    study = Study.from_items([load("likert"), *documents])
    settings = ModelSettings(model="m", base_url=url, concurrency=CONCURRENCY, price=(1, 2))
    with tempfile.TemporaryDirectory() as folder:
        before, started = time.process_time(), time.monotonic()
        run = annotate(study, settings, runs=Path(folder))
        took, busy = time.monotonic() - started, time.process_time() - before
    share, cpu = CALL_COUNT * SECONDS / (CONCURRENCY * took), 1000 * busy / CALL_COUNT
    assert len(run.annotations) == CALL_COUNT
    print(f"{CALL_COUNT} calls, {CONCURRENCY} concurrent, {SECONDS:g} s each: {took:.2f} s in total")
    print(
        f"  endpoint busy {share:.1%} of the time, {'within' if share >= MIN_BUSY_SHARE else 'BELOW'} "
        f"{MIN_BUSY_SHARE:.0%}"
    )
    print(f"  {cpu:.2f} ms of CPU time per call, {'within' if cpu < MAX_CPU_MS else 'OVER'} {MAX_CPU_MS:g} ms")
