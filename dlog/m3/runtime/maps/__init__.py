"""Maps from keys to ring elements: hash tables in arrays, with indices."""
