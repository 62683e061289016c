"""View trees: aggregation queries, factorised along a variable order, maintained by M3 triggers.

`query` is the question, `orders` and `dtree` find, read and write variable orders, `build` makes the tree of
views (`tree`), `program` the M3 program that maintains it.
"""
