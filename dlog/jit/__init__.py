"""Owns the compilation of kernels: the only package that imports numba and LLVM.  Knows nothing of what
kernels do.

Policy.  All kernels of dlog are compiled once per installation, when the first of them is needed: numba types
and lowers each function once, LLVM optimises each module as a whole, and the machine code of a module is kept
as one file, an image.  A later process links the images that it needs (all of them take 5 ms) and calls them
directly; it imports no numba.  A kernel therefore has one signature, written as the annotations of its
parameters: `Words`, `Floats`, `Bytes`, `Bools`, `int` or `float`.

| module | owns |
| --- | --- |
| `kernels` | what `@kernel` and `@helper` make of a function, and how a call finds machine code |
| `pointers` | arrays as bare pointers, and words among bytes |
| `prefetch` | memory that is asked for before it is needed |
| `operations` | functions that stand for instructions |
| `vectors` | several floats or words at a time |
| `image` | machine code kept as a file: finding it, linking it, making it callable |
| `cache` | where such files lie, how they are named, which ones go |
| `compiling` | the first compilation: one process at a time, in processes of its own, shown on the screen |
| `build` | such a process: kernels to images, by numba and LLVM |
| `wrapper` | the code between Python's calls and a kernel |
| `dispatch` | the other way: numba at the first call, for checks of bounds and for kernels outside of dlog |

Environment: NUMBA_DISABLE_JIT=1 runs the same text uncompiled; DLOG_BOUNDSCHECK=1 compiles with checks of
array bounds, through `dispatch`; DLOG_CACHE_DIR is where images are kept.
"""

from dlog.jit.cache import BOUNDSCHECK, DISABLED
from dlog.jit.kernels import KERNELS, Bools, Bytes, Floats, Words, compiled_kernels, helper, kernel
from dlog.jit.pointers import load_word, pointer, pointer_at, shifted, store_word
from dlog.jit.prefetch import prefetch
from dlog.jit.vectors import HEIGHT, LANES, add_four, add_gathered, add_outer, move_four, scale_four

__all__ = [
    "BOUNDSCHECK",
    "DISABLED",
    "HEIGHT",
    "KERNELS",
    "LANES",
    "Bools",
    "Bytes",
    "Floats",
    "Words",
    "add_four",
    "add_gathered",
    "add_outer",
    "compiled_kernels",
    "helper",
    "kernel",
    "load_word",
    "move_four",
    "pointer",
    "pointer_at",
    "prefetch",
    "scale_four",
    "shifted",
    "store_word",
]
