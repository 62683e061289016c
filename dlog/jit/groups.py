"""Owns which kernels are compiled together, so that a program waits for the compiler once or twice, not at
each new kernel.  Knows them by name only.

A kernel named here is compiled with its group, any other with the rest of its folder: a strategy or a
structure has its kernels in one folder, and a program that calls one of them soon calls others.
"""

from __future__ import annotations

# Almost every program calls these: they load rows, join them, group them and print them.
FIRST = {
    "dlog.heads.grouping_kernels": ("count_rows", "gather_pairs", "greatest", "settle_ints", "sum_ints"),
    "dlog.lftj.machine": ("attach", "run"),
    "dlog.storage.arena.kernels": ("new_extent", "node_words", "release_extent", "release_root"),
    "dlog.storage.dictionary.dictionary_kernels": ("encode_strings",),
    "dlog.storage.dictionary.text_sort_kernels": ("sort_texts",),
    "dlog.storage.index.kernels": ("build_tree", "read_rows"),
    "dlog.storage.index.sort_kernels": (
        "column_range",
        "drop_repeats",
        "insertion_sort",
        "load_rows",
        "order_of",
        "pack_column",
        "sort_words",
        "unpack_column",
    ),
    "dlog.storage.relation.rows_kernels": ("change_rows",),
}
# Recursive rules also call these.
RECURSION = {
    "dlog.lftj.drive": ("drive",),
    "dlog.storage.queue.row_queue_kernels": ("fill_seen", "read_bits"),
}
NAMED = (FIRST, RECURSION)


def group_of(module: str, kernel: str, all_kernels: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The kernels that are compiled when this one is needed and missing, itself among them, by module.

    >>> everything = {"a.b": ("f", "g"), "a.c": ("h",), "d.e": ("i",)}
    >>> group_of("a.b", "g", everything)
    {'a.b': ('f', 'g'), 'a.c': ('h',)}
    """
    for group in NAMED:
        if kernel in group.get(module, ()):
            return group
    folder = module.rpartition(".")[0]
    named = {(m, k) for group in NAMED for m, kernels in group.items() for k in kernels}
    return {
        m: tuple(k for k in kernels if (m, k) not in named)
        for m, kernels in all_kernels.items()
        if m.rpartition(".")[0] == folder
    }
