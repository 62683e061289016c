"""Programs on Spark: sources, tasks of workers, copies of relations, outputs."""
