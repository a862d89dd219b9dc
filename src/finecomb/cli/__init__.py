"""Command line: parse, call a public function, print. Results go to standard output, notes to standard error."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from typing import Any

from finecomb.cli.commands import app
from finecomb.core.errors import FinecombError, format_as_flag

__all__ = ["app", "main"]

_MAX_ERROR_LINES = 20


def _print_error(message: str) -> None:
    from rich.text import Text

    from finecomb.cli.shared import err

    lines = message.splitlines()
    more = len(lines) - _MAX_ERROR_LINES
    err.print(
        Text("finecomb: ", "bold red"),
        Text("\n".join([*lines[:_MAX_ERROR_LINES], *([f"... and {more:,} more like these"] if more > 0 else [])])),
        sep="",
        soft_wrap=True,
    )


_show_warning = warnings.showwarning


def _print_plugin_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print a warning about a plugin on one line, and all other warnings in Python's default format."""
    from finecomb.plugins import PluginWarning

    if not issubclass(category, PluginWarning):
        return _show_warning(message, category, *place, **more)
    from finecomb.cli.shared import print_note

    return print_note(f"{message}; `finecomb plugins` lists all problems")


def main() -> None:
    """Run the command line. An error that the user can fix is printed on one line; other errors show a traceback."""
    gc.disable()  # no garbage collection until the command is loaded
    warnings.showwarning = _print_plugin_warning
    try:
        app()
    except FinecombError as error:
        _print_error(error.format_message(format_as_flag))
        sys.exit(1)
    except ModuleNotFoundError as error:
        from finecomb.core.optional_packages import EXTRA_BY_MODULE, missing_package_error

        if (error.name or "").partition(".")[0] not in EXTRA_BY_MODULE:
            raise
        _print_error(str(missing_package_error("this command needs", str(error.name))))
        sys.exit(1)
    except (PermissionError, IsADirectoryError, NotADirectoryError) as error:
        _print_error(f"{error.filename}: {error.strerror}; choose another path or change its permissions")
        sys.exit(1)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # another program closed the pipe, e.g. `| head`
        sys.exit(0)
