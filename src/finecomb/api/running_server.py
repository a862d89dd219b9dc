"""A server that runs in a background thread until it is stopped."""

from __future__ import annotations

import atexit
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from html import escape
from types import TracebackType
from typing import Any

_MAX_REPR_LINKS = 6


class StudyServer:
    """A running server of a study or a protocol preview; it stops at the end of a `with` statement.

    Attributes
    ----------
    title : str
        Description of the study, e.g. `Saltby: 16 texts, 2 annotators per text, scarecrow@2`.
    url : str
        Address of the server.
    links : dict
        Links by recipient: `researchers` (valid once), `annotators` or `preview`.
    procedure : str
        Steps and pay of annotators.
    notes : tuple of str
        Notes for the person who started the server.
    is_exposed : bool
        Whether other machines can reach the server without encryption.
    """

    def __init__(
        self,
        title: str,
        url: str,
        links: Mapping[str, str],
        *,
        run: Callable[[], None],
        signal_handlers: Mapping[str, Callable[[], None]],
        resources: ExitStack,
        procedure: str = "",
        notes: Sequence[str] = (),
        is_exposed: bool = False,
    ) -> None:
        """Start `run` in a thread; the handler of `SIGTERM` makes it return, and `resources` are closed afterwards."""
        self.title, self.url, self.links, self.procedure = title, url, dict(links), procedure
        self.notes, self.is_exposed = tuple(notes), is_exposed
        self._run, self._signal_handlers, self._resources = run, signal_handlers, resources
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run_in_thread, name="finecomb-server", daemon=True)
        self._thread.start()
        atexit.register(self.stop)  # worker processes would keep the program alive

    def _run_in_thread(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self._error = error

    @property
    def is_running(self) -> bool:
        """True if the server is running."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Block until the server stops: by Ctrl-C, a signal, or `stop` in another thread."""
        is_main = (
            threading.current_thread() is threading.main_thread()
        )  # Python delivers signals to the main thread only
        with handle_signals(self._signal_handlers if is_main else {}):
            self._thread.join()
        self.stop()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Stop the server and close its database; all work is saved."""
        self._signal_handlers["SIGTERM"]()
        self._thread.join()
        self._resources.close()
        atexit.unregister(self.stop)

    def __enter__(self) -> StudyServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "serving" if self.is_running else "stopped"
        lines = [f"  {who}: {link}" for who, link in list(self.links.items())[:_MAX_REPR_LINKS]]
        return "\n".join([f"{self.title[:200]} ({state} at {self.url})", *lines])

    def _repr_html_(self) -> str:
        items = "".join(
            f'<li>{escape(who)}: <a href="{escape(link)}">{escape(link)}</a></li>' for who, link in self.links.items()
        )
        return f"<p>{escape(self.title)}</p><ul>{items}</ul>"


@contextmanager
def handle_signals(handlers: Mapping[str, Callable[[], None]]) -> Iterator[None]:
    """Handle signals by name, such as `SIGHUP`; signals that the system does not have are skipped."""
    before: dict[Any, Any] = {}
    for name, handler in handlers.items():
        if (number := getattr(signal, name, None)) is not None:
            before[number] = signal.signal(number, lambda *_, handler=handler: handler())
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
