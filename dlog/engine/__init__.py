"""A program with its data: databases, transactions, queries, and how derived predicates follow changes."""
