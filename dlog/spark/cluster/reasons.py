"""Owns readable reasons for Spark's errors: the cause at the bottom of a long trace, and what can be done.

Knows nothing of programs.
"""

from __future__ import annotations

import re
from typing import Any

_NO_CLASS = re.compile(r"(?:ClassNotFoundException|NoClassDefFoundError|Class)[: ]+(?:Class )?([\w./$]+)")
_NO_SCHEME = re.compile(r'No FileSystem for scheme "?(\w+)')
_AMAZON = ("hadoop.fs.s3a", "amazonaws", "awssdk")


def reason(error: BaseException) -> str:
    """One line that says what went wrong.  Never raises: the Java machine may have ended."""
    try:
        return _of_java(error) or _first(str(error)) or type(error).__name__
    except Exception:
        return "Spark ended"


def task_reason(error: Exception) -> str:
    """The same for a job: the last line of Spark's long output that mentions an error.  Never raises."""
    try:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    except Exception:
        return "Spark ended"
    errors = [line for line in lines if "Error" in line or "Exception" in line or "exited" in line]
    return (errors or lines or [type(error).__name__])[-1][:300]


def remedy(why: str, hadoop: str = "VERSION") -> str | None:
    """Advice where Spark lacks the code for a kind of URI.

    >>> remedy('No FileSystem for scheme "gs"')
    'Spark has no code for gs://: give its jars with --conf spark.jars=FILE,...'
    >>> remedy("ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", "3.4.2")
    'Spark has no code for s3a://: get it with --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.4.2'
    """
    if found := _NO_SCHEME.search(why):
        return f"Spark has no code for {found[1]}://: give its jars with --conf spark.jars=FILE,..."
    if not (missing := _NO_CLASS.search(why)):
        return None
    if any(name in missing[1].replace("/", ".") for name in _AMAZON):
        package = f"org.apache.hadoop:hadoop-aws:{hadoop}"
        return f"Spark has no code for s3a://: get it with --conf spark.jars.packages={package}"
    return "Spark lacks this class: give its jars with --conf spark.jars=FILE,..."


def hadoop_version(spark: Any) -> str:
    try:
        return str(spark.sparkContext._jvm.org.apache.hadoop.util.VersionInfo.getVersion())
    except Exception:
        return "VERSION"


def _of_java(error: BaseException) -> str:
    """The innermost cause of an exception of Java's."""
    thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if thrown is None or isinstance(thrown, str):
        return ""
    while thrown.getCause() is not None:
        thrown = thrown.getCause()
    name = str(thrown.getClass().getName()).rsplit(".", 1)[-1]
    text = _first(str(thrown.getMessage() or ""))
    return text if text and name.endswith(("AnalysisException", "SparkException")) else f"{name}: {text}"


def _first(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else ""
