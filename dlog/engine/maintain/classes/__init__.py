"""The classes of equivalence relations: union-find for pairs that come, one class for each pair that goes."""
