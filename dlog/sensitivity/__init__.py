"""Sensitivity indices and change oracles (maintenance paper, 4): where an evaluation looked, and where it
has to look again.  Knows join plans and indices; knows nothing of rules, heads or transactions.

| module | owns |
| --- | --- |
| `watches` | what of a plan's run is sensitive to which level of which atom, and what is noted of it |
| `intervals` | the sensitivity indices: versions, matching of surgeries, covered parts |
| `oracle` | the change oracle: contributions of surgeries, as a guide for the machine |
| `upkeep` | one cycle of one plan: match, evaluate old and new under the oracle, record |
"""
