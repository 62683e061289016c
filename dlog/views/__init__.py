"""View trees: aggregation queries, factorised along a variable order, kept up to date by M3 triggers.

`query` is what is asked, `orders` and `dtree` find, read and write variable orders, `build` makes the tree of
views (`tree`), `program` the M3 program that keeps it.
"""
