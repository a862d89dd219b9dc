"""The commands: parse, call, print. Results go to standard output, everything else to standard error."""

from __future__ import annotations

import gc
import os
import sys

from finecomb.cli.commands import app
from finecomb.core.errors import FinecombError, flag_style

__all__ = ["app", "main"]

_MAX_ERROR_LINES = 20


def _shorten_message(message: str) -> str:
    """At most twenty lines, and how many more there are."""
    lines = message.splitlines()
    more = len(lines) - _MAX_ERROR_LINES
    return "\n".join([*lines[:_MAX_ERROR_LINES], *([f"... and {more:,} more like these"] if more > 0 else [])])


def _print_error(message: str) -> None:
    from rich.text import Text

    from finecomb.cli.shared import err

    err.print(Text("finecomb: ", "bold red"), Text(_shorten_message(message)), sep="", soft_wrap=True)


def main() -> None:
    """Run the command line; a user's mistake is one line on standard error, ours is a traceback."""
    gc.disable()  # until the command is loaded
    try:
        app()
    except FinecombError as error:
        _print_error(error.text(flag_style))
        sys.exit(1)
    except ModuleNotFoundError as error:
        from finecomb.core.optional_packages import EXTRA_BY_MODULE, missing_package_error

        if (error.name or "").partition(".")[0] not in EXTRA_BY_MODULE:
            raise
        _print_error(str(missing_package_error("this command needs", str(error.name))))
        sys.exit(1)
    except (PermissionError, IsADirectoryError, NotADirectoryError) as error:
        _print_error(f"{error.filename}: {error.strerror}; name another file or folder, or change who may use it")
        sys.exit(1)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on, e.g. `| head`
        sys.exit(0)
