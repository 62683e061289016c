"""Heads over arrays: groups and sums from scratch, and changes of a head from changes of assignments.

Knows no rules.
"""
