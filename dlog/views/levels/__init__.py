"""Queries that are maintained by levels of maps (`dlog.multilevel`)."""
