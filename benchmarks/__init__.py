"""Speed, always as a ratio to a peer or to another method, both sides in the same run.

CONTRIBUTING.md says how to add a benchmark.
"""
