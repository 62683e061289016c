"""Relations: the rows of one predicate in all the column orders that are read."""
