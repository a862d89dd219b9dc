from __future__ import annotations

import subprocess
import sys


def test_solvers_are_loaded_when_they_are_needed() -> None:
    ask = "import sys, finecomb; print([name for name in ('highspy', 'scipy.optimize') if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
