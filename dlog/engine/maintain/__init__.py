"""How a transaction updates derived predicates.  One folder for each strategy: see `strategies`."""
