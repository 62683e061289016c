"""Indices: sets of rows in one column order, as versioned trees that share pages."""
