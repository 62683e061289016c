"""Owns the joint choice of sub-joins: one that several rules could use is worth more than to each alone.

A sub-join's cost is divided by the rules whose bodies have it, and every rule is planned that way.  If all
of them then choose it, it is chosen: the first computes it, the others reuse it.  If some do not, the cost
is divided by those that do.  Sub-joins of sub-joins are not examined, nor are recursive rules.  Knows
nothing of how results are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from dlog.engine.body.readable import Readable
from dlog.engine.state.store import Store
from dlog.ir.rules import Atom, Conj, Form
from dlog.planning.compile import estimate_join
from dlog.planning.decompose import WHOLE, decompose, has_parts
from dlog.planning.moves import Asked, moves
from dlog.planning.options import NEVER, Options
from dlog.planning.sub_joins import Decomposition, is_sub_join, shared_text

JOINT = 1e7  # a join that is expected to cost less, some 50 ms, is planned alone


@dataclass(frozen=True)
class Body:
    """The join that a rule begins with, and its required outputs."""

    forms: tuple[Form, ...]
    outputs: tuple[str, ...]
    bag: bool
    count: bool
    options: Options

    def texts(self) -> set[str]:
        """The sub-joins that could be taken out of it first."""
        found: set[str] = set()
        if not has_parts(self.forms):
            return found
        for move in moves(self.forms, Asked(self.outputs, self.bag, joint=True), self.options):
            found.add(shared_text(move.forms, move.outputs, self.bag and move.eliminates)[0])
        return found

    def plan(
        self, store: Store, made: Collection[str], users: Callable[[str], int] | None = None
    ) -> Decomposition | None:
        """None if it is done at once, or reads what does not exist yet."""
        if not all(name in store.relations for name in Conj((), self.forms).predicates()):
            return None
        view = Readable(store, {})
        return decompose(
            self.forms,
            self.outputs,
            self.bag,
            view,
            estimate_join,
            self.options,
            count=self.count,
            made=made,
            users=users,
        )


class SharedSubjoinChoice:
    """The bodies of a program by the sub-joins that they have; computed when a plan first needs it."""

    def __init__(self, store: Store, bodies: Callable[[], Iterable[Body]]):
        self.store = store
        self.bodies = bodies

    @cached_property
    def users(self) -> dict[str, list[Body]]:
        users: dict[str, list[Body]] = {}
        for body in self.bodies():
            for text in body.texts():
                users.setdefault(text, []).append(body)
        return users

    def count(self, text: str) -> int:
        return len(self.users.get(text, ()))

    def plan(self, body: Body, made: Collection[str]) -> Decomposition | None:
        """The plan of a body, taking others into account."""
        alone = body.plan(self.store, made)
        return self.joint_plan(body, alone, made) or alone

    def joint_plan(
        self, body: Body, alone: Decomposition | None, made: Collection[str] = ()
    ) -> Decomposition | None:
        """A plan that has a sub-join for the sake of others; None if there is none that needs them."""
        if body.options.sharing == NEVER or not any(self.count(text) > 1 for text in body.texts()):
            return None
        together = body.plan(self.store, made, self.count)
        if together is None or dict(together.rejected)[WHOLE] < JOINT:
            return None
        wanted = {t for t in shared_texts(together) if self.count(t) > 1 and t not in made}
        if wanted <= (shared_texts(alone) if alone is not None else set()):
            return None
        found = {text: self.takers(text, body, made) for text in wanted}
        if all(found[text] == self.count(text) for text in wanted):
            return together
        return body.plan(self.store, made, lambda text: found.get(text, 1))

    def takers(self, text: str, body: Body, made: Collection[str]) -> int:
        """How many would choose a sub-join, if all of them did: the body itself and others."""
        others = [other for other in self.users[text] if other != body]
        plans = [other.plan(self.store, made, self.count) for other in others]
        return 1 + sum(plan is not None and text in shared_texts(plan) for plan in plans)


def shared_texts(d: Decomposition) -> set[str]:
    """The sub-joins of a plan that others can reuse: whole, by index, and of relations that stay."""
    chunked = d.chunked()
    hashed = {probe.predicate for probe in d.probes}
    found = set()
    for s in d.sub_joins:
        plain = not any(is_sub_join(f.predicate) for f in s.forms if isinstance(f, Atom))
        if plain and s not in chunked and s.name not in hashed:
            found.add(shared_text(s.forms, s.outputs, s.weighted)[0])
    return found
