"""How a program is divided into shards, blocks and jobs.  Starts no Spark."""
