"""Types and binding patterns of M3 programs."""
