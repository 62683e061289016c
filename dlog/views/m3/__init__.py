"""From view trees to M3 programs."""
