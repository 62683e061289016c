"""Speed, always as a ratio to a peer or to another way of doing the same, both sides in the same run.

CONTRIBUTING.md says how to add a benchmark.
"""
