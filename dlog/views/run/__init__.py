"""View trees at work: queries that are kept up to date by an M3 runtime."""
