"""Sensitivity indices and change oracles (maintenance paper, 4): what an evaluation read, and what it
has to read again.  Knows join plans and indices; knows nothing of rules, heads or transactions.

| module | owns |
| --- | --- |
| `watches` | which parts of a plan's run are sensitive to which level of which atom, and what is noted |
| `intervals` | the sensitivity indices: versions, matching of surgeries, covered parts |
| `oracle` | the change oracle: contributions of surgeries, as a guide for the machine |
| `upkeep` | one cycle of one plan: match, evaluate old and new under the oracle, record |
"""
