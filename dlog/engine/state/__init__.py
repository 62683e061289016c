"""The state of a database: relations by name, limits, measures, and the rows of an open transaction."""
