"""Subsumption without recursion: the rows with those that are subsumed, and which of them are."""
