"""Owns `dlog compare`: a file of transactions under every strategy of maintenance, measured side by side.

| module | owns |
| --- | --- |
| `measure` | the runs: databases that differ only in their strategy, and what each transaction costs |
| `table` | the results as a table, and the sentence about the choice |
| `page` | the same as one HTML page, with pictures |

It takes the strategies from `dlog.engine.maintain.strategies` and knows none of them by name.
"""

from dlog.compare.measure import Comparison, compare
from dlog.compare.page import write_page
from dlog.compare.table import table

__all__ = ["Comparison", "compare", "table", "write_page"]
