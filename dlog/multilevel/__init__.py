"""Multilevel incremental view maintenance: definitions of aggregates -> an M3 program that maintains them.

Definitions are expressions of M3's syntax over relations, read as `binding` says.  The package knows neither
SQL nor rules, neither arrays nor transactions.
"""
