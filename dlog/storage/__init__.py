"""Rows in memory: int64 codes of values, the dictionary of strings, the arena, versioned sorted indices."""
