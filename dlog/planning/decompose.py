"""Owns the choice of sub-joins: whether a join is done at once or in parts, and in which, by estimated cost.

A *draft* is a join with some sub-joins already taken out.  From each draft moves lead on, for every variable:
eliminate it (all forms that hold it become a sub-join, of which the rest reads a projection), or reduce by it
(the same sub-join as a semijoin, beside its forms); and for every atom: filter it by smaller ones.  So a
4-cycle becomes two 2-paths, a path with selective ends is reduced from the ends, and unneeded columns
are dropped early; no shape of query is a special case.  The cheapest drafts are followed first, as
long as the search is cheap compared with the expected cost of the join.

Reads statistics through the cost model, never data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import cast

from dlog.ir.rules import Atom, Form
from dlog.planning.cost import Statistics
from dlog.planning.estimates import Estimates
from dlog.planning.key_order import OUTPUT, Implied, KeyOrder
from dlog.planning.moves import Asked, Move, moves, variables_of
from dlog.planning.options import ALWAYS, NEVER, Options
from dlog.planning.pipeline import form_variables
from dlog.planning.sub_joins import (
    PREFIX,
    Decomposition,
    Probe,
    SubJoin,
    chunkable,
    is_sub_join,
    read_atom,
    shared_text,
)

WORTHWHILE = 2e6  # joins expected to cost less are done at once: some 10 ms
WHOLE = "one join of everything"
SECONDS = 5e-9  # for a unit of cost, approximately
GAIN = 0.8  # a plan in parts must cost less than this share of the undivided one
CHUNK_ROWS = 1 << 18  # rows of a sub-join that still fit in the cache
_SORT = 5.0  # cost per row to sort a small sub-join; large ones cost twice as much
_PROBE = 2.0  # cost to probe a small hash table, or to add to it; a large one costs four times as much
_SELECTIVE = 0.5  # a semijoin must remove at least the other half of what it could
_DRAFTS_PER_COST = 1e-6
_MOST_DRAFTS = 48
_FORCED_DRAFTS = 40
_MOST_ATOMS = 16

Estimate = Callable[[Sequence[Form], Sequence[str], bool, Statistics, str | None, Implied], KeyOrder]


def decompose(
    forms: Sequence[Form],
    outputs: Sequence[str],
    bag: bool,
    statistics: Statistics,
    estimate: Estimate,
    options: Options,
    count: bool = False,
    gain: float = GAIN,
    made: Collection[str] = (),
    users: Callable[[str], int] | None = None,
) -> Decomposition | None:
    """The cheapest plan in parts; None if the undivided join is as good.

    `count`: no row is written, assignments are only counted.  `estimate` gives a key order and its cost.  A
    plan must cost less than `gain` times the undivided one.  `made` are texts of sub-joins that need not be
    computed; `users` gives how many rules share the cost of one.
    """
    forced = ALWAYS in (options.semijoins, options.sub_joins)
    if options.semijoins == options.sub_joins == NEVER or not has_parts(forms):
        return None
    search = _Search(tuple(outputs), bag, count, statistics, estimate, options, made, users)
    whole = search.draft((), tuple(forms))
    if whole.cost < WORTHWHILE and not forced:
        return None
    limit = _FORCED_DRAFTS if forced else min(_MOST_DRAFTS, 12 + int(whole.cost * _DRAFTS_PER_COST))
    drafts = search.run(whole, limit)
    found = search.best(drafts, forced)
    if found is None or (found.cost > gain * whole.cost and not forced):
        return None
    taken = [s.forms for s in found.sub_joins]
    others = [d for d in drafts if d.sub_joins and d.cost >= found.cost]
    others = sorted((d for d in others if [s.forms for s in d.sub_joins] != taken), key=lambda d: d.cost)
    rejected = [(WHOLE, whole.cost), *((d.describe(), d.cost) for d in others[:1])]
    return _numbered(replace(found, rejected=tuple(rejected)))


def has_parts(forms: Sequence[Form]) -> bool:
    """Whether a join is looked at for parts: one of very many atoms is done at once.  O(forms)."""
    atoms = [f for f in forms if isinstance(f, Atom)]
    return 2 <= len(atoms) <= _MOST_ATOMS


@dataclass(frozen=True)
class _Draft:
    sub_joins: tuple[SubJoin, ...]
    forms: tuple[Form, ...]
    order: KeyOrder
    cost: float

    @property
    def key(self) -> frozenset[str]:
        return frozenset(map(str, self.forms))

    def describe(self) -> str:
        names = [
            f"{'a semijoin' if s.reduces else 'a part'} over {{{', '.join(s.outputs)}}}"
            for s in self.sub_joins
        ]
        return ", ".join(names)


class _Search:
    def __init__(
        self,
        outputs: tuple[str, ...],
        bag: bool,
        count: bool,
        statistics: Statistics,
        estimate: Estimate,
        options: Options,
        made: Collection[str],
        users: Callable[[str], int] | None,
    ):
        self.made = made
        self.users = users or (lambda text: 1)
        forced = ALWAYS in (options.semijoins, options.sub_joins)
        self.asked = Asked(outputs, bag, joint=not forced and (users is not None or bool(made)))
        self.outputs = outputs
        self.bag = bag
        self.count = count
        self.estimate = estimate
        self.options = options
        self.view = Estimates(statistics)
        self.implied: dict[Atom, frozenset[str]] = {}
        self.known: dict[str, SubJoin] = {}
        self.texts: dict[str, str] = {}  # the canonical text of each
        self.numbers = 0

    # Drafts

    def draft(self, sub_joins: tuple[SubJoin, ...], forms: tuple[Form, ...]) -> _Draft:
        order = self.estimate(forms, self.outputs, self.bag, self.view, None, self.implied)
        return _Draft(sub_joins, forms, order, self.final_cost(order) + sum(s.cost for s in sub_joins))

    def final_cost(self, order: KeyOrder) -> float:
        return order.cost - (OUTPUT * _last(order) if self.count else 0.0)

    def run(self, whole: _Draft, limit: int) -> list[_Draft]:
        """Drafts, the cheapest followed first; about `limit` of them."""
        drafts, seen, waiting = [whole], {whole.key}, [(whole.cost, 0, whole)]
        while waiting and len(drafts) < limit:
            _, _, draft = heappop(waiting)
            for following in self.following(draft):
                if following.key not in seen:
                    seen.add(following.key)
                    drafts.append(following)
                    heappush(waiting, (following.cost, len(drafts), following))
        return drafts

    def following(self, draft: _Draft) -> Iterator[_Draft]:
        for move in moves(draft.forms, self.asked, self.options):
            for shared in self.sharing():
                following = self.apply(draft, move, shared)
                if following is not None:
                    yield following

    def sharing(self) -> tuple[bool, ...]:
        return {ALWAYS: (True,), NEVER: (False,)}.get(self.options.sharing, (True, False))

    def apply(self, draft: _Draft, move: Move, shared: bool) -> _Draft | None:
        weighted = self.bag and move.eliminates
        text, kept = shared_text(move.forms, move.outputs, weighted)
        sub_join = next((s for s in draft.sub_joins if self.texts[s.name] == text), None)
        sub_joins = draft.sub_joins
        if sub_join is not None and not shared and sub_join.outputs == kept:
            return None  # identical, not only up to names
        if sub_join is None or not shared:
            sub_join = self.sub_join(text, move, kept, weighted)
            sub_joins = (*sub_joins, sub_join)
        atom = read_atom(sub_join, kept, self.next_number() if weighted else 0)
        rest = tuple(f for f in draft.forms if not any(f is g for g in move.replaced))
        if move.reduces:
            if atom in rest or not self.is_selective(sub_join, kept, rest):
                return None
            self.implied[atom] = frozenset(v for f in move.forms for v in form_variables(f))
        return self.draft(sub_joins, (*rest, atom))

    def is_selective(self, semijoin: SubJoin, variables: Sequence[str], forms: Sequence[Form]) -> bool:
        """Whether a semijoin removes enough to be worth reading."""
        models = [self.view.model(f) for f in forms if isinstance(f, Atom)]
        domain = math.prod(
            max((m.domain(v) for m in models if v in m.columns), default=1.0) for v in variables
        )
        return self.options.semijoins == ALWAYS or semijoin.rows < _SELECTIVE * domain

    def next_number(self) -> int:
        self.numbers += 1
        return self.numbers

    def sub_join(self, text: str, move: Move, kept: tuple[str, ...], weighted: bool) -> SubJoin:
        """A sub-join with its size and cost."""
        name = f"{PREFIX}:{text}:{', '.join(kept)}"
        if name not in self.known:
            order = self.estimate(move.forms, kept, weighted, self.view, None, self.implied)
            full = order if weighted else self.estimate(move.forms, kept, True, self.view, None, self.implied)
            rows = self.view.add(name, move.forms, kept, _last(full), weighted)
            cost = 0.0
            if text not in self.made:
                cost = (order.cost + _store_cost(_last(order))) / max(1, self.users(text))
            self.known[name] = SubJoin(
                name, move.forms, kept, weighted, move.reduces, rows, cost, order.variables
            )
            self.texts[name] = text
        return self.known[name]

    # The choice

    def best(self, drafts: list[_Draft], forced: bool) -> Decomposition | None:
        parts = [d for d in drafts if d.sub_joins]
        if forced:
            parts = sorted(parts, key=lambda d: (-self.use(d), d.cost))[:4]
        else:
            parts = sorted(parts, key=lambda d: d.cost)[:6]
        candidates = [c for d in parts for c in self.finished(d)]
        if forced and candidates:
            most = max(len(c.sub_joins) for c in candidates)
            candidates = [c for c in candidates if len(c.sub_joins) == most]
            if self.options.probes == ALWAYS and any(c.probes for c in candidates):
                candidates = [c for c in candidates if c.probes]
            if self.options.chunks == ALWAYS and any(c.chunk for c in candidates):
                candidates = [c for c in candidates if c.chunk]
        return min(candidates, key=lambda c: c.cost, default=None)

    def use(self, draft: _Draft) -> int:
        """How much of the forced features a draft uses."""
        reducing = sum(s.reduces for s in draft.sub_joins)
        made = len(draft.sub_joins) - reducing
        return (self.options.semijoins == ALWAYS) * min(reducing, 3) + (
            self.options.sub_joins == ALWAYS
        ) * made

    def finished(self, draft: _Draft) -> Iterator[Decomposition]:
        """The draft as decompositions: undivided and by chunks, sub-joins read by index or by hash."""
        d = Decomposition(
            draft.sub_joins,
            draft.forms,
            self.outputs,
            self.bag,
            cost=draft.cost,
            implied=self.implied,
            count=self.count,
            key_order=draft.order.variables,
        )
        for probes in self.probes(d):
            probing = replace(d, probes=probes, cost=self.full_cost(d, probes, None) if probes else d.cost)
            yield probing
            large = max((s.rows for s in d.sub_joins), default=0.0) > CHUNK_ROWS
            if self.options.chunks == NEVER or not (large or self.options.chunks == ALWAYS):
                continue
            for name in dict.fromkeys(v for s in d.sub_joins for v in s.outputs):
                if chunkable(d, name):
                    yield replace(probing, chunk=name, cost=self.full_cost(d, probes, name))

    def probes(self, d: Decomposition) -> Iterator[tuple[Probe, ...]]:
        """No probes, and the sub-joins that could be probed: read once, by the last join, with all keys
        bound.
        """
        if self.options.probes != ALWAYS:
            yield ()
        if self.options.probes == NEVER:
            return
        uses = [
            a for forms in (d.forms, *(s.forms for s in d.sub_joins)) for a in forms if isinstance(a, Atom)
        ]
        probes: list[Probe] = []
        for atom in (f for f in d.forms if isinstance(f, Atom) and is_sub_join(f.predicate)):
            rest = [f for f in d.forms if f is not atom and not any(f is p.atom for p in probes)]
            bound = {v for f in rest if isinstance(f, Atom) for v in variables_of(f)}
            once = sum(use.predicate == atom.predicate for use in uses) == 1
            if once and atom.n_keys and variables_of(atom) <= bound:
                probes.append(Probe(atom))
        if probes or self.options.probes == ALWAYS:
            yield tuple(probes)

    def full_cost(self, d: Decomposition, probes: tuple[Probe, ...], first: str | None) -> float:
        """With a chunk variable, or with probes."""
        forms = [f for f in d.forms if not any(f is p.atom for p in probes)]
        outputs = tuple(dict.fromkeys((*self.outputs, *(v for p in probes for v in p.keys_only))))
        order = self.estimate(forms, outputs, self.bag, self.view, first, self.implied)
        total = order.cost + len(probes) * _PROBE * _last(order)
        if self.count:
            total -= OUTPUT * _last(order) * (not probes)
        for s in d.sub_joins:
            chunked = first is not None and first in s.outputs
            hashed = any(p.predicate == s.name for p in probes)
            if not chunked and not hashed:
                total += s.cost
                continue
            begin = first if chunked else None
            order = self.estimate(s.forms, s.outputs, s.weighted, self.view, begin, self.implied)
            total += order.cost + _store_cost(_last(order), chunked, hashed)
        return total


def _last(order: KeyOrder) -> float:
    return order.sizes[-1] if order.sizes else 1.0


def _store_cost(rows: float, chunked: bool = False, hashed: bool = False) -> float:
    """The cost of sorting rows, or of putting them into a hash table."""
    small = chunked or rows <= CHUNK_ROWS
    if hashed:
        return rows * (_PROBE if small else 4 * _PROBE)
    return rows * (_SORT if small else 2 * _SORT)


def _numbered(d: Decomposition) -> Decomposition:
    """Short names for sub-joins, in the order in which they are computed; unused ones left out."""
    used = _read(d.forms)
    for sub_join in reversed(d.sub_joins):
        if sub_join.name in used:
            used |= _read(sub_join.forms)
    kept = [s for s in d.sub_joins if s.name in used]
    names = {s.name: f"{PREFIX}{i}" for i, s in enumerate(kept, 1)}

    def renamed(forms: Sequence[Form]) -> tuple[Form, ...]:
        return tuple(
            replace(f, predicate=names.get(f.predicate, f.predicate)) if isinstance(f, Atom) else f
            for f in forms
        )

    forms = renamed(d.forms)
    places = {id(old): new for old, new in zip(d.forms, forms, strict=True)}
    return replace(
        d,
        forms=forms,
        probes=tuple(Probe(cast(Atom, places[id(p.atom)])) for p in d.probes),
        implied={cast(Atom, renamed([atom])[0]): origin for atom, origin in d.implied.items()},
        sub_joins=tuple(replace(s, name=names[s.name], forms=renamed(s.forms)) for s in kept),
    )


def _read(forms: Sequence[Form]) -> set[str]:
    return {f.predicate for f in forms if isinstance(f, Atom)}
