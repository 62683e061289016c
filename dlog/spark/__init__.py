"""The same programs on Apache Spark: rules sharded by their first key, and streams of facts.

Only this package imports pyspark, and only when a session is started: planning (`shards`) does not need it.
"""
