"""Spark's Java, its session, and readable reasons for its errors."""
