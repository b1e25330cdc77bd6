"""What dynamic frames cost: the same work by `DynamicFrame` and by Spark's DataFrame, in turns.

csv    read, rename and cast all columns, write Parquet: `apply_mapping`, and `select` with casts; bound: 1.5 times
json   read records whose types differ, write Parquet: `create_dynamic_frame`, and `spark.read.json`, which makes
       text of what differs; bound: 2.5 times
plain  the same of records whose types agree
mixed  the same of records that hold an array with values of several types, of which their shapes do not tell all

$ python -m benchmarks.glue_frames --megabytes 200
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_bookmarks.glue.context import GlueContext
from airflow_bookmarks.glue.run import current_run

_MB = 1_000_000
_BOUNDS = {"csv": "1.5", "json": "2.5", "plain": "2.5", "mixed": "none"}
_MAPPINGS = [
    ("id", "string", "order_id", "long"),
    ("name", "string", "customer", "string"),
    ("price", "string", "price", "double"),
    ("day", "string", "day", "date"),
    ("city", "string", "city", "string"),
]

Work = Callable[[str, str], None]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, write `build/bench/glue_frames.json`."""
    parser = argparse.ArgumentParser("python -m benchmarks.glue_frames", description="What dynamic frames cost.")
    parser.add_argument("--megabytes", type=int, default=50, help="of each source; default 50")
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds of each, after one to warm up; default 3")
    parser.add_argument("--only", choices=tuple(_BOUNDS), nargs="+", default=tuple(_BOUNDS))
    given = parser.parse_args(arguments)
    logging.getLogger("airflow_bookmarks").setLevel(logging.ERROR)
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-glue-") as folder:
        spark = _spark(folder)
        print(f"{'':8}{'DataFrame':>12}{'DynamicFrame':>14}{'times':>8}{'bound':>8}")
        for case in given.only:
            source = _made(Path(folder), case, given.megabytes)
            found[case] = _measured(spark, case, source, folder, given.rounds)
            row = found[case]
            print(
                f"{case:8}{row['spark_s']:>10.2f} s{row['frame_s']:>12.2f} s{row['times']:>8.2f}{_BOUNDS[case]:>8}",
                flush=True,
            )
        spark.stop()
    place = Path("build/bench")
    place.mkdir(parents=True, exist_ok=True)
    (place / "glue_frames.json").write_text(json.dumps({**vars(given), "found": found}, indent=2) + "\n")


def _spark(folder: str) -> SparkSession:
    conf = {
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": f"{folder}/spark",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.ansi.enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("benchmarks.glue_frames")
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _measured(spark: SparkSession, case: str, source: str, folder: str, rounds: int) -> dict[str, object]:
    """Do the work both ways in turns, and return the medians and all times."""
    sides: Mapping[str, Work] = (
        {"spark": lambda *of: _csv_by_spark(spark, *of), "frame": lambda *of: _csv_by_frame(spark, *of)}
        if case == "csv"
        else {"spark": lambda *of: _json_by_spark(spark, *of), "frame": lambda *of: _json_by_frame(spark, *of)}
    )
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, work in sides.items():
            target = f"{folder}/{case}-{name}"
            begun = time.perf_counter()
            work(source, target)
            if number:  # the first warms up
                seconds[name].append(time.perf_counter() - begun)
            shutil.rmtree(target)
            current_run(spark).release()
    medians = {f"{name}_s": statistics.median(values) for name, values in seconds.items()}
    return {**medians, "times": medians["frame_s"] / medians["spark_s"], "seconds": seconds}


def _csv_by_spark(spark: SparkSession, source: str, target: str) -> None:
    rows = spark.read.option("header", True).csv(source)
    _written(rows.select(*[F.col(old).cast(_sql(kind)).alias(new) for old, _, new, kind in _MAPPINGS]), target)


def _sql(kind: str) -> str:
    return "bigint" if kind == "long" else kind


def _csv_by_frame(spark: SparkSession, source: str, target: str) -> None:
    frame = GlueContext(spark).create_dynamic_frame.from_options(
        "file", {"paths": [source]}, format="csv", format_options={"withHeader": True}
    )
    _written(frame.apply_mapping(_MAPPINGS).toDF(), target)


def _json_by_spark(spark: SparkSession, source: str, target: str) -> None:
    _written(spark.read.json(source), target)


def _json_by_frame(spark: SparkSession, source: str, target: str) -> None:
    frame = GlueContext(spark).create_dynamic_frame.from_options("file", {"paths": [source]}, format="json")
    _written(frame.toDF(), target)


def _written(rows: DataFrame, target: str) -> None:
    rows.write.parquet(target)


# ---- sources


def _made(folder: Path, case: str, megabytes: int) -> str:
    """Write a source of so many megabytes, in four files; return its folder."""
    chance = random.Random(case)
    place = folder / f"source-{case}"
    place.mkdir()
    for number in range(4):
        lines = [] if case != "csv" else ["id,name,price,day,city"]
        size = 0
        while size < megabytes * _MB / 4:
            lines.append(_line(case, chance))
            size += len(lines[-1]) + 1
        (place / f"part-{number}.{'csv' if case == 'csv' else 'json'}").write_text("\n".join(lines) + "\n")
    return str(place)


def _line(case: str, chance: random.Random) -> str:
    whole = chance.randrange(100_000)
    if case == "csv":
        day = f"2026-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
        return f"{whole},customer number {whole},{chance.random() * 100:.2f},{day},city {whole % 1000}"
    differs = case in ("json", "mixed") and chance.random() < 0.3
    texts = {"json": [differs] * 4, "mixed": [chance.random() < 0.3 for _ in range(4)]}.get(case, [False] * 4)
    record = {
        "id": whole,
        "name": f"customer number {whole}",
        "price": whole % 100 if differs else round(chance.random() * 100, 2) + 0.001,
        "code": f"c{whole}" if differs else whole % 1000,
        "address": {"street": f"street {whole % 1000}", "zip": f"Z-{whole}" if differs else whole},
        "items": [{"sku": f"s{each}", "quantity": "none" if texts[each] else each} for each in range(whole % 4)],
        "is_new": whole % 2 == 0,
    }
    return json.dumps(record)


if __name__ == "__main__":
    main()
