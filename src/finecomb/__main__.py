"""`python -m finecomb`: the command line, where the program is not on the path."""

import os
import sys

# `python -m` puts the working directory first, where a module of a downloaded study could replace an installed one.
if not sys.flags.safe_path and sys.path and sys.path[0] == os.getcwd():  # noqa: PTH109 (pathlib is not imported yet)
    del sys.path[0]

from finecomb.cli import main

if __name__ == "__main__":
    main()
