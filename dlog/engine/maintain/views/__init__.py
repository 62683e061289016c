"""The view strategy: sums and counts over a join are maintained by a view tree."""
