"""Where the files of the DAGs lie: on this disk, or in S3."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from demo.bucket import NAME, REGION, Bucket, running_bucket
from demo.landing import Flights, Landing
from tools.jars import fetch_for_spark

if TYPE_CHECKING:
    from demo.folders import Folders

KINDS = ("local", "s3")

_RAW = "raw/flights"


@dataclass(frozen=True, slots=True)
class Lake:
    """What the rest of the demo has to know of it.

    `data` is what the DAGs know as `flights_data`, `environment` what Airflow and Spark find it by, `java_options` what
    else Spark has to be told, `jars` a folder of what Spark needs for it. `here` makes a target readable on this
    machine, and returns where.
    """

    landing: Landing
    data: str
    environment: dict[str, str] = field(default_factory=dict)
    java_options: str = ""
    jars: Path | None = None
    here: Callable[[Path], Path] = Path


@contextmanager
def running_lake(kind: str, folders: Folders) -> Iterator[Lake]:
    """Yield an empty lake; a server that is needed for it ends with the block."""
    flights = Flights.of_2013()
    if kind == "local":
        yield Lake(Landing(folders.raw, flights), str(folders.data))
        return
    jars = fetch_for_spark("s3a")
    with running_bucket() as bucket:
        environment = {
            "AWS_ENDPOINT_URL_S3": bucket.url,
            "AWS_REGION": REGION,
            # Behind all else on the class path, where Spark's classes keep their archive.
            "SPARK_DIST_CLASSPATH": f"{jars}/*",
        }

        def here(target: Path) -> Path:
            bucket.fetch(f"{target.relative_to(folders.data)}/", target)
            return target

        yield Lake(
            BucketLanding(folders.raw, flights, bucket), f"s3a://{NAME}", environment, _java_options(bucket), jars, here
        )


class BucketLanding(Landing):
    """A prefix of a bucket that deliveries land in, from a folder that keeps what was delivered.

    Args:
        folder: where it is kept.
        flights: what there is to deliver.
        bucket: where it lands.
    """

    def __init__(self, folder: Path, flights: Flights, bucket: Bucket) -> None:
        super().__init__(folder, flights)
        self._bucket = bucket

    def deliver(self, day: date, lines: Iterable[str], *, delivered_at: datetime) -> None:
        """Put a file in place at once: S3 shows no half of an object."""
        super().deliver(day, lines, delivered_at=delivered_at)
        self._bucket.put(self.path(day), f"{_RAW}/{self.path(day).name}", delivered_at)


def _java_options(bucket: Bucket) -> str:
    """Return what Spark is to know of the store. Who it is says the environment."""
    settings = {
        "endpoint": bucket.url,
        "endpoint.region": REGION,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }
    return " ".join(f"-Dspark.hadoop.fs.s3a.{name}={value}" for name, value in settings.items())
