"""Runs the tests of outages over and over beside busy processes: `python -m tests.browser.steadiness 50`.

What guards work against loss must hold on a machine that is busy, every time.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

BUSY = 4
TESTS = Path(__file__).parent / "test_outages.py"


def _busy() -> None:
    while True:
        sum(range(10_000))


def main(times: int, seconds: float) -> int:
    """Run the tests so often, or for so long; how many runs failed."""
    busy = [multiprocessing.Process(target=_busy, daemon=True) for _ in range(BUSY)]
    for process in busy:
        process.start()
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-m", "long or not long", str(TESTS)]
    failed, done, until = 0, 0, time.monotonic() + seconds
    while done < times and time.monotonic() < until:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        done += 1
        failed += run.returncode != 0
        print(f"run {done}: {run.stdout.strip().splitlines()[-1] if run.stdout.strip() else run.stderr}", flush=True)
        if run.returncode:
            print(run.stdout[-6000:], flush=True)
    for process in busy:
        process.kill()
    print(f"{done} runs beside {BUSY} busy processes, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1e9) > 0)
