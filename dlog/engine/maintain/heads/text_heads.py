"""Owns heads with joined texts: versions of them whose texts are joined when something reads them.

The state of `concat` has the pieces of each group in order, under copy on write: a rope, for which a change
costs O(log n).  A version of the head is what the last version that was read had, and which groups have been
touched since.  Correct output, whenever it is read: the rows that evaluation from scratch gives.

A reader of values gets texts that belong to the version and are freed with it.  A reader of codes, such as a
rule, makes them enter the dictionary.  Knows nothing of how assignments are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dlog.engine.body.table import Table, Values
from dlog.engine.head.aggregate_state import TextPart
from dlog.engine.head.heads import head_rows
from dlog.engine.maintain.heads.groups import PartitionedAggregate
from dlog.engine.maintain.heads.sets import among
from dlog.engine.maintain.strategy import Followed
from dlog.engine.state.store import Store
from dlog.heads.counts import net_rows
from dlog.heads.lookup import look_up
from dlog.ir.analysis.projection import stored_as
from dlog.ir.rules import Atom, Rule, Var
from dlog.jit import Words
from dlog.planning.versions import declared_name
from dlog.storage.index.batch import Change
from dlog.storage.relation.deferred import DeferredChange, DeferredRelation, Shown
from dlog.storage.relation.relation import Relation
from dlog.storage.values import encode
from dlog.values import STRING
from dlog.values.heavy import pc

MOST_PARTS = 64  # of touched groups, before they are put together


def has_texts(store: Store, rule: Rule, kept: PartitionedAggregate, head: Atom) -> bool:
    """Whether versions of a head may be deferred: joining texts is all that its rows still need, it cannot
    fail, and a row is found by its group."""
    groups, predicate = rule.groups, store.predicates[declared_name(head.predicate)]
    first = [a.name for a in head.args[: len(groups)] if isinstance(a, Var)]
    pairs = zip(head.args, store.column_types(head.predicate), strict=True)
    return (
        any(isinstance(part, TextPart) for part in kept.parts)
        and not any(item.function.moments for item in rule.aggregates)
        and sorted(first) == sorted(v.name for v in groups)
        and all(isinstance(a, Var) and stored_as(rule, a, type) for a, type in pairs)
        and (not predicate.is_functional or predicate.n_keys == len(groups))
    )


@dataclass(frozen=True)
class Ropes:
    """The texts of a rule's groups in one version of its state."""

    store: (
        Store  # without relations: versions of these end, and the program may change, before texts are read
    )
    kept: PartitionedAggregate
    head: Atom
    states: Sequence[Relation]  # of each part

    def sizes(self, keys: Words) -> Words:
        return self.kept.parts[0].sizes(self.states[0], keys)

    def shown(self, keys: Words) -> Shown:
        """The head's rows of those groups that exist, in the order of `keys`.  O(their texts)."""
        sizes = self.sizes(keys)
        keys, counts = keys[sizes > 0], sizes[sizes > 0]
        columns: dict[str, Values] = {name: keys[:, i].copy() for i, name in enumerate(self.kept.groups)}
        texts: dict[str, pa.Array] = {}
        for part, state in zip(self.kept.parts, self.states, strict=True):
            if isinstance(part, TextPart):
                name = part.item.result.name
                texts[name] = part.texts(self.store, state, keys)
                columns[name] = np.arange(len(keys))
            else:
                columns |= part.results(self.store, state, keys, counts)
        rows = head_rows(self.store, self.head, Table(len(keys), columns), self.kept.rule)
        names = [a.name for a in self.head.args if isinstance(a, Var)]
        numbered = {c: texts[name] for c, name in enumerate(names) if name in texts}
        return Shown(np.ascontiguousarray(rows), numbered)

    def coded(self, shown: Shown) -> Words:
        """The same rows in codes: the texts enter the dictionary."""
        rows = shown.rows.copy()
        for c, texts in shown.texts.items():
            rows[:, c] = encode(texts, STRING, self.store.dictionary)[rows[:, c]]
        return rows

    def in_head(self, keys: Words) -> Words:
        """Keys in the order of the head's columns."""
        names = [a.name for a in self.head.args[: keys.shape[1]] if isinstance(a, Var)]
        return np.ascontiguousarray(keys[:, [self.kept.groups.index(name) for name in names]])


class Touched:
    """Groups that have been touched since a version was made.  Versions share the list: each has a part of
    it, from the beginning."""

    def __init__(self, parts: Sequence[Words]):
        self.parts = list(parts)
        self.limit = max(MOST_PARTS, 2 * sum(map(len, parts)))

    def first(self, n: int) -> Words:
        """The groups of the first n parts, each once."""
        rows = np.concatenate(self.parts[:n])
        return net_rows(rows, np.ones(len(rows), np.int64))[0]

    def with_more(self, n: int, keys: Words) -> tuple[Touched, int]:
        """A list that begins with the first n parts and these keys, and how many parts that is."""
        own = self if n == len(self.parts) < self.limit else Touched([self.first(n)] if n else [])
        own.parts.append(keys)
        return own, len(own.parts)


