"""Owns the prompt: transactions typed line by line, on a terminal or through a pipe.

`session` executes input and knows nothing of terminals; `terminal` and `pipe` bring it lines.
"""

from __future__ import annotations

import sys

from dlog.repl.session import Session

__all__ = ["Session", "run"]


def run(session: Session) -> int:
    """Serves standard input to its end; returns the exit status.

    On a terminal that is 0.  From a pipe it is 1 if any input was wrong.
    """
    if sys.stdin.isatty() and sys.stdout.isatty():
        from dlog.repl.terminal import serve

        return serve(session)
    from dlog.repl.pipe import serve

    return serve(session)
