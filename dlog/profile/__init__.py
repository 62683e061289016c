"""Owns the profile of a run as one HTML page: where time went, by rule and by iteration, and by which plans.

The page needs nothing but itself: no network, no other file.  Everything in it is there without scripts;
scripts only sort, show hints and open what a link leads to.  Knows nothing of how rules are evaluated: it
reads the measures that a traced run leaves.

| module | owns |
| --- | --- |
| `data` | the numbers, gathered from a database |
| `picture` | a plan as a picture |
| `chart` | rows per iteration as bars |
| `page` | the page |
"""

from dlog.profile.data import Clock
from dlog.profile.page import write_profile

__all__ = ["Clock", "write_profile"]
