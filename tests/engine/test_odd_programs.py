"""Unusual but legal programs give what the naive evaluator gives."""

from __future__ import annotations

import pytest

from .test_random_programs import agree

# Each line, or group of lines, is one program.
PROGRAMS = [
    "a(1). a(2). p(x) <- a(x), x = x.",
    "a(1). a(2). p(x) <- a(x), x <= x. q(x) <- a(x), x < x. r(x) <- a(x), x != x. s(x) <- a(x), x >= x.",
    'a("b"). p(x) <- a(x), x = x. q(x) <- a(x), x < x. r(x) <- a(x), x != x. s(x) <- a(x), x >= x.',
    "a(1.5). p(x) <- a(x), x = x. q(x) <- a(x), !(x = x).",
    "a(1). a(2). p(x) <- a(x), (x = x ; x > 5). q(x) <- a(x), !(x = x). n(c) <- c = count : { a(x), x = x }.",
    'a(3). p(c) <- a(x), c = concat t : { x = x, t = "q" }.',
    "a(1). a(2). p(x) <- a(x), (true ; x > 1).",
    "a(1). a(2). p(x) <- a(x), !(true, false).",
    "a(1). a(2). p(x, y) <- a(x), y = (x), x = (y).",
    "a(1). a(2). p(x) <- a(x), x + 0 = x. q(x) <- a(x), x * 2 = x + 1.",
    "a(1). a(2). b(1,1). b(1,2). p(x) <- a(x), b(x, x). q(x) <- b(x, x), !b(x, 2). r() <- b(1, 1), !b(2, 2).",
    "e(1,1). e(1,2). e(2,2). p(x,y) <- e(x,y), e(y,x), e(x,x). "
    "q(n) <- n = count : { e(x,x), e(x,_), e(_,x) }.",
    "e(1,2). e(2,3). e(3,1). t(x,y,z) <- e(x,y), e(y,z), e(z,x). "
    "m(x, n) <- t(x,_,_), n = min y : { t(x, y, z), z > 0 }.",
    "e(1,2). e(2,3). p(x) <- e(x,_), !(e(x,y), !(e(y,z), z != x)).",
    "e(1,2). e(2,3). s(x, v) <- e(x, _), v = sum y * z : { e(x, y), e(y, z) }.",
    "e(1,2). e(2,3). s(v) <- v = sum y * z + 1 : { e(x, y), e(y, z), w = x + y, w > 2 }.",
    "e(1,2). e(2,3). f[x] = y <- e(x, y). g(z) <- z = f[f[1]]. h(x) <- e(x, _), f[x] + 1 > f[f[x] - 1].",
    's("a,b"). s("c"). p(x, y) <- s(x), y = split(x, ","). q(n) <- n = count : { s(x), y = split(x, ",") }.',
    's("a"). s("b"). p(x, y) <- s(x), s(y), x < y. m(x) <- x = max y : { s(y) }. '
    "c(x) <- x = concat y : { s(y) }.",
    'd("2024-01-01"). d("2023-12-31"). p(x) <- d(t), x = to_date(t). m(x) <- x = max y : { p(y) }. '
    "b(n) <- p(x), p(y), n = days_between(x, y).",
    "a(1u). a(3u). p(x) <- a(y), x = y - 2u. m(x) <- x = max y : { p(y) }. q(x) <- p(x), x > 5u.",
    "a(1). a(2). a(3). p[x] = n <- agg<<n = count()>> a(x), a(y), y < x. "
    "q[] = m <- agg<<m = max(n)>> p[x] = n.",
    "a(1). a(2). p[x] = s, q[x] = m, r[] = t <- agg<<s = sum(y), m = max(y), t = sum(y)>> a(x), a(y).",
    "n(0). n(y) <- n(x), x < 20, y = x + 3. ev(x) <- n(x), x % 2 = 0. od(x) <- n(x), !ev(x). "
    "k(c) <- c = count : { od(_) }.",
    "p(x) <- x = range(0, 4). q(x, y) <- p(x), p(y), y = range(x, 4). "
    "r(x) <- p(x), !(y = range(0, x), y > 1).",
    'a(1, "x"). a(2, "y"). b("x", 1.5). b("y", 2.5). '
    "p(k, s) <- a(k, _), s = sum v : { a(k, n), b(n, v) }. t(m) <- m = mean v : { b(_, v) }.",
    "a(1). a(2). b(2). p(x) <- a(x), !!b(x). q(x) <- a(x), !!!b(x). r(x) <- a(x), !!!!b(x). "
    "s(x) <- a(x), !!!!!(b(x), !!!a(3)). t(x) <- a(x), !!!(b(y), y > x).",
    # A branch that can only test what it seems to bind waits for those who bind it.
    'q(0, 0). q(0, 1). t("a", 0). t("a", 3). '
    "p(x) <- q(x, x), (t(y, x), (t(y, x), z = cat(y, y) ; q(x, w), v = min(y, y), y = v) ; q(x, u)).",
    # Of two disjunctions that share a variable only the second binds it in every branch.
    'a("c", "c"). a("b", "b"). b("b", 1, "b"). b("c", 2, "b"). f["b"] = 1. p(x, y) <- a(_, x), '
    "y = substr(x, 0, 1), "
    "(a(x, y) ; b(x, z, x), (f[x] = w, !a(x, x) ; b(y, w, y)), (b(v, z, y) ; a(_, y))).",
]


@pytest.mark.parametrize("text", PROGRAMS, ids=range(len(PROGRAMS)))
def test_oracle_odd_programs(text: str) -> None:
    agree(text)
