"""Owns a process that makes images: `python -m dlog.jit.build FOLDER`.

Each line of its standard input, `MODULE KERNEL...`, asks for the images of some kernels of a module.  It
answers `kernel` for each one that is lowered, `image` for each one that is written, and `done`.

numba types and lowers each function once and optimises nothing.  All functions that a kernel reaches are then
put into one LLVM module, in which only the kernel's wrapper is visible from outside, and optimised together.
numba itself would optimise each function again in each function that calls it.

This uses numba's internals, so it runs in a separate process.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from numba.core import codegen, registry, types

from dlog.jit import cache, dispatch, image, wrapper
from dlog.jit.kernels import KERNELS, Kernel

KIND_TYPES: dict[str, Any] = {
    "Words": types.int64[::1],
    "Floats": types.float64[::1],
    "Bytes": types.uint8[::1],
    "Bools": types.boolean[::1],
    "int": types.int64,
    "float": types.float64,
}


class _RawLibrary(codegen.JITCodeLibrary):
    """numba's unit of code, kept as numba lowered it."""

    def add_llvm_module(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        self._final_module.link_in(module)

    def finalize(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0


class _RawCodegen(codegen.JITCPUCodegen):
    _library_class = _RawLibrary


def prepare() -> None:
    """Make numba lower kernels without optimising or running them."""
    # The garbage collector took a quarter of the time: many of numba's objects live as long as the process.
    gc.disable()
    dispatch.keep_nothing()
    _remember_call_types()
    context = registry.cpu_target.target_context
    context._internal_codegen = _RawCodegen("dlog")
    # What numba would call; it needs a different object for each function.
    context.get_executable = lambda library, description, environment: [].append


def _remember_call_types() -> None:
    """Resolve each call of a built-in function by its argument types once.

    numba searches all overloads again at every `a + b` and `a[i]`: that was a quarter of the time to lower.
    """
    resolve = types.BaseFunction.get_call_type
    known: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return resolve(self, context, args, kws)
        key = (self, tuple(args))
        if key not in known:
            known[key] = resolve(self, context, args, kws)
        return known[key]

    setattr(types.BaseFunction, "get_call_type", get_call_type)  # noqa: B010


def build(folder: Path, module: str, wanted: list[str]) -> None:
    """Compile some kernels of a module and write their images.  About 40 ms for each function they reach."""
    source = Path(str(importlib.import_module(module).__file__))
    directory = cache.make_directory(source, [folder])
    for kernel in [k for k in KERNELS if k.__module__ == module and k.__name__ in wanted]:
        result = _lower(kernel)
        print("kernel", flush=True)
        _write(directory / image.file_name(kernel.__name__), kernel, result)
        print("image", flush=True)


def _lower(kernel: Kernel) -> Any:
    signature = tuple(KIND_TYPES[kind] for kind in kernel.kinds)
    kernel.dispatcher.compile(signature)
    return kernel.dispatcher.overloads[signature]


def _write(file: Path, kernel: Kernel, result: Any) -> None:
    name = f"{kernel.__module__}.{kernel.__name__}"
    whole = _linked([result.library])
    text = wrapper.COMMON + wrapper.RUNTIME + _wrapper(name, kernel, result, whole)
    whole.link_in(llvm.parse_assembly(text))
    for function in whole.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name == name else "internal"
    code = _optimised(whole)
    undefined = [f.name for f in (*whole.functions, *whole.global_variables) if f.is_declaration]
    undefined = [symbol for symbol in undefined if not symbol.startswith("llvm.")]
    image.write(file, name, undefined, code)


def _linked(libraries: list[Any]) -> Any:
    """One LLVM module with everything these libraries reach."""
    whole = llvm.parse_assembly(str(_codegen()._create_empty_module("dlog")))
    for library in _reached(libraries, set()):
        module = library._final_module.clone()
        for function in module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "weak_odr"  # a function may come from several libraries
        whole.link_in(module)
    return whole


def _reached(libraries: list[Any], seen: set[Any]) -> Iterator[Any]:
    for library in libraries:
        if library not in seen:
            seen.add(library)
            yield from _reached(library._linking_libraries, seen)
            yield library


def _wrapper(name: str, kernel: Kernel, result: Any, whole: Any) -> str:
    native = result.fndesc.llvm_func_name
    found = ", ".join(str(argument.type) for argument in whole.get_function(native).arguments)
    expected = wrapper.native_type(kernel.kinds)
    if found != expected:
        raise TypeError(f"{kernel}: numba made a function of ({found}), not ({expected})")
    return wrapper.wrapper(name, native, kernel.kinds, str(types.unliteral(result.signature.return_type)))


def _optimised(whole: Any) -> bytes:
    """The object file.  numba's own passes: a cheap round merges reference counts."""
    maker = _codegen()
    cheap = maker._module_pass_manager(loop_vectorize=False, slp_vectorize=False, opt=0, cost="cheap")
    for passes, builder in (cheap, maker._module_pass_manager()):
        passes.run(whole, builder)
    whole.verify()
    return bytes(maker._tm.emit_object(whole))


def _codegen() -> Any:
    return registry.cpu_target.target_context.codegen()


if __name__ == "__main__":
    prepare()
    for line in sys.stdin:
        module, *wanted = line.split()
        build(Path(sys.argv[1]), module, wanted)
        print("done", flush=True)
