"""Owns the profile of a run as one HTML page: where time went, by rule and by iteration, and which plans ran.

The page is self-contained: no network, no other file.  Everything in it works without scripts;
scripts only sort, show hints and open the target of a link.  Knows nothing of how rules are evaluated: it
reads the measurements of a traced run.

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
