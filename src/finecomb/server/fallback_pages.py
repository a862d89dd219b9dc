"""Pages that work without the built front end: researcher sign-in and errors."""

from __future__ import annotations

from html import escape

from fastapi.responses import HTMLResponse

STYLESHEET = """
:root { color-scheme: light dark }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; font: 14px/20px system-ui, sans-serif;
  background: light-dark(#eff0f1, #131518); color: light-dark(#1a1d21, #e4e6e9) }
main { box-sizing: border-box; width: min(520px, 100vw - 32px); padding: 32px; border-radius: 12px;
  background: light-dark(#fff, #1b1d21); border: 1px solid light-dark(#dcdfe2, #2e3238) }
.brand { display: flex; align-items: center; gap: 10px; margin: 0 0 28px; color: inherit; font-weight: 650;
  font-size: 15px; letter-spacing: -.01em }
.brand svg { width: 22px; height: 18px; fill: currentColor }
h1 { margin: 0 0 16px; font-size: 24px; line-height: 32px; letter-spacing: -.01em; overflow-wrap: anywhere }
p { margin: 0 0 16px; color: light-dark(#474d55, #b3b9c1) }
main > :last-child { margin-bottom: 0 }
form { display: flex; justify-content: flex-end }
@media (max-width: 719.9px) { main { padding: 24px } }
a { color: inherit; text-underline-offset: 3px }
button { min-height: 44px; padding: 0 24px; border: 0; border-radius: 8px; font: inherit; font-weight: 600;
  background: light-dark(#1a1d21, #e4e6e9); color: light-dark(#fff, #131518) }
:focus-visible { outline: 2px solid light-dark(#1a1d21, #e4e6e9); outline-offset: 2px }
"""
"""Stylesheet in a separate file, because the content security policy forbids inline styles."""

_LOGO_SVG = (
    '<svg viewBox="0 0 22 18" aria-hidden="true">'
    '<path d="M0 0h22v4H0zM1 3h2v15H1zM5.5 3h2v12h-2zM10 3h2v15h-2zM14.5 3h2v9h-2zM19 3h2v15h-2z"/></svg>'
)
_TITLE_BY_STATUS = {
    401: "You are signed out",
    403: "Access denied",
    404: "Page not found",
    405: "Page not found",
    429: "Too many attempts",
}


def plain_page(title: str, body: str, status: int = 200) -> HTMLResponse:
    """Build a page with a heading. `body` is HTML."""
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} · Finecomb</title>'
    wide = '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/plain.css"></head>'
    brand = f'<p class="brand">{_LOGO_SVG}Finecomb</p>'
    return HTMLResponse(f"{head}{wide}<body><main>{brand}<h1>{escape(title)}</h1>{body}</main></body></html>", status)


def problem_page(status: int, say: str) -> HTMLResponse:
    """Build an error page, with links to continue."""
    title = _TITLE_BY_STATUS.get(status, "Something went wrong")
    ways = (
        "<p>To take part in a study, open the link you were given. To manage a study, "
        '<a href="/admin">open the researcher pages</a>.</p>'
    )
    message = "" if say.rstrip(".") in (title, "Not found") else f"<p>{escape(say)}</p>"
    return plain_page(title, message + ways, status)
