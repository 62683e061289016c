"""Running view trees: queries that an M3 runtime maintains."""
