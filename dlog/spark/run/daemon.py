"""The process that Spark forks its Python workers from, with the engine imported once for all of them.

Spark starts it by `spark.python.daemon.module`.  A worker then begins its first task at once: importing
the engine in each took 0.6 s.
"""

import gc

from pyspark.daemon import manager

import dlog.spark.run.tasks  # noqa: F401

if __name__ == "__main__":
    # A worker collects garbage after each task: scanning the engine's modules took 35 ms of 60.
    gc.freeze()
    manager()
