"""How derived predicates follow a transaction.  One folder for each strategy: see `strategies`."""
