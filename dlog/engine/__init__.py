"""A program with its data: databases, transactions, queries, and the maintenance of derived predicates."""