@dataclass(frozen=True)
class Source:
    """What a deferred version is made from."""

    ropes: Ropes
    made: Relation  # the last version that was made
    touched: Touched
    n: int  # parts of it that belong to this version

    def make(self) -> Relation:
        ropes, keys = self.ropes, self.touched.first(self.n)
        new = ropes.coded(ropes.shown(keys))
        own = ropes.in_head(keys)
        found, rest = look_up(self.made, own)
        old = np.hstack([own, rest])[found > 0]
        return self.made.apply(inserts=new, erases=old)[0]

    def show(self) -> Shown:
        ropes, keys = self.ropes, self.touched.first(self.n)
        new, rows = ropes.shown(keys), self.made.rows()
        rows = rows[~among(rows[:, : keys.shape[1]], ropes.in_head(keys))]
        both = np.concatenate([rows, new.rows])
        texts = {}
        for c, own in new.texts.items():
            known = ropes.store.dictionary.decode(np.ascontiguousarray(rows[:, c])).cast(pa.large_string())
            texts[c] = pa.concat_arrays([known, own])
            both[:, c] = np.arange(len(both))
        return Shown(both, texts)


@dataclass(frozen=True)
class Difference:
    """The groups that a transaction touches, in the versions before and after it."""

    before: Ropes
    after: Ropes
    keys: Words

    def show(self) -> tuple[Shown, Shown]:
        """(Inserted, erased) rows; groups whose rows are the same in both are omitted."""
        old, new = self.before.shown(self.keys), self.after.shown(self.keys)
        had, has = (ropes.sizes(self.keys) > 0 for ropes in (self.before, self.after))
        stayed = had & has
        same = np.ones(np.count_nonzero(stayed), bool)
        ours, theirs = new.rows[stayed[has]], old.rows[stayed[had]]
        for c in range(ours.shape[1]):
            if c in new.texts:
                pair = new.texts[c].take(pa.array(ours[:, c])), old.texts[c].take(pa.array(theirs[:, c]))
                same &= pc.equal(*pair).to_numpy(zero_copy_only=False)
            else:
                same &= ours[:, c] == theirs[:, c]
        stayed[stayed] = same
        return _only(new, ~stayed[has]), _only(old, ~stayed[had])

    def find(self) -> Change:
        """The same in codes, each sorted."""
        inserted, erased = (self.after.coded(shown) for shown in self.show())
        return Change(*(net_rows(rows, np.ones(len(rows), np.int64))[0] for rows in (inserted, erased)))


def _only(shown: Shown, mask: np.ndarray) -> Shown:
    return Shown(shown.rows[mask], shown.texts)


def follow_later(
    kept: PartitionedAggregate, store: Store, followed: Followed, head: Atom, tables: list[tuple[int, Table]]
) -> tuple[DeferredRelation, DeferredChange]:
    """The next version of a head and its change, after changes of assignments as (1 or -1, assignments).

    O(m log n) for m of them.  REQUIRES: `has_texts`, and each row of the head has one derivation.
    """
    changes, states = kept.changed(store, followed, tables)
    if kept.reader is None:
        kept.reader = store.under(store.predicates)
        kept.reader.relations = {}
    reader = kept.reader
    before, after = (Ropes(reader, kept, head, [pair[version] for pair in states]) for version in (0, 1))
    keys, current = changes.keys, store.relations[head.predicate]
    had, has = (np.count_nonzero(ropes.sizes(keys)) for ropes in (before, after))
    known = current.source if isinstance(current, DeferredRelation) else None
    made, touched, n = (current, Touched([]), 0) if known is None else (known.made, known.touched, known.n)
    source = Source(after, made, *touched.with_more(n, keys))
    count = len(current) + int(has) - int(had)
    later = DeferredRelation(store.arena, current.arity, count, source.make, source.show, source)
    return later, _change(Difference(before, after, keys))


def joined_changes(changes: Sequence[DeferredChange]) -> DeferredChange:
    """The net change of consecutive ones."""
    first, last = changes[0].source, changes[-1].source
    keys = np.concatenate([change.source.keys for change in changes])
    keys = net_rows(keys, np.ones(len(keys), np.int64))[0]
    return _change(Difference(first.before, last.after, keys))


def _change(difference: Difference) -> DeferredChange:
    return DeferredChange(difference.find, difference.show, difference)
