"""Owns the groups of a query that levels of maps maintain: rows of changes in, the groups that changed out.
Knows no engine.
"""

from __future__ import annotations

from collections.abc import Callable

from dlog.jit import Words
from dlog.m3.runtime.runtime import Runtime
from dlog.storage.arena.regions import Memory
from dlog.storage.dictionary.dictionary import Dictionary
from dlog.views.levels.program import Levels
from dlog.views.run.groups import GroupMaps, Groups, Results
from dlog.views.run.kept_maps import add_rows
from dlog.views.run.refill import Refilled, refill


class LevelGroups(GroupMaps[str]):
    """REQUIRES: values of all maps are integers, and a result counts what each group is made of."""

    refilled: Refilled | None = None  # how they were filled, if from other maps

    def __init__(
        self,
        levels: Levels,
        dictionary: Dictionary,
        threads: int | None = None,
        arena: Memory | None = None,
    ):
        self.levels, self.query = levels, levels.query
        roots = {name: name for name in self.query.results}
        super().__init__(levels.program.m3, roots, self.query.groups, dictionary, threads, arena)

    def by(self, levels: Levels, rows: Callable[[str], Words]) -> LevelGroups:
        """Other maps for the same query, where those that stay have what they have here; these are not valid
        any more.  `rows`: all rows of a relation, of which new maps are computed.  Raises DataError for what
        these cannot hold, then nothing has changed.
        """
        before = self.runtime
        dictionary, arena = before.dictionary, before.maps.arena
        later = LevelGroups(levels, dictionary, self.threads, arena)
        try:
            later.refilled = refill(
                self.levels,
                before,
                levels,
                later.runtime,
                lambda program: Runtime(program, dictionary=dictionary, arena=arena),
                lambda runtime, source: add_rows(runtime, source.name, rows(source.name)),
            )
        except BaseException:
            later.runtime.release()
            raise
        later.changed()
        before.release()
        return later

    def changed_groups(self) -> Groups:
        found, present = self.changed(), self.query.present or ""
        return Groups(found.keys, (found.before[present], found.after[present]), (found.before, found.after))

    def results(self) -> Results | None:
        present = self.query.present
        if present is None:
            return None
        values = {name: (place,) for name, place in self.places.items()}
        return Results(self.query.groups, values, self.places[present], self.width)
