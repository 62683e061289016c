"""Gives kernels the functions that make bare pointers of arrays, and read words among bytes.  See
`dlog.jit.pointers`."""

from dlog.jit import load_word, pointer, pointer_at, store_word

__all__ = ["load_word", "pointer", "pointer_at", "store_word"]
