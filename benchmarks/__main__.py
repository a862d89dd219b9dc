"""Run the benchmarks named on the command line, or all of them: every module here with a `main`."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def run() -> None:
    known = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")]
    for name in sys.argv[1:] or known:
        if name not in known:
            sys.exit(f"no benchmark is called {name!r}; there are: {', '.join(known)}")
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


run()
