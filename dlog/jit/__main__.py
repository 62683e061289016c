"""`python -m dlog.jit` compiles all missing kernels: before tests, or when a container is built."""

from dlog.jit.cache import BOUNDSCHECK, DISABLED
from dlog.jit.compiling import compile_all

if __name__ == "__main__" and not (DISABLED or BOUNDSCHECK):
    compile_all()
