"""Sequences: rows that come or go renumber those behind them."""
