"""Notes that name parameters, which each client formats in its own style."""

from __future__ import annotations

from finecomb.core.errors import FinecombError, ParameterStyle


class ParameterNote(str):
    """A note that names parameters with `param`; as a string it shows them as Python keywords.

    >>> from finecomb.core.errors import format_as_flag, param
    >>> note = ParameterNote(f"no licence is named ({param('licence')})")
    >>> note
    'no licence is named (licence)'
    >>> note.format_text(format_as_flag)
    'no licence is named (--licence)'
    """

    template: str
    """The note with unformatted parameters."""

    def __new__(cls, template: str) -> ParameterNote:
        """Create a note from text whose parameters are named with `param`."""
        note = super().__new__(cls, str(FinecombError(template)))
        note.template = template
        return note

    def __getnewargs__(self) -> tuple[str]:
        return (
            self.template,
        )  # A copy is built from the template, because the formatted text has lost its parameters.

    def format_text(self, style: ParameterStyle) -> str:
        """Return the note with its parameters formatted in a client's style."""
        return FinecombError(self.template).format_message(style)
