"""Evaluation from scratch: strata in order, recursion, chunks, several cores."""
