"""Owns the compilation of kernels: the only package that imports numba and LLVM.  Knows nothing of what
kernels do.

Policy.  A kernel is compiled once per installation, when it is first called, together with those of its group
that are also missing: numba types and lowers each function once, LLVM optimises each kernel with all that it
calls, and its machine code is stored in a file, an image.  A later process links the images that it needs and
calls them directly; it imports no numba.  A kernel therefore has one signature, written as the annotations of
its parameters: `Words`, `Floats`, `Bytes`, `Bools`, `int` or `float`.

Wheels contain no machine code.  It is made for the processor that it runs on: code for the oldest of its
kind would lose wide vectors.  The kernels that a first program needs take about ten seconds on two cores.

| module | owns |
| --- | --- |
| `kernels` | what `@kernel` and `@helper` make of a function, and how a call finds machine code |
| `pointers` | arrays as bare pointers, and words among bytes |
| `prefetch` | prefetching of memory |
| `operations` | functions that compile to instructions |
| `choice` | one of two words, without a branch |
| `vectors` | several floats or words at a time |
| `image` | machine code in a file: finding it, linking it, making it callable |
| `elf` | linking without LLVM |
| `cache` | where such files are and how they are named |
| `groups` | which kernels are compiled together |
| `compiling` | compilation on demand: one process at a time, on all cores, with a progress line |
| `build` | a compiling process: kernels to images, by numba and LLVM |
| `wrapper` | the code between Python's calls and a kernel |
| `dispatch` | compilation by numba at the first call, for bounds checks and for kernels outside dlog |

Environment: NUMBA_DISABLE_JIT=1 runs the same source uncompiled; DLOG_BOUNDSCHECK=1 compiles with checks of
array bounds, through `dispatch`; DLOG_CACHE_DIR is where images are stored.
"""

from dlog.jit.cache import BOUNDSCHECK, DISABLED
from dlog.jit.choice import choose
from dlog.jit.kernels import KERNELS, Bools, Bytes, Floats, Words, compiled_kernels, helper, kernel
from dlog.jit.pointers import load_word, pointer, pointer_at, pointer_to, shifted, store_word
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
    "choose",
    "compiled_kernels",
    "helper",
    "kernel",
    "load_word",
    "move_four",
    "pointer",
    "pointer_at",
    "pointer_to",
    "prefetch",
    "scale_four",
    "shifted",
    "store_word",
]
