"""From SQL to aggregation queries.  The only importer of sqlglot."""
