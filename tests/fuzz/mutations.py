"""Owns mutants: a seed -> one of the shipped programs with a few tokens, lines or bytes changed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "programs"
_PIECE = re.compile(r'"[^"\n]*"|\w+|\s+|.', re.DOTALL)
_WORDS = re.findall(
    r"\S+",
    """
    ( ) [ ] { } , . ; : :- <- -> ?- agg<< >> << < > <= >= != = == ! + - * / % ^ | @ $ @[ _ ' " \\ ? # // /* */
    nil as as( count sum min max mean concat total count: range( cat( match( number int string decimal date
    decimal[10,2] unsigned float bool inline eqrel overridable choice-domain true false lnot bnot band lor x y
    p p(x) f[x] f[] !p(_) x<-1 0 -1 1.5 1e5 0x 0xFF 12u 1.2.3.4 99999999999999999999 9223372036854775808
    "" "a\\q" é \0 \x7f .decl .type .input .output .plan .include .comp .init .pragma .limitsize .once .table
    .stream .nosuch
    """,
)
POOL = [
    *_WORDS,
    *["\n.decl p(x: number)\n", "\n.input p\n", '\n.include "reach.dl"\n', "\n#define p q\n", "\n#ifdef A\n"],
    *['\n#include "reach.dl"\n', "\n#endif\n", "\n", "\n\n", " ", "\ud800", "\udcff"],
    *["+p(1).", "p(1).", "\np(x) <- q(x).\n", "?- p(x).", "p(x) -> int(x).\n"],
]


_M3_WORDS = re.findall(
    r"\S+",
    """
    ( ) [ ] { } , ; : := += ^= < > <= >= != = + - * / -- /* */ ' " <Local> :(0) [][] [ ][k:int] (long) (int)
    CREATE TYPE STREAM TABLE FROM FILE SOCKET LINE DELIMITED FIXEDWIDTH DECLARE MAP QUERY ON BATCH UPDATE OF
    SYSTEM READY AggSum( AggSum([], EXISTS( DOMAIN( (DELTA DATE( DATE('1999-99-99') IN if else int long byte
    float date string char 1L 1.5 1.5E1 1.5f 0x1F -1 1- 99999999999999999999 9223372036854775808 a-b x:int R r
    M[][] M(long)[][x] [f:int](x) [lift<1>: Ring<1,double>](x) (x^=1) {x=1} é \0
    """,
)
M3_POOL = [
    *_M3_WORDS,
    "\n",
    " ",
    "\ud800",
    "\udcff",
    "ON + R(x) { M[][x] += 1; }\n",
    "DECLARE QUERY Q := 1;\n",
]


@cache
def programs(suffix: str = ".dl") -> dict[str, str]:
    """The shipped programs, those with errors too, by path.  One of them is not UTF-8."""
    paths = sorted(ROOT.rglob(f"*{suffix}"))
    return {str(path): path.read_text(encoding="utf-8", errors="surrogateescape") for path in paths}


def new_seeds() -> range:
    """Other ones in each run; the first is printed."""
    first = random.SystemRandom().randrange(10**9)
    print(f"seeds from {first}")
    return range(first, first + 20_000)


def mutant(seed: int, suffix: str = ".dl") -> tuple[str, str | bytes]:
    """A name and a text (sometimes bytes, which may not be text)."""
    rng = random.Random(seed)
    known = programs(suffix)
    wrong = [path for path in known if "/errors/" in path]
    right = [path for path in known if "/errors/" not in path]
    name = rng.choice(wrong if wrong and rng.random() < 0.25 else right)
    text = known[name]
    changes = _CHANGES if suffix == ".dl" else _M3_CHANGES
    for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
        text = rng.choice(changes)(text, rng)
    if rng.random() < 0.2:
        return name, _changed_bytes(text.encode("utf-8", "surrogatepass"), rng)
    return name, text


def _pieces(change: Callable[[list[str], random.Random], None]) -> Callable[[str, random.Random], str]:
    """Makes a change of a list of tokens a change of a text."""

    def changed(text: str, rng: random.Random) -> str:
        pieces = _PIECE.findall(text) or [" "]
        change(pieces, rng)
        return "".join(pieces)

    return changed


@_pieces
def _delete(pieces: list[str], rng: random.Random) -> None:
    start = rng.randrange(len(pieces))
    del pieces[start : start + rng.choice([1, 1, 1, 2, 5])]


@_pieces
def _duplicate(pieces: list[str], rng: random.Random) -> None:
    start = rng.randrange(len(pieces))
    piece = pieces[start : start + rng.choice([1, 1, 3, 10])]
    pieces[start:start] = piece * rng.choice([1, 1, 2, 300])


@_pieces
def _swap(pieces: list[str], rng: random.Random) -> None:
    a, b = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    if rng.random() < 0.5:
        b = min(a + 2, len(pieces) - 1)
    pieces[a], pieces[b] = pieces[b], pieces[a]


@_pieces
def _insert(pieces: list[str], rng: random.Random) -> None:
    pieces.insert(rng.randrange(len(pieces) + 1), rng.choice(POOL))


@_pieces
def _replace(pieces: list[str], rng: random.Random) -> None:
    other = _PIECE.findall(rng.choice(list(programs().values())))
    pieces[rng.randrange(len(pieces))] = rng.choice([*POOL[:60], *rng.sample(other, min(40, len(other)))])


@_pieces
def _rename(pieces: list[str], rng: random.Random) -> None:
    """One name becomes another everywhere: the text stays well formed, its meaning does not."""
    names = [p for p in pieces if p.isidentifier()] or ["x"]
    old, new = rng.choice(names), rng.choice([*names, "count", "int", "nil", "_", "true"])
    pieces[:] = [new if p == old else p for p in pieces]


_WRAPPERS = [("(", ")"), ("f(", ")"), ("f[", "]"), ("!", ""), ("-", ""), ("count : { ", " }")]


@_pieces
def _wrap(pieces: list[str], rng: random.Random) -> None:
    """Nests a token: a few levels, or very many."""
    at, count = rng.randrange(len(pieces)), rng.choice([1, 2, 150, 1500])
    left, right = rng.choice(
        [("(", ")"), ("f(", ")"), ("f[", "]"), ("!", ""), ("-", ""), ("count : { ", " }")]
    )
    pieces[at] = left * count + pieces[at] + right * count


def _lines(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[a]
        case 1:
            lines.insert(b, lines[a])
        case 2:
            lines[a], lines[b] = lines[b], lines[a]
        case _:
            lines[a : a + 2] = ["".join(lines[a : a + 2])]
    return "\n".join(lines)


def _truncate(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] if rng.random() < 0.7 else text[at:]


_CHANGES = [_delete, _duplicate, _swap, _insert, _insert, _replace, _rename, _wrap, _lines, _truncate]


@_pieces
def _insert_m3(pieces: list[str], rng: random.Random) -> None:
    pieces.insert(rng.randrange(len(pieces) + 1), rng.choice(M3_POOL))


@_pieces
def _replace_m3(pieces: list[str], rng: random.Random) -> None:
    pieces[rng.randrange(len(pieces))] = rng.choice(M3_POOL)


_M3_CHANGES = [
    _delete, _duplicate, _swap, _insert_m3, _insert_m3, _replace_m3, _rename, _wrap, _lines, _truncate
]  # fmt: skip


def _changed_bytes(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data or b" ")
    for _ in range(rng.choice([1, 1, 3])):
        at = rng.randrange(len(out))
        match rng.randrange(3):
            case 0:
                out[at] = rng.randrange(256)
            case 1:
                out.insert(at, rng.randrange(256))
            case _:
                out[at] ^= 1 << rng.randrange(8)
    return bytes(out)
