"""The worked example of section 4.1: A = {0, 2, 4, 5, 6}, B = {1, 2, 6, 7}."""

from dlog.lftj.iterator import TrieIterator
from dlog.lftj.leapfrog import leapfrog_join
from tests.lftj.memory import Memory

A = {(0,), (2,), (4,), (5,), (6,)}
B = {(1,), (2,), (6,), (7,)}


def join(*relations):
    memory = Memory()
    roots = [memory.flat(rows, 1) for rows in relations]
    words = memory.words()
    return leapfrog_join([TrieIterator(words, root) for root in roots])


def test_paper_operations_of_the_unary_join():
    keys, trace = join(A, B)
    assert keys == [2, 6]
    assert [str(operation) for operation in trace] == [
        "A.open(): -> 0",
        "B.open(): -> 1",
        "A.seek_lub(1): 0 -> 2",
        "B.seek_lub(2): 1 -> 2",
        "A.next(): 2 -> 4",
        "B.seek_lub(4): 2 -> 6",
        "A.seek_lub(6): 4 -> 6",
        "A.next(): 6 -> end",
    ]


def test_paper_intervals_follow_from_the_operations():
    """A_sens and B_sens as printed: open reads up to its key, seek_lub [sought, key], next [start, key]."""
    _, trace = join(A, B)
    intervals = {0: [], 1: []}
    for operation in trace:
        low = operation.start if operation.sought is None else operation.sought
        intervals[operation.atom].append((low, operation.end))
    assert intervals[0] == [(None, 0), (1, 2), (2, 4), (6, 6), (6, None)]
    assert intervals[1] == [(None, 1), (2, 2), (4, 6)]


def test_paper_insertions_that_change_the_trace():
    """B(5) changes the trace, for the seek from 2 to 6 would land on it; B(3) does not."""
    _, trace = join(A, B)
    assert join(A, B | {(3,)})[1] == trace
    assert join(A, B | {(5,)})[1] != trace
