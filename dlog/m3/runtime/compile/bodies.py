"""Owns what is stored besides a statement's own sums: staged results, and initial values of entries.

An entry that is read or written but not in the domain of a map with initial values gets its value first,
each key once, however many rows need it.
"""

from __future__ import annotations

from dataclasses import replace

from dlog.errors import UnsupportedError
from dlog.m3.rings.rings import INTEGER_RING
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.compile.analysis import mentioned, outputs
from dlog.m3.runtime.compile.code import Word
from dlog.m3.runtime.compile.joins import Joins
from dlog.m3.runtime.compile.range_code import COMPARISON
from dlog.m3.runtime.compile.stores import Store
from dlog.m3.syntax import ast


class Body(Joins):
    """Code for the expressions of one trigger."""

    def move(self, source: Store, target: Store, access: ast.MapAccess, initial: bool) -> None:
        """Add all entries of one map to another; entries that it does not have yet get their initial
        value.
        """
        variables = (*access.inputs, *access.keys)
        if not initial:
            access = replace(access, initial=None)
        if not variables:
            self._move_total(source, target, access)
            return
        with self.inner():
            self.open_scan(source)
            slots = self.scanned[1]
            self._bind_slots(source, variables, slots, self.names)
            keys = [self.key(v.name, k) for v, k in zip(variables, target.key_kinds, strict=True)]
            if access.initial is not None:
                with self.inner():
                    self.keep(self._missing(target, tuple(range(len(keys))), keys))
                    self.value = self.scalar(access.initial)
                    inner = [self.key(v.name, k) for v, k in zip(variables, target.key_kinds, strict=True)]
                    self.accumulate(target, inner)
            self.value = self._slot_value(source, slots)
            self.accumulate(target, keys)

    def bind_inputs(self, store: Store, target: ast.MapAccess) -> None:
        """Unbound input variables of a target range over those that the map has: loop over these."""
        if all(v.name in self.bound for v in target.inputs):
            return
        inputs = store.key_kinds[: len(target.inputs)]
        found = self.stores.scratch(inputs, INTEGER_RING)
        self.code.emit(o.CLEAR, found.address)
        with self.inner():
            others = tuple(replace(v, name=f"{v.name} of the map") for v in target.keys)
            self._expand(store, (*target.inputs, *others))
            self.value = None
            self.accumulate(found, [self.key(v.name, k) for v, k in zip(target.inputs, inputs, strict=True)])
        self._scan_groups(found, [v.name for v in target.inputs], False)

    def _move_total(self, source: Store, target: Store, access: ast.MapAccess) -> None:
        if access.initial is not None:
            with self.inner():
                self.keep(self._found(source))
                self.keep(self._missing(target, (), []))
                self.value = self.scalar(access.initial)
                self.accumulate(target, [])
        with self.inner():
            if target.keeps:  # only what is not 0 is added
                self.keep(self._found(source))
            look_up = self.sums_of if source.is_exact else self._looked_up
            self.value = look_up(source, (), cached=False)
            self.accumulate(target, [])

    def _found(self, store: Store) -> Word:
        """1 if the one entry of a map without keys is in its domain."""
        out = self.code.column()
        self.code.emit(o.FOUND, self.frame.word, store.address, 0, 0, out)
        return out

    def make_initial(self, store: Store, node: ast.MapAccess) -> None:
        """Where no entry of the domain agrees with what is bound, store the value of the initial expression.

        Each key once, however many rows need it: the keys are gathered in a map first.
        """
        variables = (*node.inputs, *node.keys)
        assert node.initial is not None
        self._check_initial(store, node)
        names = self.names
        places = tuple(j for j, v in enumerate(variables) if v.name in names)
        wanted = self.stores.scratch(tuple(store.key_kinds[j] for j in places), INTEGER_RING)
        self.code.emit(o.CLEAR, wanted.address)
        with self.inner():
            keys = [self.key(variables[j].name, store.key_kinds[j]) for j in places]
            self.keep(self._missing(store, places, keys))
            keys = [self.key(variables[j].name, store.key_kinds[j]) for j in places]
            self.value = self.arithmetic.one()
            self.accumulate(wanted, keys)
        with self.inner():
            self._store_initial(store, node, places, wanted)
        self.forget_look_ups(store)

    def _check_initial(self, store: Store, node: ast.MapAccess) -> None:
        names = frozenset(v.name for v in (*node.inputs, *node.keys))
        assert node.initial is not None
        other = mentioned(node.initial) & self.names - names
        if other:
            message = (
                f"the initial value of {node.name} depends on {', '.join(sorted(other))}, which is not a key"
            )
            raise UnsupportedError(message, span=node.initial.span)
        if any(address == store.address for _, _, address in self.loops):
            message = f"{node.name} would get initial values while it is read"
            raise UnsupportedError(message, span=node.span)

    def _missing(self, store: Store, places: tuple[int, ...], keys: list[Word]) -> Word:
        """1 where no entry of the domain agrees with bound keys."""
        out, missing, hashes = self.code.column(), self.code.column(), self.hashed(keys)
        if not places or len(places) == len(store.key_kinds):
            self.code.emit(o.FOUND, self.frame.word, store.address, hashes, len(keys), *keys, out)
        else:
            index = self.stores.index(store, places)
            self.code.emit(
                o.CHAIN_FOUND, self.frame.word, store.address, hashes, len(keys), *keys, out, index
            )
        self.code.emit(o.INVERT, self.frame.word, out, missing)
        return missing

    def _store_initial(
        self, store: Store, node: ast.MapAccess, places: tuple[int, ...], wanted: Store
    ) -> None:
        variables = (*node.inputs, *node.keys)
        assert node.initial is not None
        self.bound = {}
        if places:
            self.frame = self.code.frame(single=True)
            self.code.emit(o.ROOT, self.frame.word, 1)
            self.open_scan(wanted)
            self._bind_slots(wanted, tuple(variables[j] for j in places), self.scanned[1], frozenset())
        else:
            self.frame = self.code.frame(single=True)
            self.code.emit(o.ROOT, self.frame.word, 1)
            asked = self._looked_up(wanted, (), cached=False).column
            zero = self.code.constant(0)
            self.keep(self.arithmetic.binary(o.COMPARE, self.frame, COMPARISON["!="], asked, zero))
        self.value = None
        found = outputs(node.initial, self.names)
        if found:
            self.join(node.initial)
        else:
            self.multiply(self.scalar(node.initial))
        if all(v.name in self.bound for v in variables):
            keys = [self.key(v.name, k) for v, k in zip(variables, store.key_kinds, strict=True)]
            self.accumulate(store, keys)
