"""Folds over intervals of rows, and interval trees."""
