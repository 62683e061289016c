"""Streams of facts on Spark: files in, batches as transactions, changes out."""
