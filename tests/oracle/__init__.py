"""Oracles: simple programs that say what the engine's answers must be.  They share no code with it."""
