"""`python -m dlog.jit` compiles all kernels that have not been: before tests, or when an image is built."""

from dlog.jit.cache import BOUNDSCHECK, DISABLED
from dlog.jit.compiling import compile_all

if __name__ == "__main__" and not (DISABLED or BOUNDSCHECK):
    compile_all()
