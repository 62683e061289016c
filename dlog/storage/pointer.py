"""Gives kernels the functions that make bare pointers of arrays.  See `dlog.jit.pointers`."""

from dlog.jit import pointer, pointer_at

__all__ = ["pointer", "pointer_at"]
