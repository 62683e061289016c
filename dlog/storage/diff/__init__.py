"""Differences between two versions of an index: changed rows, surgeries, sparse complements."""
