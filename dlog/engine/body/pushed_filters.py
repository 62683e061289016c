"""Owns tests on columns that the values of one atom decide: `contains("x", r)` needs only r.

A join that gives far more rows than the atom has is tested late, on all of them.  Instead the atom's values
are tested once, before the join, which then reads only those that pass: a semijoin with a relation that a
test makes.  Correct output: a table that has every value with which the body can hold.  The test itself still
runs after the join, on few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dlog.engine.body.readable import Readable
from dlog.engine.state.store import Store
from dlog.ir.rules import Atom, Var
from dlog.planning.compile import estimate_join
from dlog.planning.options import ALWAYS, NEVER
from dlog.planning.pipeline import Join, Pipeline, Test, form_variables
from dlog.planning.versions import is_change

MANY = 4  # rows of the join for each row of the atom, from which on testing its values first is tried
SHARE = 0.5  # of the values; if more pass, the join is not restricted


@dataclass(frozen=True)
class PushedFilter:
    """Tests that the values of one atom decide, and the join that gives these values."""

    atom: Atom
    values: Join
    tests: tuple[Test, ...]


def pushed_filters(pipeline: Pipeline, store: Store) -> tuple[PushedFilter, ...]:
    """What is worth testing before the first join.  Uses sizes; reads no rows."""
    join = pipeline.operations[0] if pipeline.operations else None
    semijoins = store.options.semijoins
    if not isinstance(join, Join) or semijoins == NEVER:
        return ()
    names = [f.predicate for f in join.forms if isinstance(f, Atom)]
    if len(names) < 2 or any(map(is_change, names)):  # what is new is small, and differs from round to round
        return ()
    found = tuple(_decided(pipeline, join, store))
    if not found or semijoins == ALWAYS:
        return found
    sizes = estimate_join(join.forms, join.outputs, join.bag, Readable(store, {})).sizes
    rows = sizes[-1] if sizes else 1.0
    return tuple(t for t in found if rows >= MANY * store.rows(t.atom.predicate))


def _decided(pipeline: Pipeline, join: Join, store: Store) -> Iterator[PushedFilter]:
    """For each set of variables that is tested, the smallest atom that has all of them."""
    tests = [o for o in pipeline.operations[1:] if isinstance(o, Test)]
    atoms = [f for f in join.forms if isinstance(f, Atom) and f.predicate in store.relations]
    for names in dict.fromkeys(frozenset(form_variables(t.primitive)) for t in tests):
        having = [a for a in atoms if names and names <= {v.name for v in a.args if isinstance(v, Var)}]
        if having:
            atom = min(having, key=lambda a: store.rows(a.predicate))
            decided = tuple(t for t in tests if form_variables(t.primitive) <= names)
            yield PushedFilter(atom, Join((atom,), tuple(sorted(names)), False), decided)
