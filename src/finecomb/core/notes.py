"""Notes that name parameters, so that every client can write them in its own way."""

from __future__ import annotations

from finecomb.core.errors import FinecombError, ParameterStyle


class ParameterNote(str):
    """A note that names parameters with `param`; as a string it has them as keywords of Python.

    >>> from finecomb.core.errors import flag_style, param
    >>> note = ParameterNote(f"no licence is named ({param('licence')})")
    >>> note
    'no licence is named (licence)'
    >>> note.text(flag_style)
    'no licence is named (--licence)'
    """

    template: str
    """The note before its parameters are written."""

    def __new__(cls, template: str) -> ParameterNote:
        """Make a note from text whose parameters are named with `param`."""
        note = super().__new__(cls, str(FinecombError(template)))
        note.template = template
        return note

    def __getnewargs__(self) -> tuple[str]:
        return (self.template,)  # a copy is made from the template again, not from the finished text

    def text(self, style: ParameterStyle) -> str:
        """Return the note with its parameters written in a client's style."""
        return FinecombError(self.template).text(style)
