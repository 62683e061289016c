"""Owns the groups of a query that levels of maps maintain: rows of changes in, the groups that changed out.
Knows no engine.
"""

from __future__ import annotations

from dlog.storage.dictionary.dictionary import Dictionary
from dlog.views.levels.program import Levels
from dlog.views.run.groups import GroupMaps, Groups, Results


class LevelGroups(GroupMaps[str]):
    """REQUIRES: values of all maps are integers, and a result counts what each group is made of."""

    def __init__(self, levels: Levels, dictionary: Dictionary, threads: int | None = None):
        query = self.query = levels.query
        roots = {name: name for name in query.results}
        super().__init__(levels.program.m3, roots, query.groups, dictionary, threads)

    def changed_groups(self) -> Groups:
        found, present = self.changed(), self.query.present or ""
        return Groups(found.keys, (found.before[present], found.after[present]), (found.before, found.after))

    def results(self) -> Results | None:
        present = self.query.present
        if present is None:
            return None
        return Results(self.query.groups, self.places, self.places[present], self.width)
