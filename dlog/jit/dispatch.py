"""Owns numba's side: kernels as numba's dispatchers, which compile at the first call and cache the result.

numba's own check does not notice an edit in a module that a kernel calls, so each module's code is in a
directory named by a digest of that module and of all modules of dlog that it imports, directly or not.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import numba.core.event
import numba.core.registry
import numba.core.sigutils

from dlog.jit import cache

# Unrolling loops of unknown length doubled the time to compile the storage kernels (25 s against 13 s on
# a busy machine) and gained nothing in any of them, nor in joins.
for option in ("-unroll-runtime=false", "-unroll-allow-partial=false"):
    llvmlite.binding.set_option("", option)

OPTIONS = {"nogil": True, "error_model": "numpy", "boundscheck": cache.BOUNDSCHECK, "no_cfunc_wrapper": True}


def make_dispatcher(function: Any, source: Path, is_entry: bool) -> Any:
    """numba's form of a function.  Its machine code is cached on disk.

    Without the wrapper that numba makes for callers from Python, with the whole function inlined, helpers
    took a quarter less time to compile.
    """
    njit: Any = numba.njit
    if not _keeps:
        dispatcher = njit(no_cpython_wrapper=True, **OPTIONS)(function)
    else:
        # numba fixes a function's cache directory when it is decorated.  Set only during that time, so that a
        # program that uses numba itself keeps its own setting.
        config: Any = numba.config
        before = config.CACHE_DIR
        config.CACHE_DIR = str(_directory(source))
        try:
            dispatcher = njit(cache=True, no_cpython_wrapper=not is_entry, **OPTIONS)(function)
        finally:
            config.CACHE_DIR = before
    _forget_literals(dispatcher)
    return dispatcher


_keeps = True


def keep_nothing() -> None:
    """From now on dispatchers cache no machine code and cannot be called: they only produce images."""
    global _keeps
    _keeps = False


@functools.cache
def _directory(source: Path) -> Path:
    directory = cache.make_directory(source)
    if not any(directory.rglob("*.nbi")):
        _announcer().empty.add(str(source))
    return directory


def _forget_literals(dispatcher: Any) -> None:
    """Treat a constant argument as any int64.

    numba would compile a kernel once more for each combination of constants that other kernels call it
    with: the storage kernels then took 43 s to compile on a busy machine, 28 s without.
    """
    compile_ = dispatcher.compile

    def compile_plain(signature: Any) -> Any:
        args, _ = numba.core.sigutils.normalize_signature(signature)
        return compile_(tuple(numba.types.unliteral(a) for a in args))

    dispatcher.compile = compile_plain


def dispatcher_type(dispatcher: Any) -> Any:
    return numba.types.Dispatcher(dispatcher)


@functools.cache
def intrinsic_type(name: str) -> Any:
    """The type of an intrinsic function, by name.  See `dlog.jit.pointers`."""
    make: Any = numba.extending.intrinsic
    intrinsic = make(_INTRINSICS[name])
    _made.append(intrinsic)
    context = numba.core.registry.cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(intrinsic)


def _pointer(typing_context: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return numba.types.CPointer(array.dtype)(array), generate


def _pointer_at(typing_context: Any, array: Any, offset: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.gep(data, [args[1]])

    return numba.types.CPointer(array.dtype)(array, numba.types.int64), generate


def _load_word(typing_context: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_word_place(context, builder, args), align=1)

    return numba.types.int64(data, numba.types.int64), generate


def _store_word(typing_context: Any, data: Any, at: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _word_place(context, builder, args), align=1)
        return context.get_dummy_value()

    return numba.types.void(data, numba.types.int64, numba.types.int64), generate


def _word_place(context: Any, builder: Any, args: Any) -> Any:
    word = context.get_value_type(numba.types.CPointer(numba.types.int64))
    return builder.bitcast(builder.gep(args[0], [args[1]]), word)


_INTRINSICS = {
    "pointer": _pointer,
    "pointer_at": _pointer_at,
    "load_word": _load_word,
    "store_word": _store_word,
}
_made: list[Any] = []  # numba holds them weakly


class _Announcer(numba.core.event.Listener):
    """Prints once, on standard error, that kernels are being compiled: only when no code is cached yet.

    numba reports "numba:compile" only when it found no machine code on disk.
    """

    def __init__(self) -> None:
        self.empty: set[str] = set()  # modules without any machine code when this process began
        self.silent = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if self.silent or function.__code__.co_filename not in self.empty:
            return
        self.silent = True
        print("compiling kernels (once per installation) ...", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


@functools.cache
def _announcer() -> _Announcer:
    announcer = _Announcer()
    numba.core.event.register("numba:compile", announcer)
    return announcer
