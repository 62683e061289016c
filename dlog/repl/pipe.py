"""Owns the prompt without a terminal: lines come in, answers go out, nothing is decorated."""

from __future__ import annotations

import sys

from dlog.language.typed import Typed
from dlog.repl.session import Session


def serve(session: Session) -> int:
    """Runs every line of standard input.  1 if any of it was wrong."""
    typed = Typed("<stdin>")
    for line in sys.stdin:
        for piece in typed.feed(line.rstrip("\r\n")):
            session.run(piece)
        if session.quits:
            break
    else:
        for piece in typed.finish():
            session.run(piece)
    session.close()
    return 1 if session.failures else 0
