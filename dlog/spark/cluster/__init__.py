"""Spark's Java, its session, and plain reasons for its errors."""
