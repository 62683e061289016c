"""Rings: the values that maps hold, with addition and multiplication."""
