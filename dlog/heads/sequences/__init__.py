"""Numbered rows: what a sequence stores for each group of sorted rows."""
