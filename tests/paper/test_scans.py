"""The scan tree of section 3.1: the maximum sales of a store in each region."""

from __future__ import annotations

from dlog.storage.arena.arena import Arena
from dlog.storage.index.index import Index
from dlog.storage.scan.scan_tree import scan

# (region, store, sales), as printed.
SALES = [
    (1, 1, 1000),
    (1, 2, 1500),
    (1, 3, 7300),
    (1, 4, 8000),
    (1, 5, 15000),
    (2, 6, 2900),
    (2, 7, 3500),
    (2, 8, 1440),
    (2, 9, 3300),
    (2, 10, 1245),
    (2, 11, 7024),
    (2, 12, 5510),
    (2, 13, 9000),
    (3, 14, 325),
    (3, 15, 4000),
    (3, 16, 5300),
]
TOT = 2


def test_paper_maxsales_of_region_2() -> None:
    sales = Index.build(Arena(1 << 28), SALES, 3, scan=TOT)
    assert scan(sales, "max", (2,), (2,)) == 9000


def test_paper_all_scans_of_every_interval() -> None:
    sales = Index.build(Arena(1 << 28), SALES, 3, scan=TOT)
    for i, lower in enumerate(SALES):
        for j, upper in enumerate(SALES):
            totals = [tot for _, _, tot in SALES[i : j + 1]]
            assert scan(sales, "count", lower, upper) == len(totals)
            assert scan(sales, "sum", lower, upper) == sum(totals)
            assert scan(sales, "max", lower, upper) == max(totals, default=None)
            assert scan(sales, "min", lower, upper) == min(totals, default=None)


def test_paper_a_changed_value_changes_the_path_above_it() -> None:
    sales = Index.build(Arena(1 << 28), SALES, 3, scan=TOT)
    later, _ = sales.apply(inserts=[(2, 13, 10)], erases=[(2, 13, 9000)])
    assert scan(later, "max", (2,), (2,)) == 7024
    assert scan(sales, "max", (2,), (2,)) == 9000
