"""Owns kernels written by hand for single queries of the workload of ML: the limit for `benchmarks.levels`.

Each knows its query, the ranges of all keys and the size of its tables, and checks nothing.  Sums over ranges
are Fenwick trees over keys that are known before.  Knows nothing of dlog but how a kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlog.jit import Floats, Words, helper, kernel, pointer

# Columns of the rows that a kernel gets: their relation, their sign, then those of the row.
RELATION, SIGN = 0, 1
TIME, BROKER, VOLUME, PRICE = 2, 4, 5, 6
BIDS = 0


@dataclass(frozen=True)
class Hand:
    """`prepare` makes the state from all rows; `kernel` takes the state and these columns of rows, in order,
    and returns the sum of the result.
    """

    kernel: Callable[..., Any]
    prepare: Callable[[list[Words]], list[Any]]
    columns: tuple[int, ...]


def total(name: str, result: list[tuple[Any, ...]]) -> float:
    """The sum of the last column: what kernels return."""
    return float(sum(row[-1] or 0 for row in result))


@helper
def add(words, tree, size, at, value):
    """A Fenwick tree of `size` keys from 0, which begins at the word `tree`."""
    at += 1
    while at <= size:
        words[tree + at] += value
        at += at & -at


@helper
def below(words, tree, at):
    """The sum over keys less than this one."""
    found = 0
    while at > 0:
        found += words[tree + at]
        at &= at - 1
    return found


# BSV: Q[broker] += w * m + w * w / 2;  m[broker] += w


@kernel
def bsv(state: Words, results: Floats, sign: Words, broker: Words, volume: Words, price: Words) -> float:
    m = pointer(state)
    for i in range(len(sign)):
        b = broker[i]
        w = float(sign[i] * volume[i] * price[i])
        results[b] += w * float(m[b]) + 0.5 * w * w
        m[b] += sign[i] * volume[i] * price[i]
    return results.sum()


def bsv_state(rows: list[Words]) -> list[Any]:
    return [np.zeros(brokers(rows), np.int64), np.zeros(brokers(rows))]


def brokers(rows: list[Words]) -> int:
    return int(rows[BROKER].max()) + 1


# BSP: for each broker numbers and values of bids by time


@kernel
def bsp(
    state: Words, sizes: Words, sign: Words, time: Words, broker: Words, volume: Words, price: Words
) -> int:
    words, size = pointer(state), sizes[0]
    result = sizes[1]
    for i in range(len(sign)):
        own = broker[i] * 2 * (size + 1)
        count, worth = own, own + size + 1
        w, at = volume[i] * price[i], time[i]
        n_before, w_before = below(words, count, at), below(words, worth, at)
        n_after = below(words, count, size) - below(words, count, at + 1)
        w_after = below(words, worth, size) - below(words, worth, at + 1)
        result += sign[i] * (w * n_before - w_before + w_after - w * n_after)
        add(words, count, size, at, sign[i])
        add(words, worth, size, at, sign[i] * w)
    sizes[1] = result
    return result


def bsp_state(rows: list[Words]) -> list[Words]:
    size = int(rows[TIME].max()) + 1
    return [np.zeros(brokers(rows) * 2 * (size + 1), np.int64), np.array([size, 0])]


# AXF: for each broker and side numbers and volumes of orders by price


@kernel
def axf(
    state: Words, sizes: Words, which: Words, sign: Words, broker: Words, volume: Words, price: Words
) -> int:
    words, size = pointer(state), sizes[0]
    result = sizes[1]
    for i in range(len(sign)):
        side = which[i]
        own = (2 * broker[i] + side) * 2 * (size + 1)
        other = (2 * broker[i] + 1 - side) * 2 * (size + 1)
        low, high = max(price[i] - 1000, 0), min(price[i] + 1001, size)
        n = below(words, other, low) + below(words, other, size) - below(words, other, high)
        volumes = other + size + 1
        v = below(words, volumes, low) + below(words, volumes, size) - below(words, volumes, high)
        moved = v - volume[i] * n
        result += sign[i] * (moved if side == 0 else -moved)
        add(words, own, size, price[i], sign[i])
        add(words, own + size + 1, size, price[i], sign[i] * volume[i])
    sizes[1] = result
    return result


def axf_state(rows: list[Words]) -> list[Words]:
    size = int(rows[PRICE].max()) + 1
    return [np.zeros(brokers(rows) * 4 * (size + 1), np.int64), np.array([size, 0])]


# PSP: numbers and prices of both sides by volume


@kernel
def psp(state: Words, sizes: Words, which: Words, sign: Words, volume: Words, price: Words) -> int:
    words, size = pointer(state), sizes[0]
    result = 0
    for i in range(len(sign)):
        own = which[i] * 2 * (size + 1)
        add(words, own, size, volume[i], sign[i])
        add(words, own + size + 1, size, volume[i], sign[i] * price[i])
        sizes[1 + which[i]] += sign[i] * volume[i]
        bids, asks = 0, 2 * (size + 1)
        low = min(sizes[1] // 10_000 + 1, size)
        high = min(sizes[2] // 10_000 + 1, size)
        n_bids = below(words, bids, size) - below(words, bids, low)
        p_bids = below(words, bids + size + 1, size) - below(words, bids + size + 1, low)
        n_asks = below(words, asks, size) - below(words, asks, high)
        p_asks = below(words, asks + size + 1, size) - below(words, asks + size + 1, high)
        result = p_asks * n_bids - p_bids * n_asks
    return result


def psp_state(rows: list[Words]) -> list[Words]:
    size = int(rows[VOLUME].max()) + 1
    return [np.zeros(4 * (size + 1), np.int64), np.array([size, 0, 0])]


# VWAP: volumes and amounts by the rank of the price; one pass from the highest price after each row


@kernel
def vwap(state: Words, sizes: Words, ranks: Words, sign: Words, volume: Words, price: Words) -> int:
    words, size = pointer(state), sizes[0]
    result = 0
    for i in range(len(sign)):
        rank = ranks[price[i]]
        words[rank] += sign[i] * volume[i]
        words[size + rank] += sign[i] * volume[i] * price[i]
        sizes[1] += sign[i] * volume[i]
        higher, result = 0, 0
        for at in range(size - 1, -1, -1):
            if sizes[1] > 4 * higher:
                result += words[size + at]
            higher += words[at]
    return result


def vwap_state(rows: list[Words]) -> list[Words]:
    prices = np.unique(rows[PRICE])
    ranks = np.zeros(int(prices[-1]) + 1, np.int64)
    ranks[prices] = np.arange(len(prices))
    return [np.zeros(2 * len(prices), np.int64), np.array([len(prices), 0]), ranks]


# Query 17a: for each part the price of items by quantity; those between the old and the new bound move.
# LINEITEM is the last relation: its columns are orderkey, partkey, .., quantity (4), extendedprice (5).
PART, MOST = 0, 51


@kernel
def q17a(
    state: Words,
    sizes: Words,
    which: Words,
    sign: Words,
    first: Words,
    part: Words,
    quantity: Words,
    price: Words,
) -> int:
    words, result = pointer(state), sizes[1]
    for i in range(len(sign)):
        key = first[i] if which[i] == PART else part[i]
        own = key * (MOST + 2)
        if which[i] == PART:
            moved = 0
            for q in range(1, MOST):
                if 100 * q < words[own + MOST]:
                    moved += words[own + q]
            result += sign[i] * moved
            words[own + MOST + 1] += sign[i]
            continue
        before, after = 0, 0
        for q in range(1, MOST):
            if 100 * q < words[own + MOST]:
                before += words[own + q]
        words[own + quantity[i]] += sign[i] * price[i]
        words[own + MOST] += sign[i] * quantity[i]
        for q in range(1, MOST):
            if 100 * q < words[own + MOST]:
                after += words[own + q]
        result += words[own + MOST + 1] * (after - before)
    sizes[1] = result
    return result


def q17a_state(rows: list[Words]) -> list[Words]:
    parts = 1 + max(int(rows[2][rows[RELATION] == PART].max()), int(rows[3][rows[RELATION] != PART].max()))
    return [np.zeros(parts * (MOST + 2), np.int64), np.array([parts, 0])]


# Query 18a: pieces and items of each order, how often it and its customer are there.  The relations are
# CUSTOMER (custkey), ORDERS (orderkey, custkey) and LINEITEM (orderkey, .., quantity).


@kernel
def q18a(
    state: Words, sizes: Words, which: Words, sign: Words, first: Words, second: Words, quantity: Words
) -> int:
    words, orders, result = pointer(state), sizes[0], sizes[1]
    customers = 3 * orders
    for i in range(len(sign)):
        key = first[i]
        if which[i] == 0:
            words[customers + 2 * key] += sign[i]
            result += sign[i] * words[customers + 2 * key + 1]
        elif which[i] == 1:
            order, customer = 3 * key, customers + 2 * second[i]
            words[order + 1] += sign[i]
            words[order + 2] = second[i]
            if words[order + 0] > 100:
                words[customer + 1] += sign[i] * words[order + 0]
                result += sign[i] * words[customer + 0] * words[order + 0]
        else:
            order = 3 * key
            before = words[order + 0] if words[order + 0] > 100 else 0
            words[order + 0] += sign[i] * quantity[i]
            after = words[order + 0] if words[order + 0] > 100 else 0
            customer = customers + 2 * words[order + 2]
            words[customer + 1] += words[order + 1] * (after - before)
            result += words[customer + 0] * words[order + 1] * (after - before)
    sizes[1] = result
    return result


def q18a_state(rows: list[Words]) -> list[Words]:
    orders = 1 + int(rows[2][rows[RELATION] != 0].max())
    customers = 1 + max(int(rows[2][rows[RELATION] == 0].max()), int(rows[3][rows[RELATION] == 1].max()))
    return [np.zeros(3 * orders + 2 * customers, np.int64), np.array([orders, 0])]


KERNELS = {
    "bsv": Hand(bsv, bsv_state, (SIGN, BROKER, VOLUME, PRICE)),
    "bsp": Hand(bsp, bsp_state, (SIGN, TIME, BROKER, VOLUME, PRICE)),
    "axf": Hand(axf, axf_state, (RELATION, SIGN, BROKER, VOLUME, PRICE)),
    "psp": Hand(psp, psp_state, (RELATION, SIGN, VOLUME, PRICE)),
    "vwap": Hand(vwap, vwap_state, (SIGN, VOLUME, PRICE)),
    "q17a": Hand(q17a, q17a_state, (RELATION, SIGN, 2, 3, 6, 7)),
    "q18a": Hand(q18a, q18a_state, (RELATION, SIGN, 2, 3, 6)),
}
