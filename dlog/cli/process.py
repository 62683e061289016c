"""Owns the process of a command: how it handles interrupts, how it ends, and what it does not import."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from dlog.errors import DlogError


def run_to_the_end(app: Callable[..., object]) -> NoReturn:
    """Run a command and end the process: no mistake of a user ends in a traceback."""
    # A process makes many objects at its start that live until its end: scanning them again after every
    # 700 took 8% of a small run.
    gc.set_threshold(100_000)
    sys.meta_path.insert(0, _NoPandas())
    _listen_to_interrupts()
    try:
        app(prog_name="dlog")
    except DlogError as error:
        print(error.render(), file=sys.stderr)
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        _end_interrupted()
    except SystemExit as end:
        if end.code == 130:  # typer's form of the same
            _end_interrupted()
        raise
    except BrokenPipeError:  # the reader of our output exited: not our error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    sys.exit(0)


def _listen_to_interrupts() -> None:
    """Ctrl-C, or SIGINT from another process, stops a command whatever it inherited and wherever it is.

    A shell starts its background jobs with SIGINT ignored, and Python then leaves it so.  And Python drops an
    interrupt that arrives in a destructor or in a callback from compiled code: that one is sent again.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def dropped(unraisable: sys.UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            threading.Timer(0.01, signal.raise_signal, [signal.SIGINT]).start()  # after the destructor
        else:
            sys.__unraisablehook__(unraisable)

    sys.unraisablehook = dropped


def _end_interrupted() -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # there is nothing left to stop
    print("interrupted", file=sys.stderr)
    sys.exit(130)


class _NoPandas:
    """pyarrow imports pandas, if there is one, with its first array: half a second that no command needs
    but `run --spark`, where pyspark asks for it before it writes folders."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("no command of dlog needs pandas", name=name)


def allow_pandas() -> None:
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _NoPandas)]
